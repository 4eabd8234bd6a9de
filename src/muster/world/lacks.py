"""Lacks: what a node joined with and does not have now, while work is there that keeps its lay-out in place.

What is lacking is withheld: taken from what is free, so that no search ever meets it, and as far as somebody still
holds it, from what they give back. So what is free is never below zero and never counts what is not there. It knows
words of the arena and amounts, not who holds what.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from muster.model.node import Lack
from muster.units import Resources
from muster.world import arena as at
from muster.world.compiled import Entry, Words, compiled
from muster.world.index import take

_TAKE: Final = Entry(take)
MOVED: Final = 7
"""Words of a row of what is withheld: slot, devices, thousandths of each, CPU, memory, disk, network."""
_FIELDS: Final = (at.FREE_CPU, at.FREE_MEMORY, at.FREE_DISK, at.FREE_NETWORK)


class Withheld(NamedTuple):
    """What is withheld of one node: thousandths by device, and CPU, memory, disk and network."""

    devices: tuple[tuple[int, int], ...] = ()
    amounts: tuple[int, ...] = (0, 0, 0, 0)

    @property
    def gpu_milli(self) -> int:
        """Thousandths of all devices."""
        return sum(milli for _, milli in self.devices)


NOTHING: Final = Withheld()


def withhold(words: Words, slot: int, lack: Lack, before: Withheld) -> Withheld:
    """Withhold what is lacking and free, besides what was withheld before."""
    devices = dict(before.devices)
    begin = words[at.AT_DEVICES] + slot * words[at.DEVICES]
    rests = [(device, int(words[begin + device])) for device in bits_of(lack.devices)]
    for milli, together in _by_amount(rests):
        _TAKE.call(words, slot, together, milli, 0, 0, 0, 0)
    for device, rest in rests:
        if rest:
            devices[device] = devices.get(device, 0) + rest
    row = words[at.AT_NODES] + at.NODE_ROW * slot
    wanted = zip(beside_devices(lack.amount), before.amounts, _FIELDS, strict=True)
    more = [min(most - held, int(words[row + field])) for most, held, field in wanted]
    if any(more):
        _TAKE.call(words, slot, 0, at.DEVICE, *more)
    amounts = tuple(held + each for held, each in zip(before.amounts, more, strict=True))
    return Withheld(tuple(sorted(devices.items())), amounts)


def give_back(words: Words, slot: int, withheld: Withheld) -> None:
    """Let everybody have again what was withheld."""
    for milli, together in _by_amount(withheld.devices):
        _TAKE.call(words, slot, together, -milli, 0, 0, 0, 0)
    if any(withheld.amounts):
        _TAKE.call(words, slot, 0, at.DEVICE, *(-amount for amount in withheld.amounts))


def rows_of(slot: int, withheld: Withheld) -> Iterator[tuple[int, ...]]:
    """What is withheld of a node, as words for `move_all`."""
    for milli, together in _by_amount(withheld.devices):
        yield slot, together, milli, 0, 0, 0, 0
    if any(withheld.amounts):
        yield slot, 0, at.DEVICE, *withheld.amounts


@compiled
def move_all(words: Words, rows: Words, sign: int) -> None:
    """Withhold all that rows say (1), or let everybody have it (-1)."""
    for row in range(0, len(rows), MOVED):
        milli = sign * rows[row + 2] if rows[row + 1] else rows[row + 2]
        amounts = rows[row + 3], rows[row + 4], rows[row + 5], rows[row + 6]
        more = sign * amounts[0], sign * amounts[1], sign * amounts[2], sign * amounts[3]
        take(words, rows[row], rows[row + 1], milli, more[0], more[1], more[2], more[3])


def _by_amount(devices: Iterable[tuple[int, int]]) -> Collection[tuple[int, int]]:
    """Thousandths, and the devices of which there are so many, as bits: most are whole, and are moved together."""
    together: dict[int, int] = {}
    for device, milli in devices:
        if milli:
            together[milli] = together.get(milli, 0) | 1 << device
    return together.items()


def beside_devices(amount: Resources) -> tuple[int, int, int, int]:
    """CPU, memory, disk, network."""
    return amount.cpu_milli, amount.memory_bytes, amount.disk_bytes, amount.network_mbps


def bits_of(word: int) -> Iterator[int]:
    """The places of the bits that are set, from the lowest up."""
    while word:
        low = word & -word
        yield low.bit_length() - 1
        word ^= low
