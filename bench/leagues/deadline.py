"""deadline: strict deadlines on half the fleet that would do for what is asked; a restart costs 30 s. Chronus' format.

Everybody knows run times here, as those who published the trace do (they profile jobs before they run); nobody knows
what will come. A job counts as met if it ended by its deadline; whoever is turned away runs when there is room, and is
missed. The players, all of them advisers of the same kernel:

    edf       the earliest deadline first
    elastic   the same among those who are admitted: a job is, if it and all admitted before it can still be met, by the
              area of their work (as ElasticFlow's minimum share is, for jobs that cannot shrink); who can be met no
              longer goes last
    muster    at every submit, the most jobs that can be met together with those who will come: if more must be done by
              some instant than `PROMISED` of what can be, the job with most of it goes last (as Moore and Hodgson do
              by whole jobs): first among the strict ones alone, and then soft ones until all that are left have room.
              The rest by when they must begin at the latest: on many devices a long job with a late deadline may have
              less time to lose than a short one with an early deadline (least laxity, Dertouzos and Mok, TSE 1989).
              What runs is kept for as long as it is not far behind by that, or two of nearly equal laxity would chase
              each other. Those without a deadline, and those given up, go behind, the smallest first

The first jobs of a file are played, as many as `JOBS_MAX`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from bench.league import LeagueOptions
from bench.leagues.completion import named
from bench.leagues.entries import count_dropped, keep_first, keep_fitting, read_entries
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
from muster.simulator.traces.record import Reading, Record
from muster.units import DAY_MS, HOUR_MS, INSTANT_MAX, MINUTE_MS, SECOND_MS
from muster.world.world import World

JOBS_MAX: Final = 8000
SHORT: Final = 2.0
"""How much more is asked for than there is, while jobs come: much of it is run when none come any more."""
PROMISED: Final = 0.7
"""What part of the fleet is promised to those who are there; the rest is for those who will come and be due earlier."""
STAY_MS: Final = 30 * MINUTE_MS
"""How much sooner another must begin than what runs, to take its place."""
INSTANTS_MAX: Final = 64
"""At how many instants it is looked at what must be done until then."""
LAST: Final = 1 << 50
"""Where those stand who are not to be met: behind everybody else."""
RESTART_MS: Final = 30 * SECOND_MS


class Want(NamedTuple):
    """A live job: what is left of it, its work in device-milliseconds, whether its deadline is strict, and whether it
    runs."""

    deadline: int
    number: int
    left_ms: int
    work: int
    is_strict: bool
    is_up: bool = False

    @property
    def latest_ms(self) -> int:
        """When it must begin, or go on, at the latest."""
        return self.deadline - self.left_ms


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
        is_up = isinstance(job.phase, Running)
        served = job.served_ms + (now - job.phase.since if isinstance(job.phase, Running) else 0)
        left = max(0, record.duration_ms - served)
        deadline = INSTANT_MAX if record.deadline_ms is None else record.deadline_ms
        return Want(deadline, number, left, left * record.gpus, is_strict(record), is_up)


class ElasticAdviser(DeadlineAdviser):
    """Who is admitted is kept as long as it can be met; who is not waits behind, or what is late would take from what
    is not."""

    def rank(self, wants: Sequence[Want], new: Sequence[int], now: int) -> dict[int, int]:
        """The earliest deadline first, of those admitted."""
        hopeful = {want.number: want for want in wants if now <= want.latest_ms}
        self.admitted = {number: None for number in self.admitted if number in hopeful}
        for number in filter(hopeful.__contains__, new):
            self.admitted[number] = None
            if not _are_met([want for each, want in hopeful.items() if each in self.admitted], self.devices, now):
                del self.admitted[number]
        return {want.number: want.deadline if want.number in self.admitted else LAST + want.number for want in wants}


class MusterAdviser(DeadlineAdviser):
    """Whoever can be met together with the most others, and with those who will come."""

    def rank(self, wants: Sequence[Want], new: Sequence[int], now: int) -> dict[int, int]:  # noqa: ARG002 - all count
        """Who must begin first, of those who can be met; the others by what is left of them."""
        hopeful = [want for want in wants if now <= want.latest_ms and want.deadline < INSTANT_MAX]
        met = {want.number for want in hopeful} - give_up(hopeful, self.devices, now)
        return {
            want.number: want.latest_ms - STAY_MS * want.is_up if want.number in met else LAST + want.work
            for want in wants
        }


def give_up(wants: Sequence[Want], devices: int, now: int) -> set[int]:
    """Whom to give up, so that what must be done until any instant is no more than what is promised of it: strict ones
    as if there were no others, and then soft ones until the rest can be done together. A strict one that nobody could
    meet takes no soft one with it."""
    gone = _drop([want for want in wants if want.is_strict], devices, now)
    return gone | _drop([want for want in wants if want.number not in gone], devices, now, only_soft=True)


def _drop(wants: Sequence[Want], devices: int, now: int, *, only_soft: bool = False) -> set[int]:
    """Those who have to go for the others, each time the one with most to do too early. What a job must have done until
    an instant is what would be too late if it began as late as can be."""
    if not wants:
        return set()
    due = np.array([want.deadline - now for want in wants], dtype=np.float64)
    left = np.array([want.left_ms for want in wants], dtype=np.float64)
    devices_of = np.array([want.work for want in wants], dtype=np.float64) / np.maximum(left, 1.0)
    instants = np.unique(np.concatenate((due, due - left + MINUTE_MS)))
    instants = instants[np.linspace(0, len(instants) - 1, min(len(instants), INSTANTS_MAX)).astype(np.int64)]
    musts = np.clip(instants - (due - left)[:, None], 0.0, left[:, None]) * devices_of[:, None]
    may_go = np.array([not (only_soft and want.is_strict) for want in wants])
    needed, gone = musts.sum(axis=0), set[int]()
    for at, room in enumerate(PROMISED * devices * instants):
        while needed[at] > room + 1.0 and (may_go & (musts[:, at] > 0.0)).any():
            worst = int(np.argmax(np.where(may_go, musts[:, at], -1.0)))
            needed -= musts[worst]
            musts[worst] = 0.0
            gone.add(wants[worst].number)
    return gone


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
        reading, nodes = fit_fleet(stem, keep_first(whole, JOBS_MAX))
        metrics |= count_dropped(stem, reading.dropped)
        bound = Metric(most_met(reading.records, nodes * NODE_GPUS), "of strict jobs")
        metrics |= named(stem, "bound", {"strict_met": bound})
        found: dict[str, dict[str, Metric]] = {}
        for policy in filter(options.is_wanted, PLAYERS):
            found[policy] = play(reading.records, nodes, _adviser(PLAYERS[policy], nodes))
            found[policy]["nodes"] = Metric(nodes, "nodes")
        for policy, figures in found.items():
            metrics |= named(stem, policy, figures | (_goals(found) if policy == "muster" else {}))
    return Result("league deadline", metrics, {})


def _goals(found: dict[str, dict[str, Metric]]) -> dict[str, Metric]:
    """What Muster is to reach: as many strict deadlines as the best of the others, and no more waiting of those without
    one than with any of them."""
    others = [figures for policy, figures in found.items() if policy != "muster"]
    if not others:
        return {}
    mine, most = found["muster"], max(figures["strict_met"].value for figures in others)
    least = min(figures["best_effort_wait_h"].value for figures in others)
    return {
        "strict_met": replace(mine["strict_met"], goal=most),
        "best_effort_wait_h": replace(mine["best_effort_wait_h"], goal=least, at_least=False),
    }


def fit_fleet(stem: str, reading: Reading) -> tuple[Reading, int]:
    """The jobs that are played, and how many nodes are half of what they ask for while they come. Who is wider than
    that is left out: one such job would make a fleet on which nobody else ever waits."""
    while True:
        nodes = fleet_for(reading.records)
        kept = keep_fitting(stem, reading, nodes)
        if kept is reading:
            return reading, nodes
        reading = kept


def fleet_for(records: Sequence[Record]) -> int:
    """How many nodes are half of what is asked for while jobs come, or, if all come at once, while one of them runs; no
    fewer than nine in ten of the jobs have room on."""
    work = sum(record.gpus * record.duration_ms for record in records)
    mean_run = sum(record.duration_ms for record in records) // len(records)
    span = max(1, records[-1].submit_ms - records[0].submit_ms, mean_run)
    widths = sorted(nodes_of(record.gpus) for record in records)
    return max(widths[9 * (len(widths) - 1) // 10], round(work / span / SHORT / NODE_GPUS))


def most_met(records: Sequence[Record], devices: int) -> float:
    """A share of the strict jobs that nobody can pass: those that would be met alone, the smallest first, for as long
    as their work fits between the first submit and the last deadline."""
    strict = [
        (record, record.deadline_ms) for record in records if is_strict(record) and record.deadline_ms is not None
    ]
    if not strict:
        return 1.0
    room = devices * (max(due for _, due in strict) - records[0].submit_ms)
    works = sorted(x.gpus * x.duration_ms for x, due in strict if x.duration_ms <= due - x.submit_ms)
    return sum(total <= room for total in accumulate(works)) / len(strict)


def is_strict(record: Record) -> bool:
    """Whether a job is worth nothing after its deadline. A soft one is worth less and less until then."""
    return record.deadline_ms is not None and not record.tier.startswith("soft")


def _adviser(kind: type[DeadlineAdviser], nodes: int) -> Callable[[Sequence[Record]], Adviser]:
    return lambda records: kind(records, nodes * NODE_GPUS)


def play(records: Sequence[Record], nodes: int, adviser: Callable[[Sequence[Record]], Adviser]) -> dict[str, Metric]:
    """One run: who was met, and what became of those without a deadline."""
    tier = Tier(200, INSTANT_MAX, 0, sharing=Sharing(ADVISED, MINUTE_MS, 1000, 1000))
    trial = Trial(Setting(nodes, tier, RESTART_MS, adviser), records, lambda record: spec_of("deadline", record))
    lives = trial.run()
    strict = [life for life in lives if is_strict(life.record)]
    soft = [life for life in lives if life.record.deadline_ms is not None and not is_strict(life.record)]
    waits = sum(life.waited_ms * life.record.gpus for life in lives if life.record.deadline_ms is None)
    return {
        "strict_met": Metric(_share_met(strict), "of strict jobs"),
        **({"soft_met": Metric(_share_met(soft), "of soft jobs")} if soft else {}),
        "best_effort_wait_h": Metric(waits / HOUR_MS, "GPU-h"),
        "preemptions_per_job": Metric(sum(life.stopped for life in lives) / len(lives), "times"),
        "cpu_s": Metric(trial.cpu_s, "s"),
    }


def _share_met(lives: Sequence[Life]) -> float:
    """Whose deadline was met; where nobody has one, all were."""
    return sum(life.ended <= (life.record.deadline_ms or 0) for life in lives) / len(lives) if lives else 1.0
