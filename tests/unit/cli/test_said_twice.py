"""What is said twice on a command line is put together or refused, and never dropped without a word."""

from __future__ import annotations

import pytest
from served import Serve, Told

from muster.cli.server import _describe, up
from muster.model.errors import RejectedError
from muster.sdk.node_file import NodeFile
from muster.units import Resources
from muster.wire.views import JobPage

FOUND = Resources(0, 2000, 1 << 30)


def test_declared_capacities_are_put_together() -> None:
    said = up.make_context("up", ["--capacity", "gpus=8", "--capacity", "cpus=64,memory=2Gi"]).params
    capacity = _describe({"capacity": said["capacity"]})["capacity"]
    assert NodeFile(capacity=capacity).capacity_of(FOUND) == Resources(8, 64_000, 2 << 30)


def test_none_is_said_by_an_empty_one_and_nothing_by_none() -> None:
    said = up.make_context("up", ["--capacity", ""]).params
    assert _describe({"capacity": said["capacity"]}) == {"capacity": ""}
    assert _describe({"capacity": up.make_context("up", []).params["capacity"]}) == {}


def test_the_same_declared_twice_is_refused() -> None:
    with pytest.raises(RejectedError) as caught:
        NodeFile(capacity="gpus=8,gpus=4").capacity_of(FOUND)
    assert "gpus is declared twice" in caught.value.reason.detail


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ls", "--phase", "running", "--phase", "queued"], "--phase is said as running and as queued: say one"),
        (["ls", "--tenant", "a", "--tenant", "b"], "--tenant is said as a and as b: say one"),
        (["nodes", "--rack", "r1", "--rack", "r2"], "--rack is said as r1 and as r2: say one"),
    ],
)
def test_a_listing_does_not_show_one_of_two(words: list[str], said: str, serve: Serve, told: Told) -> None:
    assert serve({}) == []
    assert said in told(*words, code=2)


def test_the_same_filter_twice_is_one(serve: Serve, told: Told) -> None:
    seen = serve({"GET /v1/jobs": JobPage([])})
    told("ls", "--tenant", "a", "--tenant", "a")
    assert "tenant=a" in seen[0].path
