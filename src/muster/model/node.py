"""What a node is besides its amounts: its flavor, its place in the fleet, its labels and taints.

A node says so itself when it joins. Places are paths (region, cluster, block, rack): two racks of one name in different
blocks are two racks. A flavor names a kind of capacity that is interchangeable; flavors of one family share a quota
line, each counted in its exchange units.
"""

from __future__ import annotations

import enum
from typing import Final, TypeAlias

from muster.model.record import Record
from muster.units import Resources

UNITS_ONE: Final = 1000
"""The exchange units of a flavor that counts as one: what every flavor has that nobody named."""
LABELS_MAX: Final = 64
TAINTS_MAX: Final = 16

Labels: TypeAlias = tuple[tuple[str, str], ...]


class Level(enum.IntEnum):
    """The levels of the fleet, from the tightest up. A domain is any one node, rack, block, cluster or region."""

    NODE = 0
    RACK = 1
    BLOCK = 2
    CLUSTER = 3
    REGION = 4
    FLEET = 5


LEVELS: Final = {level.name.lower(): level for level in Level}
"""Levels by the names that people write."""


class Place(Record, frozen=True):
    """Where a node stands; an empty name is a domain like any other, that of the nodes which name none."""

    region: str = ""
    cluster: str = ""
    block: str = ""
    rack: str = ""

    def path(self, level: Level) -> tuple[str, ...]:
        """The name of this place's domain at a level from RACK up: all that is above it, too."""
        return (self.region, self.cluster, self.block, self.rack)[: Level.FLEET - level]


class Traits(Record, frozen=True):
    """All that makes one node different from another of the same amounts. Labels are sorted by key."""

    flavor: str = ""
    place: Place = Place()
    labels: Labels = ()
    taints: tuple[str, ...] = ()


PLAIN: Final = Traits()


class Flavor(Record, frozen=True):
    """A kind of capacity: the family whose quota it shares, how much one device counts there, and its price per hour.

    `price_micros` is in millionths of the currency that the installation keeps its budgets in.
    """

    family: str
    units: int = UNITS_ONE
    price_micros: int = 0


def flavor_of(traits: Traits, capacity: Resources) -> str:
    """The flavor of a node; one that names none is plain GPU capacity, or plain CPU capacity."""
    return traits.flavor or ("gpu" if capacity.gpus else "cpu")
