"""timeshare: who has a turn in the tiers that are shared in time, and who gives way.

    1  owed      who waited too long for what it got, in the order of arrival, on a part of the places
    2  index     then everybody, by priority and index; who runs is kept by far. Whoever does not fit any more is passed
    3  start     of those whose turn it is, who finds room starts in the cycle; nobody else in these tiers does
    4  give way  for who finds none: those stop whose turn it is not, on a stage, as victims do; and smaller ones move
                 elsewhere if only that makes room for a gang

One floor is planned at a time: as long as somebody on it is leaving, or a claim stands, it is left as it is. Turns are
looked at when something happened that may change them, and once in a quantum: see `is_look`. Places are counted in
devices here and found exactly on the stage; nothing is remembered from one look to the next.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from muster.model import fact
from muster.model.job import Job
from muster.model.phase import Lease, Running, Starting, Why, columns_of
from muster.model.sharing import ADVISED, ARRIVAL, ATTAINED, MILLI, NARROW, Sharing
from muster.model.spec import ANYWHERE, Needs
from muster.policy.protection import is_protected
from muster.scheduler.claims import Outlook, look_at
from muster.scheduler.order import Round
from muster.scheduler.placing.fit import count_room, find_gang
from muster.scheduler.placing.within import EVERYWHERE, pools_for
from muster.scheduler.stage import Seat, Stage, is_leaving
from muster.scheduler.taking.herds import MARGIN_MS
from muster.scheduler.taking.victims import Candidate, Choice, Want, choose
from muster.units import AMOUNT_MAX, SECOND_MS, Resources
from muster.world.floors import Floor, Scope, Standing, devices_of, index_of, kept_index, next_step
from muster.world.line import Line
from muster.world.world import World

VAIN_MAX: Final = 4
"""For how many jobs places are looked for in vain on one floor, before the others have to wait for the next look."""
MOVE_COST: Final = 1 << 32
"""What it costs to move a device's worth of a job that keeps its turn: more than to stop whom others replace."""
_ONE: Final = Resources(gpus=1)
_QUIET: Final = (fact.Began, fact.Progressed, fact.TasksProgressed, fact.RanksOver, fact.Retired)
"""What changes nobody's turn."""


def is_look(world: World, facts: Iterable[fact.Fact], now: int) -> bool:
    """Whether turns are looked at: something happened, or the next quantum of a floor began since the last entry."""
    if any(not isinstance(item, _QUIET) for item in facts):
        return True
    quanta = [_quantum(floor.sharing) for floor in world.queue.floors.by_scope.values()]
    return any(now // quantum > world.now // quantum for quantum in quanta)


class Plan(NamedTuple):
    """One floor: who has a turn and waits, who runs and has none, who runs and keeps it."""

    newcomers: list[int]
    losers: list[int]
    keepers: list[int]


class Shares:
    """The floors in one cycle. Without a look nobody on them starts."""

    def __init__(self, world: World, now: int, *, looks: bool) -> None:
        self._world = world
        self._now = now
        self._plans: list[Plan] = []
        self._turns: dict[Line, list[int]] = {}
        if looks:
            for scope in _in_order(world, now):
                plan = _plan(world, world.queue.floors.by_scope[scope], scope, now)
                if plan is not None and plan.newcomers:
                    self._plans.append(plan)

    @property
    def is_idle(self) -> bool:
        """Whether nobody is to start whose turn it is, and nobody else is worth a try."""
        queue = self._world.queue
        return not (self._plans or queue.awake or queue.shadowed or self._world.claims)

    def keep_to(self, turns: Round) -> None:
        """Let only those be met in the cycle whose turn it is, and be tried."""
        world = self._world
        for number in (number for plan in self._plans for number in plan.newcomers):
            line = world.queue.line_of(world.jobs[number])
            self._turns.setdefault(line, []).append(number)
            world.queue.wake(line.shape)
        for shape in world.queue.shapes.values():
            for line in shape.lines.values():
                if is_on_floor(world, line):
                    self._turns.setdefault(line, []).extend(_without_turns(world, line))
                    self.pass_on(turns, line)

    def pass_on(self, turns: Round, line: Line) -> None:
        """Meet a line at the first of those who may start, or not at all; one that is on no floor, at its head."""
        world, left = self._world, self._turns.get(line)
        if left is None:
            return
        since = self._now - world.tiers[line.band[2]].longest_wait_ms
        left[:] = [number for number in left if world.queue.find_line(world.jobs[number]) is line]
        turns.pass_by(line, min((line.place_of(world.jobs[number], since) for number in left), default=None))

    def takings(self) -> list[fact.Fact]:
        """After the cycle: who gives way to those who found no room, as facts that are not true yet."""
        facts: list[fact.Fact] = []
        for plan in self._plans:
            left = [
                number for number in plan.newcomers if self._world.queue.find_line(self._world.jobs[number]) is not None
            ]
            left = [number for number in left if number not in self._world.claims]
            if left:
                facts += _give_way(self._world, self._now, left, plan)
        return facts


def find_wake(world: World, now: int) -> int | None:
    """When turns may change by time alone: with the first quantum that begins by then."""
    found = [_find_change(world, floor, now) for floor in world.queue.floors.by_scope.values()]
    return min((instant for instant in found if instant is not None), default=None)


def is_on_floor(world: World, line: Line) -> bool:
    """Whether jobs of a line take turns."""
    shape = line.shape
    on_floor = (line.band[2], line.tenant) in world.queue.floors.by_scope
    needs = shape.needs
    return on_floor and shape.ask.gpus > 0 and not (needs.has_company or needs.groups or needs.booking)


def _without_turns(world: World, line: Line) -> list[int]:
    """Those of a line on a floor who take no turns, such as arrays: they may start whenever they fit."""
    if not line.uneven:
        return []
    entries = world.queue.floors.by_scope[(line.band[2], line.tenant)].entries
    return [number for number in line.uneven if number not in entries]


# -- whose turn it is ------------------------------------------------------------------------------------------------


def _in_order(world: World, now: int) -> list[Scope]:
    """The floors as the walk would meet them: by tier, then by the tenant's share."""
    scopes = list(world.queue.floors.by_scope)
    if len(scopes) == 1:
        return scopes
    place = {name: at for at, name in enumerate(world.walk.in_order({tenant: None for _, tenant in scopes}, now))}
    return sorted(scopes, key=lambda scope: (world.tiers[scope[0]].rank, scope[0], place[scope[1]]))


def _plan(world: World, floor: Floor, scope: Scope, now: int) -> Plan | None:
    """Whose turn it is on a floor; None if nobody's changes, or somebody there is leaving or has a claim that cannot be
    served yet."""
    claimants = [number for number in world.claims if number in floor.entries]
    if len(floor.entries) == len(claimants) or not all(_is_ready(world, number, now) for number in claimants):
        return None
    if any(is_leaving(world, world.jobs[number], now) for number in floor.leaving):
        return None
    room = _count_free(world)
    fixed = _find_fixed(world, floor, scope, now)
    due = floor.owed[: bisect_right(floor.owed, (now, AMOUNT_MAX))]
    owed = [number for _, number in due if number not in claimants]
    if not room and not owed and (not floor.turns or floor.order[0] >= floor.turns[-1][0]) and _is_steady(floor):
        return None
    if floor.sharing.owed_after_ms is not None:
        owed += [number for number, holder in floor.holders.items() if holder.owed_until > now and number not in fixed]
    turns = floor.turns if _is_steady(floor) else _reckon(world, floor, now)
    running = [turn for turn in turns if turn[0][2] not in fixed] if fixed else turns
    pool = room + sum(holder.devices for holder in floor.holders.values())
    order = [standing for standing in floor.order if standing[2] not in claimants] if claimants else floor.order
    return _share_out(world, order, running, room, _owed_first(world, floor, sorted(owed), pool))


def _count_free(world: World) -> int:
    """How many devices are free, for whoever it may be: a taint keeps some off, and not all who wait. Where a feed has
    too little for all, it is counted flavor by flavor, too: it may be used up on the one that takes most."""
    pools = world.fleet.pools
    tolerates = tuple(sorted({taint for pool in pools for taint in pool.taints}))
    room = count_room(world.fleet, _ONE, Needs(tolerates=tolerates) if tolerates else ANYWHERE)
    flavors = sorted({pool.flavor for pool in pools}) if world.fleet.overlays.by_name else []
    alone = [count_room(world.fleet, _ONE, Needs(flavors=(each,), tolerates=tolerates)) for each in flavors]
    return max(room, *alone, 0)


def _is_ready(world: World, number: int, now: int) -> bool:
    """Whether a claim is served in this cycle: its places are kept from everybody else already."""
    return look_at(world, world.jobs[number], world.claims[number], now) == Outlook.READY


def _is_steady(floor: Floor) -> bool:
    """Whether the index of who runs stays as it is, unless an adviser says otherwise."""
    return floor.sharing.index in (ADVISED, ARRIVAL)


def _find_fixed(world: World, floor: Floor, scope: Scope, now: int) -> dict[int, None]:
    """Who runs and may not be stopped for others: because it must not, was told to stop already and does not, because
    its quantum is not over, or because it is protected as its tier says."""
    sharing, tier = floor.sharing, world.tiers[scope[0]]
    if sharing.quantum_ms is None:
        return dict.fromkeys(floor.holders)
    fixed = floor.fixed | floor.leaving | dict.fromkeys(number for _, number in floor.since(now - sharing.quantum_ms))
    if tier.min_run_ms or tier.evictions_max is not None:
        for number, holder in floor.holders.items():
            if is_protected(tier, holder.since, world.jobs[number].evicted, now):
                fixed[number] = None
    return fixed


def _reckon(world: World, floor: Floor, now: int) -> list[tuple[Standing, int]]:
    """Who runs, by where it stands by now."""
    sharing, found = floor.sharing, list[tuple[Standing, int]]()
    for number, holder in floor.holders.items():
        job = world.jobs[number]
        index = index_of(sharing, holder.devices, _served_ms(job, now), world.queue.floors.find_advised(number))
        found.append(((holder.standing[0], kept_index(sharing, index, len(job.evicted)), number), holder.devices))
    return sorted(found)


def _served_ms(job: Job, now: int) -> int:
    return job.served_ms + (now - job.phase.since if isinstance(job.phase, Running) else 0)


def _owed_first(world: World, floor: Floor, owed: Sequence[int], pool: int) -> dict[int, None]:
    """Of those who are owed, in the order of arrival: the first, and others on their part of the places."""
    found: dict[int, None] = {}
    part = pool * floor.sharing.owed_milli // MILLI
    for number in owed:
        devices = devices_of(world.jobs[number].spec)
        if not found or devices <= part:
            found[number] = None
            part -= devices
    return found


def _share_out(
    world: World, order: list[Standing], running: list[tuple[Standing, int]], room: int, owed: dict[int, None]
) -> Plan:
    """Give turns to the first who fit, until the devices of those who run and what is free are used up."""
    left = room + sum(devices for _, devices in running)
    newcomers: list[int] = []
    losers: list[int] = []
    keepers: list[int] = []
    runs = {standing[2]: devices for standing, devices in running} if owed else {}
    for number in owed:
        devices = runs.get(number) or devices_of(world.jobs[number].spec)
        if devices <= left:
            left -= devices
            (keepers if number in runs else newcomers).append(number)
        elif number in runs:
            losers.append(number)
    at, count = 0, len(running)
    for standing in order:
        while at < count and running[at][0] <= standing:
            left -= _keep(running[at], left, owed, keepers, losers)
            at += 1
        if not left:
            break
        if standing[2] not in owed:
            devices = devices_of(world.jobs[standing[2]].spec)
            if devices <= left:
                left -= devices
                newcomers.append(standing[2])
    for turn in running[at:]:
        left -= _keep(turn, left, owed, keepers, losers)
    return Plan(newcomers, losers, keepers)


def _keep(turn: tuple[Standing, int], left: int, owed: dict[int, None], keepers: list[int], losers: list[int]) -> int:
    """Let somebody who runs keep its turn, if it fits: how many devices it uses."""
    (_, _, number), devices = turn
    if number in owed:
        return 0
    if devices > left:
        losers.append(number)
        return 0
    keepers.append(number)
    return devices


# -- who gives way ---------------------------------------------------------------------------------------------------


def _give_way(world: World, now: int, waiting: list[int], plan: Plan) -> Iterator[fact.Fact]:
    """Stops and claims for those whose turn it is: the largest first, since the smaller ones find room anywhere."""
    with Stage(world, now) as stage:
        stopped: dict[int, fact.Fact] = {}
        claims: list[fact.Fact] = []
        in_vain = 0
        for number in sorted(waiting, key=lambda each: -devices_of(world.jobs[each].spec)):
            choice = _choose(world, stage, world.jobs[number], plan)
            if choice is None:
                in_vain += 1
                if in_vain >= VAIN_MAX:
                    break
                continue
            stage.seat(world.jobs[number], tuple(choice.leases))
            for each in choice.taken:
                why = Why.MIGRATE if each.cost >= MOVE_COST else Why.PREEMPT
                stopped[each.job] = fact.StopAsked(each.job, why, cause=f"turn of job {number}")
                if why == Why.MIGRATE:
                    _seat_elsewhere(world, stage, world.jobs[each.job])
            claims.append(_claim(stage, number, choice, now))
    yield from stopped.values()
    yield from claims


def _claim(stage: Stage, number: int, choice: Choice, now: int) -> fact.Claimed:
    leases, count = choice.leases, len(choice.taken)
    columns = columns_of(leases)
    until = now + stage.longest_grace(leases) + MARGIN_MS
    return fact.Claimed(number, *columns, until, "its turn", count)


def _choose(world: World, stage: Stage, job: Job, plan: Plan) -> Choice | None:
    """Where a job goes on the stage, and who stops for it: whoever has no turn, the last first; if that is not enough,
    smaller ones that keep theirs move."""
    spec = job.spec

    def find() -> list[Lease] | None:
        pools = pools_for(world, spec)
        return (
            find_gang(world.fleet, spec.ask, spec.places, spec.needs, pools) if pools is EVERYWHERE or pools else None
        )

    want = Want(spec.ask, spec.places, spec.needs, find)
    leases = find()
    if leases is not None:
        return Choice(0, [], leases)
    losers = [each for each in plan.losers if not stage.is_gone(each)]
    first = [_candidate(world, number, 1 + at) for at, number in enumerate(reversed(losers))]
    choice = choose(stage, world.fleet, want, first) if first else None
    if choice is None and spec.ask.gpus > 1:
        movers = [each for each in plan.keepers if not stage.is_gone(each)]
        small = [each for each in movers if _is_smaller(world.jobs[each], spec.ask.gpus)]
        more = [_candidate(world, each, MOVE_COST * devices_of(world.jobs[each].spec)) for each in small]
        choice = choose(stage, world.fleet, want, [*first, *more]) if more else None
    return choice


def _is_smaller(job: Job, gpus: int) -> bool:
    return job.spec.gang == 1 and job.spec.ask.gpus < gpus


def _candidate(world: World, number: int, cost: int) -> Candidate:
    job = world.jobs[number]
    assert isinstance(job.phase, (Starting, Running))  # noqa: S101 - who gives way holds places
    return Candidate(cost, number, 0, Seat(number, 0, job.spec, job.phase.run.places))


def _seat_elsewhere(world: World, stage: Stage, job: Job) -> None:
    """Keep room on the stage for one that moves: those who come after it do not count on that."""
    leases = find_gang(world.fleet, job.spec.ask, job.spec.places, job.spec.needs)
    if leases is not None:
        stage.seat(job, tuple(leases))


# -- when to look ----------------------------------------------------------------------------------------------------


def _quantum(sharing: Sharing) -> int:
    return max(SECOND_MS, sharing.quantum_ms or SECOND_MS)


def _find_change(world: World, floor: Floor, now: int) -> int | None:
    """The start of the first quantum in which somebody who runs may be stopped, counts as more, or somebody is owed."""
    sharing = floor.sharing
    if sharing.quantum_ms is None or not floor.entries:
        return None
    quantum = _quantum(sharing)
    soon = (now // quantum + 1) * quantum
    recent = floor.since(now - sharing.quantum_ms)
    instants = [recent[0][0] + sharing.quantum_ms] if recent else []
    instants += [floor.owed[at][0] for at in (bisect_right(floor.owed, (now, AMOUNT_MAX)),) if at < len(floor.owed)]
    if sharing.index in (ATTAINED, NARROW) and min(instants, default=AMOUNT_MAX) > soon:
        instants += _steps(world, floor, now)
    return max(soon, -(-min(instants) // quantum) * quantum) if instants else None


def _steps(world: World, floor: Floor, now: int) -> Iterator[int]:
    """When who runs counts as more."""
    for number, holder in floor.holders.items():
        job = world.jobs[number]
        if isinstance(job.phase, Running):
            served = _served_ms(job, now)
            step = next_step(floor.sharing, holder.devices, served)
            if step is not None:
                yield now + step - served
