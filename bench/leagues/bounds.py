"""Bounds: what no schedule can beat, for average completion time and makespan of rigid jobs that share nothing.

makespan       the area of all jobs over all devices, from each submit on; and the longest job from its submit
completion     the mean run time; one machine as fast as all devices that always serves what has least left (fluid
               SRPT); and the mean busy time of that machine served by whole size, plus half the mean run time
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from muster.simulator.traces.record import Record


class Bounds(NamedTuple):
    """Lower bounds in seconds, and the share of all device time that is asked for in the best makespan."""

    completion_s: float
    makespan_s: float
    load: float


def bounds_of(records: Sequence[Record], devices: int) -> Bounds:
    """The bounds of a list of jobs in the order of submits, on so many devices."""
    mean_run = sum(record.duration_ms for record in records) / len(records)
    completion = max(mean_run, _fluid_srpt(records, devices), _busy_time(records, devices) + mean_run / 2)
    makespan = max(_fluid_end(records, devices), *(record.submit_ms + record.duration_ms for record in records))
    begin = records[0].submit_ms
    work = sum(record.gpus * record.duration_ms for record in records)
    return Bounds(completion / 1000, (makespan - begin) / 1000, work / devices / max(1, makespan - begin))


def _fluid_end(records: Sequence[Record], devices: int) -> float:
    """When one machine as fast as all devices is done."""
    end = 0.0
    for record in records:
        end = max(end, record.submit_ms) + record.gpus * record.duration_ms / devices
    return end


def _fluid_srpt(records: Sequence[Record], devices: int) -> float:
    """Mean completion time if the machine serves what has least work left."""
    waiting: list[tuple[float, int]] = []
    now, total, at = 0.0, 0.0, 0
    while at < len(records) or waiting:
        if not waiting:
            now = max(now, records[at].submit_ms)
        while at < len(records) and records[at].submit_ms <= now:
            heappush(waiting, (records[at].gpus * records[at].duration_ms / devices, at))
            at += 1
        left, job = heappop(waiting)
        until = records[at].submit_ms if at < len(records) else float("inf")
        if now + left <= until:
            now += left
            total += now - records[job].submit_ms
        else:
            heappush(waiting, (left - (until - now), job))
            now = until
    return total / len(records)


def _busy_time(records: Sequence[Record], devices: int) -> float:
    """The mean of when the machine is busy with a job, from its submit on, if it serves the smallest whole job."""
    waiting: list[tuple[float, int]] = []
    left = [record.gpus * record.duration_ms / devices for record in records]
    whole = left.copy()
    now, total, at = 0.0, 0.0, 0
    while at < len(records) or waiting:
        if not waiting:
            now = max(now, records[at].submit_ms)
        while at < len(records) and records[at].submit_ms <= now:
            heappush(waiting, (whole[at], at))
            at += 1
        _, job = waiting[0]
        until = records[at].submit_ms if at < len(records) else float("inf")
        served = min(left[job], until - now)
        if whole[job]:
            total += (now + served / 2 - records[job].submit_ms) * served / whole[job]
        left[job] -= served
        now += served
        if left[job] <= 1e-9:
            heappop(waiting)
    return total / len(records)
