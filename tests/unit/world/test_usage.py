"""Use: exact by the hour, weighted by age on read, charged ahead at a start and settled at the end."""

from __future__ import annotations

import random

import pytest

from muster.testing.rig import Rig
from muster.units import HOUR_MS, MINUTE_MS, Resources
from muster.world.decay import WEIGHT_BITS
from muster.world.snapshot import restore, snapshot
from muster.world.usage import BUCKETS_KEPT, HALF_LIFE_BUCKETS, WEIGHTS, Usage, amount_of

ONE = 1 << WEIGHT_BITS


def uses_of(usage: Usage, at: int) -> dict[str, list[tuple[int, int]]]:
    return {tenant: uses for tenant, _, uses in usage.books(at)}


def test_weights_halve_with_every_half_life_and_never_grow() -> None:
    assert WEIGHTS[0] == ONE
    assert WEIGHTS[HALF_LIFE_BUCKETS] == ONE // 2
    assert WEIGHTS[BUCKETS_KEPT] == ONE >> 10
    assert sorted(WEIGHTS, reverse=True) == list(WEIGHTS)
    assert WEIGHTS[12] == 741455, "2^20 over the square root of 2, rounded down"


def test_what_tasks_count_as() -> None:
    assert amount_of(Resources(gpus=2, cpu_milli=64_000), 3) == 6_000_000
    assert amount_of(Resources(gpus=1), 1, units=450) == 450_000
    assert amount_of(Resources(gpu_milli=250), 4) == 1_000_000
    assert amount_of(Resources(cpu_milli=1500), 2) == 3000
    assert amount_of(Resources(memory_bytes=5), 9) == 0


def test_use_is_exact_and_by_the_hour() -> None:
    usage = Usage()
    usage.step("a", "gpu", 5, HOUR_MS - 10)
    usage.step("a", "gpu", 2, HOUR_MS + 100)
    usage.step("a", "gpu", -7, 3 * HOUR_MS + 1)
    assert uses_of(usage, 9 * HOUR_MS) == {
        "a": [(0, 50), (1, 500 + 7 * (HOUR_MS - 100)), (2, 7 * HOUR_MS), (3, 7)],
    }
    assert uses_of(usage, 2 * HOUR_MS + 5)["a"][-1] != (2, 0)


def test_an_end_is_the_exact_inverse_of_a_start() -> None:
    usage = Usage()
    usage.step("a", "gpu", 5, 70)
    before = uses_of(usage, 1000), usage.charge("a", 1000)
    for end in (None, 9 * HOUR_MS):
        usage.step("a", "gpu", 3, 500, end)
        usage.step("a", "gpu", -3, 500, end)
        assert (uses_of(usage, 1000), usage.charge("a", 1000)) == before


def test_a_start_is_charged_at_once_and_only_what_was_used_remains() -> None:
    usage = Usage()
    usage.step("a", "gpu", 4, 10 * MINUTE_MS)
    assert usage.charge("a", 10 * MINUTE_MS) == 4 * 110 * MINUTE_MS * ONE, "to the end of the next hour"
    assert usage.charge("a", 50 * MINUTE_MS) == 4 * 110 * MINUTE_MS * ONE, "and it stands still within the hour"
    usage.step("a", "gpu", -4, 30 * MINUTE_MS)
    assert usage.charge("a", 50 * MINUTE_MS) == 4 * 20 * MINUTE_MS * ONE
    usage.step("b", "gpu", 4, 10 * MINUTE_MS, 10 * HOUR_MS)
    assert usage.charge("b", 10 * MINUTE_MS) == 4 * (10 * HOUR_MS - 10 * MINUTE_MS) * ONE, "a limit is charged whole"
    later = 20 * HOUR_MS + 1
    assert usage.charge("b", later) >= usage.decayed("b", later) * ONE


def test_old_use_fades_and_is_dropped() -> None:
    usage = Usage()
    usage.step("a", "gpu", 1, 0)
    usage.step("a", "gpu", -1, HOUR_MS)
    day, last = 24 * HOUR_MS, BUCKETS_KEPT * HOUR_MS
    assert [usage.decayed("a", at) for at in (HOUR_MS - 1, day, 2 * day)] == [HOUR_MS, HOUR_MS // 2, HOUR_MS // 4]
    assert usage.decayed("a", last + HOUR_MS - 1) == HOUR_MS >> 10
    assert usage.decayed("a", last + HOUR_MS) == 0
    usage.trim(last)
    assert "a" in usage.accounts
    usage.trim(last + HOUR_MS)
    assert not usage.accounts


@pytest.mark.parametrize("gap", [0, 1, 100, BUCKETS_KEPT, 2 * BUCKETS_KEPT])
def test_a_charge_is_what_all_hours_weigh_and_what_is_paid_ahead(gap: int) -> None:
    """By hand, from what was held; after a gap in which nobody looked, some of it is too old to weigh anything."""
    dice, usage = random.Random(gap), Usage()
    held: list[tuple[int, int, int]] = []
    for _ in range(40):
        begin, span = dice.randrange(60 * HOUR_MS), dice.choice((9, HOUR_MS, 999 * HOUR_MS))
        held.append((dice.randrange(1, 9), begin, begin + span))
    steps = [(begin, amount) for amount, begin, _ in held] + [(end, -amount) for amount, _, end in held]
    for at, amount in sorted(step for step in steps if step[0] < 70 * HOUR_MS):
        usage.step("a", "x", amount, at)
    now = (80 + gap) * HOUR_MS + 1
    this, wanted = now // HOUR_MS, 0
    for amount, begin, end in held:
        end = min(end, (this + 2) * HOUR_MS)
        for hour in range(this - BUCKETS_KEPT, this + 2):
            used = max(0, min(end, (hour + 1) * HOUR_MS) - max(begin, hour * HOUR_MS))
            wanted += amount * used * WEIGHTS[max(0, this - hour)]
    assert usage.charge("a", now) == wanted
    usage.step("a", "x", 0, now)
    assert usage.charge("a", now) == wanted
    assert len(usage.accounts["a"].meters["x"].past) <= BUCKETS_KEPT


def test_reading_changes_nothing() -> None:
    dice = random.Random(4)
    read, unread = Usage(), Usage()
    at = 0
    for _ in range(300):
        at += dice.choice((0, 1, MINUTE_MS, 7 * HOUR_MS))
        amount = dice.randrange(1, 9)
        for usage in (read, unread):
            usage.step("a", "x", amount, at)
        for _ in range(dice.randrange(3)):
            read.charge("a", at + dice.choice((0, HOUR_MS, 30 * HOUR_MS)))
            read.decayed("a", at)
        if dice.random() < 0.7:
            for usage in (read, unread):
                usage.step("a", "x", -amount, at)
    assert uses_of(read, at) == uses_of(unread, at)
    assert read.charge("a", at) == unread.charge("a", at)


@pytest.mark.parametrize("gap_ms", [MINUTE_MS, HOUR_MS, 30 * HOUR_MS])
def test_a_restored_world_charges_alike_ever_after(gap_ms: int) -> None:
    rig = Rig(nodes=2)
    jobs = [rig.submit(2, tenant=name, limit_ms=limit) for name in "ab" for limit in (None, 50 * HOUR_MS)]
    array = rig.submit(1, array=4, tenant="c")
    rig.feed(after_ms=gap_ms)
    rig.exit(jobs[0])
    twin = restore(snapshot(rig.world))
    for at in (rig.now, rig.now + HOUR_MS, rig.now + 99 * HOUR_MS):
        charges = [rig.world.usage.charge(name, at) for name in "abc"]
        assert [twin.usage.charge(name, at) for name in "abc"] == charges
        assert min(charges) > 0
    assert rig.world.arrays[array].counts[1] == 4
