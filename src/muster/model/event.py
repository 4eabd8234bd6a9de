"""Events: what the outside reports or asks. Each carries its cause, so that `muster story` can tell who began what.

`first` and `count` name a range of a job's tasks (the ranks of a gang, the tasks of an array), and `more` names others
(`muster.model.ranges`), so that ten thousand ends are one event, whether they are neighbours or not.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from muster.model.advice import Advice
from muster.model.booking import Booking
from muster.model.job import BarKind
from muster.model.node import PLAIN, Flavor, Traits
from muster.model.overlay import Overlay
from muster.model.phase import TaskPhase
from muster.model.profile import Profile
from muster.model.ranges import Ranged
from muster.model.record import Record
from muster.model.spec import Spec
from muster.model.tenant import Tenant
from muster.model.tier import Tier
from muster.units import Limit, Resources


class Submit(Record, frozen=True, tag="submit"):
    """Somebody wants a job run. `key` makes a repeat harmless: one job per (tenant, key).

    `past` is how jobs ended that it is to run after, for those that are known from the journal alone.
    """

    spec: Spec
    key: str = ""
    cause: str = ""
    past: dict[int, TaskPhase] = {}


class Cancel(Record, frozen=True, tag="cancel"):
    """Somebody wants a job ended."""

    job: int
    cause: str = ""


class HoldJob(Record, frozen=True, tag="hold_job"):
    """Somebody wants a job kept from starting, until it is released."""

    job: int
    cause: str = ""


class ReleaseJob(Record, frozen=True, tag="release_job"):
    """Somebody lets a held job start again."""

    job: int
    cause: str = ""


class RequeueJob(Record, frozen=True, tag="requeue_job"):
    """Somebody wants a job's run stopped and the job to wait again, in its old place in the line."""

    job: int
    cause: str = ""


class ScaleJob(Record, frozen=True, tag="scale_job"):
    """Somebody wants a gang to have at most so many tasks, and to shrink if it has more; or with `least`, other bounds,
    of which it has to be inside already. Of an array, at most so many tasks are to be at it at once."""

    job: int
    most: int
    least: int = 0
    cause: str = ""


NODES_MAX: Final = 1000
"""How many nodes a request to move a gang may name."""


class MigrateJob(Record, frozen=True, tag="migrate_job"):
    """Somebody wants a gang to go on elsewhere: on the nodes that `to` names, or off those of `off`; if neither names
    any, off those that it has. Of an array, those tasks go that have to."""

    job: int
    to: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    cause: str = ""


class SetTenant(Record, frozen=True, tag="set_tenant"):
    """An admin says where a tenant stands in the tree and what it may hold at once."""

    name: str
    tenant: Tenant
    cause: str = ""


class DropTenant(Record, frozen=True, tag="drop_tenant"):
    """An admin takes a tenant out of the tree; from then on it is one that nobody named."""

    name: str
    cause: str = ""


class SetFlavor(Record, frozen=True, tag="set_flavor"):
    """An admin says what a flavor is."""

    name: str
    flavor: Flavor
    cause: str = ""


class SetTier(Record, frozen=True, tag="set_tier"):
    """An admin says what a tier is."""

    name: str
    tier: Tier
    cause: str = ""


class SetOverlay(Record, frozen=True, tag="set_overlay"):
    """An admin says what an overlay is. Its nodes are named by their addresses, or by as much of the end as is
    enough."""

    name: str
    overlay: Overlay
    cause: str = ""


class DropOverlay(Record, frozen=True, tag="drop_overlay"):
    """An admin removes an overlay: its budget binds nobody any more."""

    name: str
    cause: str = ""


class SetProfile(Record, frozen=True, tag="set_profile"):
    """An admin stores a profile. With `of_version`, only if that is the version it has now; 0 is one that is new."""

    name: str
    profile: Profile
    of_version: Limit = None
    cause: str = ""


class UseProfile(Record, frozen=True, tag="use_profile"):
    """An admin has the fleet scored by a profile that is stored."""

    name: str
    cause: str = ""


class Advise(Record, frozen=True, tag="advise"):
    """An adviser says what it learned, in place of all it said of this kind before."""

    kind: str
    advice: Advice
    cause: str = ""


class BarNode(Record, frozen=True, tag="bar_node"):
    """Somebody bars a node from new work: until they lift the bar, or until the instant `until`.

    `name` is its address, or the end of it if that is enough to tell it from all others.
    """

    name: str
    kind: BarKind
    owner: str
    reason: str = ""
    until: Limit = None
    lets_finish: bool = True
    cause: str = ""


class UnbarNode(Record, frozen=True, tag="unbar_node"):
    """Whoever set a bar lifts it."""

    name: str
    kind: BarKind
    owner: str
    cause: str = ""


class Reserve(Record, frozen=True, tag="reserve"):
    """Somebody books nodes for a tenant. With `flexible_ms`, its window may open so much later than it says; no window
    has slots yet."""

    booking: Booking
    flexible_ms: int = 0
    cause: str = ""


class CancelBooking(Record, frozen=True, tag="cancel_booking"):
    """Somebody gives a booking up."""

    name: str
    cause: str = ""


class Held(Record, frozen=True):
    """What a node reports of one range of tasks that it still knows."""

    job: int
    epoch: int
    first: int
    count: int


class NodeSeen(Record, frozen=True, tag="node_seen"):
    """A node reports itself, its capacity and all it holds: after a join, a restart or a reconnect.

    `devices` are the ids of its devices, such as the UUIDs of GPUs, in the order of their numbers: all or none of them.
    """

    name: str
    capacity: Resources
    held: tuple[Held, ...] = ()
    cause: str = ""
    traits: Traits = PLAIN
    devices: tuple[str, ...] = ()


class NodeSilent(Record, frozen=True, tag="node_silent"):
    """Nothing was heard of a node for too long. Its work goes on, for all anybody knows. `name` is its address."""

    name: str
    cause: str = ""


class NodeGone(Record, frozen=True, tag="node_gone"):
    """A node is fenced: its authority vouches that nothing runs there any more. `name` is its address."""

    name: str
    cause: str = ""


class Started(Ranged, frozen=True, tag="started"):
    """Tasks of a run are up."""

    job: int
    epoch: int
    first: int = 0
    count: int = 1
    cause: str = ""
    more: list[int] = []


class Exited(Ranged, frozen=True, tag="exited"):
    """Tasks of a run have ended, all with the same code. `note` is the engine's own word (e.g. `command not found`).

    What they used, if the engine knows: CPU time of all of them together, and the most memory that one of them had.
    """

    job: int
    epoch: int
    code: int
    first: int = 0
    count: int = 1
    note: str = ""
    cause: str = ""
    cpu_ms: int = 0
    rss_bytes: int = 0
    more: list[int] = []

    @property
    def noted_cause(self) -> str:
        """The cause of what follows from it, with the note; `find_note` takes them apart."""
        return f"{self.cause}: {self.note}" if self.note else self.cause


def find_note(cause: str) -> str:
    """The engine's own word in the cause of an end; empty if it said none."""
    return cause.partition(": ")[2]


class Progressed(Ranged, frozen=True, tag="progressed"):
    """A run says how far it is, and whether what it did up to here is safe in a checkpoint, or it begins to write one.
    A gang says so as a whole; of an array, those tasks that are named do."""

    job: int
    epoch: int
    step: int
    checkpointed: bool = False
    cause: str = ""
    checkpointing: bool = False
    first: int = 0
    count: int = 1
    more: list[int] = []


Event: TypeAlias = (
    Submit
    | Cancel
    | HoldJob
    | ReleaseJob
    | RequeueJob
    | ScaleJob
    | MigrateJob
    | SetTenant
    | DropTenant
    | SetFlavor
    | SetTier
    | SetOverlay
    | DropOverlay
    | SetProfile
    | UseProfile
    | Advise
    | BarNode
    | UnbarNode
    | Reserve
    | CancelBooking
    | NodeSeen
    | NodeSilent
    | NodeGone
    | Started
    | Exited
    | Progressed
)
