"""Instructions: what Muster asks an engine to do. Each is idempotent and fenced by the run's epoch.

An engine that sees the same instruction twice does it once; one that knows a newer epoch ignores an older one.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from muster.model.ranges import Ranged
from muster.model.record import Record
from muster.model.spec import Spec

NOT_SAVED: Final = -1
"""In place of the step of a checkpoint, where there is none."""


class Start(Record, frozen=True, tag="start"):
    """Start tasks from `first` on: `counts[i]` of them on node `nodes[i]`, sharing `devices[i]` lowest bits first.

    Nodes are called by their addresses. Where a node named its devices, `device_ids[i]` are the names of those bits, in
    the same order: numbers may have shifted since, names have not. With them the run has `width` tasks; 0 is as many as
    its spec says. If an earlier try was checkpointed, `resumes` has at which step: one for a gang, of an array one for
    each of these tasks, NOT_SAVED for those that never were.
    """

    job: int
    epoch: int
    spec: Spec
    first: int
    nodes: list[str]
    counts: list[int]
    devices: list[int]
    device_ids: list[tuple[str, ...]] = []
    width: int = 0
    resumes: list[int] = []


class Stop(Record, frozen=True, tag="stop"):
    """End tasks of a run: a polite signal, and after the grace the whole tree. Confirmed by `Exited`. Without them the
    run goes on with `width` tasks, if that is not 0."""

    job: int
    epoch: int
    first: int
    count: int
    grace_ms: int
    width: int = 0


class Forget(Ranged, frozen=True, tag="forget"):
    """The end of these tasks is durable here: the engine may drop what it keeps of them, but not their logs."""

    job: int
    epoch: int
    first: int
    count: int
    more: list[int] = []


Instruction: TypeAlias = Start | Stop | Forget
