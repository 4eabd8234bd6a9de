"""Facts: what Muster decided to be true. The journal is their list and the world is their fold.

Tags carry the kind's version (`accepted.1`); an older version is lifted by `muster.wire.upcast`. What happens in
volume is columnar: one `Placed` places every gang of a cycle, one `TasksEnded` ends any number of tasks of an array, in
a row or scattered (`muster.model.ranges`).
"""

from __future__ import annotations

from typing import Final, TypeAlias

from muster.model.advice import Advice
from muster.model.booking import Booking
from muster.model.job import Bar, BarKind, NodePhase
from muster.model.node import PLAIN, Flavor, Labels, Lack, Said, Traits
from muster.model.overlay import Overlay
from muster.model.phase import Lease, TaskPhase, Why
from muster.model.profile import Profile
from muster.model.ranges import Ranged
from muster.model.record import Record
from muster.model.spec import Spec
from muster.model.tenant import Tenant
from muster.model.tier import Tier
from muster.units import Resources

WHOLE: Final = -1
"""For a task: all of a gang."""


class TenantSet(Record, frozen=True, tag="tenant_set.2"):
    """A tenant stands here in the tree and has these lines, in their order."""

    name: str
    tenant: Tenant
    cause: str = ""


class TenantDropped(Record, frozen=True, tag="tenant_dropped.1"):
    """A tenant that held nothing is out of the tree."""

    name: str
    cause: str = ""


class BudgetTurned(Record, frozen=True, tag="budget_turned.1"):
    """A new period of a tenant's budget began, at `since`: nothing of it is spent."""

    tenant: str
    unit: str
    soft: bool
    since: int
    cause: str = ""


class FlavorSet(Record, frozen=True, tag="flavor_set.1"):
    """A flavor is this; one that was never set is a family of its own."""

    name: str
    flavor: Flavor
    cause: str = ""


class LabelsMentioned(Record, frozen=True, tag="labels_mentioned.1"):
    """An ask was the first to mention these labels: from here on they tell pools apart."""

    labels: tuple[str, ...]
    cause: str = ""


class TierSet(Record, frozen=True, tag="tier_set.1"):
    """A tier is this; work that waits in it is ordered anew."""

    name: str
    tier: Tier
    cause: str = ""


class OverlaySet(Record, frozen=True, tag="overlay_set.1"):
    """An overlay is this; what runs on its nodes goes on, whatever the budget is now."""

    name: str
    overlay: Overlay
    cause: str = ""


class OverlayDropped(Record, frozen=True, tag="overlay_dropped.1"):
    """An overlay is no more."""

    name: str
    cause: str = ""


class ProfileSet(Record, frozen=True, tag="profile_set.1"):
    """A profile is stored under this name, in this version of it."""

    name: str
    profile: Profile
    version: int
    cause: str = ""


class ProfileUsed(Record, frozen=True, tag="profile_used.1"):
    """From here on the fleet is scored by this profile."""

    name: str
    cause: str = ""


class Advised(Record, frozen=True, tag="advised.1"):
    """This is what is known of a kind of advice, in place of what was."""

    kind: str
    advice: Advice
    cause: str = ""


class AdviceDropped(Record, frozen=True, tag="advice_dropped.1"):
    """Advice is over: nobody goes by it any more."""

    kind: str
    cause: str = ""


class NodeJoined(Record, frozen=True, tag="node_joined.1"):
    """A node has this slot for ever. A known one joins again with its old slot, when nothing is held there."""

    slot: int
    name: str
    capacity: Resources
    cause: str = ""
    traits: Traits = PLAIN
    devices: tuple[str, ...] = ()


class NodeSaid(Record, frozen=True, tag="node_said.1"):
    """While work is there, a node says that it is another one. It has these labels and taints at once, for they say
    where new work goes; `later` is what else it will be once nothing is held there, if anything."""

    slot: int
    labels: Labels
    taints: tuple[str, ...]
    later: Said | None = None
    cause: str = ""


class NodeLacks(Record, frozen=True, tag="node_lacks.1"):
    """While work is there, a node lacks so much of what it joined with; this replaces what it lacked before."""

    slot: int
    lack: Lack
    cause: str = ""


class NodePhased(Record, frozen=True, tag="node_phased.1"):
    """A node's phase changed."""

    slot: int
    phase: NodePhase
    cause: str = ""


class NodeBarred(Record, frozen=True, tag="node_barred.1"):
    """A node gets no new work while this bar stands. It replaces the one of the same kind and owner."""

    slot: int
    bar: Bar
    cause: str = ""


class NodeUnbarred(Record, frozen=True, tag="node_unbarred.1"):
    """A bar was lifted, or its time came."""

    slot: int
    kind: BarKind
    owner: str
    cause: str = ""


class Booked(Record, frozen=True, tag="booked.1"):
    """Nodes are a booking's in its windows."""

    booking: Booking
    cause: str = ""


class WindowMoved(Record, frozen=True, tag="window_moved.1"):
    """The window of a booking that opens then has these nodes: it lost some, or got some instead. If they are fewer
    than it booked, it is short."""

    booking: str
    opens_at: int
    slots: list[int]
    cause: str = ""


class WindowOpened(Record, frozen=True, tag="window_opened.1"):
    """The first window of a booking is open: its nodes are for its jobs."""

    booking: str
    cause: str = ""


class WindowClosed(Record, frozen=True, tag="window_closed.1"):
    """The first window of a booking is over, and with the last one the booking."""

    booking: str
    cause: str = ""


class BookingDropped(Record, frozen=True, tag="booking_dropped.1"):
    """A booking was given up."""

    booking: str
    cause: str = ""


class Accepted(Record, frozen=True, tag="accepted.1"):
    """A job is ours to run: from here on it is never lost. It `waits` for these jobs, of those that it names."""

    job: int
    spec: Spec
    key: str = ""
    cause: str = ""
    waits: tuple[int, ...] = ()


class AfterMet(Record, frozen=True, tag="after_met.1"):
    """Another job is as far as these jobs wanted it: they do not wait for it any more."""

    other: int
    jobs: list[int]
    cause: str = ""


class Placed(Record, frozen=True, tag="placed.1"):
    """Gangs got their places: gang i has `widths[i]` leases, laid end to end in the three lease columns. `tickets` are,
    if any came by a claim, those of their claims; 0 of those that did not."""

    jobs: list[int]
    epochs: list[int]
    widths: list[int]
    slots: list[int]
    tasks: list[int]
    devices: list[int]
    cause: str = ""
    tickets: list[int] = []


class Began(Record, frozen=True, tag="began.1"):
    """Ranks of a gang are up; the gang runs once all of them are."""

    job: int
    first: int
    count: int
    cause: str = ""


class Progressed(Record, frozen=True, tag="progressed.1"):
    """A run is so far; if it is checkpointed, what it did up to here is of use, whatever becomes of it. One that is
    `checkpointing` does nothing else until its next word."""

    job: int
    step: int
    checkpointed: bool = False
    cause: str = ""
    checkpointing: bool = False


class Metered(Record, frozen=True, tag="metered.1"):
    """Tasks that ended used this much: CPU time together, and memory the most that one of them had."""

    job: int
    cpu_ms: int
    rss_bytes: int
    cause: str = ""


class RanksOver(Record, frozen=True, tag="ranks_over.1"):
    """Some ranks of a gang have ended while others have not."""

    job: int
    first: int
    count: int
    cause: str = ""


class StopAsked(Record, frozen=True, tag="stop_asked.1"):
    """A gang's run is to stop; it keeps its leases until the engine confirms."""

    job: int
    why: Why
    code: int = 0
    cause: str = ""


class Ended(Record, frozen=True, tag="ended.1"):
    """A job is over and holds nothing. `phase` is one of the terminal ones."""

    job: int
    phase: TaskPhase
    why: Why = Why.EXIT
    code: int = 0
    cause: str = ""


class Requeued(Record, frozen=True, tag="requeued.1"):
    """A gang's run is over without an end of the job: it waits again, in its old place in the line."""

    job: int
    why: Why
    code: int = 0
    cause: str = ""


class Scaled(Record, frozen=True, tag="scaled.1"):
    """From here on a gang has at least and at most so many tasks, or of an array at most so many are at it at once."""

    job: int
    least: int
    most: int
    cause: str = ""


class Grown(Record, frozen=True, tag="grown.1"):
    """A run has so many places more, behind those that it had: it has just got them, or it can bear it in place."""

    job: int
    slots: list[int]
    tasks: list[int]
    devices: list[int]
    cause: str = ""


class ShrinkAsked(Record, frozen=True, tag="shrink_asked.1"):
    """The ranks of a run from `width` on are to leave it; they keep their places until the engine confirms."""

    job: int
    width: int
    cause: str = ""


class Shrunk(Record, frozen=True, tag="shrunk.1"):
    """The ranks of a run from `width` on are over and have given their places back; the others go on."""

    job: int
    width: int
    cause: str = ""


class RanksLost(Record, frozen=True, tag="ranks_lost.1"):
    """Ranks [first, first + count) of a run that bears it in place were lost with their places; the others go on."""

    job: int
    first: int
    count: int
    cause: str = ""


class SparesGiven(Record, frozen=True, tag="spares_given.1"):
    """A run holds so many spare places more, behind those that it had."""

    job: int
    slots: list[int]
    tasks: list[int]
    devices: list[int]
    cause: str = ""


class SparesUsed(Record, frozen=True, tag="spares_used.1"):
    """The first so many spares of a run that bears it in place are ranks of it from now on, behind those that it
    had."""

    job: int
    tasks: int
    cause: str = ""


class SparesDropped(Record, frozen=True, tag="spares_dropped.1"):
    """A run gave up all spares that it had on these nodes: so many on each."""

    job: int
    slots: list[int]
    tasks: list[int]
    cause: str = ""


class JobHeld(Record, frozen=True, tag="job_held.1"):
    """A job is kept from starting; what runs of it goes on."""

    job: int
    cause: str = ""


class JobReleased(Record, frozen=True, tag="job_released.1"):
    """A held job may start again."""

    job: int
    cause: str = ""


class Claimed(Record, frozen=True, tag="claimed.1"):
    """A waiting job is to have these places once they are free, and nobody else: `tasks[i]` of its tasks on `slots[i]`
    with those devices. The claim is given up at the instant `until`. So many `victims` were stopped for it. `ticket` is
    the one that it had its places by, if it only keeps them or moves from there. If tasks of an array move, each place
    is for one of them, which are `movers` upwards, with their `tickets`; then `ticket` is the newest of those."""

    job: int
    slots: list[int]
    tasks: list[int]
    devices: list[int]
    until: int
    cause: str = ""
    victims: int = 0
    ticket: int = 0
    movers: list[int] = []
    tickets: list[int] = []

    @property
    def leases(self) -> tuple[Lease, ...]:
        """The places."""
        return tuple(map(Lease, self.slots, self.tasks, self.devices))


class MovesPlanned(Record, frozen=True, tag="moves_planned.1"):
    """Runs were told to stop, each with a claim on another place, so that a job that waits fits: `moved[i]` leaves a
    node `off[i]` for one `to[i]`, the first that it has and will have. The job asks for so many thousandths of devices,
    and by the account gains so much device time (thousandths times milliseconds) by it, which costs the others less.
    Of an array it is the task `tasks[i]` that leaves, of a gang `WHOLE`; left out if all are gangs."""

    job: int
    moved: list[int]
    off: list[int]
    to: list[int]
    asks_milli: int
    gain: int
    cost: int
    cause: str = ""
    tasks: list[int] = []

    @property
    def movers(self) -> list[tuple[int, int]]:
        """Who is moved: a job, and its task if it is an array's."""
        return list(zip(self.moved, self.tasks or [WHOLE] * len(self.moved), strict=True))


class ClaimDropped(Record, frozen=True, tag="claim_dropped.1"):
    """A job's claim is over: it is served, or given up."""

    job: int
    cause: str = ""


class TasksPlaced(Record, frozen=True, tag="tasks_placed.1"):
    """Tasks of an array, from `first` on, got places: `counts[i]` of them on `slots[i]`, with those devices. `ticket`
    is that of the claim by which they did, if by one."""

    job: int
    first: int
    slots: list[int]
    counts: list[int]
    devices: list[int]
    cause: str = ""
    ticket: int = 0


class TasksMoved(Ranged, frozen=True, tag="tasks_moved.1"):
    """Tasks of an array changed phase and still hold their places (running, stopping). `why` they are to stop, if they
    are: a word from before that was told means a drain."""

    job: int
    first: int
    count: int
    phase: TaskPhase
    cause: str = ""
    more: list[int] = []
    why: Why | None = None


class TasksEnded(Ranged, frozen=True, tag="tasks_ended.1"):
    """Tasks of an array gave their places back: over for good, or QUEUED again. Those that end for a DEPENDENCY were
    blocked, and had none."""

    job: int
    first: int
    count: int
    phase: TaskPhase
    why: Why = Why.EXIT
    code: int = 0
    cause: str = ""
    more: list[int] = []


class TasksProgressed(Ranged, frozen=True, tag="tasks_progressed.1"):
    """Tasks of an array that run, each in its try of this epoch, are so far; if they are checkpointed, what they did up
    to here is of use, whatever becomes of them. Those that are `checkpointing` do nothing else until their next
    word."""

    job: int
    epoch: int
    first: int
    count: int
    step: int
    checkpointed: bool = False
    cause: str = ""
    checkpointing: bool = False
    more: list[int] = []


class ArrayCancelled(Record, frozen=True, tag="array_cancelled.1"):
    """An array is to end: tasks that wait are cancelled by this fact, those that hold places are told to stop."""

    job: int
    cause: str = ""


class Retired(Record, frozen=True, tag="retired.1"):
    """Jobs that ended a while ago leave the world; the journal keeps their story."""

    jobs: list[int]
    cause: str = ""


Fact: TypeAlias = (
    TenantSet
    | TenantDropped
    | BudgetTurned
    | FlavorSet
    | LabelsMentioned
    | TierSet
    | OverlaySet
    | OverlayDropped
    | ProfileSet
    | ProfileUsed
    | Advised
    | AdviceDropped
    | NodeJoined
    | NodeSaid
    | NodeLacks
    | NodePhased
    | NodeBarred
    | NodeUnbarred
    | Booked
    | WindowMoved
    | WindowOpened
    | WindowClosed
    | BookingDropped
    | Accepted
    | AfterMet
    | Placed
    | Began
    | Progressed
    | Metered
    | RanksOver
    | StopAsked
    | Ended
    | Requeued
    | Scaled
    | Grown
    | ShrinkAsked
    | Shrunk
    | RanksLost
    | SparesGiven
    | SparesUsed
    | SparesDropped
    | JobHeld
    | JobReleased
    | Claimed
    | MovesPlanned
    | ClaimDropped
    | TasksPlaced
    | TasksMoved
    | TasksEnded
    | TasksProgressed
    | ArrayCancelled
    | Retired
)


def jobs_of(fact: Fact) -> list[int]:
    """The jobs whose story this fact belongs to."""
    if type(fact) is Accepted:
        return [fact.job] if fact.spec.again is None else [fact.job, fact.spec.again.of]
    if isinstance(fact, (Placed, AfterMet, Retired)):
        return fact.jobs
    if isinstance(fact, MovesPlanned):
        return list(dict.fromkeys([fact.job, *fact.moved]))
    job = getattr(fact, "job", None)
    return [] if job is None else [job]
