"""What may be said about a simulation before it begins. Equal options give equal runs, byte for byte."""

from __future__ import annotations

from typing import Final

import msgspec

from muster.model.errors import RejectedError
from muster.model.node import DEVICES_MAX
from muster.model.reason import Code, Reason
from muster.simulator.like import get_model

_RANGES: Final[dict[str, tuple[float, float]]] = {
    "nodes": (1, 100_000),
    "gpus": (0, DEVICES_MAX),
    "days": (0.001, 3660),
    "load": (0.001, 100),
    "pace": (1, 10_000),
    "faults": (0, 1_000_000),
    "maintenance": (0, 1_000_000),
    "device_faults": (0, 1_000_000),
    "bookings": (0, 1_000_000),
    "tenants": (1, 1000),
    "lost": (0, 900),
    "doubled": (0, 1000),
    "failures": (0, 1),
    "cancels": (0, 1),
    "inspect_every": (1, 1_000_000_000),
}


class SimOptions(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `load` is the offered share of all GPU time; `faults` are node failures per 1,000 node-days,
    `maintenance` is how many nodes are cordoned or drained in as many, and `device_faults` how many lose a device or
    claim another's. `bookings` are how many a thousand teams make in a day.

    `pace` divides every run time, so that more happens at once. `lost` and `doubled` are per mille of the engine's
    messages; `failures` and `cancels` are shares of the jobs. After `days` nothing new comes; with `drain`, the run
    goes on until everything accepted is over. Sizes and run times are `like` those of a published cluster, if one is
    named. `inspect_every` is how many entries lie between two full inspections;
    the auditor looks at every one.
    """

    nodes: int = 100
    gpus: int = 8
    days: float = 1.0
    seed: int = 0
    load: float = 0.9
    pace: int = 1
    faults: float = 6.5
    maintenance: float = 5.0
    device_faults: float = 1.4
    bookings: float = 500.0
    tenants: int = 6
    lost: int = 10
    doubled: int = 20
    failures: float = 0.08
    cancels: float = 0.04
    drain: bool = True
    inspect_every: int = 1000
    record: bool = False
    like: str = ""

    def check(self) -> None:
        """Raise RejectedError (M102) if an option is out of its range."""
        for field, (least, most) in _RANGES.items():
            value = getattr(self, field)
            if not least <= value <= most:
                detail = f"{value:g} is not from {least:g} to {most:g}"
                raise RejectedError(Reason(Code.BAD_AMOUNT, field, detail=detail))
        if self.like:
            get_model(self.like)

    def command(self) -> str:
        """The command that runs this simulation again."""
        words = ["muster sim"]
        for field in self.__struct_fields__:
            value = getattr(self, field)
            if value != getattr(_DEFAULT, field):
                flag = f"--{field.replace('_', '-')}"
                words.append(flag if value is True else f"--no-{field}" if value is False else f"{flag} {value}")
        return " ".join(words)


_DEFAULT = SimOptions()
