"""Settings: what this machine and its environment say about the server, read once at start-up.

The node's name and capacity are observed; MUSTER_CAPACITY overrides the capacity, for tests and demonstrations: GPUs
are then declared and not real. What else the node says of itself is in a file of its home (`muster.sdk.node_file`).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from muster.model.errors import RejectedError
from muster.model.node import DEVICES_MAX
from muster.model.reason import Code, Reason
from muster.model.spec import is_name
from muster.units import AmountError, Resources, parse_bytes, parse_count, parse_cpus

CAPACITY_VARIABLE: Final = "MUSTER_CAPACITY"

_FIELDS: Final[dict[str, tuple[str, Callable[[str], int]]]] = {
    "gpus": ("gpus", parse_count),
    "cpus": ("cpu_milli", parse_cpus),
    "memory": ("memory_bytes", parse_bytes),
}


def read_capacity(discover: Callable[[], Resources], environment: Mapping[str, str] = os.environ) -> Resources:
    """What this node has: as discovered, except for what MUSTER_CAPACITY names (`gpus=8,cpus=4,memory=16Gi`)."""
    capacity = discover()
    for part in filter(None, environment.get(CAPACITY_VARIABLE, "").split(",")):
        name, _, text = part.strip().partition("=")
        if name not in _FIELDS:
            raise _bad_capacity(f"{name!r} is not one of {', '.join(_FIELDS)}")
        field, parse = _FIELDS[name]
        try:
            capacity = msgspec.structs.replace(capacity, **{field: parse(text)})
        except AmountError as error:
            raise _bad_capacity(str(error)) from error
    if capacity.gpus > DEVICES_MAX:
        raise _bad_capacity(f"gpus={capacity.gpus}; a node has at most {DEVICES_MAX}")
    return capacity


def node_name() -> str:
    """What this node is called: its hostname, if that can name a node."""
    name = socket.gethostname()
    return name if is_name(name) else "localhost"


def _bad_capacity(detail: str) -> RejectedError:
    return RejectedError(Reason(Code.BAD_SPEC, CAPACITY_VARIABLE, detail=detail))
