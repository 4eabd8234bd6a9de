"""`--dry-run` and `--at`: what is asked, and what is said; nothing is changed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from served import Serve

from muster.cli.main import run_command
from muster.units import Resources
from muster.wire.forecast_views import DayRow, DayView, TrialJob, TrialView
from muster.wire.views import (
    BarView,
    BookingView,
    FlavorView,
    GoodputView,
    JobPage,
    JobView,
    LineView,
    NodeView,
    Place,
    TaskCounts,
    TenantView,
    WhyView,
    WindowView,
)

STARTS = JobView(7, "", "lab", "starting", 1, Resources(8), 1, 1, 1, places=[Place("n1", 1)])


def test_a_job_that_would_start(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    stops = [TrialJob(3, "vision", "big", "is told to stop")]
    view = TrialView(1, STARTS, price_micros=20_000_000, stops=stops, stopped=2)
    seen = serve({"POST /v1/trials/jobs": view})
    assert run_command(["run", "--dry-run", "--gpus", "8", "--", "train"]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        "would be accepted, and start now on n1, for 20.00 an hour",
        "2 jobs would be told to stop:",
        "  job 3 big of vision",
        "  … and 1 more",
    ]
    assert told.err == "nothing was submitted\n"
    assert [(request.method, request.path) for request in seen] == [("POST", "/v1/trials/jobs")]


def test_a_job_that_would_wait(serve: Serve, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    why = WhyView(7, "queued", "M201", "waiting for room: x", "wait", position=1)
    serve({"POST /v1/trials/jobs": TrialView(1, STARTS, why)})
    (tmp_path / "j.yaml").write_text("name: a\ncommand: x\n")
    assert run_command(["submit", "--dry-run", str(tmp_path / "j.yaml")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "a: would be accepted, and wait: waiting for room: x [M201]",
        "  place in the line: 1",
        "help: wait",
    ]


def test_an_array_of_which_some_tasks_would_start(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    array = replace(STARTS, tasks=5, counts=TaskCounts(queued=3, starting=2), places=[Place("n1", 2)])
    why = WhyView(
        7, "starting", "M201", "waiting for room: x", "wait", position=1, offer="its first task starts now if: y"
    )
    serve({"POST /v1/trials/jobs": TrialView(1, array, why)})
    assert run_command(["run", "--dry-run", "--array", "5", "--", "train"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "would be accepted, and 2 of 5 tasks start now on n1",
        "  the others would be waiting for room: x [M201]",
    ]


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("cancel", "would be cancelled"),
        ("hold", "would be held"),
        ("release", "would be released"),
        ("requeue", "would go back to the queue"),
    ],
)
def test_what_would_become_of_a_job_and_of_others(
    verb: str, said: str, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    stops = [TrialJob(7, "lab", "", "is told to stop")]
    view = TrialView(1, starts=[TrialJob(9, "vision", "next", "starts")], started=1, stops=stops, stopped=1)
    seen = serve({"GET /v1/jobs/7": replace(STARTS, name="mine"), f"POST /v1/trials/jobs/7/{verb}": view})
    assert run_command([verb, "7", "--dry-run"]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        f"job 7 (mine) of lab, starting on n1, {said}",
        "  it would be told to stop",
        "1 job would start:",
        "  job 9 next of vision",
    ]
    assert told.err == "nothing was changed; the same without --dry-run does it\n"
    assert all(request.method == "GET" or "/trials/" in request.path for request in seen)


def test_what_a_move_and_other_bounds_would_do(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    stops = [TrialJob(7, "lab", "", "is told to stop")]
    moves = TrialView(1, stops=stops, stopped=1, places=[Place("n2", 1), Place("n3", 2)], places_total=4)
    answers = {
        "GET /v1/jobs/7": replace(STARTS, phase="running"),
        "POST /v1/trials/jobs/7/migrate": moves,
        "POST /v1/trials/jobs/7/scale": TrialView(1, tasks=4),
    }
    seen = serve(answers)
    assert run_command(["migrate", "7", "--off", "n1", "--dry-run"]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[0] == "job 7 of lab, running on n1, would go on elsewhere"
    assert told.out.splitlines()[1].startswith("  it would be told to stop, after ")
    assert told.out.splitlines()[2:] == ["  it would go on on n2, n3 (2 tasks) and 2 more"]
    assert msgspec.json.decode(seen[0 if seen[0].body else 1].body) == {"to": [], "off": ["n1"]}
    assert run_command(["scale", "7", "2-4", "--dry-run"]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        "job 7 of lab, running on n1, would have 2 to 4 tasks",
        "  it would have 4 tasks instead of 1",
    ]
    assert told.err == "nothing was changed; the same without --dry-run does it\n"
    assert all(request.method == "GET" or "/trials/" in request.path for request in seen)


def test_what_a_booking_would_get(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    windows = [WindowView(0, 3_600_000, ["n1", "n2"]), WindowView(86_400_000, 90_000_000, ["n1"], short=1)]
    waits = [TrialJob(5, "lab", "", "waiting for room: y (before: waiting for quota: z)")]
    view = TrialView(1, waits=waits, waiting=1, booking=BookingView("night", "vision", 2, windows))
    seen = serve({"PUT /v1/trials/bookings/night": view})
    asked = ["reserve", "night", "--tenant", "vision", "--nodes", "2", "--from", "2h", "--for", "1h", "--dry-run"]
    assert run_command(asked) == 0
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        "booking night would be made, for vision:",
        "  1970-01-01 00:00 to 1970-01-01 01:00: n1, n2",
        "  1970-01-02 00:00 to 1970-01-02 01:00: n1, short by 1",
        "1 job would wait for another reason:",
        "  job 5 of lab: waiting for room: y (before: waiting for quota: z)",
    ]
    assert told.err == "nothing was changed; the same without --dry-run does it\n"
    assert [request.path for request in seen] == ["/v1/trials/bookings/night"]


def test_what_bars_would_do(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    ours, others = BarView("cordon", "operator", 1), BarView("drain", "health", 1, "ECC")
    node = NodeView("n1", "up", Resources(8), Resources(0), jobs=2)
    starts = [TrialJob(9, "lab", "", "starts")]
    seen = serve(
        {
            "GET /v1/nodes/n1": [node, replace(node, bars=[ours]), replace(node, bars=[ours, others]), node],
            "PUT /v1/trials/nodes/n1/bars/cordon": TrialView(1),
            "DELETE /v1/trials/nodes/n1/bars": TrialView(1, starts=starts, started=1),
        }
    )
    nobody = "no job would start, stop or wait for another reason at once"
    for words, said in (
        ("cordon", ["n1 would be cordoned; 2 jobs go on there", nobody]),
        ("uncordon", ["n1 would be open for new work", "1 job would start:", "  job 9 of lab"]),
        ("uncordon", ["n1 would still be barred: drain by health: ECC", "1 job would start:", "  job 9 of lab"]),
        ("uncordon", ["n1 is open for new work already", "1 job would start:", "  job 9 of lab"]),
    ):
        assert run_command([words, "n1", "--dry-run"]) == 0
        told = capsys.readouterr()
        assert (told.out.splitlines(), told.err.split(";")[0]) == (said, "nothing was changed")
    assert all(request.method == "GET" or "/trials/" in request.path for request in seen)


def test_jobs_that_come_after_others_are_tried_as_if_those_were_over(
    serve: Serve, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    serve({"POST /v1/trials/jobs": TrialView(1, STARTS)})
    (tmp_path / "j.yaml").write_text("name: a\ncommand: x\n---\nname: b\ncommand: x\nafterok: a\n")
    assert run_command(["submit", "--dry-run", str(tmp_path / "j.yaml")]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[2] == "  as if those it is to run after were done with: they are not waited for here"
    assert told.err == "nothing was submitted\n"


def test_a_quota_says_what_is_and_what_would_be(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    known = TenantView("lab", lines=[LineView("gpu", limit=2_000_000)])
    waits = [TrialJob(5, "lab", "", "waiting for room: y (before: waiting for quota: z)")]
    view = TrialView(1, starts=[TrialJob(4, "lab")], started=1, waits=waits, waiting=1)
    seen = serve(
        {
            "GET /v1/tenants": (known,),
            "GET /v1/flavors": (FlavorView("gpu", "gpu", 1000, devices=8),),
            "PUT /v1/trials/tenants/lab": view,
        }
    )
    assert run_command(["quota", "set", "lab", "gpus=4", "--weight", "3", "--dry-run"]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        "lines: may hold gpu: at most 4 GPUs (now: may hold gpu: at most 2 GPUs)",
        "weight: 3 (now: 1)",
        "1 job would start:",
        "  job 4 of lab",
        "1 job would wait for another reason:",
        "  job 5 of lab: waiting for room: y (before: waiting for quota: z)",
        "the next 24 h were not simulated: there is too much to run ahead (5,000 jobs are the most)",
    ]
    assert told.err.startswith("nothing was changed")
    assert (seen[-1].method, seen[-1].path) == ("PUT", "/v1/trials/tenants/lab")


def test_a_quota_says_who_would_wait_more_in_a_day(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [DayRow("lab", 4, (4, 3), (60_000, 3_600_000)), DayRow("vision", 2, (2, 2), (9000, 9000))]
    view = TrialView(1, day=DayView(rows, (0, 2), (815, 640), 7))
    serve({"GET /v1/tenants": (TenantView("lab"),), "GET /v1/flavors": (), "PUT /v1/trials/tenants/lab": view})
    assert run_command(["quota", "set", "lab", "gpus=4", "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "simulated, the next 24 h (those who are here, and the 7 jobs of the last day come again):",
        "  lab waits more: 1h instead of 1m on the average; 3 of 4 jobs start instead of 4",
        "  stopped for others: 2 instead of 0; GPU time held: 64 % instead of 81.5 %",
    ]


def test_a_tier_that_would_move_nobody(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    serve({"GET /v1/tiers": (), "PUT /v1/trials/tiers/gold": TrialView(1)})
    assert run_command(["tiers", "set", "gold", "--rank", "1", "--due-after", "1h", "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("no job would start, stop or wait")


@pytest.mark.parametrize(
    ("words", "path"),
    [
        *((["ls"], "/jobs"), (["show", "7"], "/jobs/7"), (["goodput"], "/goodput")),
        *(([word], f"/{word}") for word in ("nodes", "tenants", "flavors", "tiers", "bookings", "overlays")),
    ],
)
def test_the_past_is_read_where_it_is(serve: Serve, words: list[str], path: str) -> None:
    view = {"/jobs": JobPage([]), "/jobs/7": STARTS, "/goodput": GoodputView(1, [])}.get(path, ())
    seen = serve({f"GET /v1/past/1792677900000{path}": view})
    assert run_command([*words, "--at", "2026-10-22 14:05"]) == 0
    assert len(seen) == 1


def test_a_time_that_is_none_is_said(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    serve({})
    assert run_command(["ls", "--at", "yesterday"]) == 2
    assert capsys.readouterr().err.startswith("error[M102]: time 'yesterday' is not a date")


@pytest.mark.parametrize(
    ("devices", "there"),
    [(8, "there are a100"), (0, "there are none at all")],
)
def test_lines_that_nobody_has_or_that_are_passed_are_noted(
    serve: Serve, capsys: pytest.CaptureFixture[str], devices: int, there: str
) -> None:
    known, flavor = TenantView("lab", used={"gpu": 3_000_000}), FlavorView("a100", "a100", 1000, devices=devices)
    serve({"GET /v1/tenants": (known,), "GET /v1/flavors": (flavor,), "PUT": b"{}"})
    assert run_command(["quota", "set", "lab", "gpus=2", "h10=512"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        f"note: no node has GPUs of family gpu (what `gpus` stands for) now; {there}",
        f"note: no node has GPUs of family h10 now; {there}",
        "note: lab holds 3 GPUs, which is more: what runs goes on, nothing starts",
        "muster undo takes it back",
    ]
