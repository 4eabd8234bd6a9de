"""kinship: what the tenants that run something are to each other, as words that compiled code reads.

It follows from the tree and from who was met so far, so it is counted once for a tree as it is, and not for each look.
Who may take what from whom is not known here.
"""

from __future__ import annotations

from array import array
from typing import Final

from muster.policy.taking import Kin
from muster.world.ledger import Ledger
from muster.world.loans import Homes
from muster.world.world import World

ANYBODY: Final = ""
_SAME, _BELOW, _OTHER = Kin.SAME, Kin.BELOW, Kin.OTHER  # looked up once: as many are written as there are tenants
_KINSHIP: Final = "kinship"


class Kinship:
    """`names` are the tenants by number, of which the first few were there when it was counted; `homes` are for whoever
    looks who borrows: they hold for the same tree."""

    __slots__ = ("_below", "_count", "_known", "_names", "homes")

    def __init__(self, ledger: Ledger, names: list[object]) -> None:
        self._names, self._count = names, len(names)
        self._known: dict[tuple[str, bool], array[int]] = {}
        self._below: dict[str, list[int]] = {}
        self.homes: Homes = {}
        for number, name in enumerate(names):
            for above in ledger.chain(str(name)):
                self._below.setdefault(above, []).append(number)

    def is_about(self, names: list[object]) -> bool:
        """Whether it is about these tenants, and no more came."""
        return self._names is names and self._count == len(names)

    def find(self, tenant: str, is_any: bool) -> array[int]:
        """The kin of every tenant; of any below a child of the root, all below it are its own."""
        known = self._known.get((tenant, is_any))
        if known is None:
            is_all = tenant == ANYBODY and is_any
            known = self._known[tenant, is_any] = array("q", (_SAME if is_all else _OTHER,)) * self._count
            for number in self._below.get(tenant, ()):
                known[number] = _SAME if is_any or self._names[number] == tenant else _BELOW
        return known


def kinship_of(world: World) -> Kinship:
    """The kinship of all who were met, in the tree as it is."""
    names = world.know_runs().tenants.names
    known: Kinship | None = world.quotas.recall(_KINSHIP)
    if known is None or not known.is_about(names):
        known = Kinship(world.ledger, names)
        world.quotas.remember(_KINSHIP, known)
    return known
