"""Looking at the past, at silence and at what is over: each is said as it was or is, never as something else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from served import Serve, Told

from muster.cli import following
from muster.cli.main import run_command
from muster.units import Resources
from muster.wire.views import Health, JobPage, JobView, Submitted, TaskCounts, WhyView

THEN = 1_000_000_000_000
RAN = JobView(7, "", "lab", "running", 1, Resources(1), THEN - 9000, THEN - 5000, 1)
HELD = JobView(8, "", "lab", "queued", 1, Resources(1), THEN, THEN, held=True)
ARRAY = replace(HELD, id=9, tasks=4, counts=TaskCounts(queued=4))
HELD_WHY = WhyView(8, "queued", "M208", "held: it starts nothing until it is released", "release it")
PAST = "2001-09-09 01:46:40"  # THEN


def test_ages_are_those_of_the_time_that_is_looked_at(serve: Serve, told: Told) -> None:
    over = replace(RAN, phase="succeeded", is_over=True)
    past = f"GET /v1/past/{THEN}"
    not_waiting = WhyView(7, "running", "M203", "", "")
    serve(
        {
            f"{past}/jobs": JobPage([RAN]),
            f"{past}/jobs/7": [RAN, RAN, over],
            f"{past}/jobs/7/why": not_waiting,
        }
    )
    assert " 5s " in told("ls", "--at", PAST).splitlines()[1]
    assert "running, for 5s\n" in told("show", "7", "--at", PAST)
    assert told("why", "7", "--at", PAST) == "job 7 did not wait: it was running, for 5s\n"
    assert told("why", "7", "--at", PAST) == "job 7 was over: succeeded, 5s before\n"


@pytest.mark.parametrize("noun", ["ls", "nodes", "quota", "bookings", "goodput"])
def test_the_past_is_not_watched(noun: str, capsys: pytest.CaptureFixture[str]) -> None:
    for line in ([noun, "--watch", "--at", PAST], [noun, "--at", PAST, "--watch"]):
        assert run_command(line) == 2
        assert "leave one of them out" in capsys.readouterr().err


def test_why_of_an_array_says_how_much_of_it_waits(serve: Serve, told: Told) -> None:
    runs = replace(ARRAY, phase="running", counts=TaskCounts(queued=2, running=2))
    why = WhyView(9, "running", "M201", "waiting for room: 1 task must start", "wait", position=1)
    serve({"GET /v1/jobs/9": runs, "GET /v1/jobs/9/why": why})
    assert told("why", "9").splitlines()[1] == "  0/4 done, 2 running"


def test_tasks_that_were_cancelled_are_not_done(serve: Serve, told: Told) -> None:
    over = replace(ARRAY, phase="cancelled", is_over=True, held=False, counts=TaskCounts(succeeded=1, cancelled=3))
    serve({"GET /v1/jobs/9": over})
    assert "progress: 1/4 done, 3 cancelled\n" in told("show", "9")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("8",), "job 8 does not run; `muster why 8` says what it waits for\n"),
        (("7", "--epoch", "3"), "job 7 has no try 3 yet: this is try 1\n"),
        (("7",), ""),
    ],
)
def test_silence_is_explained(
    serve: Serve, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    serve({"GET /v1/jobs/7": RAN, "GET /v1/jobs/8": HELD, "GET /v1/jobs/7/logs": b"", "GET /v1/jobs/8/logs": b""})
    assert run_command(["logs", *words]) == 0
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "the first of 4 tasks; others: muster logs 9 --task N\n"),
        (("--task", "0"), ""),
    ],
)
def test_whoever_reads_one_task_of_several_is_told_so(
    serve: Serve, capfd: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    over = replace(ARRAY, phase="failed", is_over=True, held=False, counts=TaskCounts(failed=4))
    serve({"GET /v1/jobs/9": over, "GET /v1/jobs/9/logs": [b"hi\n", b""]})
    assert run_command(["logs", "9", *words]) == 0
    assert capfd.readouterr() == ("hi\n", said)


def test_a_span_of_tasks_that_ends_before_it_begins_is_refused(told: Told) -> None:
    assert told("logs", "7", "--task", "3-1", code=2).startswith("error: --task 3-1: 3-1 ends before it begins")


@pytest.mark.parametrize("options", [(), ("--array", "4")])
def test_whoever_follows_what_is_held_is_told_so_without_a_forecast(
    serve: Serve, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setattr(following, "SAY_WHY_AFTER_S", -1.0)
    waits = ARRAY if options else HELD
    over = replace(waits, phase="cancelled", is_over=True)
    seen = serve(
        {
            "POST /v1/jobs": Submitted(8, 1),
            "GET /v1/jobs/8": [waits, over],
            "GET /v1/jobs/8/why": HELD_WHY,
            "GET /v1/jobs/8/logs": b"",
        }
    )
    assert run_command(["run", "--hold", *options, "--", "true"]) == 1
    assert "job 8 is held: it starts nothing until it is released\n" in capsys.readouterr().err
    assert not any(request.path.endswith("/forecast") for request in seen)


@pytest.mark.parametrize("words", [("wait", "7"), ("logs", "-f", "7"), ("run", "--array", "2", "--", "true")])
def test_whoever_follows_is_told_that_nobody_decides(
    serve: Serve, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(following, "LOOK_AT_LEADER_S", -1.0)
    over = replace(RAN, phase="succeeded", is_over=True)
    serve(
        {
            "POST /v1/jobs": Submitted(7, 1),
            "GET /v1/jobs/7": [RAN, RAN, RAN, RAN, RAN, over],
            "GET /v1/jobs/7/logs": b"",
            "GET /v1/health": [Health("no leader", False, 5), Health("ok", True, 5)],
        }
    )
    assert run_command(list(words)) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "leader" in line]
    assert told == ["the leader is away: nothing starts or ends before `muster up`", "the leader is back"]


def test_a_wrong_number_is_told_before_anybody_is_waited_for(serve: Serve, told: Told) -> None:
    seen = serve({"GET /v1/jobs/7": RAN})
    with pytest.raises(KeyError):  # the made-up server has no other job
        told("wait", "7", "99")
    assert [request.path for request in seen] == ["/v1/jobs/99"]
