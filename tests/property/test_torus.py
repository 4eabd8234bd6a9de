"""Boxes of a torus against a reference that tries every box: found if there is one, and the snuggest there is."""

from __future__ import annotations

import itertools
from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.node import Place, Sides, Spot, Traits
from muster.model.spec import Needs
from muster.scheduler.placing.fit import find_gang, widest_capacity, widest_room
from muster.units import Resources
from muster.world.fleet import Fleet

EXACT = settings(derandomize=True, deadline=None, max_examples=300)
NODE = Resources(4, 8000, 2**30)
ASK = Resources(4, 1000, 2**20)
SIDE = st.integers(1, 4)
SIZES = st.tuples(SIDE, SIDE, SIDE)
ODD = st.sampled_from([(3, 5, 7), (7, 3, 5), (1, 7, 5), (2, 5, 6), (7, 1, 1), (1, 1, 12), (2, 7, 2)])
"""Sides that are not alike, and longer than any side of a box."""
MASK = st.integers(0, 2**105 - 1)
Corner = tuple[int, ...]
Box = frozenset[Corner]


def spots_of(size: Sides) -> list[Sides]:
    """All spots, in the order of their numbers."""
    return list(itertools.product(range(size[0]), range(size[1]), range(size[2])))


def build(size: Sides, taken: int) -> Fleet:
    """A torus, some of whose nodes are taken: a bit each, by number."""
    fleet = Fleet()
    for slot, at in enumerate(spots_of(size)):
        fleet.join(slot, f"n{slot}", NODE, Traits("tpu", Place("", "pod"), spot=Spot("t", size, at)))
        if taken >> slot & 1:
            fleet.occupy(slot, 1, Resources(1, 1000, 2**20), 1, 1)
    return fleet


def spots_at(size: Corner, origin: Corner, sides: Corner) -> Box:
    """The spots of a box, across the seam."""
    spans = [[(at + step) % whole for step in range(side)] for at, side, whole in zip(origin, sides, size, strict=True)]
    return frozenset(itertools.product(*spans))


def count_around(size: Sides, box: Box, free: Box) -> int:
    """Free spots that are no further than one step along each axis from a spot of the box, and not in it."""
    steps = list(itertools.product((-1, 0, 1), repeat=3))
    near = {
        tuple((at + step) % whole for at, step, whole in zip(spot, by, size, strict=True))
        for spot in box
        for by in steps
    }
    return len((near & free) - box)


def every_box(size: Sides, shape: Sides, free: Box) -> list[tuple[int, Box]]:
    """All free boxes of a shape, with how many free spots are around each."""
    found: list[tuple[int, Box]] = []
    for sides in set(itertools.permutations(shape)):
        if all(side <= whole for side, whole in zip(sides, size, strict=True)):
            for origin in spots_of(size):
                box = spots_at(size, origin, sides)
                if box <= free:
                    found.append((count_around(size, box, free), box))
    return found


@EXACT
@given(SIZES | ODD, SIZES, MASK, MASK)
def test_a_box_is_found_if_there_is_one_and_it_is_the_snuggest(size: Sides, shape: Sides, one: int, two: int) -> None:
    taken = one & two  # about a quarter
    fleet = build(size, taken)
    spots = spots_of(size)
    free: Box = frozenset(spot for slot, spot in enumerate(spots) if not taken >> slot & 1)
    boxes = every_box(size, shape, free)
    needs, gang = Needs(shape=shape), prod(shape)
    leases = find_gang(fleet, ASK, gang, needs)
    assert (leases is not None) == bool(boxes)
    assert widest_room(fleet, ASK, gang, needs) == (gang if boxes else 0)
    fits_empty = all(side <= whole for side, whole in zip(sorted(shape), sorted(size), strict=True))
    assert widest_capacity(fleet, ASK, gang, needs) == (gang if fits_empty else 0)
    if leases is not None:
        found: Box = frozenset(spots[lease.slot] for lease in leases)
        assert len(found) == gang
        assert all((lease.tasks, lease.devices) == (1, 15) for lease in leases)
        assert (min(around for around, _ in boxes), found) in boxes


@EXACT
@given(SIZES, st.integers(0, 2**16 - 1))
def test_ranks_run_through_the_box_as_its_shape_says(shape: Sides, taken: int) -> None:
    """Whatever the rotation: the next rank along a side of the shape is the next spot along some axis of the torus."""
    size = (5, 5, 5)
    fleet = build(size, taken)
    spots = spots_of(size)
    leases = find_gang(fleet, ASK, prod(shape), Needs(shape=shape))
    if leases is None:
        return
    at: dict[Corner, Sides] = {rank: spots[lease.slot] for rank, lease in zip(spots_of(shape), leases, strict=True)}
    for side in range(3):
        steps = {
            tuple((b - a) % 5 for a, b in zip(at[rank], at[_next(rank, side)], strict=True))
            for rank in at
            if _next(rank, side) in at
        }
        assert len(steps) <= 1
        assert all(sorted(step) == [0, 0, 1] for step in steps)


def _next(rank: Corner, side: int) -> tuple[int, ...]:
    return tuple(at + (axis == side) for axis, at in enumerate(rank))
