"""What a reader sees of a world, and the life of a job in words."""

from __future__ import annotations

import msgspec
import pytest

from muster.control.fleet import view_nodes
from muster.control.history import write_chapter
from muster.control.listing import Asked, Listing
from muster.control.remembering import view_remembered
from muster.control.story import find_failure_note, find_tries, show_devices, tell
from muster.control.tenants import view_tenants
from muster.control.views import find_try, view_job, view_why
from muster.kernel.kernel import Kernel
from muster.model import fact
from muster.model.after import After, When
from muster.model.budget import GPU_HOURS, Budget
from muster.model.event import BarNode, Cancel, Event, Exited, NodeGone, NodeSeen, SetTenant, Started, Submit
from muster.model.job import BarKind
from muster.model.reason import Code, Done
from muster.model.spec import Spec
from muster.model.tenant import Tenant, limits
from muster.stores.memory import MemoryStore
from muster.units import Resources
from muster.wire.codec import Entry
from muster.wire.views import BarView, JobView, Place, TaskCounts
from muster.world.accounting import keep_diary
from muster.world.apply import apply_entry
from muster.world.world import World


class Tale:
    """A world, and the journal that made it."""

    def __init__(self, gpus: int = 8) -> None:
        self.kernel = Kernel(World())
        self.entries: list[Entry] = []
        self.at = 0
        for name in ("node-1", "node-2"):
            self.tell(NodeSeen(name, Resources(gpus=gpus, cpu_milli=8000)))

    @property
    def world(self) -> World:
        return self.kernel.world

    def tell(self, *events: Event) -> list[object]:
        self.at += 1000
        outcome = self.kernel.handle(events, self.at)
        if outcome.facts:
            self.entries.append(Entry(1, outcome.seq, outcome.at, outcome.facts))
        return list(outcome.answers)

    def submit(self, **fields: object) -> int:
        spec = Spec(("train",), **fields)  # type: ignore[arg-type]  # fields of a Spec, by name
        [answer] = self.tell(Submit(spec, cause="test"))
        assert isinstance(answer, Done)
        return answer.job

    def story(self, job: int) -> list[str]:
        entries = [entry for entry in self.entries if any(job in fact.jobs_of(item) for item in entry.facts)]
        return [line.what for line in tell(entries, job, self.world.fleet.names).lines]


def remember(tale: Tale, job: int) -> JobView | None:
    """A job as history has it once its story was folded, without what it used."""
    world, store = World(), MemoryStore()
    diary = keep_diary(world)
    for entry in tale.entries:
        apply_entry(world, entry.seq, entry.at, entry.facts)
        store.fill([write_chapter(diary, entry.facts)])
    found = store.find_finished(job)
    if found is None:
        return None
    return msgspec.structs.replace(view_remembered(found, tale.world.jobs[job].spec), account=None)


def test_a_life_without_trouble() -> None:
    tale = Tale()
    job = tale.submit(ask=Resources(gpus=4, cpu_milli=1000))
    tale.tell(Started(job, 1))
    tale.tell(Exited(job, 1, 0))
    assert tale.story(job) == [
        "accepted: 4 GPUs, 1 CPU, tenant default",
        "placed on node-1, devices 0-3",
        "began",
        "ended: succeeded",
    ]


def test_a_job_that_waits_for_others_in_vain() -> None:
    tale = Tale()
    first, second = tale.submit(), tale.submit()
    third = tale.submit(after=(After(first), After(second, When.SUCCEEDED)))
    assert view_job(tale.world, tale.world.jobs[third]).waits == [first, second]
    why = view_why(tale.world, tale.world.jobs[third])
    assert (why.code, why.words) == ("M215", "waiting for 2 other jobs: afterok:1, afterok:2")
    tale.tell(Exited(first, 1, 0))
    tale.tell(Exited(second, 1, 3))
    assert tale.story(third) == [
        "accepted: 1 CPU, tenant default, afterok:1, afterok:2",
        "waits for job 1 no longer",
        "ended: cancelled, what it was to run after cannot come about",
    ]
    for view in (view_job(tale.world, tale.world.jobs[third]), remember(tale, third)):
        assert view is not None
        assert (view.phase, view.why, view.waits) == ("cancelled", "dependency", [])


def test_a_job_that_may_be_late_says_so() -> None:
    tale = Tale()
    tale.submit(ask=Resources(gpus=8), gang=2)
    job = tale.submit(ask=Resources(gpus=8), due_at=100_000, limit_ms=90_000)
    record, late = tale.world.jobs[job], "due at 1970-01-01 00:01:40.000Z; if it takes its whole limit, it ends at "
    assert (view_why(tale.world, record).late, view_job(tale.world, record, now=10_000).late) == ("", "")
    assert view_job(tale.world, record, now=10_001).late == f"{late}1970-01-01 00:01:40.001Z"
    assert view_job(tale.world, record, now=100_001).late == "was due at 1970-01-01 00:01:40.000Z"


def test_of_a_gang_that_may_grow_it_is_told_how_wide() -> None:
    tale = Tale(gpus=2)
    job = tale.submit(gang=1, gang_most=4, ask=Resources(gpus=1))
    assert tale.story(job)[0] == "accepted: 1 to 4 tasks of 1 GPU, tenant default"


def test_a_gang_that_loses_a_node_and_fails() -> None:
    tale = Tale(gpus=2)
    job = tale.submit(gang=2, ask=Resources(gpus=2))
    tale.tell(Started(job, 1, 0, 1))
    tale.tell(Started(job, 1, 1, 1))
    tale.tell(NodeGone("node-2"))
    tale.tell(Exited(job, 1, 143, 0, 1))
    tale.tell(NodeSeen("node-2", Resources(gpus=2, cpu_milli=8000)))
    tale.tell(Started(job, 2, 0, 2))
    tale.tell(Exited(job, 2, 3, 1, 1))
    tale.tell(Exited(job, 2, 143, 0, 1))
    assert tale.story(job) == [
        "accepted: 2 tasks of 2 GPUs, tenant default",
        "placed on node-1, 1 task, devices 0-1; node-2, 1 task, devices 0-1",
        "rank 0 began",
        "rank 1 began",
        "rank 1 over",
        "told to stop: lost",
        "requeued: lost, exit 143",
        "has a claim on node-1, devices 0-1",
        "claim over: served",
        "placed on node-1, 1 task, devices 0-1; node-2, 1 task, devices 0-1",
        "began",
        "rank 1 over",
        "told to stop: exited, exit 3",
        "ended: failed, exit 3",
    ]
    view = view_job(tale.world, tale.world.jobs[job])
    assert (view.phase, view.why, view.exit_code, view.epoch, view.is_over) == ("failed", "exit", 3, 2, True)


def test_a_job_of_one_task_on_a_node_that_goes() -> None:
    tale = Tale()
    job = tale.submit()
    tale.tell(NodeGone("node-1"))
    assert tale.story(job)[2:] == ["requeued: node node-1 gone", "placed on node-2"]


def test_an_array_and_its_cancellation() -> None:
    tale = Tale()
    job = tale.submit(array=20, retries=1)
    tale.tell(Started(job, 1, 0, 16))
    tale.tell(Exited(job, 1, 0, 0, 2), Exited(job, 1, 9, 2, 1))
    assert (view_job(tale.world, tale.world.jobs[job]).phase, find_try(tale.world, tale.world.jobs[job], 0)) == (
        "running",
        (1, True),
    )
    tale.tell(Cancel(job))
    assert view_job(tale.world, tale.world.jobs[job]).phase == "stopping"
    tale.tell(*[Exited(job, epoch, 15, 0, 20) for epoch in (1, 2)])
    told = tale.story(job)
    assert told[:3] == [
        "accepted: 20 tasks of 1 CPU, tenant default",
        "tasks 0-15 placed on node-1, 8 tasks; node-2, 8 tasks",
        "tasks 0-15 running",
    ]
    assert "task 2 requeued: exited, exit 9" in told
    assert told[-1] == "ended: cancelled"
    living = view_job(tale.world, tale.world.jobs[job])
    assert living.counts == TaskCounts(succeeded=2, cancelled=18)
    assert remember(tale, job) == msgspec.structs.replace(living, places=[])
    assert find_tries(tale.entries, job, 2) == 2


@pytest.mark.parametrize(("gang", "codes"), [(1, [0]), (1, [7]), (2, [0, 0])])
def test_a_retired_job_looks_as_it_did_on_its_last_day(gang: int, codes: list[int]) -> None:
    tale = Tale()
    job = tale.submit(gang=gang, retries=1, name="train")
    for epoch in (1, 2):
        if epoch == 2 and not codes[0]:
            break
        tale.tell(Started(job, epoch, 0, gang))
        for rank, code in enumerate(codes):
            tale.tell(Exited(job, epoch, code, rank, 1))
    view = view_job(tale.world, tale.world.jobs[job])
    assert view.is_over
    assert remember(tale, job) == view
    assert find_tries(tale.entries, job, 0) == view.epoch


def test_a_job_without_an_end_is_not_remembered() -> None:
    tale = Tale()
    job = tale.submit()
    assert remember(tale, job) is None


def test_a_running_job_shows_its_places() -> None:
    tale = Tale()
    job = tale.submit(gang=9, ask=Resources(gpus=1))
    tale.tell(Started(job, 1, 0, 9))
    view = view_job(tale.world, tale.world.jobs[job])
    assert view.phase == "running"
    assert view.places == [Place("node-1", 8, list(range(8))), Place("node-2", 1, [0])]
    assert [node.free.gpus for node in view_nodes(tale.world)] == [0, 7]
    assert [(tenant.name, tenant.used["gpu"]) for tenant in view_tenants(tale.world, tale.at)] == [
        ("default", 9_000_000)
    ]


def test_scattered_tasks_are_told_in_one_line() -> None:
    tale = Tale()
    job = tale.submit(array=14)
    tale.tell(Started(job, 1, 5, 2, more=[0, 1]), Exited(job, 1, 0, 12, 1, more=[0, 2, 4, 1, 6, 1, 8, 3]))
    assert tale.story(job)[2:] == ["tasks 0, 5-6 running", "tasks 0-1, 4, 6, 8-10 and 1 more succeeded"]


def test_a_drained_node_shows_its_bar_and_its_jobs_tell_of_it() -> None:
    tale = Tale()
    gang, array = tale.submit(ask=Resources(gpus=2)), tale.submit(array=2, ask=Resources(gpus=1))
    tale.tell(BarNode("node-1", BarKind.DRAIN, "crew", "fan", until=90_000, lets_finish=False))
    assert [node.bars for node in view_nodes(tale.world)] == [
        [BarView("drain", "crew", tale.at, "fan", 90_000, lets_finish=False)],
        [],
    ]
    assert [view_job(tale.world, tale.world.jobs[job]).phase for job in (gang, array)] == ["stopping", "stopping"]
    tale.tell(Exited(gang, 1, 143), Exited(array, 1, 143, 0, 2))
    assert tale.story(gang)[2:4] == ["told to stop: node drained", "requeued: node drained, exit 143"]
    assert tale.story(array)[2:4] == ["tasks 0-1 stopping: node drained", "tasks 0-1 requeued: node drained, exit 143"]


def test_a_job_tells_that_its_budget_is_spent_and_why_it_waits() -> None:
    tale = Tale()
    job = tale.submit(ask=Resources(gpus=2))
    tale.tell(SetTenant("default", Tenant(budgets=(Budget(GPU_HOURS, 0),))))
    tale.tell(Exited(job, 1, 143))
    assert tale.story(job)[2:] == ["told to stop: the budget is spent", "requeued: the budget is spent, exit 143"]
    assert view_why(tale.world, tale.world.jobs[job]).code == Code.BUDGET_SPENT


def test_pages_continue_where_the_last_one_ended() -> None:
    tale = Tale()
    for number in range(5):
        tale.submit(tenant="even" if number % 2 else "odd")
    tale.tell(Exited(2, 1, 0))
    seen: list[int] = []
    after: int | None = 0
    while after is not None:
        page = Listing(tale.world).page(Asked(after=after, limit=2))
        seen += [row.id for row in page.jobs]
        assert all(row.spec is None for row in page.jobs)
        after = page.next_after
    assert seen == [5, 4, 3, 2, 1]
    assert _ids(tale, state="live") == [5, 4, 3, 1]
    assert _ids(tale, state="over") == [2]
    assert _ids(tale, tenant="even") == [4, 2]
    assert _ids(tale, phase="succeeded") == [2]


def _ids(tale: Tale, state: str = "all", tenant: str = "", phase: str = "") -> list[int]:
    page = Listing(tale.world).page(Asked(state, tenant, phase))
    return [row.id for row in page.jobs]


def test_why_says_who_is_ahead() -> None:
    tale = Tale()
    tale.tell(SetTenant("lab", Tenant(lines=limits(gpus=1))))
    for _ in range(3):
        last = tale.submit(gang=2, ask=Resources(gpus=8))
    why = view_why(tale.world, tale.world.jobs[last])
    assert (why.code, why.position, [other.job for other in why.ahead]) == ("M201", 2, [2])
    assert why.words == "waiting for room: 2 tasks of 8 GPUs must start together, 0 would fit now"
    assert view_why(tale.world, tale.world.jobs[1]).words == "job 1 is not waiting"
    first, second = tale.submit(tenant="lab", ask=Resources(gpus=1)), tale.submit(tenant="lab", ask=Resources(gpus=1))
    assert first + 1 == second


@pytest.mark.parametrize(("word", "shown"), [(0b1, "0"), (0b1111, "0-3"), (0b1001111, "0-3, 6"), (0b101, "0, 2")])
def test_devices_in_words(word: int, shown: str) -> None:
    assert show_devices(word) == shown


def test_a_failure_has_the_word_of_whoever_failed_first_in_the_last_try() -> None:
    tale = Tale()
    job = tale.submit(gang=2, ask=Resources(gpus=8), retries=1)
    tale.tell(Started(job, 1, 0, 2))
    tale.tell(Exited(job, 1, 1, 0, 2, note="of the first try", cause="engine"))
    tale.tell(Started(job, 2, 0, 2))
    assert find_failure_note(tale.entries, job) == ""
    tale.tell(Exited(job, 2, 126, 1, note="cannot enter workdir /x: gone", cause="engine"))
    tale.tell(Exited(job, 2, 143, 0, note="stopped", cause="engine"))
    assert find_failure_note(tale.entries, job) == "cannot enter workdir /x: gone"


def test_an_array_has_the_word_of_its_first_task_that_failed_for_good() -> None:
    tale = Tale()
    job = tale.submit(array=3, ask=Resources(gpus=1), retries=1)
    tale.tell(Exited(job, 1, 1, 0, note="tried again", cause="engine"))
    tale.tell(Exited(job, 1, 0, 2, cause="engine"))
    for code, note in ((1, "tried again"), (127, "command not found: x")):
        epoch = tale.world.arrays[job].epoch[1]
        tale.tell(Exited(job, epoch, code, 1, note=note, cause="engine"))
    assert find_failure_note(tale.entries, job) == "command not found: x"
