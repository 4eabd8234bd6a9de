"""box_prices: the boxes of tori that it would cost least to have, if it is known what each node costs.

A gang with a shape takes a whole box, so the cheapest nodes are of no use unless they are side by side: whole boxes are
compared, every one of every torus. It knows nodes and what they cost, not whose places they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from muster.scheduler.placing import torus as boxes
from muster.scheduler.placing.fit import tori_of
from muster.world.compiled import Words
from muster.world.fleet import Fleet


class Box(NamedTuple):
    """What a box costs, about, and its nodes."""

    price: int
    slots: list[int]


def find_boxes(fleet: Fleet, shape: Sequence[int], prices: Mapping[int, int]) -> list[Box]:
    """Of every torus that has one the cheapest box, the cheapest of all first; nodes without a price cannot be had."""
    shift = max(0, max(prices.values(), default=0).bit_length() - boxes.PRICE_MAX.bit_length() + 1)
    found: list[Box] = []
    for torus, desk in tori_of(fleet):
        nodes = _lay_out(torus, desk, prices, shift)
        box = boxes.find_cheapest(torus, desk, *shape)
        if box >= 0:
            slots = [nodes[spot] for spot in boxes.spots_in(torus, box, shape)]
            found.append(Box(boxes.price_of(torus, box), slots))
    return sorted(found)


def _lay_out(torus: Words, desk: Words, prices: Mapping[int, int], shift: int) -> dict[int, int]:
    """Write down what each spot costs, and say which node stands for it: the cheapest, then the lowest slot."""
    for spot in range(int(boxes.spots_of(torus))):
        desk[spot] = boxes.NEVER
    nodes: dict[int, int] = {}
    for member in range(boxes.MEMBERS, boxes.MEMBERS + 2 * int(torus[boxes.SIZES]), 2):
        slot, spot = int(torus[member]), int(torus[member + 1])
        price = prices.get(slot)
        if price is not None and price >> shift < desk[spot]:
            desk[spot] = price >> shift
            nodes[spot] = slot
    return nodes
