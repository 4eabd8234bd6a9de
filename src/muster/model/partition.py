"""Partitions: devices that are cut into pieces of fixed sizes, as NVIDIA's MIG and vNPUs are.

A flavor says into how many slots its devices are cut, and which partitions may lie there: how many slots each takes,
and in which it may begin. The name of a partition means the same wherever it is known, so that an ask for it has one
size. Nothing here knows which slots are free.

A lease on a partition says which in the word that says which devices it has: the device as a bit, above it the slots,
and a mark that tells such a word from one of whole devices. `devices_in` and `slots_in` are the one way to read it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.model.record import Record

DEVICES_CUT_MAX: Final = 32
"""A node with more devices than that has none that can be cut: their bits would be where the slots are."""
SLOTS_MAX: Final = 16
PARTITIONS_MAX: Final = 32
CUT: Final = 1 << 62
"""The mark of a word that names slots of one device."""
DEVICE: Final = 1000
_DEVICE_BITS: Final = (1 << DEVICES_CUT_MAX) - 1
_SLOT_BITS: Final = (1 << SLOTS_MAX) - 1
_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._@/-]{0,127}"
_STARTS: Final = r"\d{1,3}(?:-\d{1,3})?"
_TEXT: Final = rf"(?P<name>{_NAME})=(?P<size>\d{{1,4}})@(?P<starts>{_STARTS}(?:,{_STARTS}){{0,31}})"


class Partition(Record, frozen=True):
    """One kind of piece: how many slots it takes, and in which of them it may begin, upwards."""

    name: str
    size: int
    starts: tuple[int, ...]

    @property
    def bits(self) -> int:
        """Where it may begin, as bits."""
        return sum(1 << start for start in self.starts)


class Piece(NamedTuple):
    """What a partition's name means: so many slots, that may begin there (as bits), and thousandths of a device."""

    size: int
    starts: int
    milli: int


NO_PIECE: Final = Piece(0, 0, 0)


def piece_of(partition: Partition, slots: int) -> Piece:
    """What a partition is of a device of so many slots; what is left over of a thousandth counts for nobody."""
    return Piece(partition.size, partition.bits, DEVICE * partition.size // slots)


def devices_in(word: int) -> int:
    """The devices that a lease's word names, as bits."""
    return word & _DEVICE_BITS if word & CUT else word


def slots_in(word: int) -> int:
    """The slots that it names, as bits; none if its devices are whole or shared freely."""
    return word >> DEVICES_CUT_MAX & _SLOT_BITS if word & CUT else 0


def word_of(device: int, slots: int) -> int:
    """The word of a lease on some slots of a device."""
    return CUT | slots << DEVICES_CUT_MAX | 1 << device


def start_in(word: int) -> int:
    """The first of the slots that a word names."""
    slots = slots_in(word)
    return (slots & -slots).bit_length() - 1


def find_table_fault(slots: int, partitions: Sequence[Partition]) -> str:
    """The first thing wrong with how a flavor's devices are cut, in words; nothing if it is sound."""
    names = [each.name for each in partitions]
    if not partitions:
        return "slots without partitions cut nothing" if slots else ""
    if not 1 <= slots <= SLOTS_MAX or len(names) > PARTITIONS_MAX:
        return f"a device has from 1 to {SLOTS_MAX} slots and at most {PARTITIONS_MAX} partitions"
    for each in partitions:
        ordered = all(one < other for one, other in zip(each.starts, each.starts[1:], strict=False))
        if names.count(each.name) > 1:
            return f"{each.name} is there twice"
        if each.size < 1 or not each.starts or not ordered or each.starts[0] < 0 or each.starts[-1] >= slots:
            return f"{each.name} takes a slot or more, and begins in slots from 0 to {slots - 1}, the lowest first"
        if each.starts[-1] + each.size > slots:
            return f"{each.name} begins in slot {each.starts[-1]} and takes {each.size}: there are {slots}"
        if DEVICE * each.size // slots < 1:
            return f"{each.name} is less than a thousandth of a device"
    return ""


def parse_partition(text: str) -> Partition:
    """`3g.40gb=4@0,4` or `1g.10gb=1@0-6`: a name, how many slots, and where it may begin; RejectedError (M135) if it is
    none."""
    match = re.fullmatch(_TEXT, text)
    if match is None:
        raise RejectedError(Reason(Code.BAD_TABLE, "partition", detail=f"{text[:80]!r} is none"))
    starts: list[int] = []
    for part in match["starts"].split(","):
        first, _, last = part.partition("-")
        starts += range(int(first), int(last or first) + 1)
    return Partition(match["name"], int(match["size"]), tuple(sorted(dict.fromkeys(starts))))


def show_partition(partition: Partition) -> str:
    """The same as people write it."""
    runs: list[list[int]] = []
    for start in partition.starts:
        if runs and runs[-1][1] == start - 1:
            runs[-1][1] = start
        else:
            runs.append([start, start])
    starts = ",".join(f"{first}-{last}" if last > first + 1 else _pair(first, last) for first, last in runs)
    return f"{partition.name}={partition.size}@{starts}"


def _pair(first: int, last: int) -> str:
    return str(first) if first == last else f"{first},{last}"
