"""What the leagues of completion time have in common: play a policy on a trace, and name the figures."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from bench.leagues.bounds import Bounds
from bench.leagues.profiles import POLICIES
from bench.leagues.sight import spec_of
from bench.leagues.trial import Life, Setting, Trial
from bench.report import Metric, tell_distance
from muster.model.spec import Spec
from muster.simulator.traces.record import Record
from muster.simulator.witness import Witness
from muster.units import HOUR_MS, SECOND_MS


def play(
    league: str, records: Sequence[Record], policy: str, nodes: int, restart_ms: int, witness: Witness | None = None
) -> Trial:
    """One run of a policy; its lives are in the trial."""
    chosen = POLICIES[policy]
    setting = Setting(nodes, chosen.tier, restart_ms, chosen.adviser)
    trial = Trial(setting, records, lambda record: _spec_of(league, record, told=chosen.shadows > 0))
    trial.witness = witness
    trial.run()
    return trial


def _spec_of(league: str, record: Record, *, told: bool) -> Spec:
    """A job as the kernel gets it; where it is told, with its run time as its limit."""
    spec = spec_of(league, record)
    return replace(spec, limit_ms=max(1, record.duration_ms)) if told else spec


def figures(trial: Trial, bound: Bounds) -> dict[str, Metric]:
    """The figures of a run, by measure."""
    lives = list(trial.lives.values())
    average = mean_completion_s(lives)
    makespan = (max(life.ended for life in lives) - lives[0].record.submit_ms) / SECOND_MS
    count = len(lives)
    return {
        "avg_jct_s": Metric(average, "s"),
        "p99_jct_s": Metric(_percentile([life.completion_ms for life in lives], 0.99) / SECOND_MS, "s"),
        "makespan_s": Metric(makespan, "s"),
        **tell_distance("over_bound", average, bound.completion_s, "of the bound"),
        **tell_distance("makespan_over_bound", makespan, bound.makespan_s, "of the bound"),
        "preemptions_per_job": Metric(sum(life.stopped for life in lives) / count, "times"),
        "migrations_per_job": Metric(sum(life.moved for life in lives) / count, "times"),
        "most_preemptions": Metric(max(life.stopped for life in lives), "times"),
        "max_wait_s": Metric(max(life.waited_ms for life in lives) / SECOND_MS, "s"),
        "worst_wait_ratio": Metric(max(map(wait_ratio, lives)), "run times"),
        "cpu_s": Metric(trial.cpu_s, "s"),
    }


def mean_completion_s(lives: Sequence[Life]) -> float:
    """From submit to end, on average."""
    return sum(life.completion_ms for life in lives) / len(lives) / SECOND_MS


def wait_ratio(life: Life) -> float:
    """How long a job waited, in its run times; a short one counts as an hour."""
    return life.waited_ms / max(life.record.duration_ms, HOUR_MS)


def named(stem: str, policy: str, found: dict[str, Metric]) -> dict[str, Metric]:
    """Figures under their full names."""
    return {f"{stem}.{policy}.{measure}": metric for measure, metric in found.items()}


def bound_figures(bound: Bounds) -> dict[str, Metric]:
    """The bounds as figures."""
    return {"avg_jct_s": Metric(bound.completion_s, "s"), "makespan_s": Metric(bound.makespan_s, "s")}


def _percentile(values: Sequence[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]
