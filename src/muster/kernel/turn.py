"""A turn: one batch on its way through the door. Reactors get it, read the world, emit facts and give instructions."""

from __future__ import annotations

from collections.abc import Container

import msgspec

from muster.model.event import Exited
from muster.model.fact import Fact, Placed
from muster.model.instruction import Forget, Instruction, Start, Stop
from muster.model.job import Job
from muster.model.phase import TERMINAL, Lease, columns_of
from muster.model.reason import Code, Reason, Refused
from muster.world.accounting import advance
from muster.world.apply import APPLY
from muster.world.tasks import spans_of
from muster.world.widths import MEMBERS, leases_of, members_of
from muster.world.world import World


class Turn(msgspec.Struct):
    """What has been decided so far in this batch; a fact is applied as it is emitted, so later events see it."""

    world: World
    now: int
    facts: list[Fact] = []
    instructions: list[Instruction] = []

    def emit(self, fact: Fact) -> None:
        """Make a fact true and remember it for the journal."""
        world, now = self.world, self.now
        if now > world.goodput.at:
            advance(world, now)
        APPLY[type(fact)](world, fact, now)
        self.facts.append(fact)

    def start_placed(self, item: Placed) -> None:
        """Tell the engine to start gangs that have just got their places. While no node names its devices and nobody
        resumes or is elastic or has spares, all that there is to say stands in the fact."""
        world, fleet, jobs, begin = self.world, self.world.fleet, self.world.jobs, 0
        if fleet.device_ids or world.goodput.saves or world.widths.has_any:
            for number in item.jobs:
                self.start_gang(jobs[number])
            return
        nodes, tasks, devices = list(map(fleet.addresses.__getitem__, item.slots)), item.tasks, item.devices
        for number, epoch, width in zip(item.jobs, item.epochs, item.widths, strict=True):
            end, spec = begin + width, jobs[number].spec
            start = Start(number, epoch, spec, 0, nodes[begin:end], tasks[begin:end], devices[begin:end])
            self.instructions.append(start)
            begin = end

    def start_gang(self, job: Job) -> None:
        """Tell the engine to start a gang that has got its places."""
        fleet, leases = self.world.fleet, leases_of(job)
        slots, counts, devices = columns_of(leases)
        nodes, ids = list(map(fleet.addresses.__getitem__, slots)), fleet.name_devices(slots, devices)
        width = sum(counts) if job.spec.gang_most else 0
        columns = (nodes, counts, devices, ids, width, self._resumes_of(job))
        self.instructions.append(Start(job.id, job.epoch, job.spec, 0, *columns))

    def start_tasks(self, job: Job, first: int, slots: list[int], counts: list[int], devices: list[int]) -> None:
        """Tell the engine to start tasks of an array."""
        nodes = [self.world.fleet.addresses[slot] for slot in slots]
        tasks, fleet = self.world.arrays[job.id], self.world.fleet
        ids = fleet.name_devices(slots, devices)
        resumes = [] if tasks.marks is None else tasks.marks.resumes(first, sum(counts))
        columns = (nodes, counts, devices, ids, 0, resumes)
        self.instructions.append(Start(job.id, tasks.epoch[first], job.spec, first, *columns))

    def unsay_starts(self, said: int, jobs: Container[int]) -> None:
        """Of the first so many instructions, drop the starts of gangs that were said anew: they got more places."""
        first = self.instructions[:said]
        self.instructions[:said] = [item for item in first if not (isinstance(item, Start) and item.job in jobs)]

    def start_ranks(self, job: Job, first: int, leases: tuple[Lease, ...]) -> None:
        """Tell the engine to start ranks of a gang that is up already, from `first` on."""
        fleet, width = self.world.fleet, len(members_of(self.world.ranks[job.id]))
        slots, counts, devices = columns_of(leases)
        nodes, ids = list(map(fleet.addresses.__getitem__, slots)), fleet.name_devices(slots, devices)
        columns = (nodes, counts, devices, ids, width, self._resumes_of(job))
        self.instructions.append(Start(job.id, job.epoch, job.spec, first, *columns))

    def _resumes_of(self, job: Job) -> list[int]:
        """The step of a gang's last checkpoint, if it has one."""
        saves = self.world.goodput.saves
        return [saves[job.id]] if job.id in saves else []

    def stop(self, job: Job, epoch: int, first: int, count: int, width: int = 0) -> None:
        """Tell the engine to stop tasks; the run goes on with `width` others, if that is not 0."""
        self.instructions.append(Stop(job.id, epoch, first, count, job.spec.grace_ms, width))

    def stop_run(self, job: Job) -> None:
        """Tell the engine to stop all tasks of a gang."""
        ranks = self.world.ranks.get(job.id, b"\0")
        for first, count in spans_of(ranks, MEMBERS, 0, len(ranks)):
            self.stop(job, job.epoch, first, count)

    def forget(self, item: Exited) -> None:
        """Tell the engine that it may forget the tasks of a report."""
        self.instructions.append(Forget(item.job, item.epoch, item.first, item.count, item.more))


def find_live(turn: Turn, number: int) -> Job | Refused:
    """The job that somebody asks something of, if it is there and not over."""
    job = turn.world.jobs.get(number)
    if job is None:
        return refuse(Code.UNKNOWN_JOB, "job", number)
    return refuse(Code.ALREADY_OVER, "job", number) if isinstance(job.phase, TERMINAL) else job


def refuse(code: Code, subject: str = "", needed: int = 0, available: int = 0, detail: str = "") -> Refused:
    """A refusal as a value."""
    return Refused(Reason(code, subject, needed, available, detail))
