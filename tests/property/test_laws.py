"""The laws, in words and over any script of events: late, doubled, out of order, about nobody."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from muster.kernel.kernel import Kernel
from muster.model.event import SetTenant
from muster.model.phase import Lease
from muster.model.reason import Done, Refused
from muster.scheduler.placing.fit import find_gang, find_tasks
from muster.simulator.inspector import check_alike, check_nobody_overslept
from muster.testing.rig import Rig
from muster.testing.scripts import KINDS, Step, events_of, gap_of, play
from muster.units import MINUTE_MS
from muster.wire.codec import encode_entry
from muster.world.draft import Draft
from muster.world.laws.invariants import check_same, check_world, fold
from muster.world.snapshot import digest, restore, snapshot
from muster.world.world import World

NUMBERS = st.integers(0, 2**16)
STEPS = st.lists(st.tuples(st.integers(0, KINDS - 1), NUMBERS, NUMBERS), min_size=12, max_size=150)
WAKES_MAX = 1000
LAWFUL = settings(derandomize=True, deadline=None, max_examples=80)


def new_rig() -> Rig:
    return Rig(nodes=4, gpus=8, cpu_milli=32_000, memory_bytes=2**36)


def entries_of(rig: Rig) -> list[bytes]:
    return [encode_entry(out.seq, out.at, out.facts) for out in rig.outcomes if out.facts]


@LAWFUL
@given(STEPS)
def test_no_order_of_events_breaks_a_law(steps: list[Step]) -> None:
    rig = new_rig()
    for step in steps:
        rig.feed(*events_of(rig, step), after_ms=gap_of(step))
        check_world(rig.world)
        check_nobody_overslept(rig.world)


@LAWFUL
@given(STEPS)
def test_the_world_is_the_fold_of_its_journal(steps: list[Step]) -> None:
    rig = new_rig()
    play(rig, steps)
    folded = fold(entries_of(rig))
    check_world(folded)
    if folded.seq:
        check_same(rig.world, folded)


@LAWFUL
@given(STEPS)
def test_a_restored_world_and_a_fork_decide_like_the_living_one(steps: list[Step]) -> None:
    """The law of restore: the same answers, facts, instructions in order, and the same wake-up."""
    rig = new_rig()
    for step in steps:
        batch = events_of(rig, step)
        twins = [restore(snapshot(rig.world)), rig.world.fork()]
        outcome = rig.feed(*batch, after_ms=gap_of(step))
        for twin in twins:
            check_alike(outcome, Kernel(twin), batch)


@LAWFUL
@given(STEPS, STEPS)
def test_a_twin_stays_a_twin(before: list[Step], after: list[Step]) -> None:
    """Not only the next batch: a restored world lives on like the one that was never restored."""
    rig = new_rig()
    play(rig, before)
    twin = Kernel(restore(snapshot(rig.world)))
    for step in after:
        batch = events_of(rig, step)
        check_alike(rig.feed(*batch, after_ms=gap_of(step)), twin, batch)
    assert digest(twin.world) == digest(rig.world)


@LAWFUL
@given(STEPS)
def test_a_fork_does_not_touch_what_it_was_forked_from(steps: list[Step]) -> None:
    rig = new_rig()
    play(rig, steps[: len(steps) // 2])
    before = snapshot(rig.world)
    fork = Kernel(rig.world.fork())
    other = Rig()
    other.kernel, other.now = fork, rig.now
    for step in steps[len(steps) // 2 :]:
        fork.handle(events_of(other, step), other.now + gap_of(step))
        other.now += gap_of(step)
    assert snapshot(rig.world) == before
    check_world(rig.world)


@LAWFUL
@given(STEPS)
def test_a_snapshot_is_a_fixed_point(steps: list[Step]) -> None:
    rig = new_rig()
    play(rig, steps)
    data = snapshot(rig.world)
    assert snapshot(restore(data)) == data
    check_world(restore(data))


def content_and_indexes(world: World) -> tuple[object, ...]:
    fleet = world.fleet
    free = [(fleet.find_free(slot), fleet.devices(slot)) for slot in range(len(fleet))]
    lines = {key: {name: line.ids() for name, line in shape.lines.items()} for key, shape in world.queue.shapes.items()}
    return (snapshot(world), free, fleet.find_index_fault(), fleet.holders, world.ledger.holdings(), lines)


@LAWFUL
@given(STEPS, st.booleans())
def test_a_draft_that_is_left_changes_nothing(steps: list[Step], fails: bool) -> None:
    """Every placement that could be tried is tried, and all of them are taken back, also when the cycle breaks off."""
    rig = new_rig()
    play(rig, steps)
    world = rig.world.fork()
    before = content_and_indexes(world.fork())
    try:
        with Draft(world, world.now) as draft:
            place_all(world, draft)
            if fails:
                raise ZeroDivisionError
    except ZeroDivisionError:
        assert fails
    check_world(world)
    assert content_and_indexes(world) == before


def place_all(world: World, draft: Draft) -> None:
    for number in list(world.queue.waiting()):
        job = world.jobs[number]
        if job.spec.array:
            run = world.arrays[number].find_queued(3)
            leases = find_tasks(world.fleet, job.spec.ask, run[1]) if run else []
            if run and leases:
                draft.place_tasks(job, run[0], leases)
        else:
            found: list[Lease] | None = find_gang(world.fleet, job.spec.ask, job.spec.gang)
            if found is not None:
                draft.place(job, found)


@LAWFUL
@given(STEPS, st.integers(1, 9))
def test_how_events_are_batched_loses_nothing(steps: list[Step], width: int) -> None:
    """One by one, or several at once: every event is answered, the same jobs are accepted, every law holds."""
    single = new_rig()
    batches: list[tuple[list[object], int]] = []
    for step in steps:
        batch = [item for item in events_of(single, step) if type(item).__name__ in ("Submit", "SetTenant", "Cancel")]
        batches.append((list(batch), MINUTE_MS))
        single.feed(*batch, after_ms=0)
    joined = new_rig()
    flat = [item for batch, _ in batches for item in batch]
    for first in range(0, len(flat), width):
        outcome = joined.feed(*flat[first : first + width], after_ms=0)  # type: ignore[arg-type]  # events, mixed
        assert len(outcome.answers) == len(flat[first : first + width])
        assert all(isinstance(answer, (Done, Refused)) for answer in outcome.answers)
    check_world(joined.world)
    assert joined.world.accepted == single.world.accepted
    assert joined.world.next_job == single.world.next_job


@LAWFUL
@given(STEPS)
def test_the_kernel_wakes_itself_until_nothing_is_due(steps: list[Step]) -> None:
    """Time alone brings everything about that it can, in finitely many wake-ups; but for budgets, whose periods never
    end. Nobody says here that those are gone who were told to stop: nobody counts on it for ever either."""
    rig = new_rig()
    play(rig, steps)
    rig.feed(*(SetTenant(name, replace(one, budgets=())) for name, one in rig.world.tenants.items()))
    wake_at = rig.feed(after_ms=0).wake_at
    for _ in range(WAKES_MAX):
        if wake_at is None:
            break
        wake_at = rig.feed(after_ms=max(0, wake_at - rig.now)).wake_at
    assert wake_at is None
    check_world(rig.world)


@pytest.mark.parametrize("steps", [[(0, 0, 0)], [(8, 1, 1), (9, 1, 0), (8, 1, 2)]])
def test_the_shortest_scripts_mean_something(steps: list[Step]) -> None:
    rig = new_rig()
    play(rig, steps)
    assert rig.outcomes
