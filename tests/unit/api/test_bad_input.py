"""Bad input to the calendar, to dependencies and to elastic gangs: each is refused with its code and a fix in words,
from the command line through the API to the kernel, and changes nothing; or it is no harm and has one answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest
from api_kit import Scene

from muster.cli.main import run_command
from muster.model.event import Event, Exited, NodeSeen, Started
from muster.sdk.transport import Reply, Request, Transport
from muster.units import DAY_MS, HOUR_MS, Resources
from muster.world.snapshot import digest

NODES = 4
OPENS = ("--from", "2030-01-01 09:00", "--for", "2h")
OPENS_MS = 1_893_488_400_000
GANG = ("run", "-d", "--gang", "2-3", "--elastic", "in-place", "--gpus", "8", "--", "true")


class Told(Protocol):
    def __call__(self, *words: str, code: int = 0) -> str: ...


class Case(NamedTuple):
    """What is said after what has come to pass; with which code it is refused, and what its fix says."""

    before: Callable[[Scene, Told], object]
    words: tuple[str, ...]
    code: str
    fix: str


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """An API with four nodes of eight GPUs behind it."""
    scene = Scene(tmp_path)
    nodes = [NodeSeen(f"node-{n}", Resources(8, 64_000, 2**38)) for n in range(1, NODES + 1)]
    scene.follower.happen(*nodes)
    return scene


@pytest.fixture
def told(scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    """What a command prints that ends with `code`: all that it says goes through the API."""

    def exchange(_: Transport, request: Request) -> Reply:
        fields = {name.replace("-", "_"): value for name, value in request.headers.items()}
        answer = scene.call(request.method, request.path, request.body, **fields)
        return Reply(answer.status, answer.headers, answer.body)

    def tell(*words: str, code: int = 0) -> str:
        found = run_command(list(words))
        out, err = capsys.readouterr()
        assert found == code, (out, err)
        return err if code else out

    monkeypatch.setenv("MUSTER_HOME", str(tmp_path))
    monkeypatch.setattr(Transport, "_try", exchange)
    return tell


def nothing(_: Scene, told: Told) -> None:
    """Nothing has come to pass."""


def said(*commands: tuple[str, ...]) -> Callable[[Scene, Told], None]:
    """So far these commands were given."""

    def say(_: Scene, told: Told) -> None:
        for words in commands:
            told(*words)

    return say


def happened(words: tuple[str, ...], *events: Event, after_ms: int = 1) -> Callable[[Scene, Told], None]:
    """A command was given, and then its engine said this."""

    def happen(scene: Scene, told: Told) -> None:
        told(*words)
        for each in events:
            scene.follower.happen(each)
        scene.follower.happen(after_ms=after_ms)

    return happen


def running(*more: tuple[str, ...]) -> Callable[[Scene, Told], None]:
    """An elastic gang has three tasks, all up; then this was said."""

    def run(scene: Scene, told: Told) -> None:
        told(*GANG)
        scene.follower.happen(Started(1, 1, 0, 3))
        for words in more:
            told(*words)

    return run


def late(scene: Scene, told: Told) -> None:
    """It is 2031."""
    scene.follower.happen(after_ms=OPENS_MS + 365 * DAY_MS)


RUN = ("run", "-d", "--", "true")
FAILED = happened(RUN, Exited(1, 1, 3), after_ms=HOUR_MS)
CASES = {
    "overlapping bookings: the same nodes at the same time": Case(
        said(("reserve", "a", "--nodes", "3", *OPENS)),
        ("reserve", "b", "--nodes", "2", "--from", "2030-01-01 10:00", "--for", "2h"),
        "M151",
        "fewer nodes",
    ),
    "overlapping bookings: a name that is taken": Case(
        said(("reserve", "a", *OPENS)), ("reserve", "a", *OPENS), "M155", "another name"
    ),
    "overlapping bookings: windows of one booking": Case(
        nothing, ("reserve", "a", *OPENS[:3], "30h", "--every", "day"), "M153", "window"
    ),
    "booking larger than the pool": Case(nothing, ("reserve", "a", "--nodes", "9", *OPENS), "M152", "fewer"),
    "booking larger than a node of the pool": Case(nothing, ("reserve", "a", "--gpus", "9", *OPENS), "M152", "smaller"),
    "cyclic dependencies: a job after itself": Case(
        nothing, ("run", "--afterok", "1", "--", "true"), "M143", "muster ls"
    ),
    "missing dependencies": Case(said(RUN), ("run", "--afterok", "1,7", "--", "true"), "M143", "muster ls"),
    "dependency on an archived job that failed": Case(FAILED, ("run", "--afterok", "1", "--", "true"), "M145", "again"),
    "resize during drain": Case(
        running(("drain", "node-1", "--now")), ("scale", "1", "2"), "M161", "say it again when it waits or runs"
    ),
    "resize while it shrinks": Case(
        running(("scale", "1", "2")), ("scale", "1", "3"), "M161", "say it again when it waits or runs"
    ),
    "elastic max below current": Case(running(), ("scale", "1", "2-2"), "M158", "muster scale"),
    "elastic max below its least": Case(running(), ("scale", "1", "1"), "M159", "muster scale"),
    "elastic bounds the wrong way round": Case(nothing, ("run", "--gang", "8-2", "--", "true"), "M157", "least"),
    "negative windows: over before it opens": Case(late, ("reserve", "a", *OPENS), "M153", "window"),
    "negative windows: less than no nodes": Case(
        nothing, ("reserve", "a", "--nodes", "0", *OPENS), "M101", "correct the field"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_with_its_code_and_a_fix_and_changes_nothing(name: str, scene: Scene, told: Told) -> None:
    case = CASES[name]
    case.before(scene, told)
    before = digest(scene.follower.kernel.world)
    words = told(*case.words, code=2)
    assert f"error[{case.code}]" in words
    (fix,) = [line for line in words.splitlines() if line.startswith("help: ")]
    assert case.fix in fix
    assert digest(scene.follower.kernel.world) == before


def test_jobs_of_one_file_that_wait_for_each_other_are_refused(scene: Scene, told: Told, tmp_path: Path) -> None:
    path = tmp_path / "pair.yaml"
    path.write_text("name: one\ncommand: 'true'\nafterok: [two]\n---\nname: two\ncommand: 'true'\nafterok: [one]\n")
    before = digest(scene.follower.kernel.world)
    words = told("submit", str(path), code=2)
    assert "error[M170]: afterok: 'two' is no job above it in the file: there is none" in words
    assert "pair.yaml:3" in words
    assert "help: " in words
    assert digest(scene.follower.kernel.world) == before


def test_a_job_may_follow_an_archived_one_that_succeeded(scene: Scene, told: Told) -> None:
    happened(RUN, Exited(1, 1, 0), after_ms=HOUR_MS)(scene, told)
    assert 1 not in scene.follower.world.jobs, "only the journal knows it"
    told("run", "-d", "--afterok", "1", "--", "true")
    assert not scene.follower.world.jobs[2].waits


def test_a_cancel_in_the_grace_of_a_drain_ends_the_job(scene: Scene, told: Told) -> None:
    running(("drain", "node-1", "--now"))(scene, told)
    told("cancel", "1")
    told("cancel", "1")  # saying it again is no harm
    scene.follower.happen(Exited(1, 1, 143, 0, 3))
    assert type(scene.follower.world.jobs[1].phase).__name__ == "Cancelled", "it does not wait again"
    assert "error[M121]" in told("cancel", "1", code=2)


@pytest.mark.parametrize(
    ("window", "code"),
    [
        ({"opens_at_ms": OPENS_MS, "closes_at_ms": OPENS_MS - 1}, "M153"),
        ({"opens_at_ms": OPENS_MS, "closes_at_ms": OPENS_MS}, "M153"),
        ({"opens_at_ms": -HOUR_MS, "closes_at_ms": HOUR_MS}, "M101"),
    ],
)
def test_a_negative_window_is_refused(window: dict[str, int], code: str, scene: Scene) -> None:
    reply = scene.call("PUT", "/v1/bookings/a", {"tenant": "t", "nodes": 1, "windows": [window]})
    assert (reply.status, reply.json["code"]) == (422, code)
    assert reply.json["fix"]


def test_a_window_of_negative_length_is_not_even_sent(scene: Scene, told: Told) -> None:
    before = digest(scene.follower.kernel.world)
    assert "'-2h'" in told("reserve", "a", "--from", "1h", "--for", "-2h", code=2)
    assert digest(scene.follower.kernel.world) == before
