"""The cycle: what starts now. It reads like a table of contents and costs what changed, not what exists.

    0  claims    what was freed for somebody is theirs: see `muster.scheduler.claims`
    0  turns     in tiers that are shared in time, who has a turn at all: see `muster.scheduler.timeshare`
    1  order     whose turn it is among the shapes that are worth a try: see `muster.scheduler.order`
    2  fit       a shape that does not fit sleeps; what could run behind it is not held up
    3  quota     a line that has no room where it stands as its band says moves to the next one, and somebody else's
                 turn may come first; one that is over its quota wherever there is room stands outside
    4  shadow    who is due and finds no room closes places to those who come later and would delay it: see
                 `muster.scheduler.shadows`
    5  place     on a draft, all of a gang or none of it
    6  commit    one fact for gangs in a row, one for each range of an array

Nothing is released inside a cycle, so a shape that failed once need not be tried again in it.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from muster.model.fact import Fact
from muster.model.job import Job
from muster.model.phase import TaskPhase
from muster.scheduler.claims import drop_outlived, serve_claims, ticket_of
from muster.scheduler.order import Round
from muster.scheduler.placing.fit import count_room, count_short, find_gang, find_tasks
from muster.scheduler.placing.within import EVERYWHERE, pools_on, pools_within, quota_room
from muster.scheduler.shadows import Shadow, Shadows, are_due
from muster.scheduler.sparing import set_apart
from muster.scheduler.timeshare import Shares
from muster.world.claiming import movers_of, spoken_for
from muster.world.draft import Draft
from muster.world.line import Line
from muster.world.queue import INSIDE
from muster.world.sites import Site
from muster.world.world import World

STARTS_MAX: Final = 4096
"""How many placements one cycle makes at most; what is left over wakes the next cycle."""
TURNS: Final = 16
"""In how many turns arrays of several tenants share what is free: the walk is exact to this part of it."""

Parts: TypeAlias = dict[tuple[int, int, int], int]
"""How many tasks an array starts in one turn, by its job, how it stands, and the site."""


def run_cycle(
    world: World,
    now: int,
    cause: str,
    seen: list[Shadow] | None = None,
    shares: Shares | None = None,
    *,
    serves: bool = True,
) -> list[Fact]:
    """Place what can start now, and return the facts; the world already holds them. The shadows that were cast are put
    into `seen`, for whoever wants to know. In tiers that are shared in time, only those start whose turn it is. Claims
    are looked at if it `serves`: whoever knows that none can be served may say so."""
    fleet = world.fleet
    fleet.settle_risks(now)
    fleet.mix = () if world.mix is None else world.mix.steps()
    turns = Round(world, now)
    if shares is None and world.queue.floors.waits:
        shares = Shares(world, now, looks=True)
    if shares is not None:
        shares.keep_to(turns)
    with Draft(world, now, cause) as draft:
        served = serve_claims(world, draft, now) if world.claims and serves else []
        if are_due(world, now) or world.bookings:
            with Shadows(world, now, turns) as shadows:
                _start_all(world, turns, draft, shadows, shares)
                if seen is not None:
                    seen += shadows.all()
        else:
            _start_all(world, turns, draft, shares=shares)
        facts = [*served, *draft.commit()]
    if fleet.company.has_grown:
        world.wake_company()
    return [*facts, *drop_outlived(world, now)] if world.claims else facts


def _start_all(
    world: World,
    turns: Round,
    draft: Draft,
    shadows: Shadows | None = None,
    shares: Shares | None = None,
) -> None:
    queue, fleet = world.queue, world.fleet
    starts = 0
    parts: Parts = {}
    while queue.awake and starts < STARTS_MAX:
        found = turns.find_next()
        if found is None:
            queue.sleep_all()
            break
        line, number = found
        shape = line.shape
        if shadows is not None:
            shadows.open_for(number)
        leases = find_gang(fleet, shape.ask, shape.gang, shape.needs, EVERYWHERE, number)
        if leases is None:
            short = count_short(fleet, shape.ask, shape.gang, shape.needs)
            queue.sleep(shape, short) if shadows is None else shadows.refuse_room(line, number)
            continue
        pools = pools_within(world, line.tenant, shape, line.band[0])
        if pools is not EVERYWHERE:
            leases = find_gang(fleet, shape.ask, shape.gang, shape.needs, pools, number) if pools else None
        if leases is None:
            queue.restand(line, line.band[0] + 1) if shadows is None else shadows.refuse_quota(line, number, pools)
        else:
            job = world.jobs[number]
            if job.spec.array:
                _place_tasks(world, draft, line, job, world.site_of(leases[0].slot), parts)
            else:
                leases = set_apart(world, job, leases, pools) if job.spec.spares else leases
                draft.place(job, leases, ticket_of(world, job) if world.claims else 0, line)
            turns.serve(line)
            starts += 1
            if shadows is not None:
                shadows.note_start(line)
            if shares is not None:
                shares.pass_on(turns, line)


def _place_tasks(world: World, draft: Draft, line: Line, job: Job, site: Site, parts: Parts) -> None:
    """One run of an array's waiting tasks, on one site and as the line's band says; it stays in its line until it has
    none left. Beside other tenants it takes its turns in parts of what is free, so that none is served too early: of
    what was free at its first turn there, or the last of many turns would be for a task each."""
    spec, pools, tasks = job.spec, pools_on(world, job.spec, site), world.arrays[job.id]
    waiting = tasks.counts[TaskPhase.QUEUED] - spoken_for(world, job.id)
    most = min(waiting, quota_room(world, job, site, borrows=line.band[0] != INSIDE))
    if world.walk.has_others(spec.tenant):
        key = (job.id, line.band[0], site.number)
        if key not in parts:
            parts[key] = max(1, count_room(world.fleet, spec.ask, spec.needs, pools, most * TURNS) // TURNS)
        most = min(most, parts[key])
    first, count = tasks.get_queued(most, movers_of(world, job.id))
    draft.place_tasks(job, first, find_tasks(world.fleet, spec.ask, count, spec.needs, pools))
