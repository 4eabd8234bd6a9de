"""Tags: a short hash of how a tenant, tier, flavor, overlay, profile or booking is defined now, of which bars a node
has, or of how far a job is, so that a change can say what it is a change of.

The follower shows the tag with the thing; the leader compares it in the moment before the kernel sees the change. What
was never set is what it is by default, or absent. What a thing holds or spends is no part of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final

import msgspec

from muster.control.fleet import view_flavors
from muster.model.booking import Booking
from muster.model.event import (
    Advise,
    BarNode,
    Cancel,
    CancelBooking,
    DropOverlay,
    DropTenant,
    Event,
    HoldJob,
    MigrateJob,
    ReleaseJob,
    RequeueJob,
    Reserve,
    ScaleJob,
    SetFlavor,
    SetOverlay,
    SetProfile,
    SetTenant,
    SetTier,
    UnbarNode,
    UseProfile,
)
from muster.model.goodput import Mark
from muster.model.job import Bar, Job
from muster.model.reason import Code, Reason
from muster.model.record import Record
from muster.world.world import World

ABSENT: Final = "none"
ANY: Final = "*"
"""Stands for the tag of whatever is there."""
NEVER: Final = "-"
"""A tag that nothing has."""
_TAG_BYTES: Final = 8
_encoder: Final = msgspec.msgpack.Encoder()


class Standing(Record, frozen=True):
    """A job as its tag has it: its record, of an array how many tasks are in each phase and have a checkpoint, and how
    far a gang says it is."""

    job: Job
    counts: tuple[int, ...] = ()
    saved: int = 0
    mark: Mark | None = None


def find_standing(world: World, number: int) -> Standing | None:
    """Where a job stands now; None if it has left the world."""
    job = world.jobs.get(number)
    if job is None:
        return None
    if not job.spec.array:
        return Standing(job, mark=world.goodput.marks.get(number))
    tasks = world.arrays[number]
    return Standing(job, tuple(map(int, tasks.counts)), 0 if tasks.marks is None else tasks.marks.saved)


def find_contract(world: World, name: str) -> Booking | None:
    """What was booked; which nodes it has been given, and whether it is open, comes and goes by itself."""
    booking = world.bookings.get(name)
    if booking is None:
        return None
    windows = tuple(msgspec.structs.replace(each, slots=(), is_open=False) for each in booking.windows)
    return msgspec.structs.replace(booking, windows=windows)


def find_bars(world: World, reference: str) -> tuple[Bar, ...] | None:
    """The bars of a node, whoever set them; None if it has none, or if it is not known which node is meant."""
    slot = world.fleet.find_slot(reference)
    return None if isinstance(slot, Reason) else world.fleet.bars.get(slot)


def tag_of(thing: object) -> str:
    """The tag of a definition."""
    return ABSENT if thing is None else hashlib.blake2b(_encoder.encode(thing), digest_size=_TAG_BYTES).hexdigest()


def find_mismatch(world: World, event: Event, wanted: str) -> Reason | None:
    """Why a change is not one of what there is; None if it is, or if nothing is said of that. Of a job that is not
    there the kernel says why."""
    look = _LOOKS.get(type(event))
    if not wanted or look is None:
        return None
    found = look(world, event)
    if fits(wanted, found) or (look is _find_job and found is None) or (wanted == ANY and _is_there(world, event)):
        return None
    return changed_meanwhile(_subject(event), wanted)


def fits(wanted: str, thing: object) -> bool:
    """Whether a thing has one of the tags that are wanted, or is there at all if any will do."""
    return thing is not None if wanted == ANY else tag_of(thing) in wanted.split(",")


def _is_there(world: World, event: Event) -> bool:
    """Whether something is shown that nobody has defined: it is what it is by default."""
    if isinstance(event, SetTenant | DropTenant):
        held = any(tenant == event.name for tenant, _, _ in world.ledger.holdings())
        return held or any(job.spec.tenant == event.name for job in world.jobs.values())
    return isinstance(event, SetFlavor) and any(view.name == event.name for view in view_flavors(world))


def changed_meanwhile(subject: str, wanted: str) -> Reason:
    """What a tag was of is not that any more."""
    return Reason(Code.CHANGED_MEANWHILE, subject, detail=wanted[:40])


def _subject(event: Any) -> str:
    """What a change is about, as _LOOKS knows it."""
    if isinstance(event, Reserve):
        return event.booking.name
    if isinstance(event, Advise):
        return event.kind
    return str(event.name) if hasattr(event, "name") else f"job {event.job}"


def _find_job(world: World, event: Any) -> Standing | None:
    return find_standing(world, event.job)


_LOOKS: Final[dict[type, Callable[[World, Any], object]]] = {
    SetTenant: lambda world, event: world.tenants.get(event.name),
    DropTenant: lambda world, event: world.tenants.get(event.name),
    SetFlavor: lambda world, event: world.flavors.get(event.name),
    SetTier: lambda world, event: world.tiers.get(event.name),
    SetOverlay: lambda world, event: world.fleet.overlays.by_name.get(event.name),
    DropOverlay: lambda world, event: world.fleet.overlays.by_name.get(event.name),
    **dict.fromkeys((SetProfile, UseProfile), lambda world, event: world.profiles.get(event.name)),
    Advise: lambda world, event: world.advice.get(event.kind),
    Reserve: lambda world, event: find_contract(world, event.booking.name),
    CancelBooking: lambda world, event: find_contract(world, event.name),
    **dict.fromkeys((BarNode, UnbarNode), lambda world, event: find_bars(world, event.name)),
    **dict.fromkeys((Cancel, HoldJob, ReleaseJob, RequeueJob, ScaleJob, MigrateJob), _find_job),
}
