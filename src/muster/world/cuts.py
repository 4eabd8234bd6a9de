"""Cuts, compiled: where on a device a partition could begin, which slots are taken being given.

A device that is cut has a word of the slots that are taken. Whether a partition fits is a question of bits: so many
free ones in a row, from a slot in which it may begin. Nothing here chooses.
"""

from __future__ import annotations

from collections.abc import Mapping

from muster.model import partition
from muster.model.node import Flavor
from muster.model.partition import Piece, piece_of
from muster.world.arena import AT_DEVICES, AT_SLOTS, DEVICES
from muster.world.compiled import Words, compiled

devices_in = compiled(partition.devices_in)
slots_in = compiled(partition.slots_in)


@compiled
def free_starts(taken: int, size: int, starts: int) -> int:
    """In which of `starts` so many slots in a row are free, as bits."""
    free = ~taken
    for further in range(size):
        starts &= free >> further
    return starts


@compiled
def count_starts(taken: int, size: int, starts: int) -> int:
    """How many partitions of one kind fit at once: those that begin lowest, since each leaves the most to the next."""
    count, left = 0, free_starts(taken, size, starts)
    while left:
        low = left & -left
        taken |= low * ((1 << size) - 1)
        left = free_starts(taken, size, left)
        count += 1
    return count


@compiled
def room_in_cuts(words: Words, slot: int, milli: int, size: int, starts: int) -> int:
    """How many partitions of one kind fit on the devices of a node now."""
    devices, taken, count = words[AT_DEVICES] + slot * words[DEVICES], words[AT_SLOTS] + slot * words[DEVICES], 0
    for device in range(words[DEVICES]):
        if words[devices + device] >= milli:  # one that is taken whole has its slots free
            count += count_starts(words[taken + device], size, starts)
    return count


@compiled
def move_slots(words: Words, slot: int, word: int, sign: int) -> bool:
    """Take the slots that a lease's word names (1), or give them back (-1); False, and nothing done, if that cannot
    be."""
    devices, slots = devices_in(word), slots_in(word)
    device = 0
    while not devices >> device & 1:
        device += 1
    if device >= words[DEVICES]:
        return False
    at = words[AT_SLOTS] + slot * words[DEVICES] + device
    if words[at] & slots != (0 if sign > 0 else slots):
        return False
    words[at] ^= slots
    return True


def find_piece(cuts: Mapping[str, Flavor], name: str) -> Piece | None:
    """What a partition's name means, wherever it is known; None if it is nowhere."""
    for flavor in sorted(cuts):
        for each in cuts[flavor].partitions:
            if each.name == name:
                return piece_of(each, cuts[flavor].slots)
    return None
