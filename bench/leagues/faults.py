"""faults: jobs of Acme's format on servers that fail as a trace says; a checkpoint costs 60 s, a restart 300 s.

A job saves its state every sqrt(2 x 60 s x its mean time between faults) (Young), and stands still meanwhile. When a
server of it is gone it loses what it did since, gets other places and restarts. Whoever is told to stop for others is
told so in time: it saves its state once more, and holds its places meanwhile. Every moment of a device that is held is
useful, checkpointing, lost or restarting, and these add up.

The bound is what Young's period gives by Daly's whole model of the same parameters, by job, weighed by its device
time; faults come as often as they did while there were jobs. It is a mean, for faults that come evenly: who is lucky,
or lives in quiet months, does better. Where faults are so dense that nobody would get on, nothing is measured by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, expm1, isqrt
from typing import Final

from bench.league import LeagueOptions
from bench.leagues.entries import count_dropped, keep_fitting, read_entries
from bench.leagues.profiles import POLICIES
from bench.leagues.sight import spec_of
from bench.leagues.trial import NODE_GPUS, Life, Setting, Trial, nodes_of, require
from bench.report import Metric, Result
from muster.model import event
from muster.model.event import Event
from muster.model.instruction import Stop
from muster.model.phase import Why
from muster.simulator.traces.faults import Outage, Outages, read_faults
from muster.simulator.traces.formats import FAULTS, find_traces
from muster.simulator.traces.record import Record
from muster.units import Resources

SERVERS: Final = 400
"""How many servers the faults are spread over, unless the trace names more; those that never fail are not in it."""
CHECKPOINT_MS: Final = 60_000
RESTART_MS: Final = 300_000
GOAL: Final = 0.97
LEAST: Final = 0.01
"""A bound below this says no more than that nobody gets on: nothing is measured by it."""
TRIES_MAX: Final = 100.0
"""Who meets so many faults between two saves never gets to the next one."""
TOLD: Final = (Why.PREEMPT, Why.MIGRATE)
"""Why whoever is stopped is told so in time to save its state."""
PLAYERS: Final = ("muster",)


class FaultyTrial(Trial):
    """A trial in which nodes go and come back, and only what was saved is kept."""

    def __init__(self, setting: Setting, records: Sequence[Record], outages: Outages, mttf_ms: int) -> None:
        super().__init__(setting, records, lambda record: spec_of("faults", record))
        self.saving_ms = self.lost_ms = self.restarting_ms = self.useful_ms = 0
        self.faults_met = 0
        self._mttf_ms = mttf_ms
        self._changes = sorted(_changes(outages.all, places_of(outages, setting.nodes)))
        self._at = 0

    def period_ms(self, record: Record) -> int:
        """How far apart a job's checkpoints are."""
        return max(CHECKPOINT_MS, isqrt(2 * CHECKPOINT_MS * self._mttf_ms // nodes_of(record.gpus)))

    def _span_ms(self, life: Life) -> int:
        left = life.record.duration_ms - life.done_ms
        return left + CHECKPOINT_MS * ((left - 1) // self.period_ms(life.record))

    def _gained_ms(self, life: Life, now: int) -> int:
        period, left = self.period_ms(life.record), life.record.duration_ms - life.done_ms
        saved, since = divmod(max(0, now - life.began), period + CHECKPOINT_MS)
        return min(left, saved * period + (min(since, period) if life.why in TOLD else 0))

    def _stop(self, each: Stop, now: int) -> None:
        super()._stop(each, now)
        life = self.lives[each.job]
        if life.why in TOLD:
            life.debt_ms += CHECKPOINT_MS  # it was saved as it went; that time is counted when it comes back

    def _leave(self, life: Life, now: int, gained_ms: int) -> None:
        gpus, up, down = life.record.gpus, max(0, now - life.began), min(now, life.began) - life.since
        is_saved = life.why in TOLD or life.done_ms + gained_ms == life.record.duration_ms
        saving = up - gained_ms if is_saved else gained_ms // self.period_ms(life.record) * CHECKPOINT_MS
        before = min(down, max(0, life.debt_ms - RESTART_MS))
        self.useful_ms += gpus * gained_ms
        self.restarting_ms += gpus * (down - before)
        self.saving_ms += gpus * (saving + before)
        self.lost_ms += gpus * (up - gained_ms - saving)
        super()._leave(life, now, gained_ms)

    def _find_outside(self) -> int | None:
        return self._changes[self._at][0] if self._at < len(self._changes) else None

    def _gather_outside(self, now: int, batch: list[Event]) -> None:
        while self._at < len(self._changes) and self._changes[self._at][0] <= now:
            _, is_back, node = self._changes[self._at]
            self._at += 1
            name = f"node-{node:04}"
            if is_back:
                batch.append(event.NodeSeen(name, Resources(NODE_GPUS, 64_000, 1 << 40)))
            else:
                self.faults_met += 1
                batch.append(event.NodeGone(name, cause="fault"))


def run(options: LeagueOptions) -> Result:
    """Play every file of jobs against every file of faults."""
    metrics: dict[str, Metric] = {}
    faults = list(find_traces(options.traces, FAULTS))
    for stem, whole in read_entries(options.traces, "acme"):
        for fault_stem, fault_path in faults:
            name = stem if len(faults) == 1 else f"{stem}-{fault_stem}"
            outages = read_faults(fault_path)
            reading = keep_fitting(stem, whole, servers_of(outages))
            found = play(reading.records, outages)
            if "muster.of_bound" not in found:
                options.warn(f"{name}: faults are so dense that nobody would get on: nothing is measured by the bound")
            metrics |= {f"{name}.{key}": metric for key, metric in found.items()}
            metrics |= count_dropped(name, reading.dropped, outages.dropped)
    return Result("league faults", metrics, {})


def servers_of(outages: Outages) -> int:
    """How many servers there are."""
    return max(SERVERS, len({outage.node for outage in outages.all}))


def places_of(outages: Outages, servers: int) -> dict[str, int]:
    """Which servers those are that fail: spread among those that never do, for places are filled from the first on."""
    names = sorted({outage.node for outage in outages.all})
    return {name: at * servers // len(names) for at, name in enumerate(names)}


def play(records: Sequence[Record], outages: Outages) -> dict[str, Metric]:
    """One run, and what became of its device time."""
    servers = servers_of(outages)
    mttf_ms = _mean_ms_to_fault(records, outages, servers)
    chosen = POLICIES["muster"]
    setting = Setting(servers, chosen.tier, RESTART_MS, chosen.adviser)
    trial = FaultyTrial(setting, records, outages, mttf_ms)
    trial.run()
    held = sum(life.record.gpus * life.held_ms for life in trial.lives.values())
    parts = (trial.useful_ms, trial.saving_ms, trial.lost_ms, trial.restarting_ms)
    require(sum(parts) == held, "the buckets add up", f"{parts} are not {held}")
    goodput, bound = trial.useful_ms / max(1, held), _bound(trial, records, mttf_ms)
    buckets = zip(("useful", "checkpointing", "lost", "restarting"), parts, strict=True)
    found = {f"muster.{name}": Metric(part / max(1, held), "of device time") for name, part in buckets}
    if bound > LEAST:
        found["muster.of_bound"] = Metric(goodput / bound, "of the bound", GOAL)
    return found | {
        "muster.goodput": Metric(goodput, "of device time"),
        "bound.goodput": Metric(bound, "of device time"),
        "muster.faults": Metric(trial.faults_met, "faults"),
        "muster.restarts": Metric(trial.restarts, "restarts"),
        "muster.cpu_s": Metric(trial.cpu_s, "s"),
    }


def _mean_ms_to_fault(records: Sequence[Record], outages: Outages, servers: int) -> int:
    """How long a server is well on average, while there are jobs."""
    until = max(1, *(record.submit_ms + record.duration_ms for record in records))
    return servers * until // max(1, sum(outage.start_ms < until for outage in outages.all))


def _bound(trial: FaultyTrial, records: Sequence[Record], mttf_ms: int) -> float:
    """What share of their device time jobs can use, over all of them."""
    useful = held = 0.0
    for record in records:
        share = share_used(record.duration_ms, trial.period_ms(record), mttf_ms / nodes_of(record.gpus))
        if share < LEAST:
            return 0.0
        useful += record.gpus * record.duration_ms
        held += record.gpus * record.duration_ms / share
    return useful / held if held else 1.0


def share_used(duration_ms: int, period_ms: int, mean_ms: float) -> float:
    """What share of its time a job uses that saves so often, if faults come by chance so far apart (Daly, Future
    Generation Computer Systems 2006); one that is shorter than a period never saves."""
    span, saving = (period_ms, CHECKPOINT_MS) if duration_ms > period_ms else (duration_ms, 0)
    tries = (span + saving) / mean_ms
    return span / mean_ms * exp(-RESTART_MS / mean_ms) / expm1(tries) if 0 < tries < TRIES_MAX else float(not tries)


def _changes(outages: Sequence[Outage], names: dict[str, int]) -> list[tuple[int, bool, int]]:
    """When which node goes, or is back."""
    found: list[tuple[int, bool, int]] = []
    for outage in outages:
        found += [(outage.start_ms, False, names[outage.node]), (outage.end_ms, True, names[outage.node])]
    return found
