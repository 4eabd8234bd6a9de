"""clearing: who would have to move so that one gang fits, and where each of them would go.

    1  bundles  on each node, who has to go together before anything of use comes free: whoever has whole devices alone,
                those who share one device together; for a share of a device, the cheapest who leave enough of it
    2  steps    on each node, what it costs to have room for one more task: see `muster.scheduler.taking.victims`; of a
                gang of several groups, for one group after the other: see `muster.scheduler.taking.teams`; of a box,
                all of it
    3  try      on the stage, a few of the cheapest ways: they are gone, whoever is not needed is given back
    4  rehouse  the gang has its places, and each of them finds another one, the largest first

Nodes and devices are so two grains of one search. Everybody stays on the site and on the flavor that it has, so quota,
price and pace are as before. It knows costs and places, and not whether it is worth it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from muster.model.partition import devices_in
from muster.model.phase import Lease
from muster.model.spec import Spec
from muster.scheduler.placing.fit import Pools, find_gang
from muster.scheduler.placing.within import places_of
from muster.scheduler.sparing import spares_last
from muster.scheduler.stage import Stage
from muster.scheduler.taking.teams import Bundle, Others, asks_of
from muster.scheduler.taking.victims import (
    Amounts,
    Candidate,
    Node,
    Step,
    Want,
    cheapest_boxes,
    cheapest_domains,
    cheapest_of,
    usable_nodes,
)
from muster.units import Resources
from muster.world.arena import DEVICE
from muster.world.fleet import Fleet
from muster.world.lacks import bits_of
from muster.world.runs import amounts_of
from muster.world.widths import leases_of
from muster.world.world import World

TRIES_MAX: Final = 8
"""How many ways are tried in earnest in a domain, each a step dearer than the one before."""

Sitters: TypeAlias = Mapping[int, Sequence[tuple[Candidate, Resources, Lease]]]
"""Who may be moved, by the node that it is on, with what a task of it asks for."""


class Clearing(NamedTuple):
    """Who moves and where to, and the leases that the gang then has."""

    cost: int
    moves: list[tuple[Candidate, list[Lease]]]
    leases: list[Lease]


def find_clearing(
    world: World, stage: Stage, spec: Spec, pools: Pools, candidates: Sequence[Candidate]
) -> Clearing | None:
    """The cheapest way that was found to let a gang in, or a task of an array; the stage is left as it was."""
    search, found = _Search(world, stage, spec, pools), list[Clearing]()
    sitters = _sitters_of(candidates)
    bundles: dict[tuple[int, int], Bundle] = {}
    here = {slot: list(_bundles_on(world.fleet, slot, spec.ask, sitters[slot], bundles)) for slot in sorted(sitters)}
    want, *others = (Want(*asked, spec.needs, search.find) for asked in asks_of(spec))
    nodes = list(usable_nodes(world.fleet, want, here, range(len(world.fleet))))
    for ways in _all_ways(world.fleet, search, want, others, nodes, bundles, sitters):
        clearing = next((clearing for way in ways if (clearing := search.attempt(way)) is not None), None)
        if clearing is not None:
            found.append(clearing)
    return min(found, key=lambda each: (each.cost, [_who(one) for one, _ in each.moves]), default=None)


def _all_ways(
    fleet: Fleet,
    search: _Search,
    want: Want,
    others: Sequence[Want],
    nodes: list[Node],
    bundles: Mapping[tuple[int, int], Bundle],
    sitters: Sitters,
) -> Iterator[Iterator[list[Candidate]]]:
    """Whom to take, domain by domain; or box by box, if a box of a torus is wanted."""
    if want.needs.shape:
        for box in cheapest_boxes(fleet, want, nodes):
            yield search.ways_of(box, bundles, sitters)
        return
    for domain, steps in cheapest_domains(fleet, want, nodes):
        yield search.ways(want, steps, Others(others, domain, bundles), bundles, sitters)


def _sitters_of(candidates: Iterable[Candidate]) -> Sitters:
    found: dict[int, list[tuple[Candidate, Resources, Lease]]] = {}
    for each in candidates:
        for ask, leases in each.seat.spec.parts(each.seat.leases):
            for lease in leases:
                found.setdefault(lease.slot, []).append((each, ask, lease))
    return found


# -- who has to go together ----------------------------------------------------------------------------------------


def _bundles_on(
    fleet: Fleet,
    slot: int,
    ask: Resources,
    sitters: Sequence[tuple[Candidate, Resources, Lease]],
    known: dict[tuple[int, int], Bundle],
) -> Iterator[tuple[Candidate, Amounts]]:
    """The bundles on a node as candidates, each known by its node and a number, with what comes free by it."""
    parts = _shares_on(fleet, slot, ask, sitters) if ask.gpu_milli else _wholes_on(fleet, slot, sitters)
    for number, (bundle, milli) in enumerate(parts):
        known[slot, number] = bundle
        mine = {_who(each) for each in bundle}
        here = [(other, lease) for each, other, lease in sitters if _who(each) in mine]
        rest = [sum(amounts_of(other, lease.tasks)[kind] for other, lease in here) for kind in (1, 2)]
        yield Candidate(sum(each.cost for each in bundle), slot, number, bundle[0].seat), (milli, rest[0], rest[1])


def _wholes_on(
    fleet: Fleet, slot: int, sitters: Sequence[tuple[Candidate, Resources, Lease]]
) -> Iterator[tuple[Bundle, int]]:
    """For whole devices: each who has some, or but CPU and memory; and those who share one, if nobody else is on it."""
    shared: dict[int, list[Candidate]] = {}
    held: dict[int, int] = {}
    whole: dict[tuple[int, int], tuple[Candidate, int]] = {}
    for each, ask, lease in sitters:
        if ask.gpu_milli:
            device = devices_in(lease.devices)
            shared.setdefault(device, []).append(each)
            held[device] = held.get(device, 0) + ask.gpu_milli * lease.tasks
        else:
            who = _who(each)
            whole[who] = each, whole.get(who, (each, 0))[1] + DEVICE * ask.gpus * lease.tasks
    for each, milli in whole.values():
        yield (each,), milli
    rests = fleet.devices(slot)
    for device, bundle in sorted(shared.items()):
        if held[device] + rests[device.bit_length() - 1] == DEVICE:
            yield tuple(bundle), DEVICE


def _shares_on(
    fleet: Fleet, slot: int, ask: Resources, sitters: Sequence[tuple[Candidate, Resources, Lease]]
) -> Iterator[tuple[Bundle, int]]:
    """For a share of a device: on each, the cheapest who leave enough of it."""
    rests = fleet.devices(slot)
    by_device: dict[int, list[tuple[Candidate, int]]] = {}
    for each, other, lease in sorted(sitters, key=lambda one: one[0][:3]):
        for device in bits_of(devices_in(lease.devices)):
            by_device.setdefault(device, []).append((each, other.gpu_milli * lease.tasks or DEVICE))
    for device, here in sorted(by_device.items()):
        missing = max(1, ask.gpu_milli - rests[device])
        chosen = cheapest_of([(milli, each.cost) for each, milli in here], missing)
        if chosen:
            yield tuple(here[index][0] for index in chosen), ask.gpu_milli


# -- on the stage --------------------------------------------------------------------------------------------------


class _Search:
    """Tries on one stage, for one gang."""

    def __init__(self, world: World, stage: Stage, spec: Spec, pools: Pools) -> None:
        self._world = world
        self._stage = stage
        self._spec = spec
        self._pools = pools

    def find(self) -> list[Lease] | None:
        """Places for the gang as the stage is."""
        spec = self._spec
        return find_gang(self._world.fleet, spec.ask, spec.places, spec.needs, self._pools)

    def ways(
        self,
        want: Want,
        steps: Iterator[Step],
        others: Others,
        bundles: Mapping[tuple[int, int], Bundle],
        sitters: Sitters,
    ) -> Iterator[list[Candidate]]:
        """Whom to take, the cheapest way first: those of as many steps as the first group has tasks, and of those that
        the others then need; and if they are not enough, everybody on their nodes."""
        gang, window = want.gang, list[Step]()
        for step in islice(steps, gang + TRIES_MAX - 1):
            window = [*window, step][-gang:]
            chosen = others.add(window, want.ask) if len(window) == gang else None
            if chosen is not None:
                yield from self.ways_of(chosen, bundles, sitters)

    def ways_of(
        self, steps: Sequence[Step], bundles: Mapping[tuple[int, int], Bundle], sitters: Sitters
    ) -> Iterator[list[Candidate]]:
        """Whom to take for some steps: those who are in the way, and if they are not enough, everybody there."""
        taken = _each_once(each for one in steps for part in one.taken for each in bundles[part[1:3]])
        near = _each_once(each for one in steps for each, _, _ in sitters.get(one.slot, ()))
        yield taken
        if len(near) > len(taken):
            yield near

    def attempt(self, way: Sequence[Candidate]) -> Clearing | None:
        """Who of them is needed, and where each would go; the stage is left as it was."""
        for each in way:
            self._stage.take(each.seat)
        gone = {_who(each): each for each in way}
        leases = self.find()
        for each in reversed(way) if leases is not None else ():  # the dearest first
            self._stage.give_back(each.seat)
            found = self.find()
            if found is None:
                self._stage.take(each.seat)
            else:
                del gone[_who(each)]
                leases = found
        homes = None if leases is None else self._rehouse(list(gone.values()), leases)
        for each in gone.values():
            self._stage.give_back(each.seat)
        if leases is None or not homes:
            return None
        return Clearing(sum(each.cost for each in gone.values()), homes, leases)

    def _rehouse(self, gone: list[Candidate], leases: list[Lease]) -> list[tuple[Candidate, list[Lease]]] | None:
        """Another place for each of those who are gone, beside the gang; None if one finds none, or its own."""
        homes: list[tuple[Candidate, list[Lease]]] = []
        with ExitStack() as shown:
            self._show(shown, self._spec, leases)
            for each in sorted(gone, key=lambda one: (*_size_of(one), _who(one))):
                spec, ranks = each.seat.spec, leases_of(self._world.jobs[each.job]) or each.seat.leases
                pools = home_pools(self._world, spec, ranks)
                home = find_gang(self._world.fleet, spec.ask, spec.places, spec.needs, pools) if pools else None
                if home is None or _by_node(home) == _by_node(each.seat.leases):
                    return None
                if not counts_alike(self._world, spec, ranks, home):
                    return None
                self._show(shown, spec, home)
                homes.append((each, spares_last(spec, home)))
        return homes

    def _show(self, shown: ExitStack, spec: Spec, places: Sequence[Lease]) -> None:
        """Let somebody be there, until the stack is closed."""
        fleet = self._world.fleet
        for ask, leases in spec.parts(places):
            for lease in leases:
                fleet.show(lease.slot, ask, lease.tasks, lease.devices)
                shown.callback(fleet.show, lease.slot, ask, -lease.tasks, lease.devices)


def _each_once(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Everybody once, the cheapest first."""
    return sorted({_who(each): each for each in candidates}.values(), key=lambda each: each[:3])


def _who(each: Candidate) -> tuple[int, int]:
    """A gang, or a task of an array."""
    return each.job, each.first


def _size_of(each: Candidate) -> tuple[int, int]:
    """The largest first: whoever needs the most on one node, then whoever needs the most of them."""
    spec = each.seat.spec
    asks = [ask for ask, _ in spec.parts(each.seat.leases)]
    return -max(amounts_of(ask, 1)[0] for ask in asks), -spec.places


def _by_node(leases: Sequence[Lease]) -> dict[int, tuple[int, int]]:
    """How many tasks are where, and on which devices, be they ranks or spares."""
    found: dict[int, tuple[int, int]] = {}
    for lease in leases:
        tasks, devices = found.get(lease.slot, (0, 0))
        found[lease.slot] = (tasks + lease.tasks, devices | lease.devices)
    return found


def counts_alike(world: World, spec: Spec, ranks: Sequence[Lease], home: Sequence[Lease]) -> bool:
    """Whether what a run has elsewhere counts as what it has does, group by group: all in one kind of place, be it more
    or less; or as much in each."""
    for (_, before), (_, after) in zip(spec.parts(ranks), spec.parts(home), strict=True):
        was, will = _by_kind(world, before), _by_kind(world, after)
        if was != will and (len(was) > 1 or was.keys() != will.keys()):
            return False
    return True


def _by_kind(world: World, leases: Sequence[Lease]) -> dict[tuple[int, str], int]:
    """How many tasks are on which site and flavor."""
    found: dict[tuple[int, str], int] = {}
    for lease in leases:
        kind = world.site_of(lease.slot).number, world.fleet.flavor(lease.slot)
        found[kind] = found.get(kind, 0) + lease.tasks
    return found


def home_pools(world: World, spec: Spec, leases: Sequence[Lease]) -> tuple[int, ...]:
    """The pools that a run may be moved within: of its sites and its flavors."""
    sites, flavors = ({find(lease.slot) for lease in leases} for find in (world.site_of, world.fleet.flavor))
    places = places_of(world, world.fleet, spec.ask, spec.needs)
    pools = [pool for site, here in places if site in sites for pool in here]
    return tuple(pool for pool in pools if world.fleet.pools[pool].flavor in flavors)
