"""Which slots of which device a partition gets, on a node that has room for it.

One that breaks no whole device comes first. Then the one that leaves the larger partitions the most places to begin
in: of the largest that lose any, the fewest; then of the next. Then the lowest device and the lowest slot. So the
choice goes by what is taken, and by nothing that was before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from muster.model.node import Flavor
from muster.model.partition import DEVICE, Partition, word_of
from muster.world.cuts import free_starts
from muster.world.fleet import Fleet
from muster.world.lacks import bits_of

Loss: TypeAlias = tuple[int, ...]
"""Of each kind of partition, the largest first: in how many more slots none can begin."""


def choose_slots(fleet: Fleet, slot: int, milli: int, name: str) -> int:
    """The word of a lease on a partition of this name, on a node that has room for one."""
    flavor = fleet.cuts[fleet.flavor(slot)]
    piece = next(each for each in flavor.partitions if each.name == name)
    return min(_choices(flavor, piece, fleet.devices(slot), fleet.slots_taken(slot), milli))[-1]


def explain_slots(fleet: Fleet, name: str) -> str:
    """Why slots are free and none of these partitions fits there, with numbers; nothing if that is not so."""
    free, total, starts = 0, 0, tuple[int, ...]()
    for slot in range(len(fleet)):
        flavor = fleet.cuts.get(fleet.flavor(slot)) if fleet.is_listed(slot) else None
        piece = next((each for each in flavor.partitions if each.name == name), None) if flavor else None
        if flavor is None or piece is None:
            continue
        starts = piece.starts
        for rest, taken in zip(fleet.devices(slot), fleet.slots_taken(slot), strict=True):
            total += flavor.slots
            free += flavor.slots - taken.bit_count() if rest else 0
            if rest and free_starts(taken, piece.size, piece.bits):
                return ""
    where = f"none where {name} may begin: {', '.join(map(str, starts))}"
    return f"{free} of {total} slots are free, {where}" if free else ""


def _choices(
    flavor: Flavor, piece: Partition, rests: Sequence[int], taken: Sequence[int], milli: int
) -> Iterator[tuple[bool, Loss, int, int, int]]:
    kinds = sorted(flavor.partitions, key=lambda each: (-each.size, each.name))
    alike = {pair: device for device, pair in reversed(list(enumerate(zip(rests, taken, strict=True))))}
    for (rest, here), device in alike.items():  # of devices that are alike, the lowest
        for start in bits_of(free_starts(here, piece.size, piece.bits)) if rest >= milli else ():
            slots = (1 << piece.size) - 1 << start
            yield rest == DEVICE, _loss(kinds, here, slots), device, start, word_of(device, slots)


def _loss(kinds: Sequence[Partition], taken: int, slots: int) -> Loss:
    return tuple(
        free_starts(taken, kind.size, kind.bits).bit_count()
        - free_starts(taken | slots, kind.size, kind.bits).bit_count()
        for kind in kinds
    )
