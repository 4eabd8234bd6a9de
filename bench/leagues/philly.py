"""philly: a cluster's whole trace on 64 and on 80 nodes of 8 GPUs; a restart costs 30 s. Files of Philly's format.

Of a job the scheduler sees its submit, its size and its virtual cluster. All clusters share one pool.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from bench.league import LeagueOptions
from bench.leagues.bounds import bounds_of
from bench.leagues.completion import bound_figures, figures, named, play
from bench.leagues.entries import count_dropped, keep_fitting, read_entries
from bench.leagues.profiles import POLICIES
from bench.leagues.trial import NODE_GPUS
from bench.report import Metric, Result
from muster.units import HOUR_MS, SECOND_MS

SIZES: Final = (64, 80)
PLAYERS: Final = tuple(POLICIES)
COST_S: Final = 30
DEFAULT: Final = ("muster", "tuned")
"""Who plays unless others are named: the rest takes minutes each."""
GOALS_H: Final = {64: 4.9, 80: 3.9}


def run(options: LeagueOptions) -> Result:
    """Play every file of the format that is there."""
    metrics: dict[str, Metric] = {}
    wanted = [name for name in POLICIES if name in (options.policies or DEFAULT)]
    for stem, whole in read_entries(options.traces, "philly"):
        for nodes in SIZES:
            reading = keep_fitting(stem, whole, nodes)
            metrics |= count_dropped(f"{stem}{nodes}", reading.dropped)
            bound = bounds_of(reading.records, nodes * NODE_GPUS)
            metrics |= named(f"{stem}{nodes}", "bound", bound_figures(bound))
            for policy in wanted:
                options.tell(f"{stem} on {nodes} nodes: {policy}")
                witness = options.find_witness(f"{stem}{nodes}", policy)
                trial = play("philly", reading.records, policy, nodes, COST_S * SECOND_MS, witness)
                found = figures(trial, bound)
                if policy in DEFAULT:
                    found = _with_goals(found, nodes)
                hours = found["avg_jct_s"].value * SECOND_MS / HOUR_MS
                found["avg_jct_h"] = Metric(hours, "h", GOALS_H[nodes] if policy in DEFAULT else None, at_least=False)
                metrics |= named(f"{stem}{nodes}", policy, found)
    return Result("league philly", metrics, {})


def _with_goals(found: dict[str, Metric], nodes: int) -> dict[str, Metric]:  # noqa: ARG001 - the same at any size
    goals = {"preemptions_per_job": 0.5, "most_preemptions": 50.0, "worst_wait_ratio": 30.0}
    return found | {name: replace(found[name], goal=goal, at_least=False) for name, goal in goals.items()}
