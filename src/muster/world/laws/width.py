"""The law of widths: a gang holds all its places or none, and an elastic one no fewer than it needs and no more than it
may have."""

from __future__ import annotations

from typing import Final

from muster.model.job import Job, Resize
from muster.model.phase import ACTIVE, TERMINAL, Running, Starting, Stopping, TaskPhase
from muster.units import MINUTE_MS
from muster.world.laws.law import require
from muster.world.tasks import Tasks
from muster.world.widths import Kind, members_of, spares_of, width_of
from muster.world.world import World

WHOLE_MS: Final = 2 * MINUTE_MS
"""For how long at most a run goes on with less than it needs."""
_ALL_OR_NONE = "a gang holds all its places or none"


def check_widths(world: World) -> None:
    """Every run is as wide as it may be; who is elastic, and who changes its width, is kept."""
    for job in world.jobs.values():
        if isinstance(job.phase, ACTIVE):
            _check_width(world, job)
    holding = {n: job for n, job in world.jobs.items() if job.spec.gang_most and isinstance(job.phase, ACTIVE)}
    kinds = {number: (job.spec.ask, job.spec.needs) for number, job in holding.items()}
    require(kinds == world.widths.elastic, "who is elastic is kept", f"{sorted(holding)[:5]}")
    wide = {number for number in holding if width_of(world.jobs[number]) > world.jobs[number].spec.gang}
    require(wide == world.widths.wide.keys(), "who has more than it needs is kept", f"{sorted(wide)[:5]}")
    _check_narrow(world)
    _check_mending(world)
    _check_spares(world)
    for number, resize in world.widths.resizes.items():
        known = world.jobs.get(number)
        require(known is not None, "a resize is that of a job", f"job {number}")
        is_shrinking = known is not None and isinstance(known.phase, (Running, Stopping))
        require(is_shrinking or not resize.to, "only what runs shrinks", f"job {number} to {resize.to}")


def check_throttle(world: World, job: Job, tasks: Tasks) -> bool:
    """Of an array that says how many tasks may be at it at once, no more wait for a start than that leaves; whether so
    many are at it that the others have to wait."""
    most, is_over = job.spec.at_most, isinstance(job.phase, TERMINAL)
    kept = job.id in world.widths.throttled
    require(kept == (most > 0 and not is_over), "who is throttled is kept", f"job {job.id}: {kept}")
    room = max(0, most - tasks.holding) if most else len(tasks)
    waiting = tasks.counts[TaskPhase.QUEUED]
    require(waiting <= room, "no more tasks are at it than may be", f"job {job.id}: {waiting} wait, {room} may start")
    return most > 0 and waiting == room


def _check_narrow(world: World) -> None:
    jobs = [world.jobs[number] for number in world.widths.elastic if number in world.jobs]
    runs = [(job, job.phase.run) for job in jobs if isinstance(job.phase, ACTIVE)]
    narrow: dict[Kind, dict[int, int]] = {}
    for job, run in runs:
        if width_of(job) < job.spec.gang_most:
            narrow.setdefault((job.spec.ask, job.spec.needs), {})[job.id] = run.since
    require(narrow == world.widths.narrow, "who has less than it may is kept", f"{[*narrow.values()][:5]}")


def _check_mending(world: World) -> None:
    jobs = [world.jobs[number] for number in world.widths.elastic if number in world.jobs]
    mending = {job.id for job in jobs if isinstance(job.phase, Running) and width_of(job) < job.spec.gang}
    require(mending == world.widths.mending.keys(), "who mends is kept", f"{sorted(mending)[:5]}")
    idle = [number for number in sorted(mending) if number in world.widths.spared and not world.jobs[number].held]
    require(not idle, "no run lacks a rank while it holds a spare", f"jobs {idle[:5]}")
    late = [number for number in sorted(mending) if world.now > world.widths.resizes[number].at + WHOLE_MS]
    require(not late, "a run that lost places is whole again in time", f"at {world.now}: jobs {late[:5]}")


def _check_spares(world: World) -> None:
    """Nobody has more spares than it asked for, and none where nothing new may go."""
    fleet, spared, lacking = world.fleet, set[int](), set[int]()
    for job in world.jobs.values():
        spares = spares_of(job)
        held, asked = sum(lease.tasks for lease in spares), job.spec.spares
        require(held <= asked, "nobody holds more spares than it asked for", f"job {job.id}: {held} of {asked}")
        closed = [lease.slot for lease in spares if not fleet.is_listed(lease.slot)]
        require(not closed, "a spare is where work may go", f"job {job.id}: slots {closed[:5]}")
        if held:
            spared.add(job.id)
        if held < asked and isinstance(job.phase, (Starting, Running)):
            lacking.add(job.id)
    require(spared == world.widths.spared.keys(), "who holds spares is kept", f"{sorted(spared)[:5]}")
    require(lacking == world.widths.lacking.keys(), "who lacks spares is kept", f"{sorted(lacking)[:5]}")


def _check_width(world: World, job: Job) -> None:
    width, spec = width_of(job), job.spec
    shrinks = world.widths.resizes.get(job.id, Resize(0)).to > 0
    resized = shrinks or isinstance(job.phase, Stopping)  # what told it last need not be what gave it other bounds
    most = width if resized else max(spec.gang, spec.gang_most)
    mends = width > 0 and spec.in_place and isinstance(job.phase, (Running, Stopping))
    least = min(width, spec.gang) if mends or (resized and not shrinks) else spec.gang
    require(least <= width <= most, _ALL_OR_NONE, f"job {job.id}: {width} of {least} to {most}")
    ranks = world.ranks.get(job.id)
    known = width if ranks is None else len(members_of(ranks))
    require(known == width, _ALL_OR_NONE, f"job {job.id}: {width}, ranks {known}")
