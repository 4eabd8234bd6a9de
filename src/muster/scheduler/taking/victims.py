"""victims: whose places are taken so that one gang fits, and as little work as possible is lost.

    1  price   what it costs on each node to have room for one more task, and one more: the cheapest who cover it
    2  choose  in each domain that the gang could stay within, the cheapest nodes until it has room for all of it
    3  fit     on the stage: more, if the gang is choosy and does not fit yet; the cheapest of a few domains
    4  reprieve whoever is not needed is given back, the dearest first

A gang that wants a box of a torus gets all of one: whole boxes are compared, instead of nodes (see `box_prices`).

Where that finds nothing (what is missing is quota, or parts of devices), or few may be taken, those who may go one
after the other, the cheapest first, until the gang fits; the cheaper way wins. It knows costs and places, and not by
which right anybody is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice
from math import gcd
from typing import Final, NamedTuple, TypeAlias

from muster.model.node import LEVELS, Level
from muster.model.phase import Lease
from muster.model.spec import Needs
from muster.scheduler.box_prices import find_boxes
from muster.scheduler.placing.fit import find_pools
from muster.scheduler.stage import Seat, Stage
from muster.units import Resources
from muster.world import arena
from muster.world.fleet import Fleet
from muster.world.runs import amounts_of

DOMAINS_MAX: Final = 3
"""How many domains are tried in earnest, the cheapest ones by their prices."""
FEW: Final = 64
"""With so few who may be taken, both ways are tried."""
STEPS_MAX: Final = 64
"""Up to how many equal parts a node's amounts are looked at exactly; with more, the cheapest by size are taken."""

Amounts: TypeAlias = tuple[int, int, int]
"""Thousandths of devices, CPU, memory."""


class Candidate(NamedTuple):
    """Somebody whose places may be taken, and what would be lost. Sorts by cost, then by who it is."""

    cost: int
    job: int
    first: int
    seat: Seat


class Want(NamedTuple):
    """What has to fit, and where: `find` gives the leases on the stage as it is, if quota and room let it. `room` says
    how many tasks would have room one by one, and in which pools: if it is less than all, they do not fit."""

    ask: Resources
    gang: int
    needs: Needs
    find: Callable[[], list[Lease] | None]
    room: Callable[[], tuple[int, Collection[int]]] | None = None


class Choice(NamedTuple):
    """Who is taken, and the leases that the gang then has."""

    cost: int
    taken: list[Candidate]
    leases: list[Lease]


def choose(
    stage: Stage, fleet: Fleet, want: Want, candidates: Sequence[Candidate], slots: Iterable[int] | None = None
) -> Choice | None:
    """Whom to take so that a gang fits; the stage is left with them gone. None if it would not fit without all. Only
    these slots are looked at, if some are named."""
    nodes = list(find_nodes(fleet, want, candidates, range(len(fleet)) if slots is None else slots))
    found = list(_take_boxes(stage, fleet, want, nodes)) if want.needs.shape else []
    domains = [] if found else list(cheapest_domains(fleet, want, nodes))
    is_sole = len(domains) == 1 and len(candidates) > FEW
    for _, steps in domains:
        choice = _take_steps(stage, fleet, want, steps)
        if choice is not None and is_sole:
            return choice
        if choice is not None:
            put_back(stage, choice.taken)
            found.append(choice)
    if len(candidates) <= FEW or not found:
        choice = _take_in_order(stage, fleet, want, sorted(candidates))
        if choice is not None:
            put_back(stage, choice.taken)
            found.append(choice)
    if not found:
        return None
    best = min(found, key=_cost_of)
    take_away(stage, best.taken)
    return best


def _cost_of(choice: Choice) -> tuple[int, list[int]]:
    return choice.cost, [each.job for each in choice.taken]


# -- nodes and domains ---------------------------------------------------------------------------------------------


class Node(NamedTuple):
    """A node that the gang could use: what is free there, and who may be taken from it."""

    slot: int
    free: Amounts
    here: list[tuple[Candidate, Amounts]]


class Step(NamedTuple):
    """One task more on a node: what that costs, and who is then taken from there."""

    cost: int
    slot: int
    tasks: int
    taken: list[Candidate]


def cheapest_domains(fleet: Fleet, want: Want, usable: Iterable[Node]) -> Iterator[tuple[list[Node], Iterator[Step]]]:
    """The few cheapest domains of nodes that are usable, each with the steps to take there in order."""
    domains: dict[tuple[object, ...], list[Node]] = {}
    level = LEVELS[want.needs.within or "cluster"]
    for node in usable:
        place = fleet.traits[node.slot].place
        key: tuple[object, ...] = (node.slot,) if level == Level.NODE else place.path(level)
        domains.setdefault(key, []).append(node)
    priced = []
    for nodes in domains.values():
        first = first_steps(want, nodes)
        price = _price_of(want, nodes, first)
        if price is not None:
            priced.append((price, nodes[0].slot, nodes, first))
    for _, _, nodes, first in sorted(priced, key=lambda each: each[:2])[:DOMAINS_MAX]:
        yield nodes, steps_on(want, nodes, first)


def _price_of(want: Want, nodes: list[Node], first: list[Step]) -> int | None:
    """What the cheapest steps for all of the gang cost; None if there are not enough."""
    price = tasks = 0
    for step in steps_on(want, nodes, first):
        price, tasks = price + step.cost, tasks + 1
        if tasks >= want.gang:
            return price
    return None


def find_nodes(fleet: Fleet, want: Want, candidates: Sequence[Candidate], slots: Iterable[int]) -> Iterator[Node]:
    """Every open node in a pool that the gang could use, with who may be taken there."""
    here: dict[int, list[tuple[Candidate, Amounts]]] = {}
    for each in candidates:
        for ask, leases in each.seat.spec.parts(each.seat.leases):
            for lease in leases:
                here.setdefault(lease.slot, []).append((each, amounts_of(ask, lease.tasks)))
    return usable_nodes(fleet, want, here, slots)


def usable_nodes(
    fleet: Fleet, want: Want, here: Mapping[int, list[tuple[Candidate, Amounts]]], slots: Iterable[int]
) -> Iterator[Node]:
    """The same, if it is known who is where."""
    pools = set(find_pools(fleet, want.ask, want.needs))
    for slot in slots:
        free = fleet.find_free(slot)
        if free is not None and slot not in fleet.booked and fleet.read(arena.POOL, slot) in pools:
            yield Node(slot, (1000 * free[0], *free[1:]), sorted(here.get(slot, ())))


def first_steps(want: Want, nodes: Iterable[Node]) -> list[Step]:
    """One task on each node that could have one."""
    return [step for node in nodes if (step := _find_step(want, node, 1, 0)) is not None]


def steps_on(want: Want, nodes: list[Node], first: list[Step]) -> Iterator[Step]:
    """One task after the other, always where it costs least; `first` are those for one task on each node."""
    by_slot, heap = {node.slot: node for node in nodes}, first.copy()
    heapify(heap)
    while heap:
        step = heappop(heap)
        yield step
        spent = sum(each.cost for each in step.taken)
        following = _find_step(want, by_slot[step.slot], step.tasks + 1, spent)
        if following is not None:
            heappush(heap, following)


def _find_step(want: Want, node: Node, tasks: int, spent: int) -> Step | None:
    """What it costs to have room for so many tasks on a node, beside what was spent there already."""
    most = 1 if want.needs.shape else want.needs.spread_most if want.needs.spread == "node" else want.gang
    if tasks > min(most, want.gang):
        return None
    missing = [need - free for need, free in zip(amounts_of(want.ask, tasks), node.free, strict=True)]
    taken = _cover(node.here, missing)
    if taken is None:
        return None
    return Step(max(0, sum(each.cost for each in taken) - spent), node.slot, tasks, taken)


# -- the cheapest who cover an amount ------------------------------------------------------------------------------


def _cover(here: Sequence[tuple[Candidate, Amounts]], missing: Sequence[int]) -> list[Candidate] | None:
    """The cheapest who together have what is missing: exactly so for what is scarcest, devices or else CPU; whoever is
    needed besides for the other amounts is added, the cheapest first."""
    if max(missing) <= 0:
        return []
    kind = 0 if missing[0] > 0 else 1 if missing[1] > 0 else 2
    chosen = cheapest_of([(amounts[kind], each.cost) for each, amounts in here], missing[kind])
    if chosen is None:
        return None
    left = list(missing)
    for index in chosen:
        gpus, cpu, memory = here[index][1]
        left[0], left[1], left[2] = left[0] - gpus, left[1] - cpu, left[2] - memory
    for index, (_, amounts) in enumerate(here):
        if max(left) <= 0:
            break
        if index not in chosen:
            chosen.append(index)
            left = [most - amount for most, amount in zip(left, amounts, strict=True)]
    return [here[index][0] for index in sorted(chosen)] if max(left) <= 0 else None


def cheapest_of(items: Sequence[tuple[int, int]], need: int) -> list[int] | None:
    """Which of (size, cost), sorted by cost, together have the size that is needed, for the least cost."""
    sizes = [size for size, _ in items]
    if sum(sizes) < need:
        return None
    if len(set(sizes)) == 1:
        return list(range(-(-need // sizes[0])))
    unit = gcd(need, *sizes)
    return _cheapest_exactly(items, need, unit) if need // unit <= STEPS_MAX else _cheapest_by_size(items, need)


def _cheapest_exactly(items: Sequence[tuple[int, int]], need: int, unit: int) -> list[int]:
    """By the least cost of every smaller need, item by item."""
    least: list[tuple[int, list[int]] | None] = [(0, [])] + [None] * (need // unit)
    for index, (size, cost) in enumerate(items):
        for want in range(len(least) - 1, 0, -1):
            before = least[max(0, want - size // unit)]
            if before is not None and size:
                now = least[want]
                if now is None or before[0] + cost < now[0]:
                    least[want] = (before[0] + cost, [*before[1], index])
    last = least[-1]
    return [] if last is None else last[1]


def _cheapest_by_size(items: Sequence[tuple[int, int]], need: int) -> list[int]:
    """Whoever costs least for its size, until there is enough; then without those who were not needed."""
    order = sorted((index for index, item in enumerate(items) if item[0]), key=lambda at: (_per_size(items[at]), at))
    chosen: list[int] = []
    for index in order:
        if need <= 0:
            break
        chosen.append(index)
        need -= items[index][0]
    for index in sorted(chosen, key=lambda at: -items[at][1]):
        if items[index][0] <= -need:
            chosen.remove(index)
            need += items[index][0]
    return chosen


def _per_size(item: tuple[int, int]) -> int:
    return (item[1] << 32) // item[0]


# -- on the stage --------------------------------------------------------------------------------------------------


def _take_steps(stage: Stage, fleet: Fleet, want: Want, steps: Iterator[Step]) -> Choice | None:
    """Take step after step until the gang fits, and find who was needed, who stay gone; nobody if it does not."""
    taken: dict[tuple[int, int], Candidate] = {}
    gone, next_try = 0, want.gang
    for tasks, step in enumerate(steps, start=1):
        for each in step.taken:
            taken.setdefault((each.job, each.first), each)
        if tasks >= next_try:
            take_away(stage, islice(taken.values(), gone, None))
            gone = len(taken)
            if (leases := want.find()) is not None:
                return _reprieve(stage, fleet, want, list(taken.values()), leases)
            next_try = tasks + max(1, tasks // 4)
    take_away(stage, islice(taken.values(), gone, None))
    leases = want.find()
    if leases is not None:
        return _reprieve(stage, fleet, want, list(taken.values()), leases)
    put_back(stage, taken.values())
    return None


def _take_boxes(stage: Stage, fleet: Fleet, want: Want, nodes: Iterable[Node]) -> Iterator[Choice]:
    """What it comes to if all go who are in the way of the cheapest boxes; nobody stays gone."""
    for steps in cheapest_boxes(fleet, want, nodes):
        taken = list({(each.job, each.first): each for step in steps for each in step.taken}.values())
        take_away(stage, taken)
        leases = want.find()
        if leases is None:  # what is missing is quota
            put_back(stage, taken)
        else:
            choice = _reprieve(stage, fleet, want, taken, leases)
            put_back(stage, choice.taken)
            yield choice


def cheapest_boxes(fleet: Fleet, want: Want, nodes: Iterable[Node]) -> Iterator[list[Step]]:
    """The few cheapest boxes of tori that a gang could have, each as the steps on its nodes. A gang on several nodes
    goes once for all of them: so boxes are compared by what each of their nodes costs, and by its part of that."""
    steps = {step.slot: step for step in first_steps(want, nodes)}
    whole = {slot: step.cost for slot, step in steps.items()}
    part = {slot: sum(_part_of(each) for each in step.taken) for slot, step in steps.items()}
    found = [box.slots for prices in (whole, part) for box in find_boxes(fleet, want.needs.shape, prices)[:DOMAINS_MAX]]
    for slots in {tuple(sorted(slots)): slots for slots in found}.values():
        yield [steps[slot] for slot in slots]


def _part_of(each: Candidate) -> int:
    """What is lost for each of the nodes that somebody is on."""
    return each.cost // len({lease.slot for lease in each.seat.leases})


def _take_in_order(stage: Stage, fleet: Fleet, want: Want, candidates: Sequence[Candidate]) -> Choice | None:
    """The cheapest, as many as it takes: found by halving, for with more gone whatever fitted still fits. Who is
    needed stays gone; nobody if it does not fit."""
    take_away(stage, candidates)
    leases = want.find()
    if leases is None:
        put_back(stage, candidates)
        return None
    few, enough = 0, len(candidates)
    while few < enough:
        middle = (few + enough) // 2
        put_back(stage, candidates[middle:enough])
        found = want.find()
        if found is None:
            take_away(stage, candidates[middle:enough])
            few = middle + 1
        else:
            enough, leases = middle, found
    return _reprieve(stage, fleet, want, list(candidates[:enough]), leases)


def _reprieve(stage: Stage, fleet: Fleet, want: Want, taken: list[Candidate], leases: list[Lease]) -> Choice:
    """Who is needed: not who sits nowhere near, nor whoever can be given back, the dearest first. Those stay gone."""
    slots = {lease.slot for lease in leases}
    aside = [each for each in taken if not any(lease.slot in slots for lease in each.seat.leases)]
    put_back(stage, aside)
    found = want.find() if aside else leases
    if found is None:  # they are needed after all: for the quota
        take_away(stage, aside)
        near = taken
    else:
        near, leases = [each for each in taken if any(lease.slot in slots for lease in each.seat.leases)], found
    kept: list[Candidate] = []
    spare = _Spare(fleet, want)
    for each in sorted(near, reverse=True):
        if spare.needs(each):
            kept.append(each)
            continue
        stage.give_back(each.seat)
        found = want.find()
        if found is None:
            stage.take(each.seat)
            kept.append(each)
        else:
            leases = found
            spare.count()
    kept.reverse()
    return Choice(sum(each.cost for each in kept), kept, leases)


class _Spare:
    """How much more room there is than the gang needs: who has more of it is needed, and need not be tried."""

    def __init__(self, fleet: Fleet, want: Want) -> None:
        self._fleet = fleet
        self._want = want
        self._is_plain = not (want.ask.gpu_milli or want.ask.disk_bytes or want.ask.network_mbps)
        self._left = 0
        self._pools: Collection[int] = ()
        self.count()

    def count(self) -> None:
        """Count it anew."""
        if self._is_plain and self._want.room is not None:
            room, self._pools = self._want.room()
            self._left = room - self._want.gang

    def needs(self, each: Candidate) -> bool:
        """Whether there is surely too little room if somebody is given back."""
        spec = each.seat.spec
        if not self._is_plain or self._want.room is None or spec.ask.gpu_milli or spec.needs.groups:
            return False
        return sum(self._lost(lease.slot, spec.ask, lease.tasks) for lease in each.seat.leases) > self._left

    def _lost(self, slot: int, ask: Resources, tasks: int) -> int:
        """How many tasks fewer have room on a node if some of another ask are there again."""
        free = self._fleet.find_free(slot)
        if free is None or self._fleet.read(arena.POOL, slot) not in self._pools:
            return 0
        after = (free[0] - ask.gpus * tasks, free[1] - ask.cpu_milli * tasks, free[2] - ask.memory_bytes * tasks)
        return _room_in(free, self._want.ask) - _room_in(after, self._want.ask)


def _room_in(free: Amounts, ask: Resources) -> int:
    pairs = ((free[0], ask.gpus), (free[1], ask.cpu_milli), (free[2], ask.memory_bytes))
    return min((have // each for have, each in pairs if each), default=0)


def put_back(stage: Stage, candidates: Iterable[Candidate]) -> None:
    """Give back whoever was taken."""
    stage.give_back_all(stage.gather([each.seat for each in candidates]))


def take_away(stage: Stage, candidates: Iterable[Candidate]) -> None:
    """Let them be gone."""
    stage.take_all(stage.gather([each.seat for each in candidates]))
