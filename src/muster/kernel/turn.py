"""A turn: one batch on its way through the door. Reactors get it, read the world, emit facts and give instructions."""

from __future__ import annotations

from collections.abc import Container

import msgspec

from muster.model.event import Exited
from muster.model.fact import Fact
from muster.model.instruction import Forget, Instruction, Start, Stop
from muster.model.job import Job
from muster.model.phase import TERMINAL, Lease, Starting, columns_of
from muster.model.reason import Code, Reason, Refused
from muster.world.accounting import advance
from muster.world.apply import APPLY
from muster.world.tasks import spans_of
from muster.world.widths import MEMBERS, members_of
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

    def start_gangs(self, jobs: list[int]) -> None:
        """Tell the engine to start gangs that have just got their places."""
        fleet, known = self.world.fleet, self.world.jobs
        addresses, said = fleet.addresses, len(self.instructions)
        for number in jobs:
            job = known[number]
            phase = job.phase
            if not isinstance(phase, Starting):
                continue
            leases, spec = phase.run.leases, job.spec
            if len(leases) == 1:  # as most are
                first = leases[0]
                slots, counts, devices = [first.slot], [first.tasks], [first.devices]
            else:
                slots, counts, devices = columns_of(leases)
            nodes = list(map(addresses.__getitem__, slots))
            ids = fleet.name_devices(leases) if fleet.device_ids else []
            width = sum(counts) if spec.gang_most else 0
            self.instructions.append(Start(number, job.epoch, spec, 0, nodes, counts, devices, ids, width))
        if self.world.goodput.saves:
            self.instructions[said:] = map(self._resuming, self.instructions[said:])

    def start_tasks(self, job: Job, first: int, slots: list[int], counts: list[int], devices: list[int]) -> None:
        """Tell the engine to start tasks of an array."""
        nodes = [self.world.fleet.addresses[slot] for slot in slots]
        tasks, fleet = self.world.arrays[job.id], self.world.fleet
        ids = fleet.name_devices(list(map(Lease, slots, counts, devices))) if fleet.device_ids else []
        resumes = [] if tasks.marks is None else tasks.marks.resumes(first, sum(counts))
        columns = (nodes, counts, devices, ids, 0, resumes)
        self.instructions.append(Start(job.id, tasks.epoch[first], job.spec, first, *columns))

    def _resuming(self, start: Instruction) -> Instruction:
        """The start of a gang, with the step of its last checkpoint if it has one."""
        saved = self.world.goodput.saves.get(start.job)
        return start if saved is None else msgspec.structs.replace(start, resumes=[saved])

    def unsay_starts(self, said: int, jobs: Container[int]) -> None:
        """Of the first so many instructions, drop the starts of gangs that were said anew: they got more places."""
        first = self.instructions[:said]
        self.instructions[:said] = [item for item in first if not (isinstance(item, Start) and item.job in jobs)]

    def start_ranks(self, job: Job, first: int, leases: tuple[Lease, ...]) -> None:
        """Tell the engine to start ranks of a gang that is up already, from `first` on."""
        fleet, width = self.world.fleet, len(members_of(self.world.ranks[job.id]))
        nodes = [fleet.addresses[lease.slot] for lease in leases]
        columns = ([lease.tasks for lease in leases], [lease.devices for lease in leases])
        ids = fleet.name_devices(leases) if fleet.device_ids else []
        start = Start(job.id, job.epoch, job.spec, first, nodes, *columns, ids, width)
        self.instructions.append(self._resuming(start))

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
