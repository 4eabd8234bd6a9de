"""Frozen records of what the world knows by name: jobs, tenants, and a node's fixed part."""

from __future__ import annotations

import enum

from muster.model.phase import Phase
from muster.model.record import Record
from muster.model.spec import Spec
from muster.units import Limit


class Job(Record, frozen=True):
    """A job: replaced on every change, never mutated, so that a fork is a dict copy.

    `epoch` is that of its latest run (0 before the first) and `failures` counts the runs that ended badly.
    """

    id: int
    spec: Spec
    accepted_at: int
    phase: Phase
    epoch: int = 0
    failures: int = 0
    key: str = ""


class Quota(Record, frozen=True):
    """The most a tenant may hold at once, per kind; None is UNLIMITED."""

    gpus: Limit = None
    cpu_milli: Limit = None
    memory_bytes: Limit = None


class NodePhase(enum.IntEnum):
    """Where a node stands: silence makes it unknown and kills nothing; only a fenced node is gone."""

    UP = 0
    UNKNOWN = 1
    GONE = 2
