"""Queue, tasks and timers: indexes that follow from the content, in the order of ids."""

from __future__ import annotations

from itertools import chain
from typing import Any

from muster.model.job import Job
from muster.model.phase import Lease, Queued, Run, Running, Succeeded, TaskPhase
from muster.model.ranges import as_ranges
from muster.model.tier import Tier
from muster.testing.rig import Rig, spec
from muster.units import HOUR_MS
from muster.world.line import Leaf, job_of
from muster.world.queue import INSIDE, OVER, Queue
from muster.world.seating import rows_of
from muster.world.seats import seats_on
from muster.world.tasks import AGES_APART, HOLDING, NOWHERE, Tasks, spans_of
from muster.world.timers import Timers
from muster.world.usage import Usage
from muster.world.walk import Walk

RANK = 200
TIER = Tier(RANK, HOUR_MS)


def job(number: int, gpus: int = 1, tenant: str = "a", gang: int = 1, **fields: Any) -> Job:
    return Job(number, spec(gpus, tenant=tenant, gang=gang, **fields), number, Queued(0))


def queue_of(*jobs: Job) -> Queue:
    queue = Queue(Walk(Usage(), {}))
    for item in jobs:
        queue.add(item, TIER)
    return queue


def test_everybody_waits_in_the_order_of_ids() -> None:
    queue = queue_of(job(5), job(2, 4), job(9, tenant="b"), job(1, gang=2), job(3))
    assert queue.waiting() == [1, 2, 3, 5, 9]
    queue.remove(job(3))
    queue.remove(job(2, 4))
    assert queue.waiting() == [1, 5, 9]


def test_one_who_left_and_came_back_waits_once() -> None:
    queue = queue_of(job(1), job(2), job(3))
    (line,) = [line for shape in queue.shapes.values() for line in shape.lines.values()]
    queue.remove(job(2))
    queue.add(job(2), TIER)
    assert line.ids() == [1, 2, 3]
    queue.remove(job(1))
    assert queue.waiting() == line.ids() == [2, 3]
    queue.remove(job(2))
    queue.remove(job(3))
    assert queue.waiting() == []
    assert not queue.shapes
    assert not queue.awake
    assert not queue.outside


def test_a_line_is_by_priority_and_then_by_id_and_knows_who_is_due() -> None:
    queue = queue_of(job(4), job(1), job(3, priority=5), job(2, priority=-5), job(6, priority=5))
    (shape,) = queue.shapes.values()
    (line,) = shape.lines.values()
    assert line.ids() == [3, 6, 1, 4, 2]
    assert job_of(line.first(since=0)) == 3
    queue.remove(job(3, priority=5))
    queue.remove(job(1))
    assert job_of(line.first(since=0)) == 6
    assert line.first(since=6) < line.first(since=5), "accepted at 6, it is due then"


def test_a_fork_and_its_original_go_their_own_ways() -> None:
    queue = queue_of(job(1), job(2), job(3, tenant="b"), job(4, 4))
    (shape, _) = queue.shapes.values()
    queue.restand(shape.lines[("b", "standard")], OVER)
    twin = queue.fork(Walk(Usage(), {}))
    other = queue.fork(Walk(Usage(), {}))
    queue.remove(job(1))
    queue.add(job(5, tenant="c"), TIER)
    queue.wake_for_quota("b", lambda _: INSIDE)
    twin.remove(job(2))
    twin.remove(job(4, 4))
    assert (queue.waiting(), twin.waiting(), other.waiting()) == ([2, 3, 4, 5], [1, 3], [1, 2, 3, 4])
    standings = [sorted({band[0] for shape in each.shapes.values() for band in shape.bands}) for each in (queue, twin)]
    assert standings == [[INSIDE], [INSIDE, OVER]]
    assert list(twin.outside) == ["b"]
    assert not queue.outside


def heads_of(queue: Queue, tenant: str, standing: int = INSIDE) -> list[int]:
    leaf = queue.leaves((standing, RANK, "standard")).get(tenant, Leaf())
    assert all(line.tenant == tenant and line.head() == job_of(line.place) for line in leaf.lines)
    assert leaf.places == [line.place for line in leaf.lines] == sorted(leaf.places)
    return [line.head() for line in leaf.lines]


def test_the_lines_of_a_tenant_stand_where_their_heads_do_also_in_a_fork() -> None:
    queue = queue_of(job(1, 2), job(2, 1), job(3, 1), job(4, 4, priority=5), job(5, 1, tenant="b"))
    assert heads_of(queue, "a") == [4, 2, 1], "priority, then who asks for less"
    twin = queue.fork(Walk(Usage(), {}))
    queue.remove(job(2, 1))
    queue.add(job(6, 2, priority=9), TIER)
    queue.restand(queue.line_of(job(4, 4, priority=5)), OVER)
    twin.remove(job(4, 4, priority=5))
    twin.remove(job(5, 1, tenant="b"))
    assert (heads_of(queue, "a"), heads_of(queue, "a", OVER), heads_of(queue, "b")) == ([6, 3], [4], [5])
    assert (heads_of(twin, "a"), heads_of(twin, "b")) == ([2, 1], [])
    queue.remove(job(6, 2, priority=9))
    queue.remove(job(3, 1))
    assert heads_of(queue, "a") == [1]


def test_whoever_only_reads_sees_what_a_fork_shares() -> None:
    queue = queue_of(job(1), job(2, tenant="b"))
    (before,) = queue.shapes.values()
    twin = queue.fork(Walk(Usage(), {}))
    (after,) = twin.shapes.values()
    assert [*before.peek()] == [*after.peek()], "the same lines, until one of them asks for its own"
    assert not {*after.lines.values()} & {*before.peek()}
    assert [line.ids() for line in after.peek()] == [line.ids() for line in before.peek()] == [[1], [2]]


def test_all_of_a_line_have_one_rank_unless_they_stand_apart() -> None:
    queue = queue_of(job(2), job(1))
    (shape,) = queue.shapes.values()
    (line,) = shape.lines.values()
    assert line.find_rank(since=0) == line.first(since=0) >> 50
    assert line.find_rank(since=1) is None, "accepted at 1, one is due then"
    queue.add(job(3, priority=5), TIER)
    assert line.find_rank(since=0) is None
    assert sorted(line.by_rank(since=0))[-1][1] == [1, 2]


def test_a_shape_keeps_its_lines_in_bands() -> None:
    queue = queue_of(job(1), job(2, tenant="b"), job(3, tier="critical"))
    (shape,) = queue.shapes.values()
    queue.restand(shape.lines[("a", "standard")], OVER)
    assert sorted(shape.bands) == [(INSIDE, RANK, "critical"), (INSIDE, RANK, "standard"), (OVER, RANK, "standard")]
    queue.rerank("standard", Tier(7, HOUR_MS), {})
    assert sorted(shape.bands) == [(INSIDE, 7, "standard"), (INSIDE, RANK, "critical"), (OVER, 7, "standard")]
    queue.wake_for_quota("a", lambda _: INSIDE)
    assert sorted(shape.bands) == [(INSIDE, 7, "standard"), (INSIDE, RANK, "critical")]
    assert not queue.outside


def test_sleepers_wake_for_what_they_could_use() -> None:
    queue = queue_of(job(1, 2), job(2, 8))
    for shape in list(queue.awake):
        queue.sleep(shape)
    queue.wake_for_room(0, (4, 1000, 2**30))
    assert [shape.ask.gpus for shape in queue.awake] == [2]
    queue.wake_all()
    assert len(queue.awake) == 2


def test_a_gang_sleeps_until_as_much_came_free_as_it_is_short_of() -> None:
    queue = queue_of(job(1, 2))
    (shape,) = queue.awake
    queue.sleep(shape, short=3)
    queue.wake_for_room(0, (5, 1000, 2**30))
    assert not queue.awake, "room for two more tasks is not enough"
    queue.wake_for_room(1, (2, 1000, 2**30))
    assert list(queue.awake) == [shape]
    assert not shape.tries_freed, "it may go to slots where room was left before"
    queue.sleep(shape, short=3)
    queue.wake_all()
    assert list(queue.awake) == [shape]


def test_whoever_joins_a_shape_that_did_not_fit_does_not_wake_it() -> None:
    queue = queue_of(job(1))
    for shape in list(queue.awake):
        queue.sleep(shape)
    queue.add(job(2, tenant="b"), TIER)
    assert not queue.awake


def test_one_of_a_line_stands_where_the_line_says_when_its_turn_comes() -> None:
    jobs = [job(4), job(1), job(3, priority=5), job(2, due_at=HOUR_MS), job(6, priority=-5, due_at=9)]
    queue = queue_of(*jobs)
    (line,) = [line for shape in queue.shapes.values() for line in shape.lines.values()]
    for since in (-1, 2, 9):
        assert sorted(line.place_of(each, since) for each in jobs) == line.first_keys(since, len(jobs))
        assert min(line.place_of(each, since) for each in jobs) == line.first(since)


def test_a_parked_line_stays_parked_when_others_join_it_and_a_new_line_wakes_its_shape() -> None:
    queue = queue_of(job(5))
    (shape,) = queue.shapes.values()
    queue.restand(shape.lines[("a", "standard")], OVER)
    queue.sleep_all()
    queue.add(job(3), TIER)
    assert not queue.awake
    queue.wake_for_quota("a", lambda _: OVER)
    assert not queue.awake
    queue.add(job(6, tenant="b"), TIER)
    assert list(queue.awake) == [shape]


def test_who_left_is_not_kept_for_ever() -> None:
    queue = queue_of(*(job(number, priority=number % 2) for number in range(1, 1000)))
    (shape,) = queue.shapes.values()
    (line,) = shape.lines.values()
    for number in range(2, 999):
        queue.remove(job(number, priority=number % 2))
    assert len(line.heap) < 200
    assert line.ids() == [1, 999]


def test_a_forked_queue_is_independent() -> None:
    queue = queue_of(job(1), job(2, tenant="b"))
    (shape,) = queue.shapes.values()
    queue.restand(shape.lines[("a", "standard")], OVER)
    twin = queue.fork(Walk(Usage(), {}))
    twin.wake_for_quota("a", lambda _: INSIDE)
    twin.remove(job(2, tenant="b"))
    assert shape.lines[("a", "standard")].band[0] == OVER
    assert queue.waiting() == [1, 2]
    assert twin.waiting() == [1]


def test_spans_of_tasks() -> None:
    phases = bytes([0, 0, 1, 2, 4, 1, 0])
    assert list(spans_of(phases, HOLDING, 0, 7)) == [(2, 2), (5, 1)]
    assert list(spans_of(phases, (TaskPhase.QUEUED,), 1, 7)) == [(1, 1), (6, 1)]
    assert list(spans_of(b"", HOLDING, 0, 0)) == []


def test_tasks_move_in_ranges_and_are_counted() -> None:
    tasks = Tasks(10)
    tasks.seat(2, rows_of([Lease(4, 3, 0b111111)]), gpus=2)
    tasks.set_phase(2, 3, TaskPhase.STARTING)
    assert list(tasks.devices[2:5]) == [0b11, 0b1100, 0b110000]
    assert list(tasks.epoch[1:6]) == [0, 1, 1, 1, 0]
    assert tasks.counts[:2] == [7, 3]
    assert tasks.live == 10
    assert list(tasks.seats(1, 5)) == [
        (1, 1, Lease(NOWHERE, 1)),
        (2, 3, Lease(4, 3, 0b111111)),
        (5, 1, Lease(NOWHERE, 1)),
    ]
    tasks.leave(as_ranges(2, 1, 4, 1), TaskPhase.FAILED)
    assert list(tasks.seats(2, 3)) == [
        (2, 1, Lease(NOWHERE, 1)),
        (3, 1, Lease(4, 1, 0b1100)),
        (4, 1, Lease(NOWHERE, 1)),
    ]
    tasks.leave(as_ranges(3, 1), TaskPhase.QUEUED)
    assert [tasks.counts[phase] for phase in (TaskPhase.QUEUED, TaskPhase.STARTING, TaskPhase.FAILED)] == [8, 0, 2]
    assert tasks.leases(as_ranges(0, 10)) == [Lease(NOWHERE, 10)]
    assert list(tasks.slot) == [NOWHERE] * 10


def test_scattered_tasks_are_found_once_and_upwards() -> None:
    tasks = Tasks(12)
    tasks.seat(0, rows_of([Lease(0, 12, 0)]), gpus=0)
    tasks.set_phase(0, 12, TaskPhase.RUNNING)
    tasks.epoch[5] = 2
    tasks.leave(as_ranges(3, 1), TaskPhase.SUCCEEDED)
    said = as_ranges(8, 2, 3, 4, 4, 1, 9, 2, 0, 1)
    assert tasks.find_runs(said, HOLDING, 1) == as_ranges(0, 1, 4, 1, 6, 1, 8, 3)
    assert tasks.find_runs(said, HOLDING, 2) == as_ranges(5, 1)
    assert not tasks.find_runs(said, (TaskPhase.STOPPING,), 1)


def test_tasks_that_are_as_old_are_counted_together() -> None:
    tasks = Tasks(200)
    tasks.seat(0, rows_of([Lease(0, 100, 0), Lease(1, 100, 0)]), gpus=0)
    for task in range(200):
        tasks.enter(as_ranges(task, 1), TaskPhase.RUNNING, task % 3)
    odd = as_ranges(*chain(*((task, 1) for task in range(1, 200, 2))))
    ages = tasks.ages(odd, with_slots=False)
    assert sorted((age.since, age.tasks) for age in ages) == [(0, 33), (1, 34), (2, 33)]
    on_nodes = tasks.ages(odd, with_slots=True)
    assert sum(age.tasks for age in on_nodes if age.slot == 1) == 50
    assert tasks.counts[TaskPhase.RUNNING] == 200


def test_more_ages_than_are_looked_through_still_add_up() -> None:
    tasks = Tasks(3 * AGES_APART)
    tasks.set_phase(0, len(tasks), TaskPhase.RUNNING)
    for task in range(len(tasks)):
        tasks.enter(as_ranges(task, 1), TaskPhase.RUNNING, task % (2 * AGES_APART))
    ages = tasks.ages(as_ranges(0, len(tasks)), with_slots=False)
    assert len(ages) == 3 * AGES_APART
    assert sum(age.tasks for age in ages) == len(tasks)


def test_waiting_tasks_are_found_in_order_and_by_epoch() -> None:
    tasks = Tasks(6)
    assert tasks.find_queued(4) == (0, 4)
    tasks.set_phase(0, 2, TaskPhase.RUNNING)
    assert tasks.find_queued(10) == (2, 4)
    tasks.epoch[4] = 1
    assert tasks.find_queued(10) == (2, 2)
    tasks.set_phase(0, 1, TaskPhase.QUEUED)
    assert tasks.find_queued(10) == (0, 1)
    tasks.set_phase(0, 6, TaskPhase.SUCCEEDED)
    assert tasks.find_queued(10) is None


def test_forked_tasks_are_independent() -> None:
    tasks = Tasks(3)
    twin = tasks.fork()
    twin.set_phase(0, 3, TaskPhase.FAILED)
    assert tasks.counts[TaskPhase.QUEUED] == 3


def test_timers_forget_what_was_outlived() -> None:
    timers = Timers()
    running = Job(1, spec(limit_ms=50), 0, Running(10, Run(1, ())), 1)
    timers.watch(running)
    assert timers.find_limit({1: running}) == (60, 1)
    over = Job(1, running.spec, 0, Succeeded(70), 1)
    timers.watch(over)
    assert timers.find_limit({1: over}) is None
    assert timers.find_ended({1: over}) == (70, 1)
    assert timers.take_ended({1: over}, 69, 9) == []
    assert timers.take_ended({1: over}, 70, 9) == [1]
    assert timers.find_ended({}) is None


def test_who_sits_on_a_node() -> None:
    rig = Rig(nodes=2)
    gang = rig.submit(4, gang=3)
    array = rig.submit(1, array=3)
    rig.exit(gang, 0, 0, 1)
    seats = [(seat.job, seat.first, seat.count, seat.phase) for seat in seats_on(rig.world, 0)]
    assert seats == [(gang, 1, 1, TaskPhase.STARTING)]
    seats = [(seat.job, seat.first, seat.count, seat.phase) for seat in seats_on(rig.world, 1)]
    assert seats == [(gang, 2, 1, TaskPhase.STARTING), (array, 0, 3, TaskPhase.STARTING)]
