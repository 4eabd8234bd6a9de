"""A trial: the production kernel on a trace, in virtual time, with an engine that starts and stops at once.

A job that was stopped keeps what it did, and pays the restart cost at its next start, holding its places meanwhile.
Everything goes through the one door: submits, starts, ends and advice are events, and who starts or stops is what the
kernel says. Laws are checked on every run: jobs in the system add up to their completion times (Little), the device
time held is that of the run times and the restarts (conservation of work), no more is useful than was asked for
(utilisation is at most the load), and no more is used than there is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from heapq import heappop, heappush
from time import process_time

import msgspec

from muster.kernel.kernel import Kernel
from muster.model import event, fact
from muster.model.errors import InvariantError
from muster.model.event import Event
from muster.model.instruction import Start, Stop
from muster.model.phase import Why
from muster.model.reason import Refused
from muster.model.spec import Spec
from muster.model.tier import STANDARD, Tier
from muster.ports.adviser import Adviser
from muster.simulator.traces.record import Record
from muster.simulator.witness import Witness
from muster.units import Resources
from muster.world.world import World

NODE_GPUS = 8


class Life:
    """What becomes of one job of a trace."""

    __slots__ = ("began", "debt_ms", "done_ms", "ended", "epoch", "held_ms", "moved", "paid_ms", "record", "since",
                 "stopped", "why")  # fmt: skip

    def __init__(self, record: Record) -> None:
        self.record = record
        self.done_ms = self.debt_ms = self.paid_ms = self.held_ms = 0
        self.stopped = self.moved = self.epoch = 0
        self.since = self.began = self.ended = -1
        self.why: Why | None = None

    @property
    def completion_ms(self) -> int:
        """From submit to end."""
        return self.ended - self.record.submit_ms

    @property
    def waited_ms(self) -> int:
        """How long it held nothing."""
        return self.completion_ms - self.held_ms


class Setting(msgspec.Struct, frozen=True):
    """One run: how many nodes of eight devices, the tier that is the policy, what a restart costs, and who advises."""

    nodes: int
    tier: Tier
    restart_ms: int = 0
    adviser: Callable[[Sequence[Record]], Adviser] | None = None


class Trial:
    """One run of one setting on one list of jobs."""

    def __init__(self, setting: Setting, records: Sequence[Record], spec_of: Callable[[Record], Spec]) -> None:
        self.kernel = Kernel(World())
        self.lives: dict[int, Life] = {}
        self.restart_ms = setting.restart_ms
        self.batches = self.restarts = 0
        self.cpu_s = 0.0
        self.witness: Witness | None = None
        self._records = records
        self._spec_of = spec_of
        self._setting = setting
        self._adviser = setting.adviser(records) if setting.adviser is not None else None
        self._planned: list[tuple[int, int, int, int]] = []
        self._wake_at: int | None = None
        self._inbox: list[Event] = []
        self._area_ms = self._count = self._latest = 0

    def run(self) -> list[Life]:
        """Play the whole trace, and give back every life in the order of submits."""
        begin = process_time()
        self._set_up()
        at = 0
        while (now := self._find_next(at)) is not None:
            batch, self._inbox = self._inbox, []
            while at < len(self._records) and self._records[at].submit_ms <= now:
                batch.append(event.Submit(self._spec_of(self._records[at]), cause="trace"))
                at += 1
            self._gather(now, batch)
            self._gather_outside(now, batch)
            self._turn(batch, now)
        self.cpu_s = process_time() - begin
        self._check_laws()
        return list(self.lives.values())

    def _set_up(self) -> None:
        ask = Resources(NODE_GPUS, 64_000, 1 << 40)
        nodes: list[Event] = [event.NodeSeen(f"node-{at:04}", ask) for at in range(self._setting.nodes)]
        outcome = self.kernel.handle([event.SetTier(STANDARD, self._setting.tier), *nodes], 0)
        refused = [answer for answer in outcome.answers if isinstance(answer, Refused)]
        require(not refused, "a league's tier and nodes are in order", str(refused[:1]))

    def _find_next(self, at: int) -> int | None:
        if self._inbox:
            return self._latest
        instants = [self._records[at].submit_ms] if at < len(self._records) else []
        while self._planned and self._is_over(self._planned[0]):
            heappop(self._planned)
        if self._planned:
            instants.append(self._planned[0][0])
        is_live = bool(instants) or self._count > 0
        others = (self._wake_at, self._find_outside()) if is_live else ()
        instants += [max(instant, self._latest) for instant in others if instant is not None]
        if not instants and self._count:
            raise InvariantError("nobody waits for ever", f"{self._count} jobs at {self._latest}")
        return min(instants, default=None)

    def _is_over(self, planned: tuple[int, int, int, int]) -> bool:
        return self.lives[planned[1]].epoch != planned[2]

    def _gather(self, now: int, batch: list[Event]) -> None:
        """What the engine reports at an instant."""
        while self._planned and self._planned[0][0] <= now:
            _, number, epoch, is_end = heappop(self._planned)
            life = self.lives[number]
            if life.epoch == epoch:
                count = self.kernel.world.jobs[number].spec.gang
                if is_end:
                    self._leave(life, now, life.record.duration_ms - life.done_ms)
                    batch.append(event.Exited(number, epoch, 0, 0, count))
                else:
                    batch.append(event.Started(number, epoch, 0, count))

    def _turn(self, batch: list[Event], now: int) -> None:
        self._area_ms += self._count * (now - self._latest)
        self._latest = now
        self._handle(batch, now)
        if self._adviser is not None:
            advice = self._adviser.advise(self.kernel.world, now)
            if advice:
                self._handle(list(advice), now)

    def _handle(self, batch: list[Event], now: int) -> None:
        outcome = self.kernel.handle(batch, now)
        self.batches += 1
        self._wake_at = outcome.wake_at
        for item in outcome.facts:
            if isinstance(item, fact.Accepted):
                self.lives[item.job] = Life(self._records[len(self.lives)])
                self._count += 1
            elif isinstance(item, fact.Ended):
                self.lives[item.job].ended = now
                self._count -= 1
            elif isinstance(item, fact.StopAsked):
                life = self.lives[item.job]
                life.why = item.why
                life.stopped += item.why == Why.PREEMPT
                life.moved += item.why == Why.MIGRATE
        for each in outcome.instructions:
            if isinstance(each, Start):
                self._start(each, now)
            elif isinstance(each, Stop):
                self._stop(each, now)
        if self.witness is not None:
            self.witness.watch(self.kernel.world, now, outcome.facts)
        if self._adviser is not None:
            self._adviser.observe(self.kernel.world, outcome.facts)

    def _start(self, each: Start, now: int) -> None:
        life = self.lives[each.job]
        self.restarts += each.epoch > 1
        life.epoch, life.since, life.began, life.why = each.epoch, now, now + life.debt_ms, None
        if life.debt_ms:
            heappush(self._planned, (life.began, each.job, each.epoch, 0))
        else:
            self._inbox.append(event.Started(each.job, each.epoch, 0, each.spec.gang))
        heappush(self._planned, (life.began + self._span_ms(life), each.job, each.epoch, 1))

    def _stop(self, each: Stop, now: int) -> None:
        life = self.lives[each.job]
        if life.since < 0:
            return
        self._leave(life, now, self._gained_ms(life, now))
        life.debt_ms = self.restart_ms
        self._inbox.append(event.Exited(each.job, each.epoch, 143, 0, each.count))

    def _leave(self, life: Life, now: int, gained_ms: int) -> None:
        """A run is over: what it held and did not gain is paid."""
        life.held_ms += now - life.since
        life.paid_ms += now - life.since - gained_ms
        life.done_ms += gained_ms
        life.since, life.epoch = -1, 0

    def _span_ms(self, life: Life) -> int:
        """How long a run is up until the job is over."""
        return life.record.duration_ms - life.done_ms

    def _gained_ms(self, life: Life, now: int) -> int:
        """What a run that is stopped now did and keeps: all of it, for it is checkpointed when it is told to stop."""
        return max(0, now - life.began)

    def _find_outside(self) -> int | None:
        """When something else happens next."""
        return None

    def _gather_outside(self, now: int, batch: list[Event]) -> None:
        """What else happens at an instant."""

    def _check_laws(self) -> None:
        lives = list(self.lives.values())
        require(len(lives) == len(self._records), "every job is accepted", f"{len(lives)} of {len(self._records)}")
        require(all(life.ended >= 0 for life in lives), "every job ends", "")
        require(sum(x.completion_ms for x in lives) == self._area_ms, "Little's law", f"{self._area_ms}")
        held = sum(x.record.gpus * x.held_ms for x in lives)
        work = sum(x.record.gpus * (x.record.duration_ms + x.paid_ms) for x in lives)
        require(held == work, "work is conserved", f"held {held}, work {work}")
        asked = sum(x.record.gpus * x.record.duration_ms for x in lives)
        useful = sum(x.record.gpus * x.done_ms for x in lives)
        require(useful <= asked, "utilisation is at most the load", f"{useful} of {asked}")
        require(all(x.waited_ms >= 0 for x in lives), "nobody runs before it came", "")
        span = max(x.ended for x in lives) - min(x.record.submit_ms for x in lives)
        most = self._setting.nodes * NODE_GPUS * span
        require(held <= most, "no more is used than there is", f"{held} of {most}")


def require(holds: bool, law: str, evidence: str) -> None:
    """A law of trials holds, or the run is worth nothing."""
    if not holds:
        raise InvariantError(law, evidence)


@cache
def gang_of(gpus: int) -> tuple[int, int]:
    """A job's tasks, and the devices of each: all alike, on as few nodes as can be, and no more of them than needed."""
    widths = [width for width in range(1, NODE_GPUS + 1) if gpus % width == 0]
    width = min(widths, key=lambda width: (_count_nodes(gpus // width, width), -width))
    return gpus // width, width


def nodes_of(gpus: int) -> int:
    """How many nodes a job needs."""
    return _count_nodes(*gang_of(gpus))


def _count_nodes(tasks: int, width: int) -> int:
    return -(-tasks // (NODE_GPUS // width))
