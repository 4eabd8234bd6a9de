"""What may be said about a simulation before it begins. Equal options give equal runs, byte for byte."""

from __future__ import annotations

import msgspec


class SimOptions(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `load` is the offered share of all GPU time; `faults` are node failures per 1,000 node-days.

    `pace` divides every run time, so that more happens at once. `lost` and `doubled` are per mille of the engine's
    messages; `failures` and `cancels` are shares of the jobs. After `days` nothing new comes; with `drain`, the run
    goes on until everything accepted is over. `inspect_every` is how many entries lie between two full inspections;
    the auditor looks at every one.
    """

    nodes: int = 100
    gpus: int = 8
    days: float = 1.0
    seed: int = 0
    load: float = 0.9
    pace: int = 1
    faults: float = 6.5
    tenants: int = 6
    lost: int = 10
    doubled: int = 20
    failures: float = 0.08
    cancels: float = 0.04
    drain: bool = True
    inspect_every: int = 1000
    record: bool = False

    def command(self) -> str:
        """The command that runs this simulation again."""
        words = ["muster sim"]
        for field in self.__struct_fields__:
            value = getattr(self, field)
            if value != getattr(_DEFAULT, field):
                flag = f"--{field.replace('_', '-')}"
                words.append(flag if value is True else f"--no-{field}" if value is False else f"{flag} {value:g}")
        return " ".join(words)


_DEFAULT = SimOptions()
