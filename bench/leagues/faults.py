"""faults: jobs of Acme's format on servers that fail as a trace says; a checkpoint costs 60 s, a restart 300 s.

A job saves its state every sqrt(2 x 60 s x its mean time between faults) (Young), and stands still meanwhile. When a
server of it is gone it loses what it did since, gets other places and restarts. Every moment of a device that is held
is useful, checkpointing, lost or restarting, and these add up. The bound is Young's and Daly's for the same parameters,
by job, weighed by its device time: 1 - sqrt(2C/M) - R/M; a job that never needs to save loses half its run time then.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt, sqrt
from typing import Final

from bench.league import LeagueOptions
from bench.leagues.entries import count_dropped, keep_fitting, read_entries
from bench.leagues.profiles import POLICIES
from bench.leagues.sight import spec_of
from bench.leagues.trial import NODE_GPUS, Life, Setting, Trial, require
from bench.report import Metric, Result
from muster.model import event
from muster.model.event import Event
from muster.simulator.traces.faults import Outage, Outages, read_faults
from muster.simulator.traces.formats import FAULTS, find_traces
from muster.simulator.traces.record import Record
from muster.units import Resources

SERVERS: Final = 400
"""How many servers the faults are spread over, unless the trace names more; those that never fail are not in it."""
CHECKPOINT_MS: Final = 60_000
RESTART_MS: Final = 300_000
GOAL: Final = 0.97
PLAYERS: Final = ("muster",)


class FaultyTrial(Trial):
    """A trial in which nodes go and come back, and only what was saved is kept."""

    def __init__(self, setting: Setting, records: Sequence[Record], outages: Outages, mttf_ms: int) -> None:
        super().__init__(setting, records, lambda record: spec_of("faults", record))
        self.saving_ms = self.lost_ms = self.restarting_ms = self.useful_ms = 0
        self.faults_met = 0
        self._mttf_ms = mttf_ms
        names = {node: at for at, node in enumerate(sorted({outage.node for outage in outages.all}))}
        self._changes = sorted(_changes(outages.all, names))
        self._at = 0

    def period_ms(self, record: Record) -> int:
        """How far apart a job's checkpoints are."""
        return max(CHECKPOINT_MS, isqrt(2 * CHECKPOINT_MS * self._mttf_ms // _nodes_of(record)))

    def _span_ms(self, life: Life) -> int:
        left = life.record.duration_ms - life.done_ms
        return left + CHECKPOINT_MS * ((left - 1) // self.period_ms(life.record))

    def _gained_ms(self, life: Life, now: int) -> int:
        period = self.period_ms(life.record)
        saved = max(0, now - life.began) // (period + CHECKPOINT_MS) * period
        return min(saved, life.record.duration_ms - life.done_ms)

    def _leave(self, life: Life, now: int, gained_ms: int) -> None:
        gpus, period = life.record.gpus, self.period_ms(life.record)
        up, down = max(0, now - life.began), min(now, life.began) - life.since
        is_end = life.done_ms + gained_ms == life.record.duration_ms
        saves = (gained_ms - 1) // period if is_end and gained_ms else gained_ms // period
        self.useful_ms += gpus * gained_ms
        self.restarting_ms += gpus * down
        self.saving_ms += gpus * CHECKPOINT_MS * saves
        self.lost_ms += gpus * (up - gained_ms - CHECKPOINT_MS * saves)
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
            metrics |= {f"{name}.{key}": metric for key, metric in _play(reading.records, outages).items()}
            metrics |= count_dropped(name, reading.dropped, outages.dropped)
    return Result("league faults", metrics, {})


def servers_of(outages: Outages) -> int:
    """How many servers there are."""
    return max(SERVERS, len({outage.node for outage in outages.all}))


def _play(records: Sequence[Record], outages: Outages) -> dict[str, Metric]:
    servers = servers_of(outages)
    span_ms = max(outage.end_ms for outage in outages.all)
    mttf_ms = servers * span_ms // len(outages.all)
    chosen = POLICIES["muster"]
    setting = Setting(servers, chosen.tier, RESTART_MS, chosen.adviser)
    trial = FaultyTrial(setting, records, outages, mttf_ms)
    trial.run()
    held = sum(life.record.gpus * life.held_ms for life in trial.lives.values())
    parts = (trial.useful_ms, trial.saving_ms, trial.lost_ms, trial.restarting_ms)
    require(sum(parts) == held, "the buckets add up", f"{parts} are not {held}")
    goodput, bound = trial.useful_ms / held, _bound(trial, records, mttf_ms)
    buckets = zip(("useful", "checkpointing", "lost", "restarting"), parts, strict=True)
    found = {f"muster.{name}": Metric(part / held, "of device time") for name, part in buckets}
    return found | {
        "muster.goodput": Metric(goodput, "of device time"),
        "bound.goodput": Metric(bound, "of device time"),
        "muster.of_bound": Metric(goodput / bound, "of the bound", GOAL),
        "muster.faults": Metric(trial.faults_met, "faults"),
        "muster.restarts": Metric(trial.restarts, "restarts"),
        "muster.cpu_s": Metric(trial.cpu_s, "s"),
    }


def _bound(trial: FaultyTrial, records: Sequence[Record], mttf_ms: int) -> float:
    """What share of its device time a job can use at best, over all jobs."""
    useful = held = 0.0
    for record in records:
        mean = mttf_ms / _nodes_of(record)
        never_saves = record.duration_ms <= trial.period_ms(record)
        lost = record.duration_ms / 2 / mean if never_saves else sqrt(2 * CHECKPOINT_MS / mean)
        share = 1.0 - lost - RESTART_MS / mean
        useful += record.gpus * record.duration_ms
        held += record.gpus * record.duration_ms / share
    return useful / held


def _nodes_of(record: Record) -> int:
    return -(-record.gpus // NODE_GPUS)


def _changes(outages: Sequence[Outage], names: dict[str, int]) -> list[tuple[int, bool, int]]:
    """When which node goes, or is back."""
    found: list[tuple[int, bool, int]] = []
    for outage in outages:
        found += [(outage.start_ms, False, names[outage.node]), (outage.end_ms, True, names[outage.node])]
    return found
