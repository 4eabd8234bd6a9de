"""The auditor's books of history: what was remembered must be what was booked, hour by hour what was metered, and the
same however it came about.

It adds up what a diary gave and compares it with two accounts that the world keeps in other ways: goodput, span by
span, and use, as slopes that step. It shares no arithmetic with the diary.
"""

from __future__ import annotations

from typing import Final

from muster.model.history import AMOUNTS, SPENT
from muster.model.node import Flavor
from muster.model.tenant import CPU
from muster.world.accounting import keep_diary, read_open_uses
from muster.world.diary import NO_FLAVOR, Key
from muster.world.laws.law import require
from muster.world.usage import BUCKET_MS, BUCKETS_KEPT
from muster.world.world import World

_KINDS: Final = len(SPENT)
_FOLD: Final = "history is a fold of the journal"
_BOOKED: Final = "what is remembered is what was booked"
_METERED: Final = "what is remembered of an hour is what was held in it"


class HistoryBooks:
    """What a living world and its fold gave to remember, added up."""

    def __init__(self, living: World, fold: World) -> None:
        self._living, self._fold = keep_diary(living), keep_diary(fold)
        self._booked: dict[tuple[str, str], list[int]] = {}
        self._by_hour: dict[tuple[str, str, int], int] = {}

    def observe(self, world: World) -> None:
        """An entry was made, and folded."""
        uses, ends = self._living.take()
        require((uses, ends) == self._fold.take(), _FOLD, f"entry {world.seq}")
        for key, row in uses.items():
            self._add(world, key, row)

    def check(self, world: World) -> None:
        """Compare with the world's other accounts, now."""
        for line in dict.fromkeys((*self._booked, *world.goodput.booked)):
            mine, theirs = self._booked.get(line, [0] * _KINDS), world.goodput.booked.get(line, [0] * _KINDS)
            require(mine == theirs, _BOOKED, f"{line}: remembered {mine}, booked {theirs}")
        by_hour, first = self._by_hour.copy(), world.now // BUCKET_MS - BUCKETS_KEPT
        for key, row in read_open_uses(world, world.now).items():
            _step(by_hour, world, key, sum(_spent(row)) + row[len(AMOUNTS)])
        mine_now = {key: use for key, use in by_hour.items() if key[2] >= first and use}
        metered = {
            (tenant, family, hour): use
            for tenant, family, uses in world.usage.books(world.now)
            if family != CPU
            for hour, use in uses
        }
        odd = sorted(key for key in mine_now.keys() | metered.keys() if mine_now.get(key) != metered.get(key))
        require(not odd, _METERED, f"{[(key, mine_now.get(key), metered.get(key)) for key in odd[:3]]}")

    def _add(self, world: World, key: Key, row: list[int]) -> None:
        _, tenant, flavor, _ = key
        if flavor != NO_FLAVOR:
            booked = self._booked.setdefault((tenant, flavor), [0] * _KINDS)
            booked[:] = map(int.__add__, booked, _spent(row))
            _step(self._by_hour, world, key, sum(_spent(row)))


def _spent(row: list[int]) -> list[int]:
    """Of the amounts, device time by what it was spent on."""
    return [row[place] for place in SPENT]


def _step(by_hour: dict[tuple[str, str, int], int], world: World, key: Key, time: int) -> None:
    _, tenant, name, hour = key
    flavor = world.flavors.get(name) or Flavor(name)
    place = (tenant, flavor.family, hour)
    by_hour[place] = by_hour.get(place, 0) + time * flavor.units
