"""What may be said about a simulation before it begins. Equal options give equal runs, byte for byte."""

from __future__ import annotations

from typing import Annotated, Final, get_type_hints

import msgspec
from msgspec import Meta

from muster.model.errors import RejectedError
from muster.model.node import DEVICES_MAX
from muster.model.reason import Code, Reason
from muster.simulator.like import get_model


class SimOptions(msgspec.Struct, frozen=True, kw_only=True):
    """One run; each option says what it is, and from where to where it may be."""

    nodes: Annotated[int, Meta(ge=1, le=100_000, description="nodes of the fleet, in racks of 8 and blocks of 32")] = (
        100
    )
    gpus: Annotated[int, Meta(ge=0, le=DEVICES_MAX, description="GPUs of each node")] = 8
    days: Annotated[float, Meta(ge=0.001, le=3660, description="for so many days jobs come")] = 1.0
    seed: Annotated[int, Meta(description="what chance goes by: equal seeds give equal runs")] = 0
    load: Annotated[float, Meta(ge=0.001, le=100, description="share of all GPU time that is asked for")] = 0.9
    pace: Annotated[int, Meta(ge=1, le=10_000, description="jobs are so many times as short, and as many")] = 1
    faults: Annotated[float, Meta(ge=0, le=1_000_000, description="node failures per 1,000 node-days")] = 6.5
    maintenance: Annotated[
        float, Meta(ge=0, le=1_000_000, description="nodes that are cordoned or drained per 1,000 node-days")
    ] = 5.0
    device_faults: Annotated[
        float, Meta(ge=0, le=1_000_000, description="nodes that lose a GPU, or claim another's, per 1,000 node-days")
    ] = 1.4
    bookings: Annotated[
        float, Meta(ge=0, le=1_000_000, description="bookings that a thousand tenants make in a day")
    ] = 500.0
    tenants: Annotated[int, Meta(ge=1, le=1000, description="tenants who submit")] = 6
    lost: Annotated[int, Meta(ge=0, le=900, description="of 1,000 reports of nodes, so many are lost")] = 10
    doubled: Annotated[int, Meta(ge=0, le=1000, description="of 1,000 reports of nodes, so many come twice")] = 20
    failures: Annotated[float, Meta(ge=0, le=1, description="share of the jobs that fail")] = 0.08
    cancels: Annotated[float, Meta(ge=0, le=1, description="share of the jobs that their owners cancel")] = 0.04
    drain: Annotated[bool, Meta(description="when no more jobs come, go on until all are over")] = True
    inspect_every: Annotated[
        int, Meta(ge=1, le=1_000_000_000, description="entries between two full inspections; each entry is audited")
    ] = 1000
    record: Annotated[bool, Meta(description="keep what went in, for a bundle")] = False
    like: Annotated[str, Meta(description="sizes and run times like those of a published cluster")] = ""

    def check(self) -> None:
        """Raise RejectedError (M102) if an option is out of its range."""
        for field, meta in METAS.items():
            value = getattr(self, field)
            if meta.ge is not None and meta.le is not None and not meta.ge <= value <= meta.le:
                detail = f"{value} is not from {meta.ge} to {meta.le}"
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


_DEFAULT: Final = SimOptions()
METAS: Final[dict[str, Meta]] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(SimOptions, include_extras=True).items()
}
"""What is said of each option."""
