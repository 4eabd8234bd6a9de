"""A bare validated POST: the API of a server, whole, with nothing behind it: whatever is submitted counts as accepted.

`python -m bench.bare` prints the port that it listens on and serves until it is ended.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import uvicorn

from muster.api.app import make_app
from muster.app.process import WallClock, run_http, settle_memory
from muster.app.serve import LocalLogs, bind, configure
from muster.control.follower import Follower
from muster.model.reason import Done
from muster.model.spec import Spec
from muster.stores.memory import MemoryStore
from muster.wire.link import Answer
from muster.world.world import World

TOKEN: Final = "bare"  # noqa: S105 - of no server
ACCEPTED: Final = Answer(1, 1, Done(1))


class Unled(Follower):
    """A follower that asks no leader, and journals and folds nothing."""

    async def submit(self, spec: Spec, key: str, cause: str) -> Answer:  # noqa: ARG002 - a follower's signature
        """The same answer for everybody."""
        return ACCEPTED


def main() -> None:
    """Serve."""
    listening = bind("127.0.0.1", 0, None)
    follower = Unled(World(), MemoryStore(), WallClock(), Path("leader.sock"))
    app = make_app(follower, LocalLogs(Path("engine")), TOKEN)
    settle_memory()
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    run_http(uvicorn.Server(configure(app)).serve([listening]))


if __name__ == "__main__":
    main()
