"""openb: a fleet of nodes with GPUs of several models, and lists of pods to pack on it.

    nodes   sn, cpu_milli, memory_mib, gpu, model; a node without GPUs is left out, for the fleet is one of devices
    pods    name, cpu_milli, memory_mib, num_gpu, gpu_milli; `gpu_milli` is of each GPU, and below 1000 only for
            one GPU. Some lists have more: gpu_spec ("A|B" are the models it may run on; a model may be named twice),
            creation_time and deletion_time in seconds

A pod without a GPU stays: it takes the CPU that devices need. The lists are sets to pack, not loads: with their own
lifetimes the fleet is nearly empty.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct

from muster.simulator.traces.record import Reading, Record
from muster.simulator.traces.table import DropRowError, Row, Seen, gather
from muster.units import SECOND_MS, Resources

NODES: Final = "openb-nodes"
PODS: Final = "openb-pods"
NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
MIB: Final = 2**20
WHOLE: Final = 1000


class NodeRow(Struct, frozen=True):
    """A node of a published fleet."""

    name: str
    capacity: Resources
    model: str


class FleetReading(Struct, frozen=True):
    """What a list of nodes gave: by name, how many rows were left out for which reason, and the first of their
    lines."""

    nodes: list[NodeRow]
    dropped: dict[str, int]
    lines: dict[str, list[int]] = {}


def read_nodes(path: Path) -> FleetReading:
    """The nodes that have devices, by name."""
    nodes, seen = gather(path, NODE_COLUMNS, _node, "node")
    return FleetReading(sorted(nodes, key=lambda node: node.name), dict(seen.dropped), seen.lines)


def read_pods(path: Path) -> Reading:
    """The pods, by creation and name."""
    pods, seen = gather(path, POD_COLUMNS, _pod, "pod")
    return seen.read(pods)


def _node(row: Row, seen: Seen) -> NodeRow:
    gpus, model = row.count("gpu"), row.text("model")
    if not gpus or not model:
        raise DropRowError("no GPU of a model")
    cpu, memory = row.count("cpu_milli"), row.scaled("memory_mib", MIB)
    return NodeRow(seen.check_id(row.text("sn")), Resources(gpus, cpu, memory), model)


def _pod(row: Row, seen: Seen) -> Record:
    gpus, milli = row.count("num_gpu"), min(row.count("gpu_milli"), WHOLE)
    cpu, memory = row.count("cpu_milli"), row.scaled("memory_mib", MIB)
    if gpus and not milli:
        raise DropRowError("nothing is asked of a GPU")
    if gpus > 1 and milli < WHOLE:
        raise DropRowError("a share of several GPUs")
    if not gpus and not cpu and not memory:
        raise DropRowError("nothing is asked for")
    created, deleted = (row.span_ms(name, SECOND_MS) if row.has(name) else None for name in _TIMES)
    if created is not None and deleted is not None and deleted < created:
        raise DropRowError("is deleted before it is created")
    models = tuple(sorted(set(filter(None, row.text("gpu_spec").split("|"))))) if row.has("gpu_spec") else ()
    return Record(
        id=seen.check_id(row.text("name")),
        submit_ms=created or 0,
        duration_ms=0 if deleted is None else deleted - (created or 0),
        gpus=gpus if milli == WHOLE else 0,
        gpu_milli=milli if gpus and milli < WHOLE else 0,
        cpu_milli=cpu,
        memory_bytes=memory,
        models=models if gpus else (),
    )


_TIMES: Final = ("creation_time", "deletion_time")
