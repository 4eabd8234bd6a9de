"""Where a box of a torus goes, compiled: exact, in any rotation, across the seam; the snuggest place first.

A torus is a grid of spots whose opposite faces are joined, and a node is in one of them. A gang with a shape takes a
whole box of spots, one task on each. Sums over the grid, laid out twice along every axis, tell for each origin in a few
steps whether its box is free, and how many spots around it are: the fewer, the less is broken that somebody else could
use. Nothing is remembered between searches, so nothing can be stale.

What it costs to have a box that is not free is told by the same sums, over what each spot costs.

A torus is words: its three sizes, how many nodes it has, then slot and spot of each, by slot. The `desk` is where a
search writes: which node stands for each spot, or what it costs; then the sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

from muster.scheduler.placing.gang import write_lease
from muster.scheduler.placing.query import POOL_COUNT, POOL_ROWS, ROW, ROW_GROUP, ROW_POOL
from muster.scheduler.placing.single import fits
from muster.world.arena import AT_NODES, NODE_ROW, NOWHERE, OPEN, POOL
from muster.world.compiled import Words, compiled

SIZES: Final = 3
MEMBERS: Final = 4
"""From here on two words per node."""
ROTATIONS: Final = 6
PRICE_MAX: Final = 2**28
NEVER: Final = 2**44
"""The most that a spot costs, and what one costs that cannot be had: more than all others together. The sums of the
largest torus, laid out twice along every axis, stay within a word."""
_AXES: Final = (0, 1, 2, 0, 2, 1, 1, 0, 2, 1, 2, 0, 2, 0, 1, 2, 1, 0)
"""For each rotation: which side of the shape lies along each axis of the torus."""


@compiled
def spots_of(torus: Words) -> int:
    """How many spots a torus has."""
    return int(torus[0] * torus[1] * torus[2])


@compiled
def desk_size(torus: Words) -> int:
    """How many words a search of this torus needs."""
    return int(spots_of(torus) + (2 * torus[0] + 1) * (2 * torus[1] + 1) * (2 * torus[2] + 1))


@compiled
def count_groups(query: Words) -> int:
    """How many groups of pools there are to try, one after the other."""
    most = 0
    for row in range(POOL_ROWS, POOL_ROWS + ROW * query[POOL_COUNT], ROW):
        most = max(most, query[row + ROW_GROUP] + 1)
    return most


@compiled
def _is_in_group(query: Words, pool: int, group: int) -> bool:
    for row in range(POOL_ROWS, POOL_ROWS + ROW * query[POOL_COUNT], ROW):
        if query[row + ROW_POOL] == pool:
            return bool(query[row + ROW_GROUP] == group)
    return False


@compiled
def _fill(words: Words, query: Words, torus: Words, desk: Words, group: int) -> None:
    """Note which node could take a task in each spot: the lowest slot, or NOWHERE."""
    for spot in range(spots_of(torus)):
        desk[spot] = NOWHERE
    for member in range(MEMBERS, MEMBERS + 2 * torus[SIZES], 2):
        slot, spot = torus[member], torus[member + 1]
        row = words[AT_NODES] + NODE_ROW * slot
        is_open = desk[spot] == NOWHERE and words[row + OPEN] and _is_in_group(query, words[row + POOL], group)
        if is_open and fits(words, query, slot):
            desk[spot] = slot


@compiled
def _sum_up(torus: Words, desk: Words, is_priced: int) -> None:
    """Sums of free spots, or of what they cost, from the origin to every corner of the doubled grid."""
    x_size, y_size, z_size = torus[0], torus[1], torus[2]
    line = 2 * z_size + 1
    sheet = (2 * y_size + 1) * line
    first = spots_of(torus)
    for place in range(first, first + sheet):
        desk[place] = 0
    for x in range(2 * x_size):
        here = first + (x + 1) * sheet
        for place in range(here, here + line):
            desk[place] = 0
        for y in range(2 * y_size):
            row, at = (x % x_size * y_size + y % y_size) * z_size, here + (y + 1) * line
            along = 0
            desk[at] = 0
            for z in range(2 * z_size):
                each = desk[row + z % z_size]
                along += each if is_priced else each != NOWHERE
                at += 1
                desk[at] = along + desk[at - line] + desk[at - sheet] - desk[at - sheet - line]


@compiled
def _count(torus: Words, desk: Words, x: int, y: int, z: int, a: int, b: int, c: int) -> int:
    """The free spots of the box of these sides whose lowest corner is there, or what it costs."""
    line = 2 * torus[2] + 1
    sheet = (2 * torus[1] + 1) * line
    low = spots_of(torus) + x * sheet + y * line + z
    high = low + a * sheet
    near = desk[low + b * line + c] - desk[low + b * line] - desk[low + c] + desk[low]
    return int(desk[high + b * line + c] - desk[high + b * line] - desk[high + c] + desk[high] - near)


@compiled
def _before(at: int, side: int, size: int) -> int:
    """Where a box begins that has one spot more on either side; none if it goes round anyway."""
    return 0 if side + 2 > size else (at + size - 1) % size


@compiled
def _around(torus: Words, desk: Words, x: int, y: int, z: int, a: int, b: int, c: int) -> int:
    """The free spots around a box."""
    starts = _before(x, a, torus[0]), _before(y, b, torus[1]), _before(z, c, torus[2])
    sides = min(a + 2, torus[0]), min(b + 2, torus[1]), min(c + 2, torus[2])
    within = _count(torus, desk, starts[0], starts[1], starts[2], sides[0], sides[1], sides[2])
    return within - a * b * c


@compiled
def _best_turned(torus: Words, desk: Words, turn: int, a: int, b: int, c: int, best: int) -> int:
    """The best box so far, after all origins of one rotation with these sides."""
    x_size, y_size, z_size = torus[0], torus[1], torus[2]
    if a > x_size or b > y_size or c > z_size:
        return best
    spots = spots_of(torus)
    for x in range(1 if a == x_size else x_size):
        for y in range(1 if b == y_size else y_size):
            for z in range(1 if c == z_size else z_size):
                if _count(torus, desk, x, y, z, a, b, c) == a * b * c:
                    around = _around(torus, desk, x, y, z, a, b, c)
                    found = (around * ROTATIONS + turn) * spots + (x * y_size + y) * z_size + z
                    if best == NOWHERE or found < best:
                        best = found
    return int(best)


@compiled
def _side(turn: int, axis: int, a: int, b: int, c: int) -> int:
    """The side of a shape that lies along an axis."""
    which = _AXES[3 * turn + axis]
    return a if which == 0 else b if which == 1 else c


@compiled
def find_box(words: Words, query: Words, torus: Words, desk: Words, group: int, a: int, b: int, c: int) -> int:
    """The box of this shape with the fewest free spots around it, then the first rotation, then the lowest origin, in
    one number; or NOWHERE. The spots are on the desk until the next search."""
    _fill(words, query, torus, desk, group)
    _sum_up(torus, desk, 0)
    best = NOWHERE
    for turn in range(ROTATIONS):
        if not _is_seen(turn, a, b, c):
            sides = _side(turn, 0, a, b, c), _side(turn, 1, a, b, c), _side(turn, 2, a, b, c)
            best = _best_turned(torus, desk, turn, sides[0], sides[1], sides[2], best)
    return int(best)


@compiled
def _is_seen(turn: int, a: int, b: int, c: int) -> bool:
    """Whether an earlier rotation has the same sides."""
    seen = False
    for other in range(turn):
        same = True
        for axis in range(SIZES):
            same = same and _side(other, axis, a, b, c) == _side(turn, axis, a, b, c)
        seen = seen or same
    return seen


@compiled
def find_cheapest(torus: Words, desk: Words, a: int, b: int, c: int) -> int:
    """The box of this shape that costs least, then the first rotation, then the lowest origin, in one number; or
    NOWHERE. The desk says what each spot costs."""
    _sum_up(torus, desk, 1)
    best = NOWHERE
    for turn in range(ROTATIONS):
        if not _is_seen(turn, a, b, c):
            sides = _side(turn, 0, a, b, c), _side(turn, 1, a, b, c), _side(turn, 2, a, b, c)
            best = _cheapest_turned(torus, desk, turn, sides[0], sides[1], sides[2], best)
    return int(best)


@compiled
def _cheapest_turned(torus: Words, desk: Words, turn: int, a: int, b: int, c: int, best: int) -> int:
    """The cheapest box so far, after all origins of one rotation with these sides."""
    x_size, y_size, z_size = torus[0], torus[1], torus[2]
    if a > x_size or b > y_size or c > z_size:
        return best
    for x in range(1 if a == x_size else x_size):
        for y in range(1 if b == y_size else y_size):
            for z in range(1 if c == z_size else z_size):
                price = _count(torus, desk, x, y, z, a, b, c)
                found = (price * ROTATIONS + turn) * spots_of(torus) + (x * y_size + y) * z_size + z
                if price < NEVER and (best == NOWHERE or found < best):
                    best = found
    return int(best)


def price_of(torus: Words, found: int) -> int:
    """What a box costs that was found as the cheapest."""
    return int(found // int(spots_of(torus)) // ROTATIONS)


def spots_in(torus: Words, found: int, shape: Sequence[int]) -> Iterator[int]:
    """The spots of a box that was found."""
    size, spots = [int(side) for side in torus[:SIZES]], int(spots_of(torus))
    turn, origin = found // spots % ROTATIONS, found % spots
    first = (origin // (size[1] * size[2]), origin // size[2] % size[1], origin % size[2])
    sides = [range(_side(turn, axis, *shape)) for axis in range(SIZES)]
    for steps in product(*sides):
        x, y, z = ((at + step) % whole for at, step, whole in zip(first, steps, size, strict=True))
        yield (x * size[1] + y) * size[2] + z


@compiled
def write_box(
    words: Words, query: Words, torus: Words, desk: Words, leases: Words, found: int, a: int, b: int, c: int
) -> int:
    """Leases for a box that was found, rank by rank: along the last side of the shape first. How many there are."""
    spots, count = spots_of(torus), 0
    turn, origin = found // spots % ROTATIONS, found % spots
    first = origin // (torus[1] * torus[2]), origin // torus[2] % torus[1], origin % torus[2]
    for i in range(a):
        for j in range(b):
            for k in range(c):
                x = (first[0] + _side(turn, 0, i, j, k)) % torus[0]
                y = (first[1] + _side(turn, 1, i, j, k)) % torus[1]
                z = (first[2] + _side(turn, 2, i, j, k)) % torus[2]
                slot = desk[(x * torus[1] + y) * torus[2] + z]
                count = write_lease(words, query, leases, count, slot, 1)
    return count


@compiled
def around_of(torus: Words, found: int) -> int:
    """How many free spots lie around a box that was found."""
    return int(found // spots_of(torus) // ROTATIONS)
