"""`cordon`, `drain` and `uncordon`: what they send and what they say. No server and no socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec
import pytest
from served import Serve, Told

from muster.cli import bars
from muster.sdk.transport import Request
from muster.units import HOUR_MS, Resources
from muster.wire.views import BarView, Changed, JobPage, JobView, NodeView, Place

NOW_MS = 1_000_000_000
OPEN = NodeView("n1", "up", Resources(8), Resources(6), 2)
CORDON = "/v1/nodes/n1/bars/cordon"
DRAIN = "/v1/nodes/n1/bars/drain"
Served: TypeAlias = Callable[[NodeView], list[Request]]


@pytest.fixture
def served(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Served:
    """A server with one node, which takes every change."""
    monkeypatch.setattr(bars, "_now_ms", lambda: NOW_MS)
    changes = {"PUT": Changed(5), "DELETE": Changed(5)}
    return lambda node: serve({"GET /v1/nodes": (node,), "GET": node, **changes})


def sent(request: Request) -> tuple[str, str, Mapping[str, object]]:
    return request.method, request.path, msgspec.json.decode(request.body)


def test_cordon_says_what_goes_on(served: Served, told: Told) -> None:
    seen = served(OPEN)
    assert told("cordon", "n1", "--reason", "fan", "--for", "2h") == "n1 is cordoned; 2 jobs go on there\n"
    body = {"reason": "fan", "until_ms": NOW_MS + 2 * HOUR_MS, "lets_finish": True}
    assert sent(seen[0]) == ("PUT", CORDON, body)
    assert seen[1].headers["Muster-At-Least"] == "5"


@pytest.mark.parametrize(
    ("jobs", "flags", "words"),
    [
        (2, (), "draining; 2 jobs are to finish there"),
        (1, (), "draining; 1 job is to finish there"),
        (0, (), "drained; nothing runs there"),
        (1, ("--now",), "draining; 1 job is told to stop"),
        (0, ("--now",), "drained; nothing runs there"),
    ],
)
def test_drain_says_what_becomes_of_the_jobs(
    served: Served, told: Told, jobs: int, flags: tuple[str, ...], words: str
) -> None:
    seen = served(msgspec.structs.replace(OPEN, jobs=jobs))
    assert told("drain", "n1", *flags) == f"n1 is {words}\n"
    assert sent(seen[0]) == ("PUT", DRAIN, {"reason": "", "until_ms": None, "lets_finish": not flags})


def test_uncordon_lifts_both_kinds_and_tells_what_is_left(served: Served, told: Told) -> None:
    seen = served(OPEN)
    assert told("uncordon", "n1") == "n1 is open for new work\n"
    assert [(item.method, item.path) for item in seen[:2]] == [("DELETE", CORDON), ("DELETE", DRAIN)]
    served(msgspec.structs.replace(OPEN, bars=[BarView("drain", "them", 1, "fan")]))
    assert told("uncordon", "n1") == "n1 is still barred: drain by them: fan\n"


def test_nodes_shows_bars_and_a_reason_cannot_steer_the_terminal(served: Served, told: Told) -> None:
    bar = BarView("drain", "operator", 1, "disk\x1b[2J swap", NOW_MS + HOUR_MS + 90_500)
    served(msgspec.structs.replace(OPEN, bars=[BarView("cordon", "operator", 1), bar]))
    heads, row = told("nodes").splitlines()
    assert heads.split()[-2:] == ["JOBS", "BARS"]
    assert row.endswith(r"2     cordon by operator; drain by operator, 1h 1m left: disk\x1b[2J swap")


def test_a_duration_that_is_none_is_refused_before_anything_is_sent(served: Served, told: Told) -> None:
    seen = served(OPEN)
    assert told("cordon", "n1", "--for", "soon", code=2).startswith("error[M102]: duration 'soon'")
    assert not seen


def test_a_drain_can_be_looked_at_first(serve: Serve, told: Told) -> None:
    runs = JobView(7, "big", "lab", "running", 2, Resources(4), 1, 1, 1, places=[Place("n1", 2)])
    elsewhere = msgspec.structs.replace(runs, id=8, places=[Place("n2", 2)])
    seen = serve(
        {
            "GET /v1/nodes": (OPEN, msgspec.structs.replace(OPEN, name="n2")),
            "GET /v1/nodes/n1": OPEN,
            "GET /v1/jobs?state=live&phase=starting&limit=1000&order=oldest": JobPage([]),
            "GET /v1/jobs": [JobPage([], next_after=3), JobPage([], next_after=5), JobPage([runs, elsewhere])],
        }
    )
    assert told("drain", "n1", "--dry-run").splitlines() == [
        "drain n1: nothing new starts there; 1 job there now",
        "  job 7 big of lab: 2 x 4g",
        "elsewhere 6 of 8 GPUs are free, on 1 node",
    ]
    assert {request.method for request in seen} == {"GET"}
