"""Metrics: the state of a world as Prometheus reads it. Labels are bounded: phases, flavors, buckets, and the first few
hundred tenants; never a job.

Written by hand: the text format is a dozen lines, and a library would keep a second copy of every number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from muster.control.fleet import view_flavors
from muster.control.goodput import view_goodput
from muster.lifecycle.gang import PHASE_OF
from muster.model.job import NodePhase
from muster.model.phase import TaskPhase
from muster.model.tenant import FLEET, NOT_DEVICES, ROOT
from muster.policy.protection import recent
from muster.world.world import World

TENANTS_MAX: Final = 500
MOVES_WORDS: Final = "How often jobs of the world were moved in the last day so that others fit."
Labels: TypeAlias = Mapping[str, str]


class Family(NamedTuple):
    """One metric: its name, whether it only grows, what it is, and its samples; `of` which histogram, if it is a part
    of one."""

    name: str
    kind: str
    words: str
    samples: list[tuple[Labels, float]]
    of: str = ""


def measure(world: World, now: int) -> list[Family]:
    """What a world says of itself."""
    return [
        Family("muster_entries_total", "counter", "Entries of the journal.", [({}, world.seq)]),
        Family("muster_jobs", "gauge", "Jobs in the world, by phase.", _count_jobs(world)),
        Family("muster_nodes", "gauge", "Nodes, by phase.", _count_nodes(world)),
        Family("muster_nodes_barred", "gauge", "Nodes that get no new work.", [({}, len(world.fleet.bars))]),
        Family("muster_moves_day", "gauge", MOVES_WORDS, [({}, _count_moves(world, now))]),
        *_count_advice(world),
        *_count_devices(world),
        _count_use(world),
        _count_goodput(world, now),
    ]


def _count_moves(world: World, now: int) -> int:
    gangs = [job.moves for job in world.jobs.values() if job.moves]
    tasks = [moves for array in world.arrays.values() for moves in array.moved.values()]
    return sum(len(recent(moves, now)) for moves in (*gangs, *tasks))


def _count_advice(world: World) -> list[Family]:
    said = sorted(world.advice.items())
    versions = [({"kind": kind}, float(each.version)) for kind, each in said]
    numbers = [({"kind": kind}, float(sum(map(len, each.columns.values())))) for kind, each in said]
    return [
        Family("muster_advice_version", "gauge", "How often advice of a kind was given anew.", list(versions)),
        Family("muster_advice_numbers", "gauge", "How many numbers there are in it.", list(numbers)),
    ]


def write_text(families: Iterable[Family]) -> str:
    """The text format of Prometheus."""
    lines: list[str] = []
    head = ""
    for family in families:
        if head != (family.of or family.name):
            head = family.of or family.name
            lines += [f"# HELP {head} {family.words}", f"# TYPE {head} {family.kind}"]
        lines += [f"{family.name}{_show_labels(labels)} {_show_value(value)}" for labels, value in family.samples]
    return "\n".join((*lines, ""))


def _show_value(value: float) -> str:
    """All of its digits: what counts by ones must not seem to stand still, and then jump."""
    return str(int(value)) if value == int(value) else repr(value)


def _show_labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items()) + "}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _count_jobs(world: World) -> list[tuple[Labels, float]]:
    """An array is one job here, and it runs as long as it is not over."""
    counts = Counter(PHASE_OF.get(type(job.phase), TaskPhase.RUNNING) for job in world.jobs.values())
    return [({"phase": phase.name.lower()}, counts[phase]) for phase in TaskPhase]


def _count_nodes(world: World) -> list[tuple[Labels, float]]:
    counts = Counter(world.fleet.phase)
    return [({"phase": phase.name.lower()}, counts[phase]) for phase in NodePhase]


def _count_devices(world: World) -> list[Family]:
    views = view_flavors(world)
    there = [({"flavor": view.name}, float(view.devices)) for view in views]
    free = [({"flavor": view.name}, float(view.free)) for view in views]
    return [
        Family("muster_devices", "gauge", "Accelerators, by flavor.", list(there)),
        Family("muster_devices_free", "gauge", "Whole accelerators free for new work, by flavor.", list(free)),
    ]


def _count_use(world: World) -> Family:
    """Of very many the largest holders, those of devices first."""
    held = sorted(
        (family in NOT_DEVICES, -amount, name, family)
        for (name, family, scope), amount in world.ledger.holdings().items()
        if scope == FLEET and name != ROOT
    )
    samples: list[tuple[Labels, float]] = [
        ({"tenant": name, "family": family}, -less)
        for _, less, name, family in sorted(held[:TENANTS_MAX], key=lambda row: row[2:])
    ]
    words = "What a tenant holds: millionths of a device, thousandths of a core, bytes."
    return Family("muster_tenant_held", "gauge", words, samples)


def _count_goodput(world: World, now: int) -> Family:
    samples: list[tuple[Labels, float]] = [
        ({"flavor": each.flavor, "bucket": bucket}, time / 1e6)
        for each in view_goodput(world, now).flavors
        for bucket, time in each.time.items()
    ]
    words = "Device-seconds, by what they were spent on. Provisional ones may yet become useful or lost."
    return Family("muster_device_seconds", "gauge", words, samples)
