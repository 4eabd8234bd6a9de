"""`muster run --apart` and `--beside`: jobs are named by their names; the tenant is filled in."""

from __future__ import annotations

import msgspec
import pytest
from served import Serve

from muster.cli.main import run_command
from muster.sdk.transport import Request
from muster.wire.views import JobPage, Submitted


@pytest.fixture
def seen(serve: Serve) -> list[Request]:
    """What a server is asked that takes every job."""
    return serve({"GET": JobPage([], seq=5), "POST": Submitted(1, 5)})


def test_the_tenant_is_filled_in_where_it_is_left_out(seen: list[Request]) -> None:
    words = ("run", "-d", "--tenant", "vision", "--apart", "web", "--apart-level", "rack", "--beside", "vision/data")
    assert run_command([*words, "--", "true"]) == 0
    needs = msgspec.json.decode(seen[0].body)["needs"]
    assert (needs["apart"], needs["apart_level"], needs["beside"]) == (["vision/web"], "rack", ["vision/data"])


def test_who_asks_for_no_company_says_nothing_about_it(seen: list[Request]) -> None:
    assert run_command(["run", "-d", "--", "true"]) == 0
    assert "apart" not in msgspec.json.decode(seen[0].body).get("needs", {})
