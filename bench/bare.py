"""A bare validated POST: the same HTTP server, guard, router and decoder as the API, and nothing behind them.

`python -m bench.bare` prints the port that it listens on and serves until it is ended.
"""

from __future__ import annotations

import sys
from typing import Final

import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.api.guard import Guard
from muster.api.jobs import read_spec
from muster.api.problems import JsonResponse, ProblemResponse
from muster.api.router import Router
from muster.app.process import run_http, settle_memory
from muster.app.serve import bind, configure
from muster.model.reason import Code, Reason
from muster.model.spec import find_fault
from muster.wire.views import Submitted

TOKEN: Final = "bare"  # noqa: S105 - of no server


async def _submit(request: Request) -> Response:
    spec = await read_spec(request)
    fault = find_fault(spec)
    if fault is not None:
        return ProblemResponse(fault)
    return JsonResponse(Submitted(1, 1), 201, {"Muster-Seq": "1"})


def main() -> None:
    """Serve."""
    listening = bind("127.0.0.1", 0, None)
    app = Router([Route("/v1/jobs", _submit, methods=["POST"])])
    guard = Guard(app, TOKEN, lambda _: Reason(Code.UNAUTHORISED))
    settle_memory()
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    run_http(uvicorn.Server(configure(guard)).serve([listening]))


if __name__ == "__main__":
    main()
