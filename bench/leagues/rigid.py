"""rigid: gangs that cannot shrink, on 8 nodes of 8 GPUs; restarts cost 0, 30 and 120 s. Files of Muri's format.

Who knows what: oracles are told run times, `easy` and `conservative` among them; `fifo`, `tiresias` and `blind` know
nothing of them; `muster` and `tuned` learn from jobs that ended. Of a job they all see its submit and its size alone.

Those whom the authors of the format played, too, and those who are measured by what they published, are played once
more as they did it: `avg_jct_s_slowed`. Their simulator (Muri, SIGCOMM 2022, `simulator/jobs.py`) takes each iteration
for 1.5 % longer than the file says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from bench.league import LeagueOptions
from bench.leagues.bounds import bounds_of
from bench.leagues.completion import bound_figures, figures, mean_completion_s, named, play
from bench.leagues.entries import count_dropped, keep_fitting, read_entries
from bench.leagues.profiles import POLICIES
from bench.leagues.trial import NODE_GPUS
from bench.report import Metric, Result
from muster.simulator.traces.record import Record
from muster.units import SECOND_MS

NODES: Final = 8
COST_S: Final = 30
OTHER_COSTS_S: Final = (0, 120)
COSTED: Final = ("srtf", "srsf", "blind", "muster", "tuned")
"""Who is also run with the other costs."""
PUBLISHED: Final = ("srtf", "srsf", "tiresias", "blind", "muster", "tuned")
"""Who is also run as others ran theirs."""
SLOWED_MILLI: Final = 1015
LEARNERS: Final = ("muster", "tuned")
"""Who is measured by the oracle, at each cost."""
RATIO_GOAL: Final = 1.5
PLAYERS: Final = tuple(POLICIES)


def run(options: LeagueOptions) -> Result:
    """Play every file of the format that is there."""
    metrics: dict[str, Metric] = {}
    ratios: dict[tuple[str, str], list[float]] = {}
    for stem, whole in read_entries(options.traces, "muri"):
        reading = keep_fitting(stem, whole, NODES)
        bound = bounds_of(reading.records, NODES * NODE_GPUS)
        metrics |= named(stem, "bound", bound_figures(bound))
        metrics |= count_dropped(stem, reading.dropped)
        averages: dict[tuple[str, str], float] = {}
        for policy in filter(options.is_wanted, POLICIES):
            options.tell(f"{stem}: {policy}")
            witness = options.find_witness(stem, policy)
            trial = play("rigid", reading.records, policy, NODES, COST_S * SECOND_MS, witness)
            metrics |= named(stem, policy, figures(trial, bound))
            averages[policy, ""] = mean_completion_s(list(trial.lives.values()))
            for cost in OTHER_COSTS_S if policy in COSTED else ():
                again = metrics[f"{stem}.{policy}.avg_jct_s_cost{cost}"] = _play_again(reading.records, policy, cost)
                averages[policy, f"_cost{cost}"] = again.value
            if policy in PUBLISHED:
                metrics[f"{stem}.{policy}.avg_jct_s_slowed"] = _play_again(_slowed(reading.records), policy, COST_S)
        for (policy, suffix), ratio in _over_srsf(averages).items():
            ratios.setdefault((policy, suffix), []).append(ratio)
            metrics[f"{stem}.{policy}.over_srsf{suffix}"] = Metric(ratio, "times srsf")
    for (policy, suffix), found in ratios.items():
        mean = sum(found) / len(found)
        metrics[f"all.{policy}.over_srsf{suffix}"] = Metric(mean, "times srsf", RATIO_GOAL, at_least=False)
    return Result("league rigid", metrics, {})


def _over_srsf(averages: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Of those who learn, their averages by that of the oracle at the same cost of a restart."""
    learners = [(policy, cost) for policy, cost in averages if policy in LEARNERS and averages.get(("srsf", cost))]
    return {(policy, cost): averages[policy, cost] / averages["srsf", cost] for policy, cost in learners}


def _play_again(records: Sequence[Record], policy: str, cost_s: int) -> Metric:
    trial = play("rigid", records, policy, NODES, cost_s * SECOND_MS)
    return Metric(mean_completion_s(list(trial.lives.values())), "s")


def _slowed(records: Sequence[Record]) -> list[Record]:
    return [replace(record, duration_ms=record.duration_ms * SLOWED_MILLI // 1000) for record in records]
