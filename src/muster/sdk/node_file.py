"""What this machine says of itself as a node: its flavor, place, labels and taints and its spot of a torus,
in a file of the home.

Whoever starts the server may write it, or edit it by hand; the leader reads it when it starts. What the machine has is
observed, but for what is declared here: devices of a kind that nobody looks for, or that are not real.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from muster.model.errors import RejectedError
from muster.model.node import DEVICES_MAX, Place, Spot, Traits
from muster.model.reason import Code, Reason
from muster.model.traits import find_trait_fault
from muster.units import AmountError, Resources, parse_bytes, parse_count, parse_cpus, parse_sides

_DECLARED: Final[dict[str, tuple[str, Callable[[str], int]]]] = {
    "gpus": ("gpus", parse_count),
    "cpus": ("cpu_milli", parse_cpus),
    "memory": ("memory_bytes", parse_bytes),
}


class NodeFile(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The file as JSON, by name; what is left out is empty."""

    flavor: str = ""
    region: str = ""
    cluster: str = ""
    block: str = ""
    rack: str = ""
    labels: dict[str, str] = {}
    taints: list[str] = []
    torus: str = ""
    torus_size: str = ""
    spot: str = ""
    capacity: str = ""

    def traits(self) -> Traits:
        """What the node will report; RejectedError if it cannot be that."""
        place = Place(self.region, self.cluster, self.block, self.rack)
        labels, taints = tuple(sorted(self.labels.items())), tuple(sorted(set(self.taints)))
        traits = Traits(self.flavor, place, labels, taints, self._spot())
        fault = find_trait_fault(traits)
        if fault is not None:
            raise RejectedError(fault)
        return traits

    def capacity_of(self, found: Resources) -> Resources:
        """What the node will report that it has: what was found, except for what is declared (`gpus=8,cpus=4`)."""
        declared: dict[str, int] = {}
        for part in filter(None, self.capacity.split(",")):
            name, _, text = part.strip().partition("=")
            if name not in _DECLARED:
                raise _bad_capacity(f"{name!r} is not one of {', '.join(_DECLARED)}")
            field, parse = _DECLARED[name]
            if field in declared:
                raise _bad_capacity(f"{name} is declared twice")
            try:
                declared[field] = parse(text)
            except AmountError as error:
                raise _bad_capacity(str(error)) from error
        if declared.get("gpus", 0) > DEVICES_MAX:
            raise _bad_capacity(f"gpus={declared['gpus']}; a node has at most {DEVICES_MAX}")
        return msgspec.structs.replace(found, **declared)

    def _spot(self) -> Spot | None:
        if not (self.torus or self.torus_size or self.spot):
            return None
        try:
            return Spot(self.torus, parse_sides(self.torus_size, "torus_size"), parse_sides(self.spot, "spot"))
        except AmountError as error:
            raise RejectedError(Reason(Code.BAD_SPEC, "torus", detail=str(error))) from error


def read_node_file(path: Path) -> NodeFile:
    """The file; one that is not there says nothing, one that cannot be read is refused."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=NodeFile)
    except FileNotFoundError:
        return NodeFile()
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RejectedError(Reason(Code.BAD_SPEC, str(path), detail=str(error))) from error


def write_node_file(path: Path, content: NodeFile) -> None:
    """Replace the file, once it is known to be in order."""
    content.traits()
    content.capacity_of(Resources())
    fresh = path.with_suffix(".new")
    fresh.write_bytes(msgspec.json.format(msgspec.json.encode(content)) + b"\n")
    fresh.replace(path)


def _bad_capacity(detail: str) -> RejectedError:
    return RejectedError(Reason(Code.BAD_SPEC, "capacity", detail=detail))
