"""What a search that tries everything finds: the reference for choices that are made without trying everything."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TypeAlias

from muster.model.partition import devices_in
from muster.scheduler.stage import Stage
from muster.scheduler.victims import Candidate, Want
from muster.units import Resources
from muster.world.arena import DEVICE
from muster.world.lacks import bits_of


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
