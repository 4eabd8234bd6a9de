"""The herald: who is told what, at least once, whatever dies in between."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from pathlib import Path

import pytest

from muster.app.notifying import read_marks, read_routes, write_marks
from muster.control.batches import Item, make_batch
from muster.control.follower import Follower
from muster.control.herald import TRIES_MAX, Herald, Mark, Route
from muster.control.notices import tell_of_job
from muster.kernel.kernel import Kernel
from muster.model.budget import Budget
from muster.model.errors import RejectedError
from muster.model.event import Cancel, Event, Exited, NodeSeen, NodeSilent, SetTenant, Started, Submit
from muster.model.fact import Ended
from muster.model.phase import TaskPhase, Why
from muster.model.reason import Code
from muster.model.spec import Spec
from muster.model.tenant import Tenant
from muster.stores.memory import MemoryStore
from muster.testing.receivers import Ear
from muster.units import HOUR_MS, Resources
from muster.wire.codec import Entry, decode_entry
from muster.wire.notices import Kind
from muster.world.apply import apply_entry
from muster.world.world import World

PATIENCE_S = 30.0


class Scene:
    """A kernel, a journal, and a follower of it; a herald is made anew at will."""

    def __init__(self, root: Path) -> None:
        self.store = MemoryStore()
        self.kernel = Kernel(World())
        self.now = 1000
        self.follower = Follower(World(), self.store, self, root / "leader.sock")
        self.marks: dict[str, Mark] = {}
        self.happen(NodeSeen("here", Resources(cpu_milli=4000)))

    def now_ms(self) -> int:
        return self.now

    def happen(self, *events: Event) -> None:
        self.now += 1
        batch = make_batch([Item(event) for event in events], self.kernel.handle(events, self.now))
        if batch.commit is not None:
            self.store.append([batch.commit])
            entry = decode_entry(batch.commit.entry)
            apply_entry(self.follower.world, entry.seq, entry.at, entry.facts)
            self.follower._wake_waiters()

    def run_job(self, number: int, code: int = 0, **fields: object) -> None:
        self.happen(Submit(Spec(("true",), **fields)))  # type: ignore[arg-type]  # fields of a spec, by name
        self.happen(Started(number, 1))
        self.happen(Exited(number, 1, code))

    def listen(self, route: Route, until: Callable[[], bool]) -> None:
        """Let a herald serve a route until something holds, and kill it."""

        def save(marks: dict[str, Mark]) -> None:
            self.marks = copy.deepcopy(marks)

        async def serve() -> None:
            serving = asyncio.ensure_future(
                Herald(self.follower, [route], copy.deepcopy(self.marks), save, look_s=0.001).run()
            )
            async with asyncio.timeout(PATIENCE_S):
                while not until():
                    assert not serving.done()
                    await asyncio.sleep(0.001)
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

        asyncio.run(serve())


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def route(ear: Ear, *kinds: Kind, **more: object) -> Route:
    return Route("team", ear, frozenset(kinds or Kind), delay_first_s=0.001, **more)  # type: ignore[arg-type]  # as named


def begin(scene: Scene, ear: Ear, *kinds: Kind) -> None:
    """A first herald, which begins at the end of what there is."""
    scene.listen(route(ear, *kinds), lambda: bool(scene.marks))


def test_the_ends_of_jobs_are_told_in_order(scene: Scene) -> None:
    begin(scene, ear := Ear())
    scene.run_job(1, name="first")
    scene.run_job(2, code=3)
    scene.happen(Submit(Spec(("sleep",), ask=Resources(cpu_milli=1000))))
    scene.happen(Cancel(3))
    scene.happen(Exited(3, 1, 143))
    scene.listen(route(ear), lambda: len(ear.heard) == 3)
    assert [(each.job, each.kind, each.exit_code) for each in ear.heard] == [
        (1, Kind.JOB_ENDED, 0),
        (2, Kind.JOB_FAILED, 3),
        (3, Kind.JOB_CANCELLED, None),
    ]
    assert ear.heard[0].words == "job 1 (first, tenant default) succeeded"
    assert ear.heard[1].words == "job 2 (tenant default) failed with exit code 3"


def test_how_a_job_failed_is_told_and_not_who_said_so() -> None:
    ended = Ended(7, TaskPhase.FAILED, Why.LIMIT, 143, cause="timer")
    told = tell_of_job(Entry(1, 5, 0, [ended]), 0, ended, Spec(("sleep",), name="first"))
    assert told.words == "job 7 (first, tenant default) failed: time limit"


def test_what_was_before_the_first_herald_is_not_told(scene: Scene) -> None:
    scene.run_job(1)
    begin(scene, ear := Ear())
    scene.run_job(2)
    scene.listen(route(ear), lambda: len(ear.heard) == 1)
    assert ear.heard[0].job == 2


def test_a_herald_that_was_killed_is_followed_by_one_that_leaves_nothing_out(scene: Scene) -> None:
    begin(scene, Ear())
    marks = copy.deepcopy(scene.marks)
    scene.run_job(1)
    scene.listen(route(first := Ear()), lambda: len(first.heard) == 1)
    scene.marks = marks  # it was killed after it told, and before it could write that down
    scene.run_job(2)
    scene.listen(route(second := Ear()), lambda: len(second.heard) == 2)
    assert [each.job for each in second.heard] == [1, 2]
    assert second.heard[0].id == first.heard[0].id
    scene.run_job(3)
    scene.listen(route(third := Ear()), lambda: len(third.heard) == 1)
    assert [each.job for each in third.heard] == [3]


def test_a_mark_of_another_journal_silences_nobody(scene: Scene) -> None:
    scene.marks = {"team": Mark(scene.follower.world.seq + 1000, scene.now)}
    scene.listen(route(ear := Ear()), lambda: scene.marks["team"].seq == scene.follower.world.seq)
    scene.run_job(1)
    scene.listen(route(ear), lambda: len(ear.heard) == 1)
    assert ear.heard[0].job == 1


def test_entries_that_the_journal_has_let_go_of_are_passed_over(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(scene, ear := Ear())
    scene.run_job(1)
    kept = scene.store.read_entries

    def read(after: int, limit: int) -> list[bytes]:
        return [data for data in kept(after, limit) if decode_entry(data).seq > gone]

    gone = scene.follower.world.seq
    monkeypatch.setattr(scene.store, "read_entries", read)
    scene.listen(route(ear), lambda: True)
    scene.run_job(2)
    scene.listen(route(ear), lambda: len(ear.heard) == 1)
    assert ear.heard[0].job == 2


def test_what_does_not_arrive_is_tried_again_and_not_for_ever(scene: Scene) -> None:
    begin(scene, ear := Ear())
    scene.run_job(1)
    ear.refusals = TRIES_MAX - 1
    scene.listen(route(ear), lambda: len(ear.heard) == 1)
    assert ear.tries == TRIES_MAX
    scene.run_job(2)
    scene.run_job(3)
    ear.refusals = TRIES_MAX
    scene.listen(route(ear), lambda: len(ear.heard) == 2)
    assert [each.job for each in ear.heard] == [1, 3]


def test_what_is_refused_for_good_is_tried_once(scene: Scene) -> None:
    begin(scene, ear := Ear(is_final=True))
    scene.run_job(1)
    scene.run_job(2)
    ear.refusals = 1
    scene.listen(route(ear), lambda: len(ear.heard) == 1)
    assert (ear.tries, ear.heard[0].job) == (2, 2)


def test_a_route_hears_what_it_wants_and_what_a_job_wants_it_to(scene: Scene) -> None:
    begin(scene, ear := Ear(), Kind.JOB_FAILED)
    scene.run_job(1)
    scene.run_job(2, notify=("team",))
    scene.run_job(3, notify=("others",))
    scene.run_job(4, code=1)
    scene.listen(route(ear, Kind.JOB_FAILED), lambda: len(ear.heard) == 2)
    assert [each.job for each in ear.heard] == [2, 4]


def test_a_route_of_a_tenant_hears_of_those_below_it(scene: Scene) -> None:
    begin(scene, ear := Ear())
    scene.run_job(1, tenant="default")
    scene.listen(route(ear, tenants=frozenset({"default"})), lambda: len(ear.heard) == 1)
    scene.run_job(2, tenant="default")
    scene.run_job(3, tenant="default", notify=("team",))
    scene.listen(route(ear, tenants=frozenset({"research"})), lambda: len(ear.heard) == 2)
    assert [each.job for each in ear.heard] == [1, 3]


def test_a_lost_node_is_told(scene: Scene) -> None:
    begin(scene, ear := Ear())
    scene.happen(NodeSilent("here"))
    scene.listen(route(ear), lambda: len(ear.heard) == 1)
    assert (ear.heard[0].kind, ear.heard[0].node) == (Kind.NODE_LOST, "here")


def test_who_waits_too_long_is_told_once(scene: Scene) -> None:
    begin(scene, ear := Ear())
    scene.happen(Submit(Spec(("true",), ask=Resources(cpu_milli=4000))))
    scene.happen(Submit(Spec(("true",), name="late", ask=Resources(cpu_milli=4000))))
    wants = route(ear, Kind.JOB_WAITING, patience_ms=HOUR_MS)
    scene.now += HOUR_MS
    scene.listen(wants, lambda: len(ear.heard) == 1)
    assert ear.heard[0].words == "job 2 (late, tenant default) has waited for 1h"
    scene.now += HOUR_MS
    looked_at = scene.now
    scene.listen(wants, lambda: scene.marks["team"].looked_at == looked_at)
    assert len(ear.heard) == 1


@pytest.mark.parametrize("manner", ["soft", "hard"])
def test_a_spent_budget_is_told_once_in_its_period(scene: Scene, manner: str) -> None:
    begin(scene, ear := Ear())
    scene.happen(NodeSeen("gpu", Resources(gpus=1, cpu_milli=4000)))
    scene.happen(SetTenant("default", Tenant(budgets=(Budget("gpu_hours", 1_000_000, soft=manner == "soft"),))))
    scene.happen(Submit(Spec(("train",), ask=Resources(gpus=1))))
    scene.now += 2 * HOUR_MS
    wants = route(ear, Kind.BUDGET_SPENT)
    scene.listen(wants, lambda: len(ear.heard) == 1)
    assert ear.heard[0].words == f"the {manner} budget of tenant default (gpu_hours) is spent"
    scene.now += HOUR_MS
    looked_at = scene.now
    scene.listen(wants, lambda: scene.marks["team"].looked_at == looked_at)
    assert len(ear.heard) == 1


FILE = """
allow = ["10.0.0.0/8"]

[webhook.team]
url = "https://hooks.example.org/muster"
secret = "hush"
on = ["job_failed", "node_lost"]
tenants = ["research"]

[command.pager]
argv = ["/usr/local/bin/page", "--from", "muster"]
on = ["node_quarantined"]
waiting = "2h"
"""


def test_the_admin_says_in_a_file_who_is_told_what(tmp_path: Path) -> None:
    path = tmp_path / "notify.toml"
    assert read_routes(path) == []
    path.write_text(FILE)
    team, pager = read_routes(path)
    assert team.kinds == {Kind.JOB_FAILED, Kind.NODE_LOST}
    assert team.name == "team"
    assert team.tenants == {"research"}
    assert (pager.name, pager.patience_ms) == ("pager", 2 * HOUR_MS)


@pytest.mark.parametrize(
    "text",
    [
        "webhook",
        "[webhook.team]",
        '[webhook.team]\nurl = "file:///etc/passwd"',
        '[webhook.team]\nurl = "https://a.example"\non = ["everything"]',
        '[webhook.team]\nurl = "https://a.example"\nwaiting = "soon"',
        '[webhook."a b"]\nurl = "https://a.example"',
        '[webhook.a]\nurl = "https://a.example"\n[command.a]\nargv = ["x"]',
        "[command.a]\nargv = []",
        '[command.a]\nargv = "rm -rf /"',
        'allow = ["10.0.0.1/8"]',
        'allow = ["everywhere"]',
    ],
)
def test_a_file_that_is_not_in_order_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "notify.toml"
    path.write_text(text)
    with pytest.raises(RejectedError) as refused:
        read_routes(path)
    assert refused.value.reason.code is Code.BAD_SETTINGS


def test_how_far_everybody_is_told_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "notices.json"
    assert read_marks(path) == {}
    write_marks(path, {"team": Mark(7, 1000, ["budget-a"])})
    assert read_marks(path) == {"team": Mark(7, 1000, ["budget-a"])}
    path.write_bytes(b"torn")
    assert read_marks(path) == {}
