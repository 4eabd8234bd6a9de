"""Promises of tiers: what share of the time for which it asks a gang is to have its devices, in a window.

The first window begins when the gang is accepted, and each of the others when one ends; what was missed in one is owed
in the next. To keep its promise a gang has to start by a latest instant, which moves on by as much as it was up
already: it goes by that as by a due time, so that in its tier whoever has least time left to be kept its promise goes
first. What is promised is never more than what there is. Nothing here knows rights or places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.model.job import Job
from muster.model.phase import TERMINAL, Running
from muster.model.sharing import MILLI
from muster.model.spec import Spec, has_devices
from muster.model.tier import Promise, Tier
from muster.units import Limit
from muster.world.arena import DEVICE
from muster.world.sites import GPUS_AT

if TYPE_CHECKING:  # the queue of a world goes by promises
    from muster.world.world import World


def due_of(job: Job, tier: Tier) -> Limit:
    """By when a job that waits should start or be over, as far as the order goes by it."""
    promise, due_at = tier.promise, job.spec.due_at
    if promise is None or not has_promise(job.spec):
        return due_at
    start = latest_start(promise, job)
    return start if due_at is None else min(start, due_at)


def has_promise(spec: Spec) -> bool:
    """Whether what a tier promises is for such a job: for gangs with devices."""
    return not spec.array and has_devices(spec)


def latest_start(promise: Promise, job: Job) -> int:
    """By when a job that waits has to start so that it is up for its share: of the first window for which it was not
    up long enough yet. It follows from how long it was up, so it stands still while it waits."""
    windows = 1 + job.served_ms // promise.owed_ms
    return job.accepted_at + windows * (promise.window_ms - promise.owed_ms) + job.served_ms


def owed_by(promise: Promise, job: Job, now: int) -> int:
    """For how long a job is to be up in all, to the end of the window that it is in."""
    return promise.owed_ms * (1 + (now - job.accepted_at) // promise.window_ms)


def find_deficit(job: Job, tier: Tier, now: int) -> int:
    """By how much a job is behind what it is promised: what it still lacks of the windows that are over, or what it
    will lack at the end of the one that it is in, though it were up from now on."""
    promise = tier.promise
    if promise is None or not has_promise(job.spec) or isinstance(job.phase, TERMINAL):
        return 0
    served = job.served_ms + (now - job.phase.since if isinstance(job.phase, Running) else 0)
    left = promise.window_ms - (now - job.accepted_at) % promise.window_ms
    return max(0, owed_by(promise, job, now) - served - min(left, promise.owed_ms))


def promised_by(tier: Tier, spec: Spec) -> int:
    """Thousandths of devices that a job of a tier is to have, on the average."""
    if tier.promise is None or not has_promise(spec):
        return 0
    ask, times = spec.asked_by(spec.gang)
    return (DEVICE * ask.gpus + ask.gpu_milli) * times * tier.promise.share_milli // MILLI


def note_promise(world: World, spec: Spec, sign: int) -> None:
    """A job comes (1) or is over (-1): what is promised to all who are here is more by its part, or less."""
    tier = world.tiers[spec.tier]
    if tier.promise is not None:
        world.promised += sign * promised_by(tier, spec)


def count_promised(world: World, name: str = "", tier: Tier | None = None) -> int:
    """Thousandths of devices that are promised to the jobs that are here, counted anew; as if a tier were another one,
    if it is named."""
    tiers = world.tiers if tier is None else world.tiers | {name: tier}
    if all(each.promise is None for each in tiers.values()):
        return 0
    live = (job.spec for job in world.jobs.values() if not isinstance(job.phase, TERMINAL))
    return sum(promised_by(tiers[spec.tier], spec) for spec in live)


def promisable(world: World) -> int:
    """Thousandths of devices that there are, on nodes that are up and unbarred: a flavor's exchange units do not
    matter here."""
    sites = world.sites
    return sum(vector[GPUS_AT] // site.units for site, vector in zip(sites.all, sites.healthy, strict=True))
