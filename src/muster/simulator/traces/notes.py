"""What somebody should know of each format before trusting a figure: where it comes from, its units and its traps."""

from __future__ import annotations

from typing import Final, NamedTuple

from muster.simulator.traces import canonical, catalog, openb
from muster.simulator.traces.formats import FAULTS, SWF


class Note(NamedTuple):
    """One format, in words. `leagues` are those that play it; what each may see stands in `sight`."""

    what: str
    units: str
    traps: str
    leagues: tuple[str, ...] = ()


NOTES: Final[dict[str, Note]] = {
    canonical.CANONICAL: Note(
        "Muster's own form of a trace, and of its history",
        "instants and spans in milliseconds since the first submit; memory in bytes",
        "the run time of a job of Muster's history counts every try; an array is one job, as wide as it ever was",
    ),
    openb.PODS: Note(
        "openb, pods to pack on a fleet (Alibaba, cluster-trace-gpu-v2023)",
        "cpu and GPU in thousandths, memory in MiB, times in seconds",
        "gpu_milli is of each GPU; some lists have 5 columns only; a model may be named twice; with its own lifetimes "
        "the fleet is nearly empty: a set to pack, not a load",
        ("packing",),
    ),
    openb.NODES: Note(
        "openb, nodes of a fleet (Alibaba, cluster-trace-gpu-v2023)",
        "cpu in thousandths, memory in MiB",
        "nodes without GPUs are left out",
        ("packing",),
    ),
    "philly": Note(
        "Philly, jobs of a cluster of Microsoft",
        "timestamp is a date, duration in seconds",
        "not sorted; no ids, so equal rows are jobs of their own; months in which nearly nothing came",
        ("philly", "prediction"),
    ),
    "muri": Note(
        "Muri, jobs derived from Philly",
        "every time in MILLISECONDS",
        "iterations x iteration_time is the run time, and `duration` a rounded copy: both are hidden from policies",
        ("rigid",),
    ),
    "chronus": Note(
        "Chronus, jobs with deadlines",
        "every time in MINUTES; a deadline counts from the submit",
        "some rows ask for no GPU; of several deadlines the last counts",
        ("deadline",),
    ),
    "acme": Note(
        "Acme, training of large models at Shanghai AI Laboratory",
        "arrival_time in seconds, an iteration takes iteration_computing_time seconds",
        "GPUs are workers x GPUs of each",
        ("faults",),
    ),
    "gen_parallel": Note(
        "Gen-Parallel-Workloads, jobs of Blue Waters",
        "interval, run_time and wall_time in seconds",
        "a submit is the sum of all intervals before it, also of rows that are left out; most jobs have no GPU",
        ("prediction",),
    ),
    SWF: Note(
        "the Standard Workload Format of the Parallel Workloads Archive",
        "seconds; -1 is not known",
        "a processor counts as a GPU; fields behind the 18th are not read; jobs of no known run time are left out",
        ("prediction",),
    ),
    FAULTS: Note(
        "InfiniteHBD, faults of GPU servers",
        "event_time in DAYS",
        "a second fault of a server that is out makes it no more out; some never end",
        ("faults",),
    ),
    catalog.CATALOG: Note(
        "cloud catalog, offers of accelerators",
        "dollars an hour of the whole machine; memory in GiB",
        "rows without a machine price the accelerator alone; a count may be a part of one; no price may mean spot only",
    ),
}
