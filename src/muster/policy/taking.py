"""Taking: whose place may be taken for whom. One table over values; it knows no jobs, no nodes and no amounts.

    who asks                         takes from                                             called
    inside its guarantee             what others borrow of what it is owed                  reclaim
    a higher tier                    lower tiers of its own tenant, and of all below it     preempt
    a higher tier                    what anybody borrows in lower tiers                    preempt
    a higher priority                the same tenant and tier                               preempt
    a higher tier in an emergency    any lower tier that is no emergency                    preempt

Nobody who would borrow takes what is inside a guarantee, and nothing but an emergency takes from an emergency. So
whoever takes is always *stronger* than whom it takes from, in one order over all (`strength`); that is why places never
go round in a circle. What may not be evicted is never taken.
"""

from __future__ import annotations

import enum
from typing import NamedTuple, TypeAlias

from muster.model.phase import Why
from muster.world.quota import Standing

Strength: TypeAlias = tuple[bool, int, int, int]


class Kin(enum.IntEnum):
    """What the tenant of a victim is to the one who asks."""

    SAME = 0
    BELOW = 1
    OTHER = 2


class Party(NamedTuple):
    """One side: where it stands to its quota, its tier (a lower rank is a higher tier) and its priority there."""

    standing: Standing
    rank: int
    tier: str = ""
    priority: int = 0
    emergency: bool = False
    evictable: bool = True


def strength(party: Party) -> Strength:
    """Who may ever take from whom goes by this: the smaller is the stronger."""
    return not party.emergency, party.standing, party.rank, -party.priority


def find_right(claimant: Party, victim: Party, kin: Kin, *, owed: bool = False) -> Why | None:
    """By which right a claimant takes a victim's place, if by any. `owed` says that the victim borrows something of
    which the claimant has a guarantee. The claimant stands as it would when it has the place."""
    if not victim.evictable or strength(claimant) >= strength(victim):
        return None
    if claimant.emergency and claimant.rank < victim.rank:
        return Why.PREEMPT
    if claimant.standing > victim.standing:
        return None
    if owed and kin != Kin.SAME and claimant.standing < victim.standing:
        return Why.RECLAIM
    return Why.PREEMPT if _is_above(claimant, victim, kin) else None


def _is_above(claimant: Party, victim: Party, kin: Kin) -> bool:
    """Whether tier or priority put one above the other."""
    if claimant.rank < victim.rank:
        return kin != Kin.OTHER or victim.standing == Standing.BORROWING
    return kin == Kin.SAME and claimant.tier == victim.tier and claimant.priority > victim.priority
