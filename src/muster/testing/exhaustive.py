"""What a search that tries everything finds: the reference for choices that are made without trying everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, permutations
from typing import TypeAlias

from muster.model.partition import devices_in
from muster.model.spec import Spec
from muster.scheduler.placing.fit import find_gang
from muster.scheduler.stage import Stage
from muster.scheduler.taking.victims import Candidate, Want
from muster.units import Resources
from muster.world.arena import DEVICE
from muster.world.fleet import Fleet
from muster.world.lacks import bits_of
from muster.world.seating import show_all
from muster.world.world import World


def least_cost(stage: Stage, want: Want, candidates: Sequence[Candidate]) -> int | None:
    """What the cheapest of all sets of victims costs with which a gang fits; None if it fits with none of them."""
    best: int | None = None
    for count in range(len(candidates) + 1):
        for some in combinations(candidates, count):
            cost = sum(each.cost for each in some)
            if best is not None and cost >= best:
                continue
            for each in some:
                stage.take(each.seat)
            if want.find() is not None:
                best = cost
            for each in some:
                stage.give_back(each.seat)
    return best


Rests: TypeAlias = list[list[int]]
"""Thousandths left of each device, node by node."""


def least_moving_cost(rests: Rests, ask: Resources, movers: Sequence[Candidate]) -> int | None:
    """What the cheapest of all sets of movers costs with which a task fits and each of them somewhere else; None if it
    fits with none of them. It knows devices alone."""
    best: int | None = None
    for count in range(len(movers) + 1):
        for some in combinations(movers, count):
            cost = sum(each.cost for each in some)
            if (best is None or cost < best) and _has_homes(_without(rests, some), [ask, *map(_ask_of, some)]):
                best = cost
    return best


def least_clearing_cost(world: World, stage: Stage, spec: Spec, movers: Sequence[Candidate]) -> int | None:
    """The same for a gang of any kind, on a stage: in whatever order those who are gone are put down beside it."""
    best: int | None = None
    for count in range(1, len(movers) + 1):
        for some in combinations(movers, count):
            cost = sum(each.cost for each in some)
            if (best is None or cost < best) and _can_clear(world.fleet, stage, spec, some):
                best = cost
    return best


def _can_clear(fleet: Fleet, stage: Stage, spec: Spec, some: Sequence[Candidate]) -> bool:
    """Whether a gang fits if some are gone, and they beside it."""
    for each in some:
        stage.take(each.seat)
    orders = permutations([each.seat.spec for each in some])
    found = _can_seat(fleet, spec, lambda: any(_can_seat_all(fleet, order) for order in orders))
    for each in some:
        stage.give_back(each.seat)
    return found


def _can_seat_all(fleet: Fleet, specs: Sequence[Spec]) -> bool:
    return not specs or _can_seat(fleet, specs[0], lambda: _can_seat_all(fleet, specs[1:]))


def _can_seat(fleet: Fleet, spec: Spec, can_others: Callable[[], bool]) -> bool:
    """Whether a gang fits, and others can be seated when it is there."""
    leases = find_gang(fleet, spec.ask, spec.places, spec.needs)
    if leases is None:
        return False
    for ask, part in spec.parts(leases):
        show_all(fleet, ask, part, 1)
    found = can_others()
    for ask, part in spec.parts(leases):
        show_all(fleet, ask, part, -1)
    return found


def _ask_of(each: Candidate) -> Resources:
    return each.seat.spec.ask


def _without(rests: Rests, some: Sequence[Candidate]) -> Rests:
    """The rests if some were gone."""
    left = [node.copy() for node in rests]
    for each in some:
        for lease in each.seat.leases:
            for device in bits_of(devices_in(lease.devices)):
                left[lease.slot][device] += _ask_of(each).gpu_milli or DEVICE
    return left


def _has_homes(rests: Rests, asks: Sequence[Resources]) -> bool:
    """Whether all of some asks fit together, each on one node."""
    if not asks:
        return True
    ask, rest = asks[0], asks[1:]
    for node in rests:
        whole = [device for device, left in enumerate(node) if left == DEVICE]
        spots = [whole[: ask.gpus]] if ask.gpus else [[at] for at, left in enumerate(node) if left >= ask.gpu_milli]
        for spot in spots if ask.gpu_milli or len(whole) >= ask.gpus else ():
            for device in spot:
                node[device] -= ask.gpu_milli or DEVICE
            found = _has_homes(rests, rest)
            for device in spot:
                node[device] += ask.gpu_milli or DEVICE
            if found:
                return True
    return False
