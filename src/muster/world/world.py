"""The world: all that Muster knows, in memory, and the few primitives that change it.

Jobs and quotas are frozen records in dicts; nodes and array tasks are columns. Queue and timers are indexes over them
and can always be rebuilt. The primitives come in pairs with exact inverses (`hold` and `release`, `hold_tasks` and
`release_tasks`) and keep every index in step; `apply` and `Draft` are the only callers.
"""

from __future__ import annotations

import msgspec

from muster.model.job import Bar, BarKind, Job, Quota
from muster.model.node import Flavor
from muster.model.phase import ACTIVE, TERMINAL, Phase, Queued, Run, Starting, TaskPhase
from muster.units import Resources
from muster.world.fleet import Fleet
from muster.world.ledger import Ledger
from muster.world.queue import Queue, Shape
from muster.world.tasks import Tasks
from muster.world.timers import Timers

_OPEN = Quota()


class World:
    """The state. `seq` and `now` are those of the newest entry folded into it."""

    __slots__ = (
        "accepted",
        "arrays",
        "flavors",
        "fleet",
        "jobs",
        "keys",
        "ledger",
        "next_job",
        "now",
        "queue",
        "ranks",
        "retired",
        "seq",
        "tenants",
        "timers",
    )

    def __init__(self) -> None:
        self.seq = 0
        self.now = 0
        self.next_job = 1
        self.accepted = 0
        self.retired = 0
        self.fleet = Fleet()
        self.flavors: dict[str, Flavor] = {}
        self.tenants: dict[str, Quota] = {}
        self.ledger = Ledger()
        self.jobs: dict[int, Job] = {}
        self.arrays: dict[int, Tasks] = {}
        self.ranks: dict[int, bytearray] = {}
        self.keys: dict[tuple[str, str], int] = {}
        self.queue = Queue()
        self.timers = Timers()

    def hold(self, job: Job, run: Run, at: int) -> None:
        """Give a waiting gang its leases. The inverse of `release`."""
        spec = job.spec
        for lease in run.leases:
            self.fleet.occupy(lease.slot, job.id, spec.ask, lease.tasks, lease.devices)
        self.ledger.charge(spec.tenant, spec.ask, spec.gang)
        self.queue.remove(job)
        if spec.gang > 1:
            self.ranks[job.id] = bytearray([TaskPhase.STARTING]) * spec.gang
        self.jobs[job.id] = msgspec.structs.replace(job, phase=Starting(at, run), epoch=run.epoch)

    def release(self, job: Job, after: Job) -> None:
        """Take a gang's leases back; `after` is what becomes of the job: over, or waiting again."""
        phase, spec = job.phase, job.spec
        if isinstance(phase, ACTIVE):
            for lease in phase.run.leases:
                self.fleet.vacate(lease.slot, job.id, spec.ask, lease.tasks, lease.devices)
                self._wake_for_room(lease.slot)
            self._refund(spec.tenant, spec.ask, spec.gang)
            self.ranks.pop(job.id, None)
        else:
            self.queue.remove(job)
        self.put(after)
        if isinstance(after.phase, Queued):
            self.queue.add(after)

    def hold_tasks(self, job: Job, first: int, slots: list[int], counts: list[int], devices: list[int]) -> None:
        """Give waiting tasks of an array, from `first` on, their places. The inverse of `release_tasks`."""
        tasks, ask = self.arrays[job.id], job.spec.ask
        begin = first
        for slot, count, mask in zip(slots, counts, devices, strict=True):
            self.fleet.occupy(slot, job.id, ask, count, mask)
            tasks.place(first, count, slot)
            if mask:
                tasks.share_devices(first, count, ask.gpus, mask)
            first += count
        self.ledger.charge(job.spec.tenant, ask, first - begin)
        tasks.set_phase(begin, first - begin, TaskPhase.STARTING)
        if not tasks.counts[TaskPhase.QUEUED]:
            self.queue.remove(job)

    def release_tasks(self, job: Job, first: int, count: int, after: TaskPhase) -> None:
        """Take the places of a range back; its tasks are over, or wait again."""
        tasks, ask = self.arrays[job.id], job.spec.ask
        has_devices = bool(ask.gpus or ask.gpu_milli)
        for slot, begin, width in tasks.seats(first, count, shared=ask.gpu_milli > 0):
            self.fleet.vacate(slot, job.id, ask, width, tasks.held_devices(begin, width) if has_devices else 0)
            self._wake_for_room(slot)
        tasks.clear(first, count, has_devices)
        self._refund(job.spec.tenant, ask, count)
        if after == TaskPhase.QUEUED and not tasks.counts[TaskPhase.QUEUED]:
            self.queue.add(job)
        tasks.set_phase(first, count, after)

    def bar(self, slot: int, bar: Bar) -> None:
        """Bar a node, and note when the bar ends by itself."""
        self.fleet.bar(slot, bar)
        self.timers.watch_bar(slot, bar)

    def unbar(self, slot: int, kind: BarKind, owner: str) -> None:
        """Lift a bar: whoever waits is worth a try."""
        self.fleet.unbar(slot, kind, owner)
        self.queue.wake_all()

    def put(self, job: Job) -> None:
        """Replace a job's record and note what its phase implies for the timers."""
        self.jobs[job.id] = job
        if job.spec.limit_ms is not None or isinstance(job.phase, TERMINAL):
            self.timers.watch(job)

    def set_job_phase(self, job: Job, phase: Phase) -> Job:
        """Replace a job's phase and nothing else."""
        after = msgspec.structs.replace(job, phase=phase)
        self.put(after)
        return after

    def forget(self, job: Job) -> None:
        """Drop a job that is over."""
        del self.jobs[job.id]
        self.arrays.pop(job.id, None)
        if job.key:
            self.keys.pop((job.spec.tenant, job.key), None)
        self.retired += 1

    def quota_of(self, tenant: str) -> Quota:
        """What a tenant may hold; one that was never named is open."""
        return self.tenants.get(tenant, _OPEN)

    def flavor_of(self, slot: int) -> Flavor:
        """What the capacity of a node counts as; a flavor that was never set is a family of its own."""
        name = self.fleet.flavor(slot)
        return self.flavors.get(name) or Flavor(name)

    def wake_tenant(self, tenant: str) -> None:
        """Bring back what the tenant's quota lets through now."""
        self.queue.wake_for_quota(tenant, lambda shape: self.is_within_quota(tenant, shape))

    def is_within_quota(self, tenant: str, shape: Shape) -> bool:
        """Whether one more gang of this shape stays within the tenant's quota."""
        quota = self.tenants.get(tenant)
        return quota is None or fits_quota(quota, self.ledger.used(tenant), shape.ask, shape.gang)

    def count_over(self) -> int:
        """How many jobs are over and still here."""
        return sum(isinstance(job.phase, TERMINAL) for job in self.jobs.values())

    def fork(self) -> World:
        """An independent copy, for what-if; it never leaves the process."""
        twin = World.__new__(World)
        for name in ("seq", "now", "next_job", "accepted", "retired"):
            setattr(twin, name, getattr(self, name))
        for name in ("flavors", "tenants", "jobs", "keys"):
            setattr(twin, name, getattr(self, name).copy())
        for name in ("fleet", "ledger", "queue", "timers"):
            setattr(twin, name, getattr(self, name).fork())
        twin.arrays = {number: tasks.fork() for number, tasks in self.arrays.items()}
        twin.ranks = {number: ranks[:] for number, ranks in self.ranks.items()}
        return twin

    def _wake_for_room(self, slot: int) -> None:
        """A node has more free: whoever could use it is worth a try, unless no new work may go there."""
        vector = self.fleet.find_free(slot)
        if vector is not None:
            self.queue.wake_for_room(vector)

    def _refund(self, tenant: str, ask: Resources, tasks: int) -> None:
        self.ledger.refund(tenant, ask, tasks)
        if tenant in self.queue.parked:
            self.wake_tenant(tenant)


def fits_quota(quota: Quota, used: Resources, ask: Resources, tasks: int) -> bool:
    """Whether `tasks` more of `ask` stay within a quota; what is not asked for cannot be over."""
    gpus, cpu, memory = quota.gpus, quota.cpu_milli, quota.memory_bytes
    return (
        (gpus is None or not ask.gpus or used.gpus + ask.gpus * tasks <= gpus)
        and (cpu is None or not ask.cpu_milli or used.cpu_milli + ask.cpu_milli * tasks <= cpu)
        and (memory is None or not ask.memory_bytes or used.memory_bytes + ask.memory_bytes * tasks <= memory)
    )
