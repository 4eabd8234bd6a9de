"""deadline: strict deadlines on half the fleet that would do for what is asked; a restart costs 30 s. Chronus' format.

Everybody knows run times here, as those who published the trace do (they profile jobs before they run); nobody knows
what will come. A job counts as met if it ended by its deadline; whoever is turned away runs when there is room, and is
missed. The players, all of them advisers of the same kernel:

    edf       the earliest deadline first
    elastic   the same among those who are admitted: a job is, if it and all admitted before it can still be met, by the
              area of their work (as ElasticFlow's minimum share is, for jobs that cannot shrink)
    muster    at every submit, the most jobs that can be met together: of those due by some instant that are too much,
              the one with the most work left goes last (Moore and Hodgson); the rest by deadline

The first jobs of a file are played, as many as `JOBS_MAX`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import accumulate
from typing import Final, NamedTuple

from bench.league import LeagueOptions
from bench.leagues.completion import named
from bench.leagues.entries import count_dropped, keep_first, read_entries
from bench.leagues.sight import spec_of
from bench.leagues.trial import NODE_GPUS, Life, Setting, Trial, nodes_of
from bench.report import Metric, Result
from muster.model import fact
from muster.model.advice import INDEX, Advice
from muster.model.event import Advise
from muster.model.phase import Running
from muster.model.sharing import ADVISED, Sharing
from muster.model.tier import Tier
from muster.ports.adviser import Adviser
from muster.simulator.traces.record import Record
from muster.units import DAY_MS, HOUR_MS, INSTANT_MAX, MINUTE_MS, SECOND_MS
from muster.world.world import World

JOBS_MAX: Final = 8000
SHORT: Final = 2.0
"""How much more is asked for than there is, while jobs come: much of it is run when none come any more."""
LAST: Final = 1 << 50
"""Where those stand who are not to be met: behind everybody else."""
RESTART_MS: Final = 30 * SECOND_MS


class Want(NamedTuple):
    """A live job with a deadline: what is left of it, and its work in device-milliseconds."""

    deadline: int
    number: int
    left_ms: int
    work: int


class DeadlineAdviser:
    """Says where every live job stands; how is what its kind says."""

    def __init__(self, records: Sequence[Record], devices: int) -> None:
        self.devices = devices
        self.admitted: dict[int, None] = {}
        self._records = records
        self._live: dict[int, Record] = {}
        self._seen = self._version = 0
        self._new: list[int] = []

    def observe(self, world: World, facts: Sequence[fact.Fact]) -> None:  # noqa: ARG002 - the port's signature
        """Keep the live jobs."""
        for item in facts:
            if isinstance(item, fact.Accepted):
                self._live[item.job] = self._records[self._seen]
                self._seen += 1
                self._new.append(item.job)
            elif isinstance(item, fact.Ended):
                del self._live[item.job]
                self.admitted.pop(item.job, None)

    def advise(self, world: World, now: int) -> Sequence[Advise]:
        """Where everybody stands, if somebody is new and waits."""
        if not self._new or not world.queue.floors.waits:
            return ()
        wants = sorted(self._want(world, number, record, now) for number, record in self._live.items())
        indexes = self.rank(wants, self._new, now)
        self._new = []
        self._version += 1
        columns = {"job": tuple(indexes), "index": tuple(indexes.values())}
        return (Advise(INDEX, Advice(self._version, now + 1000 * DAY_MS, columns), cause="deadlines"),)

    def rank(self, wants: Sequence[Want], new: Sequence[int], now: int) -> dict[int, int]:  # noqa: ARG002 - see others
        """The earliest deadline first."""
        return {want.number: want.deadline for want in wants}

    def _want(self, world: World, number: int, record: Record, now: int) -> Want:
        job = world.jobs[number]
        served = job.served_ms + (now - job.phase.since if isinstance(job.phase, Running) else 0)
        left = max(0, record.duration_ms - served)
        deadline = INSTANT_MAX if record.deadline_ms is None else record.deadline_ms
        return Want(deadline, number, left, left * record.gpus)


class ElasticAdviser(DeadlineAdviser):
    """Who is admitted is kept; who is not waits behind."""

    def rank(self, wants: Sequence[Want], new: Sequence[int], now: int) -> dict[int, int]:
        """The earliest deadline first, of those admitted."""
        hopeful = [want for want in wants if want.left_ms <= want.deadline - now]
        for number in new:
            self.admitted[number] = None
            if not _are_met([want for want in hopeful if want.number in self.admitted], self.devices, now):
                del self.admitted[number]
        return {want.number: want.deadline if want.number in self.admitted else LAST + want.number for want in wants}


class MusterAdviser(DeadlineAdviser):
    """Whoever can be met together with the most others."""

    def rank(self, wants: Sequence[Want], new: Sequence[int], now: int) -> dict[int, int]:  # noqa: ARG002 - all count
        """The earliest deadline first, of those who can be met; the others by what is left of them."""
        met: list[tuple[int, Want]] = []
        work = 0
        late = {want.number: want for want in wants if want.left_ms > want.deadline - now}
        for want in wants:
            if want.number in late:
                continue
            heappush(met, (-want.work, want))
            work += want.work
            while work > self.devices * (want.deadline - now):
                _, dropped = heappop(met)
                work -= dropped.work
                late[dropped.number] = dropped
        return {want.number: LAST + want.work if want.number in late else want.deadline for want in wants}


def _are_met(wants: Sequence[Want], devices: int, now: int) -> bool:
    """Whether all of these, by deadline, can be met by the area of their work."""
    work = 0
    for want in wants:
        work += want.work
        if work > devices * (want.deadline - now) or want.left_ms > want.deadline - now:
            return False
    return True


PLAYERS: Final[dict[str, type[DeadlineAdviser]]] = {
    "edf": DeadlineAdviser,
    "elastic": ElasticAdviser,
    "muster": MusterAdviser,
}


def run(options: LeagueOptions) -> Result:
    """Play every file of the format that is there."""
    metrics: dict[str, Metric] = {}
    for stem, whole in read_entries(options.traces, "chronus"):
        reading = keep_first(whole, JOBS_MAX)
        records, nodes = reading.records, fleet_for(reading.records)
        metrics |= count_dropped(stem, reading.dropped)
        met: dict[str, float] = {}
        metrics[f"{stem}.bound.strict_met"] = Metric(most_met(records, nodes * NODE_GPUS), "of strict jobs")
        for policy, kind in PLAYERS.items():
            if options.is_wanted(policy):
                lives, found = play(records, nodes, _adviser(kind, nodes))
                met[policy] = found["strict_met"].value
                found["nodes"] = Metric(nodes, "nodes")
                if policy == "muster" and len(met) > 1:
                    rival = max(share for name, share in met.items() if name != "muster")
                    found["strict_met"] = Metric(met[policy], "of strict jobs", rival)
                metrics |= named(stem, policy, found)
                del lives
    return Result("league deadline", metrics, {})


def fleet_for(records: Sequence[Record]) -> int:
    """How many nodes are half of what is asked for while jobs come."""
    work = sum(record.gpus * record.duration_ms for record in records)
    span = max(1, records[-1].submit_ms - records[0].submit_ms)
    least = max(nodes_of(record.gpus) for record in records)
    return max(least, round(work / span / SHORT / NODE_GPUS))


def most_met(records: Sequence[Record], devices: int) -> float:
    """A share of the strict jobs that nobody can pass: those that would be met alone, the smallest first, for as long
    as their work fits between the first submit and the last deadline."""
    strict = [(record, record.deadline_ms) for record in records if record.deadline_ms is not None]
    if not strict:
        return 1.0
    room = devices * (max(due for _, due in strict) - records[0].submit_ms)
    works = sorted(x.gpus * x.duration_ms for x, due in strict if x.duration_ms <= due - x.submit_ms)
    return sum(total <= room for total in accumulate(works)) / len(strict)


def _adviser(kind: type[DeadlineAdviser], nodes: int) -> Callable[[Sequence[Record]], Adviser]:
    return lambda records: kind(records, nodes * NODE_GPUS)


def play(
    records: Sequence[Record], nodes: int, adviser: Callable[[Sequence[Record]], Adviser]
) -> tuple[list[Life], dict[str, Metric]]:
    """One run: who was met, and what became of those without a strict deadline."""
    tier = Tier(200, INSTANT_MAX, 0, sharing=Sharing(ADVISED, MINUTE_MS, 1000, 1000))
    trial = Trial(Setting(nodes, tier, RESTART_MS, adviser), records, lambda record: spec_of("deadline", record))
    lives = trial.run()
    strict = [life for life in lives if life.record.deadline_ms is not None]
    others = [life for life in lives if life.record.deadline_ms is None]
    met = sum(life.ended <= (life.record.deadline_ms or 0) for life in strict)
    waits = sum(life.waited_ms * life.record.gpus for life in others)
    return lives, {
        "strict_met": Metric(met / max(1, len(strict)), "of strict jobs"),
        "best_effort_wait_h": Metric(waits / HOUR_MS, "GPU-h"),
        "preemptions_per_job": Metric(sum(life.stopped for life in lives) / len(lives), "times"),
        "cpu_s": Metric(trial.cpu_s, "s"),
    }
