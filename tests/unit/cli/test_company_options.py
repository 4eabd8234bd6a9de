"""`muster run --apart` and `--beside`: jobs are named by their names; the tenant is filled in."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from muster.cli.main import run_command
from muster.sdk.transport import Reply, Request, Transport
from muster.wire.views import JobPage, Submitted


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Request]:
    """What a server is asked that takes every job."""
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path))
    asked: list[Request] = []

    def answer(_: Transport, request: Request) -> Reply:
        asked.append(request)
        value: object = Submitted(1, 5) if request.method == "POST" else JobPage([], seq=5)
        return Reply(201, {"muster-seq": "5"}, msgspec.json.encode(value))

    monkeypatch.setattr(Transport, "_try", answer)
    return asked


def test_the_tenant_is_filled_in_where_it_is_left_out(seen: list[Request]) -> None:
    words = ("run", "-d", "--tenant", "vision", "--apart", "web", "--apart-level", "rack", "--beside", "vision/data")
    assert run_command([*words, "--", "true"]) == 0
    needs = msgspec.json.decode(seen[0].body)["needs"]
    assert (needs["apart"], needs["apart_level"], needs["beside"]) == (["vision/web"], "rack", ["vision/data"])


def test_who_asks_for_no_company_says_nothing_about_it(seen: list[Request]) -> None:
    assert run_command(["run", "-d", "--", "true"]) == 0
    assert "apart" not in msgspec.json.decode(seen[0].body).get("needs", {})
