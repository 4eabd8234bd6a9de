"""rations: how far the budgets of overlays let a search go. A pool lies behind the same overlays with all its nodes.

Whoever is one task is kept off the pools whose overlays have no room for it: that is exact. A gang is first kept to the
pools whose overlays have room for all of it; where that finds nothing, its tasks are divided among zones, which are
pools behind the same overlays, as far as every overlay lets them: all divisions are counted, up to a stated limit of
tries. It knows amounts and pools, and neither nodes nor domains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from muster.model.phase import Lease
from muster.units import Resources
from muster.world.fleet import Fleet
from muster.world.overlays import of_ask, rooms_of

DIVISIONS_MAX: Final = 4096
"""How many divisions of a gang are looked at in one domain: beyond that, one that would just fit may wait."""

Zone: TypeAlias = tuple[tuple[str, ...], str]
"""The overlays and the flavor of some pools."""
Draws: TypeAlias = tuple[tuple[str, int], ...]
"""What one task takes there, by overlay; of those of which it takes anything."""


class Shortfall(NamedTuple):
    """What an overlay lacks for somebody: how much, what that needs, and what is left; below zero if it is passed."""

    missing: int
    name: str
    needed: int
    left: int


class Rations:
    """What every overlay has left, as one search sees it."""

    def __init__(self, fleet: Fleet) -> None:
        fleet.words  # noqa: B018 - lays the fleet out, if that is due
        self._fleet = fleet
        self._left = rooms_of(fleet)

    def copy(self) -> Rations:
        """As much again, for whoever only wants to know."""
        twin = Rations(self._fleet)
        twin._left = self._left.copy()
        return twin

    def draws(self, zone: Zone, ask: Resources) -> Draws:
        """What one task takes in a zone."""
        overlays, held = self._fleet.overlays, of_ask(ask)
        pairs = ((name, overlays.draw(name, zone[1], held)) for name in zone[0])
        return tuple((name, draw) for name, draw in pairs if draw)

    def most(self, draws: Draws, most: int) -> int:
        """For how many tasks, up to so many, there is something left."""
        for name, draw in draws:
            most = min(most, max(0, self._left[name]) // draw)
        return most

    def take(self, draws: Draws, tasks: int) -> None:
        """Count so many tasks as there."""
        for name, draw in draws:
            self._left[name] -= draw * tasks

    def keep(self, parts: Sequence[tuple[Resources, int]], pools: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """Of some pools, those whose overlays have room for all parts of a gang; the same object if all of them do."""
        fitting: dict[Zone, bool] = {}
        numbers = range(len(self._fleet.pools)) if pools is None else pools
        kept = []
        for number in numbers:
            zone = zone_of(self._fleet, number)
            if zone not in fitting:
                fitting[zone] = next(self.shortfalls(zone, parts), None) is None
            if fitting[zone]:
                kept.append(number)
        return pools if len(kept) == len(numbers) else tuple(kept)

    def divide(self, zones: Sequence[tuple[Draws, int]], gang: int) -> list[int] | None:
        """So many tasks for each zone, of which each has room for some, that no overlay is passed."""
        rest = [0] * (len(zones) + 1)
        for place in reversed(range(len(zones))):
            draws, room = zones[place]
            rest[place] = rest[place + 1] + self.most(draws, room)
        tries = [DIVISIONS_MAX]
        return self._divide(zones, rest, 0, gang, tries)

    def _divide(
        self, zones: Sequence[tuple[Draws, int]], rest: list[int], place: int, gang: int, tries: list[int]
    ) -> list[int] | None:
        if not gang or rest[place] < gang or tries[0] <= 0:
            return None if gang else [0] * (len(zones) - place)
        draws, room = zones[place]
        for tasks in range(self.most(draws, min(room, gang)), max(0, gang - rest[place + 1]) - 1, -1):
            tries[0] -= 1
            self.take(draws, tasks)
            found = self._divide(zones, rest, place + 1, gang - tasks, tries)
            self.take(draws, -tasks)
            if found is not None or tries[0] <= 0:
                return None if found is None else [tasks, *found]
        return None

    def shortfalls(self, zone: Zone, parts: Sequence[tuple[Resources, int]]) -> Iterator[Shortfall]:
        """The overlays of a zone that have no room for all parts of a gang."""
        needed: dict[str, int] = {}
        for ask, tasks in parts:
            for name, draw in self.draws(zone, ask):
                needed[name] = needed.get(name, 0) + draw * tasks
        for name, amount in needed.items():
            if amount > self._left[name]:
                yield Shortfall(amount - self._left[name], name, amount, self._left[name])

    def has_room_at(self, leases: Iterable[tuple[Resources, Lease]]) -> bool:
        """Whether tasks could have all these places at once, as far as budgets go."""
        before = self._left.copy()
        for ask, lease in leases:
            zone = self._fleet.overlays.by_slot.get(lease.slot, ()), self._fleet.flavor(lease.slot)
            self.take(self.draws(zone, ask), lease.tasks)
        return all(left >= 0 or left == before[name] for name, left in self._left.items())


def zone_of(fleet: Fleet, pool: int) -> Zone:
    """Where a pool lies, as far as budgets care."""
    return fleet.pools[pool].overlays, fleet.pools[pool].flavor


def zones_of(fleet: Fleet, pools: Iterable[int]) -> list[tuple[Zone, tuple[int, ...]]]:
    """Pools by zone: those behind the fewest overlays first, for whoever goes there takes least from others."""
    found: dict[Zone, list[int]] = {}
    for number in pools:
        found.setdefault(zone_of(fleet, number), []).append(number)
    ordered = sorted(found, key=lambda zone: (len(zone[0]), zone))
    return [(zone, tuple(found[zone])) for zone in ordered]
