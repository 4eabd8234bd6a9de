"""apply: the only mutator. One small function per kind of fact, in one table; the world is the fold of them.

It holds no policy and makes no choice: a fact that cannot be applied is a bug of ours (InvariantError), not a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from muster.model import fact
from muster.model.claim import Claim
from muster.model.errors import InvariantError
from muster.model.job import Job, Meter, Resize
from muster.model.node import NO_LACK
from muster.model.phase import (
    ACTIVE,
    TAKEN,
    Cancelled,
    Failed,
    Lease,
    Phase,
    Queued,
    Run,
    Running,
    Spread,
    Starting,
    Stopping,
    Succeeded,
    TaskPhase,
    Why,
)
from muster.model.profile import Edition
from muster.model.spec import ANYWHERE, has_devices, is_varied
from muster.model.tier import EVICTIONS_MAX
from muster.world.accounting import advance
from muster.world.booking import change_window, drop_booking, put_booking
from muster.world.budgets import AccountKey
from muster.world.claiming import drop_claim, next_ticket, put_claim, spoken_for
from muster.world.losses import BROKEN
from muster.world.others import block_tasks, leave_others, stop_waiting, unblock_tasks, wait_for_others
from muster.world.overlays import put_overlay
from muster.world.promises import note_promise
from muster.world.tables import heed
from muster.world.tasks import HOLDING, Tasks, spans_of
from muster.world.widths import ask_shrink, drop_spares, give_spares, grow, part, set_bounds, shrink, use_spares
from muster.world.world import World

replace = msgspec.structs.replace
_UNMETERED: Final = Meter()


def apply(world: World, item: fact.Fact, at: int) -> None:
    """Make one fact true."""
    world.budgets.now = at
    if at > world.goodput.at:
        advance(world, at)
    APPLY[type(item)](world, item, at)


def apply_entry(world: World, seq: int, at: int, facts: Iterable[fact.Fact]) -> None:
    """Fold one journal entry; entries come in order and without gaps."""
    if seq != world.seq + 1 or at < world.now:
        raise InvariantError("entries follow each other", f"entry {seq} at {at} after {world.seq} at {world.now}")
    world.budgets.now = at
    if at > world.goodput.at:
        advance(world, at)
    for item in facts:
        APPLY[type(item)](world, item, at)
    world.seq = seq
    world.now = at


def unroll(placed: fact.Placed, at: int) -> Iterable[tuple[int, Run]]:
    """The columns of a `Placed` at an instant, gang by gang; only those that came by a claim have a ticket so far."""
    begin, tickets = 0, placed.tickets or [0] * len(placed.jobs)
    for job, epoch, width, ticket in zip(placed.jobs, placed.epochs, placed.widths, tickets, strict=True):
        end = begin + width
        columns = (placed.slots[begin:end], placed.tasks[begin:end], placed.devices[begin:end])
        yield job, Run(epoch, tuple(map(Lease, *columns)), at, ticket)
        begin = end


def _tenant_set(world: World, item: fact.TenantSet, at: int) -> None:  # noqa: ARG001 - one signature for the table
    world.set_tenant(item.name, item.tenant)


def _tenant_dropped(world: World, item: fact.TenantDropped, at: int) -> None:  # noqa: ARG001 - one signature
    world.drop_tenant(item.name)


def _budget_turned(world: World, item: fact.BudgetTurned, at: int) -> None:  # noqa: ARG001 - one signature
    world.turn_budget(world.budgets.get(AccountKey(item.tenant, item.unit, item.soft)), item.since)


def _flavor_set(world: World, item: fact.FlavorSet, at: int) -> None:  # noqa: ARG001 - one signature for the table
    world.set_flavor(item.name, item.flavor)


def _labels_mentioned(world: World, item: fact.LabelsMentioned, at: int) -> None:  # noqa: ARG001 - one signature
    world.fleet.mention(frozenset(item.labels))


def _tier_set(world: World, item: fact.TierSet, at: int) -> None:  # noqa: ARG001 - one signature for the table
    world.set_tier(item.name, item.tier)


def _overlay_set(world: World, item: fact.OverlaySet, at: int) -> None:  # noqa: ARG001 - one signature for the table
    put_overlay(world, item.name, item.overlay)


def _overlay_dropped(world: World, item: fact.OverlayDropped, at: int) -> None:  # noqa: ARG001 - one signature
    put_overlay(world, item.name, None)


def _profile_set(world: World, item: fact.ProfileSet, at: int) -> None:  # noqa: ARG001 - one signature for the table
    world.set_profile(item.name, Edition(item.profile, item.version))


def _profile_used(world: World, item: fact.ProfileUsed, at: int) -> None:  # noqa: ARG001 - one signature
    world.use_profile(item.name)


def _advised(world: World, item: fact.Advised, at: int) -> None:  # noqa: ARG001 - one signature for the table
    heed(world, item.kind, item.advice)


def _advice_dropped(world: World, item: fact.AdviceDropped, at: int) -> None:  # noqa: ARG001 - one signature
    heed(world, item.kind, None)


def _node_joined(world: World, item: fact.NodeJoined, at: int) -> None:
    fleet = world.fleet
    if item.slot < len(fleet) and item.capacity.gpus < fleet.capacity(item.slot).gpus:
        fleet.losses.note(item.slot, BROKEN, at)
    world.join(item.slot, item.name, item.capacity, item.traits, item.devices)


def _node_said(world: World, item: fact.NodeSaid, at: int) -> None:  # noqa: ARG001 - one signature for the table
    traits = replace(world.fleet.traits[item.slot], labels=item.labels, taints=item.taints)
    world.hear(item.slot, traits, item.later)


def _node_lacks(world: World, item: fact.NodeLacks, at: int) -> None:
    if item.lack.devices & ~world.fleet.lacks.get(item.slot, NO_LACK).devices:
        world.fleet.losses.note(item.slot, BROKEN, at)
    world.set_lack(item.slot, item.lack)


def _node_phased(world: World, item: fact.NodePhased, at: int) -> None:
    world.fleet.losses.note_phase(item.slot, world.fleet.phase[item.slot], item.phase, at)
    world.set_phase(item.slot, item.phase)


def _node_barred(world: World, item: fact.NodeBarred, at: int) -> None:  # noqa: ARG001 - one signature for the table
    world.bar(item.slot, item.bar)


def _node_unbarred(world: World, item: fact.NodeUnbarred, at: int) -> None:  # noqa: ARG001 - one signature for the table
    world.unbar(item.slot, item.kind, item.owner)


def _booked(world: World, item: fact.Booked, at: int) -> None:  # noqa: ARG001 - one signature for the table
    put_booking(world, item.booking)


def _window_moved(world: World, item: fact.WindowMoved, at: int) -> None:  # noqa: ARG001 - one signature
    change_window(world, item.booking, item.opens_at, lambda window: replace(window, slots=tuple(item.slots)))


def _window_opened(world: World, item: fact.WindowOpened, at: int) -> None:  # noqa: ARG001 - one signature
    opens_at = world.bookings[item.booking].windows[0].opens_at
    change_window(world, item.booking, opens_at, lambda window: replace(window, is_open=True))


def _window_closed(world: World, item: fact.WindowClosed, at: int) -> None:  # noqa: ARG001 - one signature
    booking = world.bookings[item.booking]
    put_booking(world, replace(booking, windows=booking.windows[1:]))


def _booking_dropped(world: World, item: fact.BookingDropped, at: int) -> None:  # noqa: ARG001 - one signature
    drop_booking(world, item.booking)


def _accepted(world: World, item: fact.Accepted, at: int) -> None:
    spec = world.equals.share(item.spec)
    phase: Phase = Spread(at) if spec.array else Queued(at)
    job = world.jobs[item.job] = Job(item.job, spec, at, phase, 0, 0, item.key, spec.held, item.waits)
    if spec.array:
        follows = bool(item.waits) and any(other in item.waits for other in spec.likes)
        world.arrays[item.job] = Tasks(spec.array, TaskPhase.BLOCKED if follows else TaskPhase.QUEUED)
        if spec.at_most:
            world.widths.throttle(job, world.arrays[item.job])
    if item.key:
        world.keys.add(spec.tenant, item.key, item.job)
    if world.mix is not None:
        world.mix.add(spec, 1)
    if spec.needs is not ANYWHERE and spec.needs.has_company:
        world.keep_company(spec.needs)
    if world.tiers[spec.tier].promise is not None:
        note_promise(world, spec, 1)
    if is_varied(spec):
        world.varied += 1
    world.next_job = item.job + 1
    world.accepted += 1
    if not spec.array or world.is_waiting(job):
        world.enqueue(job)
    else:
        wait_for_others(world, job)


def _after_met(world: World, item: fact.AfterMet, at: int) -> None:  # noqa: ARG001 - one signature for the table
    for number in item.jobs:
        stop_waiting(world, world.jobs[number], item.other)


def _placed(world: World, item: fact.Placed, at: int) -> None:
    for number, run in unroll(item, at):
        world.hold(world.jobs[number], run if run.ticket else replace(run, ticket=next_ticket(world)), at)


def _began(world: World, item: fact.Began, at: int) -> None:
    """Ranks that join a run which is up already do not change since when it is."""
    job = world.jobs[item.job]
    ranks = world.ranks.get(item.job)
    if ranks is not None:
        end = item.first + item.count
        window = ranks[item.first : end]
        ranks[item.first : end] = window.replace(bytes([TaskPhase.STARTING]), bytes([TaskPhase.RUNNING]))
        if ranks.find(TaskPhase.STARTING) >= 0 or isinstance(job.phase, Running):
            return
    world.set_job_phase(job, Running(at, _run_of(job)))


def _progressed(world: World, item: fact.Progressed, at: int) -> None:
    world.goodput.mark(world.jobs[item.job], item, at)
    if item.checkpointed and world.runs is not None:
        world.runs.save(item.job, at)


def _metered(world: World, item: fact.Metered, at: int) -> None:
    world.meters[item.job] = world.meters.get(item.job, Meter()).add(item.cpu_ms, item.rss_bytes)
    if world.goodput.diary is not None:
        world.goodput.diary.meter(world.jobs[item.job], item.cpu_ms, at)


def _ranks_over(world: World, item: fact.RanksOver, at: int) -> None:
    """A rank may be over before it was said to be up: the gang runs as soon as no rank is still to come."""
    job, ranks = world.jobs[item.job], world.ranks[item.job]
    window = ranks[item.first : item.first + item.count]
    for phase in HOLDING:
        window = window.replace(bytes([phase]), bytes([TaskPhase.SUCCEEDED]))
    ranks[item.first : item.first + item.count] = window
    if isinstance(job.phase, Starting) and ranks.find(TaskPhase.STARTING) < 0:
        world.set_job_phase(job, Running(at, job.phase.run))


def _stop_asked(world: World, item: fact.StopAsked, at: int) -> None:
    job = world.jobs[item.job]
    world.goodput.close(job, _run_of(job), at, is_useful=False)
    served = replace(job, served_ms=_served_ms(job, at))
    world.queue.floors.note_stop(world.set_job_phase(served, Stopping(at, _run_of(job), item.why, item.code)))
    world.widths.mending.pop(item.job, None)
    world.widths.lacking.pop(item.job, None)
    if world.runs is not None:
        world.runs.leave(item.job)


def _ended(world: World, item: fact.Ended, at: int) -> None:
    job = world.jobs[item.job]
    if world.promised:
        note_promise(world, job.spec, -1)
    if world.mix is not None:
        world.mix.add(job.spec, -1)
    after = Job(item.job, job.spec, job.accepted_at, _terminal_phase(item, at), job.epoch, job.failures, job.key)
    if world.runs is not None:
        world.runs.flapping.pop(item.job, None)
    if world.goodput.diary is not None:
        counts = tuple(world.arrays[item.job].counts) if job.spec.array else ()
        world.goodput.diary.end(job, item, at, world.meters.get(item.job, _UNMETERED), counts)
    if world.widths.resizes:
        world.widths.resizes.pop(item.job, None)
    if world.goodput.saves:
        world.goodput.saves.pop(item.job, None)
    if job.spec.array:
        world.widths.throttled.pop(item.job, None)
        world.arrays[item.job].marks = None
        world.arrays[item.job].moved.clear()
        leave_others(world, job)
        world.put(after)
    else:
        world.release(job, after, at)


def _requeued(world: World, item: fact.Requeued, at: int) -> None:
    job = world.jobs[item.job]
    failures = job.failures + (item.why == Why.EXIT)
    evicted = (*job.evicted, at)[-EVICTIONS_MAX:] if item.why in TAKEN else job.evicted
    after = replace(job, phase=Queued(at), failures=failures, evicted=evicted, served_ms=_served_ms(job, at))
    world.release(job, after, at)
    if item.why is Why.SHRINK:
        world.widths.resizes[item.job] = Resize(at)


def _scaled(world: World, item: fact.Scaled, at: int) -> None:  # noqa: ARG001 - one signature for the table
    set_bounds(world, world.jobs[item.job], item.least, item.most)


def _grown(world: World, item: fact.Grown, at: int) -> None:
    grow(world, world.jobs[item.job], tuple(map(Lease, item.slots, item.tasks, item.devices)), at)


def _shrink_asked(world: World, item: fact.ShrinkAsked, at: int) -> None:
    ask_shrink(world, world.jobs[item.job], item.width, at)


def _shrunk(world: World, item: fact.Shrunk, at: int) -> None:
    shrink(world, world.jobs[item.job], item.width, at)


def _ranks_lost(world: World, item: fact.RanksLost, at: int) -> None:
    part(world, world.jobs[item.job], item.first, item.count, at)


def _spares_given(world: World, item: fact.SparesGiven, at: int) -> None:
    give_spares(world, world.jobs[item.job], tuple(map(Lease, item.slots, item.tasks, item.devices)), at)


def _spares_used(world: World, item: fact.SparesUsed, at: int) -> None:
    use_spares(world, world.jobs[item.job], item.tasks, at)


def _spares_dropped(world: World, item: fact.SparesDropped, at: int) -> None:
    drop_spares(world, world.jobs[item.job], item.slots, at)


def _job_held(world: World, item: fact.JobHeld, at: int) -> None:  # noqa: ARG001 - one signature for the table
    world.set_held(world.jobs[item.job], held=True)


def _job_released(world: World, item: fact.JobReleased, at: int) -> None:  # noqa: ARG001 - one signature
    world.set_held(world.jobs[item.job], held=False)


def _claimed(world: World, item: fact.Claimed, at: int) -> None:
    movers = tuple(item.movers), tuple(item.tickets)
    put_claim(world, item.job, Claim(item.leases, item.until, item.ticket or next_ticket(world), 0, 0, *movers))
    if item.victims:
        job = world.jobs[item.job]
        world.jobs[item.job] = replace(job, took=(*job.took, at)[-EVICTIONS_MAX:])
        if job.took and world.runs is not None:
            world.runs.flapping[item.job] = None


def _moves_planned(world: World, item: fact.MovesPlanned, at: int) -> None:
    world.claims[item.job] = replace(world.claims[item.job], gain=item.gain, cost=item.cost)
    for number, task in item.movers:
        job = world.jobs[number]
        if job.spec.array:
            moved = world.arrays[number].moved
            moved[task] = (*moved.get(task, ()), at)[-EVICTIONS_MAX:]
        else:
            world.jobs[number] = replace(job, moves=(*job.moves, at)[-EVICTIONS_MAX:])


def _claim_dropped(world: World, item: fact.ClaimDropped, at: int) -> None:  # noqa: ARG001 - one signature
    drop_claim(world, item.job)


def _tasks_placed(world: World, item: fact.TasksPlaced, at: int) -> None:
    columns, ticket = (item.slots, item.counts, item.devices), item.ticket or next_ticket(world)
    world.hold_tasks(world.jobs[item.job], item.first, *columns, at, ticket)


def _tasks_moved(world: World, item: fact.TasksMoved, at: int) -> None:
    job, tasks = world.jobs[item.job], world.arrays[item.job]
    if item.phase in (TaskPhase.QUEUED, TaskPhase.BLOCKED):
        (unblock_tasks if item.phase == TaskPhase.QUEUED else block_tasks)(world, job, item.spans)
        return
    ranges = item.ranges
    if has_devices(job.spec):
        world.goodput.close_tasks(job, tasks, ranges, at)
    limit_ms = job.spec.limit_ms
    if limit_ms is not None:
        world.timers.tasks.leave(job.id, limit_ms, tasks, ranges)
    tasks.enter(ranges, item.phase, at, item.why or Why.DRAIN)
    if limit_ms is not None and item.phase == TaskPhase.RUNNING:
        world.timers.tasks.add(job.id, at + limit_ms, item.total)


def _tasks_ended(world: World, item: fact.TasksEnded, at: int) -> None:
    tasks = world.arrays[item.job]
    if tasks.phase[item.first] == TaskPhase.BLOCKED:
        for span in item.spans:
            tasks.set_phase(*span, item.phase)
        return
    world.release_tasks(world.jobs[item.job], item.ranges, item.phase, at)
    if item.phase == TaskPhase.QUEUED and item.why == Why.EXIT:
        for first, count in item.spans:
            for task in range(first, first + count):
                tasks.failures[task] += 1


def _tasks_progressed(world: World, item: fact.TasksProgressed, at: int) -> None:
    world.goodput.mark_tasks(world.jobs[item.job], world.arrays[item.job], item, at)


def _array_cancelled(world: World, item: fact.ArrayCancelled, at: int) -> None:
    job, tasks = world.jobs[item.job], world.arrays[item.job]
    if tasks.counts[TaskPhase.QUEUED] > spoken_for(world, item.job):
        world.dequeue(job)
    leave_others(world, job)
    for run in list(spans_of(tasks.phase, (TaskPhase.QUEUED, TaskPhase.BLOCKED), 0, len(tasks))):
        tasks.set_phase(*run, TaskPhase.CANCELLED)
    world.set_job_phase(job, Spread(at, cancelled=True))


def _retired(world: World, item: fact.Retired, at: int) -> None:
    world.forget(item.jobs)
    world.timers.trim(world.jobs, world.fleet.bars)
    world.usage.trim(at)


def _served_ms(job: Job, at: int) -> int:
    """For how long a job was up, with the run that ends now."""
    return job.served_ms + at - job.phase.since if isinstance(job.phase, Running) else job.served_ms


def _run_of(job: Job) -> Run:
    if isinstance(job.phase, ACTIVE):
        return job.phase.run
    raise InvariantError("only what holds a place can run", f"job {job.id} is {type(job.phase).__name__}")


def _terminal_phase(item: fact.Ended, at: int) -> Phase:
    if item.phase == TaskPhase.SUCCEEDED:
        return Succeeded(at)
    if item.phase == TaskPhase.CANCELLED:
        return Cancelled(at, item.why)
    return Failed(at, item.why, item.code)


APPLY: Final[dict[type, Callable[[World, Any, int], None]]] = {
    fact.TenantSet: _tenant_set,
    fact.TenantDropped: _tenant_dropped,
    fact.BudgetTurned: _budget_turned,
    fact.FlavorSet: _flavor_set,
    fact.LabelsMentioned: _labels_mentioned,
    fact.TierSet: _tier_set,
    fact.OverlaySet: _overlay_set,
    fact.OverlayDropped: _overlay_dropped,
    fact.ProfileSet: _profile_set,
    fact.ProfileUsed: _profile_used,
    fact.Advised: _advised,
    fact.AdviceDropped: _advice_dropped,
    fact.NodeJoined: _node_joined,
    fact.NodeSaid: _node_said,
    fact.NodeLacks: _node_lacks,
    fact.NodePhased: _node_phased,
    fact.NodeBarred: _node_barred,
    fact.NodeUnbarred: _node_unbarred,
    fact.Booked: _booked,
    fact.WindowMoved: _window_moved,
    fact.WindowOpened: _window_opened,
    fact.WindowClosed: _window_closed,
    fact.BookingDropped: _booking_dropped,
    fact.Accepted: _accepted,
    fact.AfterMet: _after_met,
    fact.Placed: _placed,
    fact.Began: _began,
    fact.Progressed: _progressed,
    fact.Metered: _metered,
    fact.RanksOver: _ranks_over,
    fact.StopAsked: _stop_asked,
    fact.Ended: _ended,
    fact.Requeued: _requeued,
    fact.Scaled: _scaled,
    fact.Grown: _grown,
    fact.ShrinkAsked: _shrink_asked,
    fact.Shrunk: _shrunk,
    fact.RanksLost: _ranks_lost,
    fact.SparesGiven: _spares_given,
    fact.SparesUsed: _spares_used,
    fact.SparesDropped: _spares_dropped,
    fact.JobHeld: _job_held,
    fact.JobReleased: _job_released,
    fact.Claimed: _claimed,
    fact.MovesPlanned: _moves_planned,
    fact.ClaimDropped: _claim_dropped,
    fact.TasksPlaced: _tasks_placed,
    fact.TasksMoved: _tasks_moved,
    fact.TasksEnded: _tasks_ended,
    fact.TasksProgressed: _tasks_progressed,
    fact.ArrayCancelled: _array_cancelled,
    fact.Retired: _retired,
}
