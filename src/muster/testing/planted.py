"""Planted bugs: each breaks one guard of the core for the length of a `with`, to prove that the harness finds it.

A harness that never failed has proven nothing. Nothing here is ever used outside tests, and every plant is taken out
again on the way out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final
from unittest import mock

import msgspec

from muster.kernel import attempts, nodes, quarantine
from muster.kernel.reactors import REACTORS
from muster.kernel.turn import Turn
from muster.model import fact
from muster.model.errors import InvariantError
from muster.model.event import Exited, NodeGone, NodeSilent
from muster.model.job import BarKind, Job, NodePhase
from muster.model.node import NO_LACK
from muster.model.phase import Failed, Lease, Run, Succeeded, TaskPhase, Why
from muster.model.profile import Profile
from muster.model.spec import ANYWHERE, Needs, Spec
from muster.model.tenant import CPU, FLEET, ROOT
from muster.scheduler import cycle, fit
from muster.scheduler.within import EVERYWHERE
from muster.units import Limit, Resources
from muster.world import apply, draft, quota
from muster.world import fleet as fleets
from muster.world.budgets import Budgets
from muster.world.compiled import Words
from muster.world.fleet import Fleet
from muster.world.ledger import Ledger
from muster.world.queue import Line, Queue, job_of
from muster.world.sites import Site
from muster.world.timers import Timers
from muster.world.usage import Meter, Usage
from muster.world.world import World

_replace = msgspec.structs.replace


@contextlib.contextmanager
def device_given_twice() -> Iterator[None]:
    """Placement takes the node's first devices, whether they are free or not, and the node does not look."""

    def lease(words: Words, slot: int, ask: Resources) -> Lease:  # noqa: ARG001 - not looking at what is free is the bug
        return Lease(slot, 1, (1 << ask.gpus) - 1)

    with mock.patch.object(fit, "_lease", lease), unguarded_nodes():
        yield


@contextlib.contextmanager
def capacity_overrun() -> Iterator[None]:
    """CPU is not looked at: neither where a task goes, nor by the node it goes to."""
    honest = fit._find_one

    def careless(fleet: Fleet, ask: Resources, needs: Needs, pools: fit.Pools) -> list[Lease] | None:
        return honest(fleet, _replace(ask, cpu_milli=0, memory_bytes=0), needs, pools)

    with mock.patch.object(fit, "_find_one", careless), unguarded_nodes():
        yield


@contextlib.contextmanager
def unguarded_nodes() -> Iterator[None]:
    """A node gives away what it does not have."""
    occupy, vacate = Fleet.occupy, Fleet.vacate

    def take(fleet: Fleet, slot: int, job: int, ask: Resources, tasks: int, devices: int) -> None:
        with contextlib.suppress(InvariantError):
            occupy(fleet, slot, job, ask, tasks, devices)

    def give(fleet: Fleet, slot: int, job: int, ask: Resources, tasks: int, devices: int) -> None:
        with contextlib.suppress(InvariantError):
            vacate(fleet, slot, job, ask, tasks, devices)

    with mock.patch.object(Fleet, "occupy", take), mock.patch.object(Fleet, "vacate", give):
        yield


@contextlib.contextmanager
def job_lost() -> Iterator[None]:
    """A job that is requeued falls out of the queue."""
    honest = apply.APPLY[fact.Requeued]

    def requeue(world: World, item: fact.Requeued, at: int) -> None:
        honest(world, item, at)
        world.dequeue(world.jobs[item.job])

    with mock.patch.dict(apply.APPLY, {fact.Requeued: requeue}):
        yield


@contextlib.contextmanager
def hold_forgotten() -> Iterator[None]:
    """A job that is held keeps its place in the line."""

    def set_held(world: World, job: Any, held: bool) -> None:
        world.jobs[job.id] = _replace(job, held=held)

    with mock.patch.object(World, "set_held", set_held):
        yield


@contextlib.contextmanager
def job_forgotten() -> Iterator[None]:
    """A job that ends is dropped at once, without a fact that says so."""
    honest = apply.APPLY[fact.Ended]

    def end(world: World, item: fact.Ended, at: int) -> None:
        honest(world, item, at)
        del world.jobs[item.job]

    with mock.patch.dict(apply.APPLY, {fact.Ended: end}):
        yield


@contextlib.contextmanager
def epoch_not_raised() -> Iterator[None]:
    """A second try carries the epoch of the first."""

    class Careless(draft.Draft):
        def place(self, job: Any, leases: list[Lease]) -> None:
            super().place(_replace(job, epoch=max(0, job.epoch - 1)) if job.epoch else job, leases)

    with mock.patch.object(cycle, "Draft", Careless):
        yield


@contextlib.contextmanager
def terminal_overwritten() -> Iterator[None]:
    """A late word about a job that succeeded makes it failed."""
    react, end = REACTORS[Exited], apply.APPLY[fact.Ended]

    def on_exited(turn: Any, item: Exited) -> Any:
        job = turn.world.jobs.get(item.job)
        if job is not None and isinstance(job.phase, Succeeded):
            turn.emit(fact.Ended(job.id, TaskPhase.FAILED, Why.EXIT, 1))
        return react(turn, item)

    def overwrite(world: World, item: fact.Ended, at: int) -> None:
        job = world.jobs[item.job]
        if isinstance(job.phase, Succeeded):
            world.set_job_phase(job, Failed(at, Why.EXIT, 1))
        else:
            end(world, item, at)

    with mock.patch.dict(REACTORS, {Exited: on_exited}), mock.patch.dict(apply.APPLY, {fact.Ended: overwrite}):
        yield


@contextlib.contextmanager
def ledger_leak() -> Iterator[None]:
    """One refund in a few is forgotten: that of tasks whose array goes on."""
    honest = Ledger.refund

    def refund(ledger: Ledger, tenant: str, site: Site, ask: Resources, tasks: int) -> None:
        if tasks != 2:
            honest(ledger, tenant, site, ask, tasks)

    with mock.patch.object(Ledger, "refund", refund):
        yield


@contextlib.contextmanager
def quota_leak() -> Iterator[None]:
    """A refund forgets an ancestor: what a team gives back, its lab goes on holding."""
    honest = Ledger.refund

    def refund(ledger: Ledger, tenant: str, site: Site, ask: Resources, tasks: int) -> None:
        honest(ledger, tenant, site, ask, tasks)
        parent = ledger.chain(tenant)[1]
        if parent != ROOT:
            kind, cells = ledger.cells(parent, CPU, FLEET)
            cells[0][kind] += ask.cpu_milli * tasks

    with mock.patch.object(Ledger, "refund", refund):
        yield


@contextlib.contextmanager
def charged_twice() -> Iterator[None]:
    """A gang that lies on several nodes is charged once too often."""
    honest = World.charge

    def charge(world: World, asked: Spec, leases: Sequence[Lease], at: int, end: Limit = None) -> None:
        honest(world, asked, leases, at, end)
        honest(world, asked, leases[1:], at, end)

    with mock.patch.object(World, "charge", charge):
        yield


@contextlib.contextmanager
def stays_and_borrows() -> Iterator[None]:
    """What may not be evicted may borrow."""
    standing, headroom = quota.Quotas.standing, quota.Quotas.headroom

    def generous(*about: Any) -> quota.Standing:
        return quota.Standing.OVER if standing(*about) == quota.Standing.OVER else quota.Standing.INSIDE

    def borrowed(*about: Any, evictable: bool) -> int:  # noqa: ARG001 - not looking is the bug
        return headroom(*about, evictable=True)

    careless = mock.patch.object(quota.Quotas, "standing", generous)
    with careless, mock.patch.object(quota.Quotas, "headroom", borrowed):
        yield


@contextlib.contextmanager
def guarantee_taken() -> Iterator[None]:
    """Borrowers take what its owner does not lend."""
    with mock.patch.object(quota, "kept", return_value=0):
        yield


@contextlib.contextmanager
def budget_ignored() -> Iterator[None]:
    """Who has spent all goes on starting."""
    with mock.patch.object(Budgets, "find_spent", return_value=None):
        yield


@contextlib.contextmanager
def spending_forgotten() -> Iterator[None]:
    """What ends goes on spending, if it was one task of an array."""
    honest = Budgets.spend

    def spend(budgets: Budgets, job: int, tenant: str, ask: Resources, tasks: int, *about: Any) -> None:
        if tasks != -1:
            honest(budgets, job, tenant, ask, tasks, *about)

    with mock.patch.object(Budgets, "spend", spend):
        yield


@contextlib.contextmanager
def budget_never_turns() -> Iterator[None]:
    """The next period does not begin."""
    with mock.patch.object(Budgets, "due", return_value=[]), mock.patch.object(Budgets, "find_turn", return_value=None):
        yield


@contextlib.contextmanager
def partial_gang() -> Iterator[None]:
    """A gang that does not fit starts with as much of it as does."""
    honest = fit.find_gang

    def find(fleet: Fleet, ask: Resources, gang: int, needs: Needs, pools: fit.Pools = None) -> list[Lease] | None:
        found = honest(fleet, ask, gang, needs, pools)
        while found is None and gang > 1:
            gang -= 1
            found = honest(fleet, ask, gang, needs, pools)
        return found

    with mock.patch.object(cycle, "find_gang", find):
        yield


@contextlib.contextmanager
def box_with_a_hole() -> Iterator[None]:
    """A gang with a shape gets nodes that are free, wherever they are."""

    def anywhere(fleet: Fleet, ask: Resources, gang: int, needs: Needs, pools: fit.Pools) -> list[Lease] | None:
        return fit.find_gang(fleet, ask, gang, _replace(needs, shape=(), spread="node"), pools)

    with mock.patch.object(fit, "_find_box", anywhere):
        yield


@contextlib.contextmanager
def fold_differs() -> Iterator[None]:
    """The fold of a `Placed` gives the gang another start time than the draft that made it."""
    honest = apply.APPLY[fact.Placed]

    def place(world: World, item: fact.Placed, at: int) -> None:
        honest(world, item, at + 1)

    with mock.patch.dict(apply.APPLY, {fact.Placed: place}):
        yield


@contextlib.contextmanager
def index_with_history() -> Iterator[None]:
    """A task goes to the node that was used last, if it fits there, and not to the best."""
    honest = fit._find_one

    def last_used(fleet: Fleet, ask: Resources, needs: Needs, pools: fit.Pools) -> list[Lease] | None:
        is_plain = not ask.gpu_milli and needs == ANYWHERE and pools is None
        for slot in reversed(fleet.holders) if is_plain else ():
            free = fleet.find_free(slot)
            if free is not None and ask.gpus <= free[0] and ask.cpu_milli <= free[1] and ask.memory_bytes <= free[2]:
                return [fit._lease(fleet.words, slot, ask)]
        return honest(fleet, ask, needs, pools)

    with mock.patch.object(fit, "_find_one", last_used):
        yield


@contextlib.contextmanager
def scores_remembered() -> Iterator[None]:
    """Scores that another profile gave are still believed."""

    def weigh(fleet: Fleet, profile: Profile) -> None:
        fleet.profile = profile

    with mock.patch.object(Fleet, "weigh", weigh):
        yield


@contextlib.contextmanager
def stale_wakeup() -> Iterator[None]:
    """What comes free wakes nobody."""
    with mock.patch.object(Queue, "wake_for_room", return_value=None):
        yield


@contextlib.contextmanager
def quota_never_wakes() -> Iterator[None]:
    """A tenant that gives something back stays outside its quota."""
    with mock.patch.object(World, "wake_tenant", return_value=None):
        yield


@contextlib.contextmanager
def quota_ignored() -> Iterator[None]:
    """A tenant may hold whatever there is."""

    def headroom(*about: Any, evictable: bool) -> int:  # noqa: ARG001 - not looking is the bug
        return int(about[-1])

    careless = mock.patch.object(cycle, "pools_within", return_value=EVERYWHERE)
    with careless, mock.patch.object(quota.Quotas, "headroom", headroom):
        yield


@contextlib.contextmanager
def tie_by_arrival() -> Iterator[None]:
    """A line offers whoever joined it last: after a requeue or a restore that is somebody else."""
    honest = Line.first

    def first(line: Line, since: int) -> int:
        key = honest(line, since)
        return key ^ job_of(key) | next(reversed(line._accepted))

    with mock.patch.object(Line, "first", first):
        yield


@contextlib.contextmanager
def stored_decay() -> Iterator[None]:
    """What is kept of past hours is halved whenever somebody weighs it."""
    honest = Meter.weighted

    def weighted(meter: Meter, bucket: int) -> int:
        found = honest(meter, bucket)
        meter.past = {other: use // 2 for other, use in meter.past.items()}
        return found

    with mock.patch.object(Meter, "weighted", weighted):
        yield


@contextlib.contextmanager
def use_never_ends() -> Iterator[None]:
    """Whoever ends at some moments is charged on."""
    honest = Usage.step

    def step(usage: Usage, tenant: str, family: str, amount: int, at: int, end: Limit = None) -> None:
        if amount > 0 or at % 7:
            honest(usage, tenant, family, amount, at, end)

    with mock.patch.object(Usage, "step", step):
        yield


@contextlib.contextmanager
def stale_epoch_accepted() -> Iterator[None]:
    """The word of an older try is taken for that of the newest."""
    honest = attempts._find_job

    def lenient(turn: Any, item: Any) -> Any:
        job = turn.world.jobs.get(item.job)
        return honest(turn, item if job is None or job.spec.array else _replace(item, epoch=job.epoch))

    with mock.patch.object(attempts, "_find_job", lenient):
        yield


@contextlib.contextmanager
def stopped_too_early() -> Iterator[None]:
    """A gang gives its places back when it is told to stop, not when the stop is confirmed."""
    honest = apply.APPLY[fact.StopAsked]

    def stop(world: World, item: fact.StopAsked, at: int) -> None:
        honest(world, item, at)
        job = world.jobs[item.job]
        for lease in _run_of(job.phase).leases:
            world.fleet.vacate(lease.slot, job.id, job.spec.ask, lease.tasks, lease.devices)

    with mock.patch.dict(apply.APPLY, {fact.StopAsked: stop}):
        yield


@contextlib.contextmanager
def silence_kills() -> Iterator[None]:
    """A node that is not heard of is taken for gone, and its work is started elsewhere."""

    def on_silent(turn: Any, item: NodeSilent) -> Any:
        return nodes.on_node_gone(turn, NodeGone(item.name, item.cause))

    with mock.patch.dict(REACTORS, {NodeSilent: on_silent}):
        yield


@contextlib.contextmanager
def stop_not_sent() -> Iterator[None]:
    """A gang is told to stop in the journal, and nobody tells the engine."""
    with mock.patch.object(Turn, "stop", return_value=None):
        yield


@contextlib.contextmanager
def start_not_repeated() -> Iterator[None]:
    """What a node did not hear is not said again when it comes back."""
    with mock.patch.object(nodes, "_say_again", return_value=None):
        yield


@contextlib.contextmanager
def over_ranks_restarted() -> Iterator[None]:
    """A gang's start is repeated for every rank, also for those that are over."""
    with mock.patch.object(nodes, "_fence_over", return_value=None):
        yield


@contextlib.contextmanager
def limit_ignored() -> Iterator[None]:
    """A run goes on past its limit."""
    with mock.patch.object(Timers, "find_limit", return_value=None):
        yield


@contextlib.contextmanager
def key_forgotten() -> Iterator[None]:
    """A submit that is repeated becomes a second job."""
    honest = apply.APPLY[fact.Accepted]

    def accept(world: World, item: fact.Accepted, at: int) -> None:
        honest(world, item, at)
        world.keys.clear()

    with mock.patch.dict(apply.APPLY, {fact.Accepted: accept}):
        yield


@contextlib.contextmanager
def retired_too_early() -> Iterator[None]:
    """Jobs leave the world before they are over."""
    honest = Timers.take_ended

    def take(timers: Timers, jobs: dict[int, Job], *rest: Any) -> list[int]:
        found = honest(timers, jobs, *rest)
        return found + [number for number in list(jobs)[:1] if found and number not in found]

    with mock.patch.object(Timers, "take_ended", take):
        yield


@contextlib.contextmanager
def work_for_a_silent_node() -> Iterator[None]:
    """A node that is not heard of stays in the index."""
    honest = Fleet.set_phase

    def set_phase(fleet: Fleet, slot: int, phase: NodePhase) -> None:
        honest(fleet, slot, NodePhase.UP if phase == NodePhase.UNKNOWN else phase)

    with mock.patch.object(Fleet, "set_phase", set_phase):
        yield


@contextlib.contextmanager
def work_for_a_barred_node() -> Iterator[None]:
    """A bar does not take its node out of the index."""

    def is_open(fleet: Fleet, slot: int) -> bool:
        return fleet.phase[slot] == NodePhase.UP

    with mock.patch.object(Fleet, "is_open", is_open):
        yield


@contextlib.contextmanager
def bar_never_ends() -> Iterator[None]:
    """A bar stands past its time."""
    with mock.patch.object(Timers, "find_bar", return_value=None):
        yield


@contextlib.contextmanager
def unbar_wakes_nobody() -> Iterator[None]:
    """A bar is lifted, and whoever waited for the node sleeps on."""

    honest = World.unbar

    def unbar(world: World, slot: int, kind: BarKind, owner: str) -> None:
        with mock.patch.object(Queue, "wake_all", return_value=None):
            honest(world, slot, kind, owner)

    with mock.patch.object(World, "unbar", unbar):
        yield


@contextlib.contextmanager
def drained_for_good() -> Iterator[None]:
    """A task that a drain stopped is over, as if it had failed by itself."""
    with mock.patch.object(attempts, "_verdicts", attempts._own_verdicts):
        yield


@contextlib.contextmanager
def device_counted_twice() -> Iterator[None]:
    """A device that two nodes claim counts in both."""
    with mock.patch.object(quarantine, "find_rival", return_value=None):
        yield


@contextlib.contextmanager
def phantom_device() -> Iterator[None]:
    """A node that comes back smaller while work is there stays what it was."""
    with mock.patch.object(nodes, "lack_of", return_value=NO_LACK):
        yield


@contextlib.contextmanager
def phantom_comes_free() -> Iterator[None]:
    """Whoever leaves a device that is not there any more leaves it free."""
    honest = Fleet.vacate

    def vacate(fleet: Fleet, slot: int, job: int, ask: Resources, tasks: int, devices: int) -> None:
        with mock.patch.object(fleets, "withhold", lambda *about: about[-1]):
            honest(fleet, slot, job, ask, tasks, devices)

    with mock.patch.object(Fleet, "vacate", vacate):
        yield


def _run_of(phase: Any) -> Run:
    run: Run = phase.run
    return run


PLANTED: Final[dict[str, Callable[[], contextlib.AbstractContextManager[None]]]] = {
    plant.__name__: plant
    for plant in (
        device_given_twice,
        capacity_overrun,
        job_lost,
        hold_forgotten,
        job_forgotten,
        epoch_not_raised,
        terminal_overwritten,
        ledger_leak,
        quota_leak,
        charged_twice,
        stays_and_borrows,
        guarantee_taken,
        budget_ignored,
        spending_forgotten,
        budget_never_turns,
        partial_gang,
        box_with_a_hole,
        fold_differs,
        index_with_history,
        scores_remembered,
        stale_wakeup,
        quota_never_wakes,
        quota_ignored,
        tie_by_arrival,
        stored_decay,
        use_never_ends,
        stale_epoch_accepted,
        stopped_too_early,
        silence_kills,
        stop_not_sent,
        start_not_repeated,
        limit_ignored,
        key_forgotten,
        retired_too_early,
        work_for_a_silent_node,
        work_for_a_barred_node,
        bar_never_ends,
        unbar_wakes_nobody,
        drained_for_good,
        device_counted_twice,
        phantom_device,
        phantom_comes_free,
    )
}
