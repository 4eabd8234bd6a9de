"""What a job asked for is told whole: `show` has a field for every flag of `run`, and no gang is smaller than it is."""

from __future__ import annotations

import msgspec
import pytest
from served import Serve, Told

from muster.cli.respelling import SHOWN
from muster.cli.run import run
from muster.model.spec import Needs, Spec
from muster.units import Resources
from muster.wire.views import JobPage, JobView, Place, TaskCounts

ASK = Resources(1)
WIDE = JobView(7, "", "lab", "running", 2, ASK, 1, 1, 1, places=[Place("n1", 3), Place("n2", 1)], places_total=2)


@pytest.mark.parametrize(
    ("spec", "tasks", "asks"),
    [
        (Spec(("a",), gang=2, gang_most=8, ask=ASK), 2, "2 to 8 x 1 GPU"),
        (Spec(("a",), gang=2, ask=ASK), 2, "2 x 1 GPU"),
        (Spec(("a",), array=100, at_most=5, ask=ASK), 100, "100, at most 5 at once, x 1 GPU"),
    ],
)
def test_bounds_are_shown(serve: Serve, told: Told, spec: Spec, tasks: int, asks: str) -> None:
    serve({"GET /v1/jobs/7": JobView(7, "", "lab", "queued", tasks, ASK, 1, 1, spec=spec)})
    assert [line.split(maxsplit=1)[1] for line in told("show", "7").splitlines() if line.startswith("asks")] == [asks]


def test_where_it_may_be_and_how_it_stands_is_shown_as_flags(serve: Serve, told: Told) -> None:
    needs = Needs(booking="night", labels=("zone=a b",), within="rack")
    spec = Spec(("a",), tenant="lab", needs=needs, tier="critical", priority=5, evictable=False, grace_ms=10_000)
    serve({"GET /v1/jobs/7": JobView(7, "", "lab", "queued", 1, ASK, 1, 1, spec=spec)})
    flags = "--within rack --booking night --label 'zone=a b' --tier critical --priority 5 --no-evict"
    assert f"flags:    {flags}\n" in told("show", "7")


def test_no_flag_is_taken_for_shown_that_there_is_not() -> None:
    assert {option for param in run.params for option in param.opts} >= SHOWN


def test_an_elastic_gang_is_listed_as_wide_as_it_is(serve: Serve, told: Told) -> None:
    replace = msgspec.structs.replace
    array = replace(WIDE, id=8, counts=TaskCounts(running=4))
    serve({"GET /v1/jobs": JobPage([WIDE, replace(WIDE, tasks=4), replace(WIDE, places_total=9), array])})
    details = [line.split("  ")[-1].strip() for line in told("ls").splitlines()[1:]]
    assert details == ["n1,n2, 4 tasks", "n1,n2", "n1,n2, 4+ tasks", "0/2 done, 4 running"]


def test_a_node_is_listed_once_however_many_groups_are_on_it(serve: Serve, told: Told) -> None:
    replace = msgspec.structs.replace
    twice = replace(WIDE, tasks=4, places=[Place("n1", 1), Place("n1", 2), Place("n2", 1)], places_total=3)
    many = replace(twice, places=[Place("n1", 1)] * 4, places_total=9)
    serve({"GET /v1/jobs": JobPage([twice, many])})
    details = [line.split("  ")[-1].strip() for line in told("ls").splitlines()[1:]]
    assert details == ["n1,n2", "n1,…"]
