"""The cloud catalog: what clouds offer machines with accelerators for, where, by the hour.

    Cloud, InstanceType, AcceleratorName, AcceleratorCount, vCPUs, MemoryGiB, Region, AvailabilityZone, Price, SpotPrice

Prices are dollars for an hour of the whole machine, and millionths of a dollar here. Some rows have no InstanceType and
neither processors nor memory: they price the accelerator alone, and `is_bare` says so, for such a price is not a
machine's. A count may be a part of one accelerator. An empty Price with a SpotPrice is an offer that is only to be had
while nobody else pays more; a row with neither is left out, and so is a second one of the same machine and zone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from muster.simulator.traces.table import DropRowError, Row, Seen, gather
from muster.units import MICRO

CATALOG: Final = "catalog"
COLUMNS: Final = (
    "Cloud", "InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "Region", "AvailabilityZone",
    "Price", "SpotPrice",
)  # fmt: skip
GIB: Final = 2**30


class Offer(msgspec.Struct, frozen=True, gc=False):
    """One offer: thousandths of devices of a model, and its prices; None is one that is not to be had so."""

    cloud: str
    region: str
    zone: str
    machine: str
    model: str
    gpu_milli: int
    cpu_milli: int
    memory_bytes: int
    price_micros: int | None
    spot_micros: int | None

    @property
    def is_bare(self) -> bool:
        """Whether the accelerator alone is priced, without the machine that it is in."""
        return not self.machine


class Offers(msgspec.Struct, frozen=True):
    """What a file gave, by cloud and place, how many rows were left out for which reason, and the first of their
    lines."""

    all: list[Offer]
    dropped: dict[str, int]
    lines: dict[str, list[int]] = {}


def read_catalog(path: Path) -> Offers:
    """All offers of a file."""
    offers, seen = gather(path, COLUMNS, _offer, "offer")
    return Offers(sorted(offers, key=_place_of), dict(seen.dropped), seen.lines)


def _place_of(offer: Offer) -> tuple[str, str, str, str, str, int]:
    return offer.cloud, offer.region, offer.zone, offer.machine, offer.model, offer.gpu_milli


def _offer(row: Row, seen: Seen) -> Offer:
    price, spot = _micros(row, "Price"), _micros(row, "SpotPrice")
    if price is None and spot is None:
        raise DropRowError("has no price")
    found = Offer(
        cloud=row.word("Cloud"),
        region=row.word("Region"),
        zone=row.word("AvailabilityZone"),
        machine=row.word("InstanceType"),
        model=row.word("AcceleratorName"),
        gpu_milli=row.scaled("AcceleratorCount", 1000),
        cpu_milli=row.scaled("vCPUs", 1000) if row.has("vCPUs") else 0,
        memory_bytes=row.scaled("MemoryGiB", GIB) if row.has("MemoryGiB") else 0,
        price_micros=price,
        spot_micros=spot,
    )
    if not found.gpu_milli or not found.model:
        raise DropRowError("has no accelerator")
    seen.check_id(str(_place_of(found)))
    return found


def _micros(row: Row, column: str) -> int | None:
    return row.scaled(column, MICRO) if row.has(column) else None
