"""yielding: who gives way at its expected end, since somebody who is due would fit then.

Whoever yields is a guest: it may use places that are kept for others until it expects to end (see
`muster.scheduler.shadows`). In return it is told to stop from then on, if somebody who is due finds no room and would
with it gone: found on a stage, and as few as can be. What comes free is claimed for whoever was given way to, for by
the order it might go back to who had it. A guest takes nobody's place (see `muster.scheduler.taking.preemption`), and
no guest gives way to another: so places do not go round in a circle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from muster.model import fact
from muster.model.phase import Lease, Running, Why, columns_of
from muster.scheduler.chances import find_next_overdue
from muster.scheduler.consolidation import cost_of, seat_of
from muster.scheduler.placing.fit import find_gang
from muster.scheduler.placing.within import NOWHERE, pools_within
from muster.scheduler.shadows import find_heads
from muster.scheduler.stage import Stage
from muster.scheduler.taking.herds import MARGIN_MS
from muster.scheduler.taking.preemption import FOR_JOB
from muster.scheduler.taking.victims import Candidate, Choice, Want, choose
from muster.units import INSTANT_MAX, Limit
from muster.world.line import Line
from muster.world.world import World

GIVEN_WAY: Final = "others give way"


def plan_yields(world: World, now: int) -> list[fact.Fact]:
    """Who is told to stop now, as facts that are not true yet."""
    if world.queue.due_at > now:
        return []
    late = list(_late(world, now))
    facts: list[fact.Fact] = []
    if not late:
        return facts
    left = {name: tier.shadows for name, tier in world.tiers.items()}
    with Stage(world, now) as stage:
        for line, standing in find_heads(world, now):
            job, tier = world.jobs[line.head()], line.band[2]
            if left[tier] and job.id not in world.claims and not job.spec.yields:
                left[tier] -= 1
                facts += _make_room(world, stage, now, line, standing, late)
    return facts


def find_next_yield(world: World, now: int) -> Limit:
    """When somebody may next have to give way, if anybody waits: one more is past its end, or due."""
    lines = [line for shape in world.queue.shapes.values() for line in shape.peek()]
    instants = list(world.ends.yielding.values()) if lines else []
    if any(at <= now for at in instants):
        instants += [line.head_accepted_at() + world.tiers[line.band[2]].longest_wait_ms for line in lines]
    return min((at for at in instants if now < at < INSTANT_MAX), default=None)


def find_next_way(world: World, now: int) -> int:
    """When time alone may let somebody have its way that could not now; INSTANT_MAX if there is no such instant. Who
    takes too long to stop may keep a claim from being counted on."""
    return min(find_next_yield(world, now) or INSTANT_MAX, find_next_overdue(world, now))


def _late(world: World, now: int) -> Iterator[Candidate]:
    """Everybody who yields and is past its expected end, with all the places that it should have."""
    for number, at in sorted(world.ends.yielding.items()):
        job, widths = world.jobs[number], world.widths
        is_changing = number in widths.mending or (number in widths.resizes and widths.resizes[number].to > 0)
        if at <= now and isinstance(job.phase, Running) and not is_changing:
            yield Candidate(cost_of(world, job, now), number, 0, seat_of(job))


def _make_room(
    world: World, stage: Stage, now: int, line: Line, standing: int, late: list[Candidate]
) -> list[fact.Fact]:
    """Who has to go so that the head of a line fits, which then has its places on the stage, and claims them; nobody if
    it would not. In which band the line was last met is not asked: a restored world would not know."""
    shape, fleet, job = line.shape, world.fleet, world.jobs[line.head()]
    if shape.needs.has_company or shape.needs.booking:
        return []  # who minds others or waits for its window takes nobody's place

    def find() -> list[Lease] | None:
        pools = pools_within(world, line.tenant, shape, standing)
        return None if pools == NOWHERE else find_gang(fleet, shape.ask, shape.gang, shape.needs, pools, job.id)

    leases = find()
    staying = [each for each in late if not stage.is_gone(each.job)]
    want = Want(shape.ask, shape.gang, shape.needs, find)
    choice = choose(stage, fleet, want, staying, ()) if leases is None else Choice(0, [], leases)
    if choice is None:
        return []
    until = now + stage.longest_grace(choice.leases) + MARGIN_MS
    stage.seat(job, tuple(choice.leases))
    if not choice.taken:
        return []
    columns = columns_of(choice.leases)
    stops = [fact.StopAsked(each.job, Why.YIELD, cause=f"{FOR_JOB} {job.id}") for each in choice.taken]
    return [*stops, fact.Claimed(job.id, *columns, until, GIVEN_WAY)]
