"""consolidation: runs are moved so that somebody fits who waits though enough is free, only not together.

    1  heads    who waits in order, would be within its quota, and lacks nothing but a place
    2  movers   who may be moved at all: its tier allows it, it may be evicted, it has run and rested long enough
    3  clearing on a stage, who has to move so that the head fits, and where to: see `muster.scheduler.clearing`
    4  account  what the head gains by starting now and not when the calendar opens a place by itself, and what the
                others lose by it; a plan is taken only if the gain is a multiple of the cost
    5  claims   the movers are told to stop, each with a claim on its new place, and the head has one on what they leave

Nobody has a right to it, so nobody is worse off but for the restart: everybody keeps its ticket, its site and its
flavor. It is looked at once in a while (`LOOK_MS`), and everything is judged as of the beginning of that while: so a
look that is made twice finds the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from muster.model import fact
from muster.model.job import Job, Resize
from muster.model.phase import Lease, Running, TaskPhase, Why
from muster.model.spec import has_devices
from muster.policy.protection import may_move, may_take
from muster.scheduler.clearing import find_clearing
from muster.scheduler.fit import Pools, find_gang, find_pools, query_of
from muster.scheduler.herds import MARGIN_MS
from muster.scheduler.moving import claim_elsewhere, why_immovable
from muster.scheduler.preemption import FOR_JOB
from muster.scheduler.query import POOL_COUNT, POOL_ROWS, ROW, ROW_POOL
from muster.scheduler.rights import RESTART_MS
from muster.scheduler.shadows import find_first
from muster.scheduler.sparing import spares_last
from muster.scheduler.stage import Seat, Stage
from muster.scheduler.victims import Candidate
from muster.scheduler.within import NOWHERE, pools_within
from muster.units import HOUR_MS, MINUTE_MS
from muster.world.arena import (
    AT_DEVICES,
    AT_MEMBERS,
    AT_NODES,
    AT_POOLS,
    DEVICES,
    NODE_ROW,
    OPEN,
    POOL_FIRST,
    POOL_ROW,
    POOL_SIZE,
)
from muster.world.compiled import Words, compiled
from muster.world.outlook import Outlook
from muster.world.queue import OVER, Line, Shape, job_of
from muster.world.runs import amounts_of
from muster.world.widths import leases_of, places_of, width_of
from muster.world.world import World

LOOK_MS: Final = MINUTE_MS
"""How often it is looked at."""
PLANS_MAX: Final = 8
"""How many plans one look makes at most."""
HEADS_MAX: Final = 8
"""For how many lines a look is made in earnest."""
BEHIND_MAX: Final = 8
"""How many jobs of a line are looked at for one that has no claim yet."""
MOVERS_MAX: Final = 128
"""How many who may be moved are looked at for one head: those who lose least for what they have."""
AHEAD_MS: Final = 4 * HOUR_MS
"""Nobody gains more than this by not waiting: by then something else will have opened."""
UNKNOWN_MS: Final = HOUR_MS
"""How long somebody is taken to run that has no limit."""
WORTH: Final = 2
"""How many times its cost a plan has to gain."""


class Plan(NamedTuple):
    """Who waits and is to have which places, who moves for it and where to, and the account of it."""

    job: Job
    leases: list[Lease]
    until: int
    moves: list[tuple[Job, fact.Claimed]]
    gain: int
    cost: int

    def facts(self) -> Iterator[fact.Fact]:
        """The plan as facts."""
        cause = f"{FOR_JOB} {self.job.id} of {self.job.spec.tenant}"
        for job, claim in self.moves:
            yield fact.StopAsked(job.id, Why.MIGRATE, cause=cause)
            yield claim
        columns = ([x.slot for x in self.leases], [x.tasks for x in self.leases], [x.devices for x in self.leases])
        count = len(self.moves)
        waits_for = f"{count} job{'s' if count != 1 else ''} to move"
        yield fact.Claimed(self.job.id, *columns, self.until, waits_for, count)
        off, to = [leases_of(job)[0].slot for job, _ in self.moves], [claim.slots[0] for _, claim in self.moves]
        account = (devices_asked(self.job), self.gain, self.cost)
        yield fact.MovesPlanned(self.job.id, [job.id for job, _ in self.moves], off, to, *account, cause)


def look_of(now: int) -> int:
    """As of when it is looked at, at an instant."""
    return now // LOOK_MS * LOOK_MS


def find_next_look(now: int) -> int:
    """When it is looked at next, after an instant."""
    return look_of(now) + LOOK_MS


def plan_moves(world: World, at: int, now: int) -> list[fact.Fact]:
    """The first plan that is worth it, as facts that are not true yet: judged as of an instant, and told now."""
    movers = find_movers(world, at)
    if not movers:
        return []
    for line, job, is_urgent in islice(_heads(world, at, now), HEADS_MAX):
        plan = _find_plan(world, at, now, line, job, movers)
        if plan is not None:
            return list(plan.facts())
        if is_urgent:
            return []  # whoever comes after it must not be helped past it
    return []


# -- who waits -----------------------------------------------------------------------------------------------------


def _heads(world: World, at: int, now: int) -> Iterator[tuple[Line, Job, bool]]:
    """The first of every line that might be helped, in the order of the walk. Once somebody is due, only those who are:
    nobody is helped past one who has waited for too long."""
    lines = [line for shape in world.queue.shapes.values() for line in shape.lines.values() if line.band[0] != OVER]
    has_due = any(_is_due(world, line, at) for line in lines)
    usable = [line for line in lines if _may_be_helped(world, line) and (not has_due or _is_due(world, line, at))]
    place = {name: n for n, name in enumerate(world.walk.in_order({line.tenant: None for line in usable}, now))}
    for line in sorted(usable, key=lambda one: (one.band, place[one.tenant], one.first(_since(world, one, at)))):
        keys = line.first_keys(_since(world, line, at), BEHIND_MAX)
        number = next((job_of(key) for key in keys if job_of(key) not in world.claims), None)
        if number is not None and may_take(world.jobs[number].took, at):
            yield line, world.jobs[number], has_due


def _since(world: World, line: Line, at: int) -> int:
    return at - world.tiers[line.band[2]].longest_wait_ms


def _is_due(world: World, line: Line, at: int) -> bool:
    return line.head_accepted_at() <= _since(world, line, at)


def _may_be_helped(world: World, line: Line) -> bool:
    """Gangs of one kind on devices, that mind nobody, wait for no window and have no turns."""
    shape, needs = line.shape, line.shape.needs
    is_plain = not (needs.has_company or needs.groups or needs.booking)
    is_gang = not world.jobs[line.head()].spec.array
    return is_plain and is_gang and has_devices_asked(shape) and world.tiers[line.band[2]].sharing is None


def has_devices_asked(shape: Shape) -> bool:
    """Whether a shape asks for a device, or a share of one."""
    return bool(shape.ask.gpus or shape.ask.gpu_milli)


# -- who may move --------------------------------------------------------------------------------------------------


def find_movers(world: World, at: int) -> list[Candidate]:
    """Everybody who may be moved, whoever loses least for what it has first."""
    found: list[tuple[int, Candidate]] = []
    for (_, tier, _), numbers in world.know_runs().by_class.items():
        for number in sorted(numbers) if world.tiers[tier].moves_max else ():
            job = world.jobs[number]
            if is_movable(world, job, at):
                cost = cost_of(world, job, at)
                found.append((cost // devices_asked(job), Candidate(cost, number, 0, seat_of(job))))
    return [each for _, each in sorted(found, key=lambda one: (one[0], one[1].job))]


def is_movable(world: World, job: Job, at: int) -> bool:
    """Whether a run may be moved so that others fit."""
    spec, phase, tier = job.spec, job.phase, world.tiers[job.spec.tier]
    if not isinstance(phase, Running) or not spec.evictable or not has_devices(spec) or tier.sharing is not None:
        return False
    if job.id in world.widths.mending or world.widths.resizes.get(job.id, Resize(0)).to or why_immovable(job):
        return False
    ranks = world.ranks.get(job.id)
    is_whole = ranks is None or ranks.count(TaskPhase.RUNNING) == width_of(job)
    return is_whole and may_move(tier, phase.run.since, job.evicted, job.moves, at)


def cost_of(world: World, job: Job, at: int) -> int:
    """What is lost if a run is moved: what it did since it was last checkpointed, the time that it takes to stop, and
    that to be up again."""
    since = job.phase.since if isinstance(job.phase, Running) else at
    lost_ms = max(0, at - world.goodput.saved_at(job.id, since)) + job.spec.grace_ms + RESTART_MS
    return amounts_of(job.spec.ask, width_of(job))[0] * lost_ms


def devices_asked(job: Job) -> int:
    """Thousandths of devices that a gang works on."""
    return amounts_of(job.spec.ask, job.spec.gang)[0]


def seat_of(job: Job) -> Seat:
    """All that a gang holds: whoever moves takes its spares along."""
    return Seat(job.id, 0, job.spec, places_of(job))


# -- the plan and its account --------------------------------------------------------------------------------------


def _find_plan(world: World, at: int, now: int, line: Line, job: Job, movers: list[Candidate]) -> Plan | None:
    """The plan for one head, if it lacks nothing but a place and the account is good."""
    shape, most = line.shape, gain_of(job, at, at + AHEAD_MS)
    cheap = [each for each in movers if each.cost * WORTH < most][:MOVERS_MAX]
    with Stage(world, at) as stage:
        pools = pools_within(world, line.tenant, shape)
        if not cheap or pools == NOWHERE or not is_scattered(world, shape, pools):
            return None
        clearing = find_clearing(world, stage, shape, pools, cheap)
        if clearing is None:
            return None
        claims = [
            claim_elsewhere(world.jobs[each.job], home, now, stage.longest_grace(home)) for each, home in clearing.moves
        ]
        graces = [each.seat.spec.grace_ms for each, _ in clearing.moves]
        grace_ms = max(stage.longest_grace(clearing.leases), *graces)
    gain = gain_of(job, at + grace_ms, find_opening(world, at, shape, pools))
    if gain <= WORTH * clearing.cost:
        return None
    moves = [(world.jobs[each.job], claim) for (each, _), claim in zip(clearing.moves, claims, strict=True)]
    leases = spares_last(job.spec, clearing.leases)
    return Plan(job, leases, now + grace_ms + MARGIN_MS, moves, gain, clearing.cost)


def is_scattered(world: World, shape: Shape, pools: Pools) -> bool:
    """Whether enough is free for a gang where it may go, and yet it does not fit."""
    fleet = world.fleet
    free = count_free(fleet.words, query_of(fleet, shape.ask, 1, shape.needs, pools))
    return (
        free >= amounts_of(shape.ask, shape.gang)[0]
        and find_gang(fleet, shape.ask, shape.gang, shape.needs, pools) is None
    )


def gain_of(job: Job, starts_at: int, opens_at: int) -> int:
    """What is gained if a job starts at one instant and not at a later one: its devices, for as long as it would have
    waited, and no longer than it runs."""
    runs_ms = UNKNOWN_MS if job.spec.limit_ms is None else job.spec.limit_ms
    return devices_asked(job) * max(0, min(opens_at - starts_at, runs_ms))


def find_opening(world: World, at: int, shape: Shape, pools: Pools) -> int:
    """When a gang would fit by itself, by the limits of those who run; or as late as anybody looks."""
    fleet = world.fleet
    usable = find_pools(fleet, shape.ask, shape.needs) if pools is None else pools

    def fits(passed: int) -> bool:
        outlook.go(passed)
        return find_gang(fleet, shape.ask, shape.gang, shape.needs, pools) is not None

    with Outlook(world, at, frozenset(usable)) as outlook:
        count = find_first(outlook, fits)
        opens_at = at + AHEAD_MS if count is None else outlook.instants[count - 1]
    return min(opens_at, at + AHEAD_MS)


@compiled
def count_free(words: Words, query: Words) -> int:
    """Thousandths of devices that are free on the open nodes of a query's pools, in whatever pieces."""
    found, devices = 0, words[DEVICES]
    for row in range(POOL_ROWS, POOL_ROWS + ROW * query[POOL_COUNT], ROW):
        pool = words[AT_POOLS] + POOL_ROW * query[row + ROW_POOL]
        first = words[AT_MEMBERS] + words[pool + POOL_FIRST]
        for member in range(first, first + words[pool + POOL_SIZE]):
            slot = words[member]
            if words[words[AT_NODES] + NODE_ROW * slot + OPEN]:
                begin = words[AT_DEVICES] + slot * devices
                for device in range(begin, begin + devices):
                    found += words[device]
    return int(found)
