"""consolidation: runs are moved so that somebody fits who waits though enough is free, only not together.

    1  heads    who waits in order, would be within its quota, and lacks nothing but a place
    2  movers   who may be moved at all: its tier allows it, it may be evicted, it has run and rested long enough
    3  clearing on a stage, who has to move so that the head fits, and where to: see `muster.scheduler.clearing`
    4  account  what the head gains by starting now and not when the calendar opens a place by itself, and what the
                others lose by it; a plan is taken only if the gain is a multiple of the cost
    5  claims   the movers are told to stop, each with a claim on its new place, and the head has one on what they leave

Whoever moves is a gang as a whole, or a task of an array by itself: see `muster.scheduler.droves`; and so is whoever is
helped: of an array that waits, one task at a time. Nobody has a right to it, so nobody is worse off but for the
restart: everybody keeps its ticket, its site and its flavor. It is looked at once in a while (`LOOK_MS`), and
everything is judged as of the beginning of that while: so a look that is made twice finds the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from muster.model import fact
from muster.model.group import least_of
from muster.model.job import Job, Resize
from muster.model.phase import Lease, Running, TaskPhase, Why, columns_of
from muster.model.ranges import ranges_of
from muster.model.spec import Spec, has_devices
from muster.policy.protection import may_move, may_take
from muster.scheduler.clearing import find_clearing
from muster.scheduler.droves import Drove, choose_near, find_all, find_drove, least_cost, may_be_driven
from muster.scheduler.moving import claim_elsewhere, claim_tasks, why_immovable
from muster.scheduler.placing.fit import Pools, find_gang, find_pools, query_of
from muster.scheduler.placing.query import POOL_COUNT, POOL_ROWS, ROW, ROW_POOL
from muster.scheduler.placing.within import NOWHERE, pools_within
from muster.scheduler.shadows import find_first
from muster.scheduler.sparing import spares_last
from muster.scheduler.stage import Seat, Stage
from muster.scheduler.taking.herds import MARGIN_MS
from muster.scheduler.taking.preemption import FOR_JOB
from muster.scheduler.taking.rights import RESTART_MS
from muster.scheduler.taking.victims import Candidate
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
from muster.world.line import Line, job_of
from muster.world.outlook import Outlook
from muster.world.queue import OVER, Shape
from muster.world.runs import amounts_of
from muster.world.widths import places_of, width_of
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
    """Who waits and is to have which places, who moves for it and where to, and the account of it. The `moves` are by
    job, each with the claim of what of it moves; the `ways` are of each gang or task: off which node, and to which."""

    job: Job
    leases: list[Lease]
    until: int
    moves: list[tuple[Job, fact.Claimed]]
    ways: list[tuple[int, int, int, int]]
    gain: int
    cost: int

    def facts(self) -> Iterator[fact.Fact]:
        """The plan as facts."""
        cause = f"{FOR_JOB} {self.job.id} of {self.job.spec.tenant}"
        for job, claim in self.moves:
            yield _stop_of(job, claim, cause)
            yield claim
        columns = columns_of(self.leases)
        yield fact.Claimed(self.job.id, *columns, self.until, f"{self._movers()} to move", len(self.ways))
        moved, tasks, off, to = map(list, zip(*self.ways, strict=True))
        account, are_gangs = (devices_asked(self.job.spec), self.gain, self.cost), max(tasks) == fact.WHOLE
        yield fact.MovesPlanned(self.job.id, moved, off, to, *account, cause, [] if are_gangs else tasks)

    def _movers(self) -> str:
        tasks = sum(task != fact.WHOLE for _, task, _, _ in self.ways)
        counts = ((len(self.ways) - tasks, "job"), (tasks, "task"))
        return " and ".join(f"{count} {word}{'s' if count != 1 else ''}" for count, word in counts if count)


def _stop_of(job: Job, claim: fact.Claimed, cause: str) -> fact.Fact:
    """Who moves is told to stop: all of a gang, or those tasks of an array that have a claim."""
    if not claim.movers:
        return fact.StopAsked(job.id, Why.MIGRATE, cause=cause)
    first, count, *more = ranges_of(claim.movers)
    return fact.TasksMoved(job.id, first, count, TaskPhase.STOPPING, cause, more, why=Why.MIGRATE)


def look_of(now: int) -> int:
    """As of when it is looked at, at an instant."""
    return now // LOOK_MS * LOOK_MS


def find_next_look(now: int) -> int:
    """When it is looked at next, after an instant."""
    return look_of(now) + LOOK_MS


def plan_moves(world: World, at: int, now: int) -> list[fact.Fact]:
    """The first plan that is worth it, as facts that are not true yet: judged as of an instant, and told now."""
    movers = Movers(world, at)
    if not movers.has_any:
        return []
    for line, job, is_urgent in islice(_heads(world, at, now), HEADS_MAX):
        plan = _find_plan(world, at, now, line, job, movers)
        if plan is not None:
            return list(plan.facts())
        if is_urgent and not job.spec.array:
            return []  # whoever comes after it must not be helped past it; an array is due as long as any task waits
    return []


# -- who waits -----------------------------------------------------------------------------------------------------


def _heads(world: World, at: int, now: int) -> Iterator[tuple[Line, Job, bool]]:
    """The first of every line that might be helped, in the order of the walk. Once somebody is due, only those who are:
    nobody is helped past one who has waited for too long. How a line stands is asked anew: what the queue has of it may
    be from a try that a restored world has not made."""
    known = [line for shape in world.queue.shapes.values() for line in shape.lines.values()]
    bands = {line: (int(world.standing_of(line)), *line.band[1:]) for line in known}
    lines = [line for line in known if bands[line][0] != OVER]
    has_due = any(_is_due(world, line, at) for line in lines)
    usable = [line for line in lines if _may_be_helped(world, line) and (not has_due or _is_due(world, line, at))]
    place = {name: n for n, name in enumerate(world.walk.in_order({line.tenant: None for line in usable}, now))}
    for line in sorted(usable, key=lambda one: (bands[one], place[one.tenant], one.first(_since(world, one, at)))):
        keys = line.first_keys(_since(world, line, at), BEHIND_MAX)
        number = next((job_of(key) for key in keys if job_of(key) not in world.claims), None)
        if number is not None and may_take(world.jobs[number].took, at):
            yield line, world.jobs[number], has_due


def _since(world: World, line: Line, at: int) -> int:
    return at - world.tiers[line.band[2]].longest_wait_ms


def _is_due(world: World, line: Line, at: int) -> bool:
    return line.head_accepted_at() <= _since(world, line, at)


def _may_be_helped(world: World, line: Line) -> bool:
    """Who asks for devices, minds nobody, waits for no window and has no turns."""
    shape, needs = line.shape, line.shape.needs
    is_plain = not (needs.has_company or needs.booking)
    return is_plain and has_devices_asked(shape) and world.tiers[line.band[2]].sharing is None


def has_devices_asked(shape: Shape) -> bool:
    """Whether a shape asks for a device, or a share of one."""
    return bool(shape.ask.gpus or shape.ask.gpu_milli)


# -- who may move --------------------------------------------------------------------------------------------------


class Movers:
    """Everybody who may be moved: gangs, whoever loses least for what it has first, and arrays of which tasks may; at
    these it is looked only if somebody might be helped."""

    def __init__(self, world: World, at: int) -> None:
        self._world = world
        self._at = at
        self._gangs: list[Candidate] = []
        self._arrays: list[Job] = []
        self._droves: list[Drove] | None = None
        tiers, runs = [name for name, tier in world.tiers.items() if tier.moves_max], world.know_runs()
        arrays = [number for number in runs.arrays if world.jobs[number].spec.tier in tiers]
        for number in (*runs.gangs_of(tiers), *arrays):
            self._add(world.jobs[number])
        self._gangs.sort(key=_rate_of)

    def _add(self, job: Job) -> None:
        if job.spec.array:
            self._arrays += [job] if may_be_driven(self._world, job, self._at) else []
        elif is_movable(self._world, job, self._at):
            self._gangs.append(Candidate(cost_of(self._world, job, self._at), job.id, 0, seat_of(job)))

    @property
    def has_any(self) -> bool:
        """Whether there is anybody."""
        return bool(self._gangs or self._arrays)

    def has_below(self, below: int) -> bool:
        """Whether anybody might lose less than that."""
        return any(each.cost < below for each in self._gangs) or any(least_cost(job) < below for job in self._arrays)

    def find(self, shape: Shape, pools: Pools, below: int) -> list[Candidate]:
        """Those who lose less than that, whoever loses least for what it has first. If there are too many, those of
        the nodes that promise most to a gang."""
        droves = self._know_droves()
        gangs = [each for each in self._gangs if each.cost < below]
        if len(gangs) + sum(len(drove.tasks) for drove in droves) <= MOVERS_MAX:
            return sorted((*gangs, *find_all(self._world, droves, below)), key=_rate_of)
        found: dict[tuple[int, int], Candidate] = {}
        for here in choose_near(self._world, shape, pools, gangs, droves, below):
            found |= {(each.job, each.first): each for each in here}
            if len(found) >= MOVERS_MAX:
                break
        return sorted(found.values(), key=_rate_of)

    def _know_droves(self) -> list[Drove]:
        if self._droves is None:
            found = (find_drove(self._world, job, self._at) for job in sorted(self._arrays, key=lambda job: job.id))
            self._droves = [drove for drove in found if drove is not None]
        return self._droves


def _rate_of(each: Candidate) -> tuple[int, int, int]:
    """What one loses for what it has."""
    return each.cost // devices_asked(each.seat.spec), each.job, each.first


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
    spec, since = job.spec, job.phase.since if isinstance(job.phase, Running) else at
    lost_ms = max(0, at - world.goodput.saved_at(job.id, since)) + spec.grace_ms + RESTART_MS
    return amounts_of(*spec.asked_by(width_of(job)))[0] * lost_ms


def devices_asked(spec: Spec) -> int:
    """Thousandths of devices that a gang works on, or a task of an array."""
    return amounts_of(*spec.asked_by(spec.gang))[0]


def seat_of(job: Job) -> Seat:
    """All that a gang holds: whoever moves takes its spares along."""
    return Seat(job.id, 0, job.spec, places_of(job))


# -- the plan and its account --------------------------------------------------------------------------------------


def _find_plan(world: World, at: int, now: int, line: Line, job: Job, movers: Movers) -> Plan | None:
    """The plan for one head, if it lacks nothing but a place and the account is good."""
    shape, below = line.shape, -(-gain_of(job, at, at + AHEAD_MS) // WORTH)
    if not movers.has_below(below):
        return None
    with Stage(world, at) as stage:
        pools = pools_within(world, line.tenant, shape)
        if pools == NOWHERE or not is_scattered(world, shape, pools):
            return None
        candidates = movers.find(shape, pools, below)
        if job.spec.array:  # what one of its own would find elsewhere, one that waits would have found
            candidates = [each for each in candidates if each.job != job.id]
        clearing = find_clearing(world, stage, job.spec, pools, candidates)
        if clearing is None:
            return None
        moves = list(_claims_of(world, stage, clearing.moves, now))
        graces = [each.seat.spec.grace_ms for each, _ in clearing.moves]
        grace_ms = max(stage.longest_grace(clearing.leases), *graces)
    gain = gain_of(job, at + grace_ms, find_opening(world, at, shape, pools, for_guest=job.spec.yields))
    if gain <= WORTH * clearing.cost:
        return None
    leases = spares_last(job.spec, clearing.leases)
    ways = [_way_of(each, home) for each, home in clearing.moves]
    return Plan(job, leases, now + grace_ms + MARGIN_MS, moves, ways, gain, clearing.cost)


def _claims_of(
    world: World, stage: Stage, moves: Sequence[tuple[Candidate, list[Lease]]], now: int
) -> Iterator[tuple[Job, fact.Claimed]]:
    """The claims of those who move, one for each job: of an array, with all of its tasks that do."""
    by_array: dict[int, list[tuple[int, int, Lease]]] = {}
    for each, home in moves:
        if each.seat.spec.array:
            ticket = world.arrays[each.job].ticket[each.first]
            by_array.setdefault(each.job, []).append((each.first, ticket, home[0]))
        else:
            yield world.jobs[each.job], claim_elsewhere(world.jobs[each.job], home, now, stage.longest_grace(home))
    for number, tasks in by_array.items():
        grace_ms = stage.longest_grace([lease for _, _, lease in tasks])
        yield world.jobs[number], claim_tasks(world.jobs[number], tasks, now, grace_ms)


def _way_of(each: Candidate, home: list[Lease]) -> tuple[int, int, int, int]:
    """Who moves off which node, and to which: the first that it has and will have."""
    task = each.first if each.seat.spec.array else fact.WHOLE
    return each.job, task, each.seat.leases[0].slot, home[0].slot


def is_scattered(world: World, shape: Shape, pools: Pools) -> bool:
    """Whether enough is free for a gang where it may go, and yet it does not fit."""
    fleet, groups = world.fleet, shape.needs.groups
    least = least_of(tuple(group for group in groups if group.ask.gpus)) if groups else shape.ask
    free = count_free(fleet.words, query_of(fleet, least, 1, shape.needs, pools))
    return (
        free >= amounts_of(shape.ask, shape.gang)[0]
        and find_gang(fleet, shape.ask, shape.gang, shape.needs, pools) is None
    )


def gain_of(job: Job, starts_at: int, opens_at: int) -> int:
    """What is gained if a job, or a task of an array, starts at one instant and not at a later one: its devices, for as
    long as it would have waited, and no longer than it runs."""
    runs_ms = UNKNOWN_MS if job.spec.limit_ms is None else job.spec.limit_ms
    return devices_asked(job.spec) * max(0, min(opens_at - starts_at, runs_ms))


def find_opening(world: World, at: int, shape: Shape, pools: Pools, *, for_guest: bool = False) -> int:
    """When a gang would fit by itself, by the limits of those who run; or as late as anybody looks. Nobody gives way to
    a guest."""
    fleet = world.fleet
    usable = find_pools(fleet, shape.ask, shape.needs) if pools is None else pools

    def fits(passed: int) -> bool:
        outlook.go(passed)
        return find_gang(fleet, shape.ask, shape.gang, shape.needs, pools) is not None

    with Outlook(world, at, frozenset(usable), for_guest=for_guest) as outlook:
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
