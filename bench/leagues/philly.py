"""philly: a cluster's whole trace on 64 and on 80 nodes of 8 GPUs; a restart costs 30 s. Files of Philly's format.

Of a job the scheduler sees its submit, its size and its virtual cluster. All clusters share one pool. There is no tuned
variant: what makes up `tuned` elsewhere has no guard, and loses to the default here. `sjf` plays beside it, who knows
every run time; `srsf`, who knows them too, takes as long as all others together, and plays if it is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Final, NamedTuple

from msgspec.structs import replace

from bench.league import LeagueOptions
from bench.leagues.bounds import Bounds, bounds_of
from bench.leagues.completion import bound_figures, figures, named, play
from bench.leagues.entries import count_dropped, keep_fitting, read_entries
from bench.leagues.profiles import POLICIES
from bench.leagues.trial import NODE_GPUS
from bench.report import Metric, Result
from muster.simulator.traces.record import Record
from muster.simulator.witness import Witness
from muster.units import HOUR_MS, SECOND_MS

SIZES: Final = (64, 80)
PLAYERS: Final = tuple(POLICIES)
COST_S: Final = 30
DEFAULT: Final = ("muster", "sjf")
"""Who plays unless others are named: the rest takes minutes each."""
AIMED: Final = "muster"
"""Whose figures have goals."""
GOALS_H: Final = {64: 4.9, 80: 3.9}
_GOALS: Final = {"preemptions_per_job": 0.5, "most_preemptions": 50.0, "worst_wait_ratio": 30.0}
PROCESSES: Final = 2


class Play(NamedTuple):
    """One run: what is played, on how many nodes, by whom, beside which bound, and who watches."""

    name: str
    records: Sequence[Record]
    nodes: int
    policy: str
    bound: Bounds
    witness: Witness | None


def run(options: LeagueOptions) -> Result:
    """Play every file of the format that is there; two runs at a time, for each takes minutes."""
    metrics: dict[str, Metric] = {}
    plays: list[Play] = []
    wanted = [name for name in dict.fromkeys(options.policies or DEFAULT) if name in POLICIES]
    for stem, whole in read_entries(options.traces, "philly"):
        for nodes in SIZES:
            reading, name = keep_fitting(stem, whole, nodes), f"{stem}{nodes}"
            bound = bounds_of(reading.records, nodes * NODE_GPUS)
            metrics |= count_dropped(name, reading.dropped) | named(name, "bound", bound_figures(bound))
            for policy in wanted:
                watched = options.find_witness(name, policy)
                plays.append(Play(name, reading.records, nodes, policy, bound, watched))
    plays.sort(key=lambda each: wanted.index(each.policy))  # the long ones first, or one core waits for the other
    with ProcessPoolExecutor(PROCESSES) as pool:
        for each, (found, witness) in zip(plays, pool.map(_play, plays), strict=True):
            options.tell(f"{each.name}: {each.policy} has played")
            options.keep_witness(each.name, each.policy, witness)
            metrics |= named(each.name, each.policy, found)
    return Result("league philly", metrics, {})


def _play(each: Play) -> tuple[dict[str, Metric], Witness | None]:
    """The figures of one run, and what was seen of it."""
    trial = play("philly", each.records, each.policy, each.nodes, COST_S * SECOND_MS, each.witness)
    found = figures(trial, each.bound)
    goals = _GOALS if each.policy == AIMED else {}
    found |= {name: replace(found[name], goal=goal, at_least=False) for name, goal in goals.items()}
    hours, goal = found["avg_jct_s"].value * SECOND_MS / HOUR_MS, GOALS_H[each.nodes] if goals else None
    found["avg_jct_h"] = Metric(hours, "h", goal, at_least=False)
    return found, each.witness
