"""The phases of a gang, each a frozen record with its payload, and their small integers for columns.

A job of one gang carries its phase in its record. An array's job is `Spread`: its tasks have phases of their own, one
byte each in a column. Which phase may follow which stands in `muster.lifecycle.gang` and nowhere else.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from operator import attrgetter
from typing import Final, TypeAlias

from muster.model.record import Record
from muster.units import Limit


class Lease(Record, frozen=True):
    """A run's hold on one node: how many of its tasks sit there, and on which devices (a bit per device)."""

    slot: int
    tasks: int
    devices: int = 0


_SLOT: Final = attrgetter("slot")
_TASKS: Final = attrgetter("tasks")
_DEVICES: Final = attrgetter("devices")


def columns_of(leases: Sequence[Lease]) -> tuple[list[int], list[int], list[int]]:
    """Leases as facts have them: slots, tasks and devices."""
    return list(map(_SLOT, leases)), list(map(_TASKS, leases)), list(map(_DEVICES, leases))


class Run(Record, frozen=True):
    """One try of a gang. The epoch rises with every try and fences whatever an older try still says.

    `since` is when it got its leases; the phases that it goes through have instants of their own. `ticket` is its
    number among all who were given places, or a claim on them: the smaller is the older. `spares` are places that it
    holds for no rank, so that one which loses its place has another at once; they are these since `spared_at`.
    """

    epoch: int
    leases: tuple[Lease, ...]
    since: int = 0
    ticket: int = 0
    spares: tuple[Lease, ...] = ()
    spared_at: int = 0

    @property
    def places(self) -> tuple[Lease, ...]:
        """All that it holds: the places of its ranks, and its spares."""
        return (*self.leases, *self.spares) if self.spares else self.leases

    def find_end(self, limit_ms: Limit) -> Limit:
        """When it will end at the latest, if there is a limit; it may take a moment longer to start and to stop."""
        return None if limit_ms is None else self.since + limit_ms


class Why(enum.StrEnum):
    """Why a run is being stopped, or did not succeed."""

    EXIT = "exit"
    CANCEL = "cancel"
    LIMIT = "limit"
    LOST = "lost"
    DRAIN = "drain"
    REQUEUE = "requeue"
    DEPENDENCY = "dependency"
    PREEMPT = "preempt"
    RECLAIM = "reclaim"
    MIGRATE = "migrate"
    BOOKING = "booking"
    RESIZE = "resize"
    SHRINK = "shrink"
    BUDGET = "budget"
    YIELD = "yield"


TAKEN = (Why.PREEMPT, Why.RECLAIM)
"""Stopped for somebody else's sake."""
RESIZED = (Why.RESIZE, Why.SHRINK)
"""Stopped to start again with another width, for its own sake or for others': it keeps the least that it needs."""


STOPS = (
    Why.DRAIN, Why.CANCEL, Why.LIMIT, Why.LOST, Why.REQUEUE, Why.PREEMPT, Why.RECLAIM, Why.MIGRATE, Why.BOOKING,
    Why.RESIZE, Why.SHRINK, Why.BUDGET,
)  # fmt: skip
"""Why tasks are told to stop, by their small integers for columns: appended, never renumbered. What was told before it
was kept why was told for a drain, as far as anybody said."""


class Queued(Record, frozen=True, tag="queued"):
    """Accepted and waiting for room."""

    since: int


class Starting(Record, frozen=True, tag="starting"):
    """Placed; the engine has been told."""

    since: int
    run: Run


class Running(Record, frozen=True, tag="running"):
    """Every task is up."""

    since: int
    run: Run


class Stopping(Record, frozen=True, tag="stopping"):
    """Told to stop; holds its devices until the engine confirms."""

    since: int
    run: Run
    why: Why
    code: int = 0


class Spread(Record, frozen=True, tag="spread"):
    """An array: each task has a phase of its own."""

    since: int
    cancelled: bool = False


class Succeeded(Record, frozen=True, tag="succeeded"):
    """Over: every task exited with 0."""

    since: int


class Failed(Record, frozen=True, tag="failed"):
    """Over: a task exited with another code, ran past its limit, or was lost too often."""

    since: int
    why: Why
    code: int


class Cancelled(Record, frozen=True, tag="cancelled"):
    """Over: somebody asked for it, or what it was to run after can never come about."""

    since: int
    why: Why = Why.CANCEL


Phase: TypeAlias = Queued | Starting | Running | Stopping | Spread | Succeeded | Failed | Cancelled
Active: TypeAlias = Starting | Running | Stopping
ACTIVE = (Running, Starting, Stopping)
TERMINAL = (Succeeded, Failed, Cancelled)
"""That a record is of a class is found out at once, that it is not takes five times as long, since records have a
metaclass: so these begin with the likeliest, and where it matters `type(phase) in TERMINAL` is asked instead."""


class TaskPhase(enum.IntEnum):
    """The same phases as small integers, for columns of tasks; and one more for the tasks of an array that stand in no
    line: their likes in another array are not as far as they want, or as many of them are at it as may be."""

    QUEUED = 0
    STARTING = 1
    RUNNING = 2
    STOPPING = 3
    SUCCEEDED = 4
    FAILED = 5
    CANCELLED = 6
    BLOCKED = 7
