"""What a node is besides its amounts: its address, its flavor, its place in the fleet, its labels and taints.

A node says so itself when it joins. Names are unique within a cluster and not beyond it, so a node is known by its
address: region, cluster and name. Places are paths (region, cluster, block, rack): two racks of one name in different
blocks are two racks. A flavor names a kind of capacity that is interchangeable; flavors of one family share a quota
line, each counted in its exchange units.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final, TypeAlias

from muster.model.partition import Partition
from muster.model.record import Record
from muster.units import Resources

UNITS_ONE: Final = 1000
"""The exchange units of a flavor that counts as one: what every flavor has that nobody named."""
LABELS_MAX: Final = 64
TAINTS_MAX: Final = 16
DEVICES_MAX: Final = 62
"""The devices of a node are the bits of one word, and two of those are spoken for."""
CAPACITY_MAX: Final = {
    "gpus": DEVICES_MAX,
    "cpu_milli": 10**9,
    "memory_bytes": 2**50,
    "gpu_milli": 0,
    "disk_bytes": 2**60,
    "network_mbps": 10**9,
}
"""The most that a node may say it has: a million cores, a pebibyte of memory. More is a mistake, and sums of it over a
large fleet would not fit into a word. A share of a device is what an ask has, never a node."""

TORUS_SPOTS_MAX: Final = 2**15

Labels: TypeAlias = tuple[tuple[str, str], ...]
Sides: TypeAlias = tuple[int, int, int]
"""What a box or a torus measures along its three axes, or where a spot is, counted in nodes."""


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


class Spot(Record, frozen=True):
    """Where a node is in a torus: in which of its cluster, how large that is, and in which of its spots."""

    torus: str
    size: Sides
    at: Sides


class Traits(Record, frozen=True):
    """All that makes one node different from another of the same amounts. Labels are sorted by key."""

    flavor: str = ""
    place: Place = Place()
    labels: Labels = ()
    taints: tuple[str, ...] = ()
    spot: Spot | None = None


PLAIN: Final = Traits()


class Lack(Record, frozen=True):
    """What a busy node lacks of what it joined with: which devices (a bit each), and how much in all."""

    devices: int = 0
    amount: Resources = Resources()


NO_LACK: Final = Lack()


class Said(Record, frozen=True):
    """What a node says that it is, and will be as soon as nothing is held there."""

    capacity: Resources
    traits: Traits = PLAIN
    devices: tuple[str, ...] = ()


def address_of(name: str, place: Place) -> str:
    """What a node is known by: `eu/alpha/node-1`; where it names no region and no cluster, its name alone."""
    return "/".join(filter(None, (place.region, place.cluster, name)))


class Flavor(Record, frozen=True):
    """A kind of capacity: the family whose quota it shares, how much one device counts there, and its price per hour.

    `price_micros` is in millionths of the currency that the installation keeps its budgets in. One device takes `watts`
    of the power of the overlays that it is in while somebody holds it, and one core `core_watts`. Devices of one that
    has `partitions` are taken whole or by those, each so many of a device's `slots`; see `muster.model.partition`.
    """

    family: str
    units: int = UNITS_ONE
    price_micros: int = 0
    watts: int = 0
    core_watts: int = 0
    slots: int = 0
    partitions: tuple[Partition, ...] = ()


def fulfils(labels: Mapping[str, str], wish: str) -> bool:
    """Whether a node has what a wish says of its labels: `zone=a`, `zone!=b` or `zone`."""
    key, mark, value = split_wish(wish)
    if not mark:
        return key in labels
    return (labels.get(key) == value) == (mark == "=")


def split_wish(wish: str) -> tuple[str, str, str]:
    """The label that a wish is about, its mark if it has one, and the value."""
    key, mark, value = wish.partition("!=")
    if mark:
        return key, mark, value
    return wish.partition("=")


def flavor_of(traits: Traits, capacity: Resources) -> str:
    """The flavor of a node; one that names none is plain GPU capacity, or plain CPU capacity."""
    return traits.flavor or ("gpu" if capacity.gpus else "cpu")
