"""The laws of shadows: with perfect limits a tier of one shadow is EASY, and nobody who overtakes delays anybody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st

from muster.kernel.kernel import Kernel, Outcome
from muster.model import event, fact
from muster.model.advice import RUNTIME, Advice
from muster.model.tenant import GPU, Line, Tenant, gpu_amount
from muster.model.tier import Tier
from muster.scheduler.cycle import run_cycle
from muster.scheduler.shadows import Shadow
from muster.simulator.inspector import check_alike, check_nobody_overslept, check_shadows
from muster.testing.rig import Rig, spec
from muster.units import INSTANT_MAX, Resources
from muster.world.laws.invariants import check_world
from muster.world.snapshot import restore, snapshot

LAWFUL = settings(derandomize=True, deadline=None, max_examples=50)
NODES = 10
TIERS = ("critical", "standard", "opportunistic")


class Asked(NamedTuple):
    """A job of a stream: when it comes, how many whole nodes it wants, and for how long. It is a gang,
    or an array of one task."""

    at: int
    nodes: int
    limit: int
    is_array: bool

    def submit(self) -> event.Submit:
        shape = {"array": 1} if self.is_array else {"gang": self.nodes}
        return event.Submit(spec(1, limit_ms=self.limit, **shape))


ASKED = st.builds(Asked, st.integers(0, 60), st.integers(1, NODES), st.integers(1, 40), st.just(False))
STREAMS = st.lists(ASKED, min_size=1, max_size=32)
TASK = st.builds(Asked, st.integers(0, 60), st.just(1), st.integers(1, 40), st.just(True))
MIXED = st.lists(ASKED | TASK, min_size=1, max_size=32)


def easy(stream: Sequence[Asked], nodes: int) -> list[int]:
    """EASY on nodes as counts, as it is described: when each job of a stream starts."""
    starts = [-1] * len(stream)
    queue: list[int] = []
    running: list[tuple[int, int]] = []  # end, nodes
    instants = sorted({asked.at for asked in stream})
    while instants:
        now = instants.pop(0)
        running = [each for each in running if each[0] > now]
        queue += [number for number, asked in enumerate(stream) if asked.at == now]
        free = nodes - sum(width for _, width in running)
        reserved: tuple[int, int] | None = None  # when the first who waits starts, and how many nodes it leaves then
        for number in list(queue):
            _, width, limit, _ = stream[number]
            if width > free:
                reserved = reserved or reservation(running, free, width)
            elif reserved is None or now + limit <= reserved[0] or width <= reserved[1]:
                if reserved is not None and now + limit > reserved[0]:
                    reserved = (reserved[0], reserved[1] - width)
                starts[number], free = now, free - width
                queue.remove(number)
                running.append((now + limit, width))
                instants = sorted({*instants, now + limit})
    return starts


def reservation(running: list[tuple[int, int]], free: int, width: int) -> tuple[int, int]:
    for end in sorted(end for end, _ in running):
        there = free + sum(nodes for other, nodes in running if other <= end)
        if there >= width:
            return end, there - width
    raise AssertionError("it is larger than the fleet")


def play(stream: Sequence[Asked], shadows: int = 1, wait_ms: int = 0) -> tuple[list[int], Rig]:
    """The same stream through the kernel: whoever starts is up at once, and ends exactly at its limit."""
    rig = Rig(nodes=NODES, gpus=1)
    rig.feed(event.SetTier("standard", Tier(200, wait_ms, shadows)), after_ms=0)
    zero = rig.now
    starts = [-1] * len(stream)
    numbers: dict[int, int] = {}
    ends: dict[int, list[int]] = {}
    instants = sorted({asked.at for asked in stream})
    while instants:
        now = instants.pop(0)
        batch: list[event.Event] = [event.Exited(job, 1, 0, 0, stream[numbers[job]].nodes) for job in ends.pop(now, [])]
        coming = [number for number, asked in enumerate(stream) if asked.at == now]
        for number in coming:
            numbers[number_of(rig, coming, number)] = number
            batch.append(stream[number].submit())
        twin = Kernel(restore(snapshot(rig.world)))
        outcome = rig.feed(*batch, after_ms=zero + now - rig.now)
        check_alike(outcome, twin, batch)
        check_world(rig.world)
        check_nobody_overslept(rig.world)
        for job in jobs_placed(outcome):
            starts[numbers[job]] = now
            ends.setdefault(now + stream[numbers[job]].limit, []).append(job)
        instants = sorted({*instants, *ends})
    return starts, rig


def jobs_placed(outcome: Outcome) -> list[int]:
    """Gangs and arrays that got places; of arrays, any."""
    gangs = [job for item in outcome.facts if isinstance(item, fact.Placed) for job in item.jobs]
    return [*gangs, *(item.job for item in outcome.facts if isinstance(item, fact.TasksPlaced))]


def number_of(rig: Rig, coming: list[int], number: int) -> int:
    return rig.world.next_job + coming.index(number)


@LAWFUL
@given(MIXED)
def test_with_perfect_limits_a_tier_of_one_shadow_is_easy(stream: list[Asked]) -> None:
    starts, _ = play(stream)
    assert starts == easy(stream, NODES)


@LAWFUL
@given(STREAMS, st.integers(0, 8), st.integers(0, 30))
def test_whatever_the_tier_everybody_starts_and_every_law_holds(stream: list[Asked], shadows: int, wait: int) -> None:
    starts, _ = play(stream, shadows, wait)
    assert all(at >= 0 for at in starts)


@LAWFUL
@example([Asked(0, *each, False) for each in ((3, 1), (5, 1), (3, 1), (8, 1), (3, 2))], 2)
@given(STREAMS, st.integers(1, 8))
def test_nobody_who_overtakes_delays_a_shadow(stream: list[Asked], shadows: int) -> None:
    """With perfect limits and all in one line, whoever once cast the first shadow starts by then. Of those behind it
    that is not so: somebody before them who could only follow another shadow may come to cast one."""
    promised: dict[int, int] = {}
    rig = Rig(nodes=NODES, gpus=1)
    rig.feed(event.SetTier("standard", Tier(200, 0, shadows)), after_ms=0)
    zero, ends = rig.now, dict[int, list[int]]()
    instants = sorted({asked.at for asked in stream})
    while instants:
        now = instants.pop(0)
        batch: list[event.Event] = [
            event.Exited(job, 1, 0, 0, rig.job(job).spec.gang) for job in ends.pop(now, []) if job in rig.world.jobs
        ]
        coming = [asked for asked in stream if asked.at == now]
        batch += [event.Submit(spec(1, gang=asked.nodes, limit_ms=asked.limit)) for asked in coming]
        outcome = rig.feed(*batch, after_ms=zero + now - rig.now)
        for placed in outcome.facts:
            for job in placed.jobs if isinstance(placed, fact.Placed) else ():
                assert now <= promised.get(job, now)
                ends.setdefault(now + (rig.job(job).spec.limit_ms or 0), []).append(job)
        for shadow in shadows_of(rig)[:1]:
            promised[shadow.job] = min(shadow.at - zero, promised.get(shadow.job, shadow.at))
        instants = sorted({*instants, *ends})


@LAWFUL
@given(MIXED)
def test_no_task_of_an_array_that_overtakes_delays_a_shadow(stream: list[Asked]) -> None:
    """With perfect limits, one shadow and all in one line, whoever once cast it starts by then: gang or task."""
    promised: dict[int, int] = {}
    rig = Rig(nodes=NODES, gpus=1)
    rig.feed(event.SetTier("standard", Tier(200, 0, 1)), after_ms=0)
    zero, ends = rig.now, dict[int, list[int]]()
    instants = sorted({asked.at for asked in stream})
    while instants:
        now = instants.pop(0)
        batch: list[event.Event] = [event.Exited(job, 1, 0, 0, rig.job(job).spec.gang) for job in ends.pop(now, [])]
        batch += [asked.submit() for asked in stream if asked.at == now]
        before = rig.world.fork()
        outcome = rig.feed(*batch, after_ms=zero + now - rig.now)
        check_shadows(before, outcome, rig.world)
        for job in jobs_placed(outcome):
            assert now <= promised.get(job, now)
            ends.setdefault(now + (rig.job(job).spec.limit_ms or 0), []).append(job)
        for shadow in shadows_of(rig):
            promised[shadow.job] = min(shadow.at - zero, promised.get(shadow.job, shadow.at))
        instants = sorted({*instants, *ends})


@LAWFUL
@given(STREAMS, st.booleans())
def test_with_perfect_foresight_and_loose_limits_whoever_casts_a_shadow_starts_by_then(
    stream: list[Asked], is_advised: bool
) -> None:
    """Limits are three times what jobs run, and their owners, or an adviser, know how long that is. Who overtakes goes
    by its limit all the same, so of several shadows only the first is sure."""
    promised: dict[int, int] = {}
    rig = Rig(nodes=NODES, gpus=1)
    rig.feed(event.SetTier("standard", Tier(200, 0, 1)), after_ms=0)
    zero, ends, lengths = rig.now, dict[int, list[int]](), dict[int, int]()
    instants = sorted({asked.at for asked in stream})
    while instants:
        now = instants.pop(0)
        batch: list[event.Event] = [event.Exited(job, 1, 0, 0, rig.job(job).spec.gang) for job in ends.pop(now, [])]
        coming = [asked for asked in stream if asked.at == now]
        lengths |= {rig.world.next_job + at: asked.limit for at, asked in enumerate(coming)}
        if is_advised and coming:
            columns = {"job": tuple(lengths), "run_ms": tuple(lengths.values())}
            batch.append(event.Advise(RUNTIME, Advice(len(lengths), INSTANT_MAX, columns)))
        for asked in coming:
            expect_ms = None if is_advised else asked.limit
            batch.append(event.Submit(spec(1, gang=asked.nodes, limit_ms=3 * asked.limit, expect_ms=expect_ms)))
        outcome = rig.feed(*batch, after_ms=zero + now - rig.now)
        check_world(rig.world)
        for placed in outcome.facts:
            for job in placed.jobs if isinstance(placed, fact.Placed) else ():
                assert now <= promised.get(job, now)
                ends.setdefault(now + lengths[job], []).append(job)
        for shadow in shadows_of(rig):
            promised[shadow.job] = min(shadow.at - zero, promised.get(shadow.job, shadow.at))
        instants = sorted({*instants, *ends})


STEPS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2**16), st.integers(0, 2**16)), min_size=10, max_size=60)


def events_of(rig: Rig, step: tuple[int, int, int]) -> list[event.Event]:
    """Mixed work on part of nodes and on many: some with limits, some in other tiers, tenants and priorities; and
    ends, mostly before the limit."""
    kind, x, y = step
    if kind < 6:
        shape: dict[str, Any] = {"array": 1 + x % 5} if x % 7 == 0 else {"gang": 1 + y % 4}
        limit = None if x % 5 == 0 else 1 + 50 * (y % 9)
        ask = Resources((1, 2, 4, 8, 0)[y % 5], 1000 * (1 + x % 9), 2**30, 500 if y % 5 == 4 and x % 7 == 0 else 0)
        shape |= {"expect_ms": 1 + 20 * (x % 11)} if "gang" in shape and x % 3 == 0 else {}
        shape |= {"yields": True} if "expect_ms" in shape and y % 2 and (limit or 999) > shape["expect_ms"] else {}
        shape |= {"tenant": "abc"[x // 2 % 3], "tier": TIERS[y // 3 % 3], "priority": (0, 0, 5)[x // 3 % 3]}
        return [event.Submit(spec(ask=ask, limit_ms=limit, **shape))]
    if kind == 6:
        lines = (Line(GPU, guaranteed=gpu_amount(x % 9), limit=gpu_amount(9 + y % 20)),)
        return [event.SetTenant("abc"[x % 3], Tenant("", 1 + y % 3, lines if y % 4 else ()))]
    busy = sorted({job for here in rig.world.fleet.holders.values() for job in here})
    if kind == 7 and y % 2:
        known = rig.world.advice.get(RUNTIME)
        columns = {"job": tuple(busy), "run_ms": tuple(1 + 37 * (x + job) % 400 for job in busy)}
        said = Advice(1 if known is None else known.version + 1, rig.now + 1 + y, columns)
        return [event.Advise(RUNTIME, said)]
    jobs = [rig.job(busy[x % len(busy)])] if busy else []
    return [event.Exited(job.id, job.epoch or 1, 0, 0, job.spec.tasks) for job in jobs]


@LAWFUL
@given(STEPS, st.integers(0, 3), st.integers(0, 2))
def test_in_any_mixture_nobody_is_delayed_and_a_twin_decides_alike(
    steps: list[tuple[int, int, int]], shadows: int, wait: int
) -> None:
    rig = Rig(nodes=4, gpus=8, cpu_milli=32_000, memory_bytes=2**36)
    for rank, name in enumerate(TIERS):
        rig.feed(event.SetTier(name, Tier(rank, (0, 40, 4000)[wait], shadows + rank)))
    for step in steps:
        batch, before = events_of(rig, step), rig.world.fork()
        twins = [restore(snapshot(rig.world)), rig.world.fork()]
        outcome = rig.feed(*batch, after_ms=(0, 1, 10, 300)[step[1] % 4])
        for twin in twins:
            check_alike(outcome, Kernel(twin), batch)
        check_shadows(before, outcome, rig.world)
        check_world(rig.world)
        check_nobody_overslept(rig.world)


def shadows_of(rig: Rig) -> list[Shadow]:
    twin, seen = rig.world.fork(), list[Shadow]()
    twin.queue.wake_all()
    run_cycle(twin, rig.now, "", seen)
    return seen
