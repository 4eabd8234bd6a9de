"""Frozen records of what the world knows by name: jobs, and a node's phase and bars."""

from __future__ import annotations

import enum
from typing import Final

from muster.model.phase import Phase
from muster.model.record import Record
from muster.model.spec import Spec
from muster.units import Limit


class Job(Record, frozen=True):
    """A job: replaced on every change, never mutated, so that a fork is a dict copy.

    `epoch` is that of its latest run (0 before the first) and `failures` counts the runs that ended badly. One that is
    `held` starts nothing, and is in no line; nor is one that `waits` for other jobs, which are named here as long as
    they are not as far as it wants them: of arrays that it follows task by task, until they are over. `evicted` and
    `took` are when it was last stopped for others, and others for it: the latest few; `moves` are when it was last
    moved so that others fit. For `served_ms` earlier runs of it were up.
    """

    id: int
    spec: Spec
    accepted_at: int
    phase: Phase
    epoch: int = 0
    failures: int = 0
    key: str = ""
    held: bool = False
    waits: tuple[int, ...] = ()
    evicted: tuple[int, ...] = ()
    took: tuple[int, ...] = ()
    served_ms: int = 0
    moves: tuple[int, ...] = ()

    @property
    def stands_back(self) -> bool:
        """Whether it stands in no line since it waits for others as a whole, and not task by task."""
        return bool(self.waits) and any(other not in self.spec.likes for other in self.waits)

    def moved(self, phase: Phase, epoch: int) -> Job:
        """The same job in another phase, waiting for nobody. Spelled out, for `replace` takes twice the time."""
        return Job(
            self.id, self.spec, self.accepted_at, phase, epoch, self.failures, self.key, self.held, (), self.evicted,
            self.took, self.served_ms, self.moves,
        )  # fmt: skip


class Resize(Record, frozen=True):
    """When an elastic job was last given another width, or told to shrink: `to` as many tasks, 0 if it is done."""

    at: int
    to: int = 0


class Meter(Record, frozen=True):
    """What the tasks of a job used, as far as their engines know: CPU time of all, and the most memory of one."""

    cpu_ms: int = 0
    rss_bytes: int = 0

    def add(self, cpu_ms: int, rss_bytes: int) -> Meter:
        """More tasks ended."""
        return Meter(self.cpu_ms + cpu_ms, max(self.rss_bytes, rss_bytes))


class NodePhase(enum.IntEnum):
    """Where a node stands: silence makes it unknown and kills nothing; only a fenced node is gone."""

    UP = 0
    UNKNOWN = 1
    GONE = 2


BARS_MAX: Final = 64
BAR_REASON_CHARS_MAX: Final = 256


class BarKind(enum.StrEnum):
    """What keeps new work off a node. A cordon only does that; a drain also means that the node is to be emptied; a
    quarantine means that what it says of itself cannot be true."""

    CORDON = "cordon"
    DRAIN = "drain"
    QUARANTINE = "quarantine"


MUSTER: Final = "muster"
"""The owner of the bars that the kernel sets and lifts by itself."""


class Bar(Record, frozen=True):
    """One owner's bar of one kind on a node: nothing new goes there while it stands.

    It stands until its owner lifts it, or until the instant `until`. One that does not let finish also stops what runs.
    """

    kind: BarKind
    owner: str
    reason: str
    since: int
    until: Limit = None
    lets_finish: bool = True
