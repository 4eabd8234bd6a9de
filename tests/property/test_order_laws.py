"""Laws of the order, in words, over random histories."""

from __future__ import annotations

import math
from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.phase import ACTIVE
from muster.model.tenant import Tenant
from muster.testing.rig import Rig
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS, Resources
from muster.world.decay import WEIGHT_BITS
from muster.world.tour import Tour
from muster.world.usage import BUCKET_MS, BUCKETS_KEPT, WEIGHTS, Usage
from muster.world.walk import Walk

Hold: TypeAlias = tuple[str, int, int, int, int | None]
"""A tenant holds an amount from an instant on for so long, and may have a limit."""

TENANTS = ("x", "y", "z", "lab", "root-leaf")
TREE = {"lab": Tenant(weight=2), "x": Tenant("lab", 3), "y": Tenant("lab"), "z": Tenant("y", 5)}
HOLDS = st.lists(
    st.tuples(
        st.sampled_from(TENANTS),
        st.integers(1, 10**6),
        st.integers(0, 300 * HOUR_MS),
        st.integers(0, 40 * HOUR_MS),
        st.none() | st.integers(1, 60 * HOUR_MS),
    ),
    max_size=12,
)
LAWFUL = settings(derandomize=True, deadline=None, max_examples=150)


def play(holds: list[Hold], until: int, readings: frozenset[int] = frozenset()) -> Usage:
    """All that happens until an instant, in order; it is read after the steps with these numbers, now and ahead."""
    usage = Usage()
    steps = [(at, tenant, amount, _end(at, limit)) for tenant, amount, at, _, limit in holds]
    steps += [(at + span, tenant, -amount, _end(at, limit)) for tenant, amount, at, span, limit in holds]
    for number, (at, tenant, amount, end) in enumerate(sorted(steps, key=lambda step: (step[0], -step[2], step[1]))):
        if at <= until:
            usage.step(tenant, "gpu", amount, at, end)
            if number in readings:
                for name in TENANTS:
                    usage.charge(name, at)
                    usage.charge(name, at + 26 * HOUR_MS)
                    usage.decayed(name, at + MINUTE_MS)
    return usage


def _end(at: int, limit: int | None) -> int | None:
    return None if limit is None else at + limit


@LAWFUL
@given(HOLDS, st.integers(0, 400 * HOUR_MS), st.frozensets(st.integers(0, 23)))
def test_decayed_use_does_not_depend_on_how_often_it_is_read(
    holds: list[Hold], at: int, readings: frozenset[int]
) -> None:
    read, unread = play(holds, at, readings), play(holds, at)
    for name in TENANTS:
        for later in (at, at + HOUR_MS, at + 26 * HOUR_MS):
            assert read.decayed(name, later) == unread.decayed(name, later)
            assert read.charge(name, later) == unread.charge(name, later)
    assert list(read.books(at)) == list(unread.books(at))


@LAWFUL
@given(HOLDS, st.integers(0, 400 * HOUR_MS))
def test_use_is_what_was_held_to_the_last_millisecond(holds: list[Hold], at: int) -> None:
    usage = play(holds, at)
    now = at // BUCKET_MS
    for name in TENANTS:
        wanted = 0
        for tenant, amount, begin, span, _ in holds:
            for bucket in range(max(0, now - BUCKETS_KEPT), now + 1) if tenant == name else ():
                low, high = max(begin, bucket * BUCKET_MS), min(begin + span, at, (bucket + 1) * BUCKET_MS)
                wanted += amount * max(0, high - low) * WEIGHTS[now - bucket]
        assert usage.decayed(name, at) == wanted >> WEIGHT_BITS


@LAWFUL
@given(HOLDS, st.lists(st.tuples(st.sampled_from(TENANTS), st.integers(1, 10**6)), max_size=8))
def test_a_tour_meets_whom_a_new_walk_would_meet(holds: list[Hold], starts: list[tuple[str, int]]) -> None:
    """Whoever is served meanwhile, at whatever depth of the tree; and who is dropped, or served for the last time, is
    not met again."""
    now = 400 * HOUR_MS
    usage = play(holds, now)
    walk = Walk(usage, TREE)
    for name in TENANTS:
        walk.join(name)
    walk.settle(now)
    nodes = {node for name in TENANTS for node, _ in walk.path(name)}
    tour, left = Tour(walk, [nodes]), list(TENANTS)
    for name, amount in starts:
        anew = Walk(usage, TREE)
        for other in left:
            anew.join(other)
        met = tour.find_first()
        assert met == next(anew.in_order(left, now), None)
        if met is None:
            return
        if name == met and len(left) > 1:
            tour.drop()
            left.remove(met)
        else:
            usage.step(met, "gpu", amount, now)
            has_more = amount % 3 > 0
            tour.serve(met, has_more=has_more)
            if not has_more:
                left.remove(met)


LEAVES = st.lists(
    st.tuples(
        st.sampled_from((-3, 0, 0, 4)),
        st.sampled_from((None, None, 5 * HOUR_MS, 5 * HOUR_MS, 6 * HOUR_MS, 30 * HOUR_MS)),
        st.integers(1, 3),
        st.sampled_from((1, MINUTE_MS, HOUR_MS, 10 * HOUR_MS)),
    ),
    min_size=2,
    max_size=12,
)
"""Jobs of one tenant: priority, how long after its submit each is due, GPUs, and how long after the last it comes."""


@settings(derandomize=True, deadline=None, max_examples=60)
@given(LEAVES)
def test_a_leaf_is_served_by_the_table(leaves: list[tuple[int, int | None, int, int]]) -> None:
    """The order page's table, as a sort: priority, due, due time, size, number. The node fits one job at a time."""
    rig = Rig(nodes=1, gpus=3)
    blocker = rig.submit(3, tenant="blocker")
    keys: dict[int, tuple[int, int | None, int, int]] = {}
    for priority, due_ms, gpus, gap_ms in leaves:
        due_at = None if due_ms is None else rig.now + gap_ms + due_ms
        rig.feed(after_ms=gap_ms - 1)
        ask = Resources(gpus, 64_000, 2**30)
        keys[rig.submit(tenant="a", priority=priority, due_at=due_at, ask=ask)] = (priority, due_at, gpus, rig.now)
    served, running = list[int](), blocker
    while len(served) < len(keys):
        rig.exit(running)
        running = next(number for number, job in rig.world.jobs.items() if isinstance(job.phase, ACTIVE))
        assert running == min((_leaf(rig.now, keys[number]), number) for number in keys if number not in served)[1]
        served.append(running)


def _leaf(now: int, key: tuple[int, int | None, int, int]) -> tuple[int, bool, float, int]:
    priority, due_at, gpus, accepted_at = key
    if accepted_at <= now - DAY_MS:
        return -priority, False, 0, 0
    return -priority, True, math.inf if due_at is None else due_at, gpus
