"""Turns: who starts and who gives way in a tier that is shared in time."""

from __future__ import annotations

from typing import Any

import pytest

from muster.model import event, fact
from muster.model.advice import INDEX, Advice
from muster.model.booking import Booking, Window
from muster.model.node import Traits
from muster.model.phase import Why
from muster.model.reason import Code, Refused
from muster.model.sharing import ADVISED, ARRIVAL, ATTAINED, NARROW, SERVICE, Sharing
from muster.model.spec import Needs
from muster.model.tier import EVICTIONS_MAX, STANDARD, Tier
from muster.scheduler.reasons import explain
from muster.testing.rig import Rig
from muster.units import AMOUNT_MAX, DAY_MS, HOUR_MS, MINUTE_MS, Resources
from muster.wire.words import put_in_words
from muster.world.laws.invariants import check_world
from muster.world.snapshot import restore, snapshot

QUANTUM_MS = 2 * MINUTE_MS


def shared(nodes: int = 1, index: str = ATTAINED, quantum_ms: int | None = QUANTUM_MS, **fields: Any) -> Rig:
    rig = Rig(nodes)
    sharing = Sharing(index, quantum_ms, **fields)
    rig.feed(event.SetTier(STANDARD, Tier(200, AMOUNT_MAX, 0, sharing=sharing)))
    return rig


def advise(rig: Rig, version: int = 1, patience_ms: int = 0, **indexes: int) -> list[fact.Fact]:
    jobs = tuple(int(name[1:]) for name in indexes)
    columns = {"job": jobs, "index": tuple(indexes.values()), "patience_ms": (patience_ms,)}
    advice = Advice(version, rig.now + DAY_MS, columns)
    return rig.feed(event.Advise(INDEX, advice)).facts


def run(rig: Rig, number: int) -> int:
    rig.start(number)
    return number


def stops(facts: list[fact.Fact]) -> dict[int, Why]:
    return {item.job: item.why for item in facts if isinstance(item, fact.StopAsked)}


def test_a_better_index_takes_a_place_when_the_quantum_is_over_and_not_before() -> None:
    rig = shared()
    old = run(rig, rig.submit(8))
    new = rig.submit(8)
    assert rig.phase(new) == "Queued"
    outcome = rig.feed(after_ms=QUANTUM_MS // 2)
    assert outcome.wake_at is not None
    assert stops(rig.feed(after_ms=QUANTUM_MS).facts) == {old: Why.PREEMPT}
    assert new in rig.world.claims
    rig.exit(old, code=143)
    assert (rig.phase(new), rig.phase(old)) == ("Starting", "Queued")
    assert rig.job(old).served_ms > QUANTUM_MS
    check_world(rig.world)


def test_what_it_got_so_far_brings_it_back_only_after_the_other_got_more() -> None:
    rig = shared()
    old = run(rig, rig.submit(8))
    new = rig.submit(8)
    rig.feed(after_ms=2 * QUANTUM_MS)
    rig.exit(old, code=143)
    run(rig, new)
    assert not stops(rig.feed(after_ms=2 * QUANTUM_MS).facts), "who runs counts by half"
    assert stops(rig.feed(after_ms=10 * QUANTUM_MS).facts) == {new: Why.PREEMPT}


def test_without_a_quantum_nobody_is_stopped_and_the_order_is_by_index() -> None:
    rig = shared(index=ADVISED, quantum_ms=None)
    first = run(rig, rig.submit(8))
    slow, fast = rig.submit(8), rig.submit(8)
    advise(rig, **{f"j{first}": 9, f"j{slow}": 5, f"j{fast}": 3})
    assert not stops(rig.feed(after_ms=HOUR_MS).facts)
    rig.exit(first)
    assert (rig.phase(fast), rig.phase(slow)) == ("Starting", "Queued")


def test_advice_moves_who_waits_and_who_runs() -> None:
    rig = shared(index=ADVISED)
    old = run(rig, rig.submit(8))
    new = rig.submit(8)
    advise(rig, **{f"j{old}": 10, f"j{new}": 9})
    assert not stops(rig.feed(after_ms=QUANTUM_MS).facts), "better, but not by far"
    assert stops(advise(rig, 2, **{f"j{old}": 10, f"j{new}": 4})) == {old: Why.PREEMPT}
    check_world(rig.world)


def test_remaining_service_is_of_what_an_adviser_says() -> None:
    rig = shared(index=SERVICE, keep_milli=1000)
    long = run(rig, rig.submit(8))
    short = rig.submit(4)
    advise(rig, **{f"j{long}": HOUR_MS, f"j{short}": HOUR_MS})
    assert stops(rig.feed(after_ms=QUANTUM_MS).facts) == {long: Why.PREEMPT}, "as long, on fewer devices"


def test_a_gang_gets_all_its_places_or_nobody_gives_way() -> None:
    rig = shared(nodes=2, index=ADVISED)
    small = [run(rig, rig.submit(8)) for _ in range(2)]
    gang = rig.submit(8, gang=2)
    facts = advise(rig, **{f"j{small[0]}": 900, f"j{small[1]}": 1, f"j{gang}": 100})
    assert not stops(facts + rig.feed(after_ms=2 * QUANTUM_MS).facts), "one of the two is worth more than the gang"
    assert stops(advise(rig, 2, **{f"j{small[0]}": 900, f"j{small[1]}": 900, f"j{gang}": 100})) == dict.fromkeys(
        small, Why.PREEMPT
    )


def test_smaller_ones_move_if_only_that_makes_room() -> None:
    rig = shared(nodes=2, index=ADVISED)
    jobs = [run(rig, rig.submit(gpus)) for gpus in (4, 4, 4, 4)]
    gone = {rig.run(job).leases[0].slot: job for job in jobs}
    for job in gone.values():
        rig.exit(job)
    kept = [job for job in jobs if job not in gone.values()]
    whole = rig.submit(8)
    facts = advise(rig, **{f"j{whole}": 50} | {f"j{job}": 1 for job in kept})
    facts = facts + rig.feed(after_ms=2 * QUANTUM_MS).facts
    (moved,) = stops(facts)
    assert stops(facts)[moved] == Why.MIGRATE
    rig.exit(moved, code=143)
    assert {rig.phase(number) for number in (whole, *kept)} <= {"Starting", "Running"}
    assert not rig.job(moved).evicted, "who moves was not stopped for others"


def test_what_may_not_be_evicted_and_what_was_too_often_stay() -> None:
    rig = shared(index=ADVISED)
    rig.tenant("own", gpus=8)
    firm = run(rig, rig.submit(4, evictable=False))
    new = rig.submit(8)
    advise(rig, **{f"j{firm}": 1000, f"j{new}": 1})
    assert not stops(rig.feed(after_ms=HOUR_MS).facts)
    rig = shared(index=ADVISED, quantum_ms=0)
    tired, other = rig.submit(8), rig.submit(8)
    rig.start(tired)
    for version in range(1, 3 * EVICTIONS_MAX):
        runner = tired if rig.phase(tired) != "Queued" else other
        waiter = other if runner == tired else tired
        if not stops(advise(rig, version, **{f"j{runner}": 1 << 50, f"j{waiter}": 1})):
            break
        rig.exit(runner, code=143)
        rig.start(waiter)
    counts = sorted(len(rig.job(number).evicted) for number in (tired, other))
    assert counts[1] == EVICTIONS_MAX, "and no more"


def test_who_waited_too_long_for_what_it_got_is_owed_a_turn() -> None:
    rig = shared(index=ADVISED, owed_after_ms=HOUR_MS, owed_milli=0)
    first = run(rig, rig.submit(8))
    last = rig.submit(8)
    advise(rig, **{f"j{first}": 1, f"j{last}": 1 << 40})
    assert not stops(rig.feed(after_ms=HOUR_MS // 2).facts)
    assert stops(rig.feed(after_ms=HOUR_MS).facts) == {first: Why.PREEMPT}
    rig.exit(first, code=143)
    run(rig, last)
    assert not stops(rig.feed(after_ms=HOUR_MS).facts), "it keeps its turn until it has some credit"
    assert stops(rig.feed(after_ms=6 * HOUR_MS).facts) == {last: Why.PREEMPT}


def test_nobody_waits_for_longer_than_so_many_times_what_it_got() -> None:
    """However much it got before: nothing is added to that."""
    rig = shared(index=ADVISED, owed_after_ms=2 * HOUR_MS, owed_times=3, owed_milli=0)
    first = run(rig, rig.submit(8))
    rig.feed(after_ms=HOUR_MS)
    last = rig.submit(8)
    assert stops(advise(rig, **{f"j{first}": 1 << 40, f"j{last}": 1})) == {first: Why.PREEMPT}
    rig.exit(first, code=143)
    run(rig, last)
    assert not stops(rig.feed(after_ms=5 * HOUR_MS // 2).facts), "three hours for the one that it got"
    assert stops(rig.feed(after_ms=HOUR_MS).facts) == {last: Why.PREEMPT}


def test_where_all_wait_long_nobody_is_owed_early_and_the_world_remembers() -> None:
    rig = shared(index=ADVISED, owed_after_ms=HOUR_MS, owed_milli=0)
    first = run(rig, rig.submit(8))
    last = rig.submit(8)
    advise(rig, patience_ms=5 * HOUR_MS, **{f"j{first}": 1, f"j{last}": 1 << 40})
    assert not stops(rig.feed(after_ms=4 * HOUR_MS).facts)
    check_world(rig.world)
    assert restore(snapshot(rig.world)).queue.floors.patience_ms == 5 * HOUR_MS
    assert stops(rig.feed(after_ms=2 * HOUR_MS).facts) == {first: Why.PREEMPT}


def test_of_equals_the_narrow_go_first_and_more_service_goes_last() -> None:
    rig = shared(index=NARROW, keep_milli=1000)
    wide = run(rig, rig.submit(8))
    narrow = rig.submit(1)
    assert stops(rig.feed(after_ms=QUANTUM_MS).facts) == {wide: Why.PREEMPT}
    rig.exit(wide, code=143)
    run(rig, narrow)
    outcome = rig.feed(after_ms=HOUR_MS)
    assert stops(outcome.facts) == {narrow: Why.PREEMPT}, "it got more than a device-hour, and the other one less"


def test_who_was_told_to_stop_and_does_not_is_not_counted_on() -> None:
    rig = shared(nodes=2, index=ADVISED)
    stuck, other = (run(rig, rig.submit(8)) for _ in range(2))
    new = rig.submit(8)
    facts = advise(rig, **{f"j{stuck}": 900, f"j{other}": 500, f"j{new}": 1})
    facts = facts + rig.feed(after_ms=QUANTUM_MS).facts
    assert stops(facts) == {stuck: Why.PREEMPT}
    for _ in range(3):
        facts = rig.feed(after_ms=HOUR_MS).facts
        if facts:
            break
    assert stops(facts) == {other: Why.PREEMPT}, "its places are never free, so somebody else gives way"
    check_world(rig.world)


def test_a_restored_world_takes_the_same_turns() -> None:
    rig = shared()
    run(rig, rig.submit(8))
    rig.submit(8)
    twin = restore(snapshot(rig.world))
    check_world(twin)
    assert (
        twin.queue.floors.by_scope[(STANDARD, "default")].order
        == rig.world.queue.floors.by_scope[(STANDARD, "default")].order
    )


def test_a_tier_that_is_shared_no_more_has_no_floors() -> None:
    rig = shared()
    run(rig, rig.submit(8))
    waiting = rig.submit(8)
    rig.feed(event.SetTier(STANDARD, Tier(200, AMOUNT_MAX, 0)))
    assert not rig.world.queue.floors.by_scope
    assert not stops(rig.feed(after_ms=DAY_MS).facts)
    rig.feed(event.SetTier(STANDARD, Tier(200, AMOUNT_MAX, 0, sharing=Sharing(ARRIVAL))))
    check_world(rig.world)
    rig.exit(1)
    assert rig.phase(waiting) == "Starting"


@pytest.mark.parametrize(
    ("sharing", "code"),
    [
        (Sharing("luck"), Code.BAD_SPEC),
        (Sharing(keep_milli=0), Code.BAD_AMOUNT),
        (Sharing(quantum_ms=-1), Code.BAD_AMOUNT),
        (Sharing(steps=(5, 3)), Code.BAD_AMOUNT),
        (Sharing(owed_milli=1001), Code.BAD_AMOUNT),
    ],
)
def test_sharing_that_makes_no_sense_is_refused(sharing: Sharing, code: Code) -> None:
    answer = Rig(1).answer(event.SetTier("x", Tier(1, 1, sharing=sharing)))
    assert isinstance(answer, Refused)
    assert answer.reason.code == code


def test_who_waits_for_its_window_takes_no_turn() -> None:
    rig = shared(nodes=2)
    opens_at = rig.now + DAY_MS
    rig.feed(event.Reserve(Booking("b", "default", 1, (Window(opens_at, opens_at + HOUR_MS),))))
    run(rig, rig.submit(8))
    booked = rig.submit(4, needs=Needs(booking="b"))
    run(rig, rig.submit(8))
    rig.feed(after_ms=HOUR_MS)
    assert (rig.phase(booked), rig.world.claims) == ("Queued", {})


def test_who_tolerates_a_taint_has_a_turn_on_what_is_free_behind_it() -> None:
    rig = shared(nodes=0)
    rig.feed(event.NodeSeen("odd", Resources(8, 64_000, 2**38), traits=Traits(taints=("odd",))))
    first = rig.submit(8, needs=Needs(tolerates=("odd",)))
    second = rig.submit(8, needs=Needs(tolerates=("odd",)))
    assert (rig.phase(first), rig.phase(second)) == ("Starting", "Queued")
    run(rig, first)
    rig.exit(first)
    assert rig.phase(second) == "Starting"


def test_who_would_fit_and_has_no_turn_is_told_so() -> None:
    rig = shared(2)
    old, other = run(rig, rig.submit(8)), run(rig, rig.submit(4))
    new = rig.submit(8)
    rig.feed(after_ms=QUANTUM_MS)
    assert (rig.phase(old), rig.phase(other)) == ("Stopping", "Running")
    late = rig.submit(1)
    waiting = explain(rig.world, rig.job(late))
    assert waiting is not None
    assert (waiting.reason.code, waiting.reason.subject) == (Code.NOT_ITS_TURN, STANDARD)
    assert waiting.reason.needed > rig.now
    assert put_in_words(waiting.reason).what.startswith(
        "waiting for its turn: there is room, and others of tier standard"
    )
    rig.exit(old, code=143)
    assert (rig.phase(new), rig.phase(late)) == ("Starting", "Starting")
