"""One made-up server and one reader for all tests of commands: no process, no socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeAlias

import msgspec
import pytest

from muster.cli.main import run_command
from muster.sdk.transport import Reply, Request, Transport
from muster.wire.forecast_views import ForecastView
from muster.wire.views import JobPage

Serve: TypeAlias = Callable[[Mapping[str, object]], list[Request]]


class Told(Protocol):
    def __call__(self, *arguments: str, code: int = 0) -> str: ...


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Serve:
    """Answers by `METHOD path?query`, else `METHOD path`, else `METHOD`; what is in none of them fails.

    A list holds answers for one request after the other, and the last one stays; a tuple is one answer.
    """
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path))

    def start(answers: Mapping[str, object]) -> list[Request]:
        known = {"GET /v1/jobs": JobPage([]), **answers}  # what is asked to see one's own change
        seen: list[Request] = []

        def answer(_: Transport, request: Request) -> Reply:
            seen.append(request)
            whole = f"{request.method} {request.path}"
            key = next((key for key in (whole, whole.partition("?")[0], request.method) if key in known), whole)
            value = ForecastView(0, 5, 0) if whole.endswith("/forecast") and key not in known else known[key]
            if isinstance(value, list):
                value = value.pop(0) if len(value) > 1 else value[0]
            return Reply(200, {"muster-seq": "5"}, value if isinstance(value, bytes) else msgspec.json.encode(value))

        monkeypatch.setattr(Transport, "_try", answer)
        return seen

    return start


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    """What a command that ends with `code` prints: of one that fails, what it says of it."""

    def tell(*arguments: str, code: int = 0) -> str:
        assert run_command(list(arguments)) == code
        out, err = capsys.readouterr()
        return err if code else out

    return tell
