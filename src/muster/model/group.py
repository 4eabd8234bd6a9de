"""Groups: the parts of a gang whose tasks ask for different things, such as one driver and four workers.

All groups start together or not at all. The ranks of a gang follow its groups in their order, and no lease has tasks of
two of them; so what a lease holds follows from the ranks on it. A gang without groups is one group: its own ask, so
many times. This knows amounts and names, and no nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from muster.units import ZERO, Resources

if TYPE_CHECKING:
    from muster.model.phase import Lease

GROUPS_MAX: Final = 8


class Group(msgspec.Struct, frozen=True, gc=False, cache_hash=True, omit_defaults=True, forbid_unknown_fields=True):
    """So many tasks of a gang, and what each of them asks for."""

    name: str
    tasks: int
    ask: Resources


Part: TypeAlias = tuple[Resources, Sequence["Lease"]]
"""What a task asks for, and the leases of all that ask for it."""


@lru_cache(maxsize=4096)
def total_of(groups: tuple[Group, ...]) -> Resources:
    """What all groups ask for together."""
    total = ZERO
    for group in groups:
        total = total.plus(group.ask.times(group.tasks))
    return total


@lru_cache(maxsize=4096)
def least_of(groups: tuple[Group, ...]) -> Resources:
    """At most what any task of any group asks for, of each kind."""
    fields = zip(*(msgspec.structs.astuple(group.ask) for group in groups), strict=True)
    return Resources(*map(min, fields))


def group_at(groups: tuple[Group, ...], rank: int) -> tuple[Group, int]:
    """The group that a rank belongs to, and its place there."""
    for group in groups:
        if rank < group.tasks:
            return group, rank
        rank -= group.tasks
    raise IndexError(rank)


def parts_of(groups: tuple[Group, ...], leases: Sequence[Lease]) -> list[Part]:
    """Leases by group; what is not there of a gang that broke is at the end of its groups."""
    parts: list[Part] = []
    begin = 0
    for group in groups:
        end, left = begin, group.tasks
        while left > 0 and end < len(leases):
            left -= leases[end].tasks
            end += 1
        parts.append((group.ask, leases[begin:end]))
        begin = end
    return parts
