"""Fairness, measured: who gets how much of a fleet that everybody wants, over a simulated week.

The load is driven by hand: each tenant always has work that fits, so that whoever gets less was given less. What is
counted is what was really held, from the placements and the ends alone.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping

import pytest

from muster.kernel.kernel import Kernel, Outcome
from muster.model import event
from muster.model.instruction import Start
from muster.model.tenant import Tenant
from muster.testing.rig import spec
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS, Resources
from muster.world.world import World

WEEK_MS = 7 * DAY_MS
NODES, GPUS = 6, 8
"""Large enough that one job is little beside what the smallest tenant holds: the walk is exact to about a job."""
BACKLOG = 4


class Market:
    """A small fleet and tenants that always want more of it. `runs` is how long a tenant's jobs run, least and most."""

    def __init__(self, seed: int, runs: Mapping[str, tuple[int, int]], nodes: int = NODES) -> None:
        self._dice = random.Random(seed)
        self._runs = runs
        self._kernel = Kernel(World())
        self._ends: list[tuple[int, int]] = []
        self._since: dict[int, tuple[str, int, int]] = {}
        self._waiting = dict.fromkeys(runs, 0)
        self.now = 0
        self.tenants: list[str] = []
        self.held_ms = dict.fromkeys(runs, 0)
        seen = [event.NodeSeen(f"n{number}", Resources(GPUS, 10**6, 2**40)) for number in range(nodes)]
        self._kernel.handle(seen, 0)

    def say(self, item: event.Event) -> None:
        """An admin says something."""
        self._follow(self._kernel.handle([item], self.now))

    def join(self, *tenants: str) -> None:
        """Tenants begin to want something."""
        self.tenants += tenants
        self._fill()

    def run(self, span_ms: int) -> dict[str, float]:
        """Let time pass; each tenant's share of what was held meanwhile."""
        before, until = self._held(), self.now + span_ms
        while self._ends and self._ends[0][0] <= until:
            self.now, job = heapq.heappop(self._ends)
            tenant, gpus, since = self._since.pop(job)
            self.held_ms[tenant] += gpus * (self.now - since)
            self._follow(self._kernel.handle([event.Exited(job, 1, 0)], self.now))
            self._fill()
        self.now = until
        gained = {tenant: held - before[tenant] for tenant, held in self._held().items()}
        return {tenant: gained[tenant] / sum(gained.values()) for tenant in self.tenants}

    def _held(self) -> dict[str, int]:
        held = dict(self.held_ms)
        for tenant, gpus, since in self._since.values():
            held[tenant] += gpus * (self.now - since)
        return held

    def _fill(self) -> None:
        for tenant in self.tenants:
            while self._waiting[tenant] < BACKLOG:
                self._waiting[tenant] += 1
                asked = spec(self._dice.choice((1, 1, 2)), tenant=tenant)
                self._follow(self._kernel.handle([event.Submit(asked)], self.now))

    def _follow(self, outcome: Outcome) -> None:
        for item in outcome.instructions:
            if isinstance(item, Start):
                tenant = item.spec.tenant
                self._waiting[tenant] -= 1
                self._since[item.job] = (tenant, item.spec.ask.gpus, self.now)
                heapq.heappush(self._ends, (self.now + self._dice.randrange(*self._runs[tenant]), item.job))


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
ALIKE = (10 * MINUTE_MS, 90 * MINUTE_MS)
CLOSE = 0.02


def check_shares(shares: Mapping[str, float], wanted: Mapping[str, float]) -> None:
    """Everybody got what is due to it, within 2 % of that."""
    assert shares.keys() == wanted.keys()
    assert all(abs(shares[name] - part) <= CLOSE * part for name, part in wanted.items()), (shares, wanted)


@pytest.mark.parametrize("seed", SEEDS)
def test_equal_tenants_under_equal_load_get_equal_shares(seed: int) -> None:
    market = Market(seed, dict.fromkeys("abcde", ALIKE))
    market.join(*"abcde")
    check_shares(market.run(WEEK_MS), dict.fromkeys("abcde", 1 / 5))


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_are_kept(seed: int) -> None:
    weights = {"a": 1, "b": 2, "c": 4}
    market = Market(seed, dict.fromkeys(weights, ALIKE))
    for name, weight in weights.items():
        market.say(event.SetTenant(name, Tenant(weight=weight)))
    market.join(*weights)
    check_shares(market.run(WEEK_MS), {name: weight / 7 for name, weight in weights.items()})


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_are_kept_at_every_node_of_the_tree(seed: int) -> None:
    """
    root ┬ lab, weight 2 ┬ x, weight 1     lab 2/3: x 1/4 of it, y 3/4
         │               └ y, weight 3
         └ z, weight 1                     z 1/3
    """
    market = Market(seed, dict.fromkeys("xyz", ALIKE))
    market.say(event.SetTenant("lab", Tenant(weight=2)))
    market.say(event.SetTenant("x", Tenant("lab", 1)))
    market.say(event.SetTenant("y", Tenant("lab", 3)))
    market.join(*"xyz")
    check_shares(market.run(WEEK_MS), {"x": 1 / 6, "y": 1 / 2, "z": 1 / 3})


def test_what_one_child_leaves_goes_to_its_siblings_first() -> None:
    """The lab has its half as long as anybody in it wants it."""
    market = Market(4, dict.fromkeys("xyz", ALIKE))
    market.say(event.SetTenant("lab", Tenant()))
    for name in "xy":
        market.say(event.SetTenant(name, Tenant("lab")))
    market.join("x", "z")
    check_shares(market.run(WEEK_MS), {"x": 1 / 2, "z": 1 / 2})


def test_short_jobs_and_long_ones_weigh_the_same() -> None:
    """Use is counted, not starts: a hundred short jobs are as much as one long one."""
    market = Market(1, {"short": (MINUTE_MS, 5 * MINUTE_MS), "long": (3 * HOUR_MS, 6 * HOUR_MS)}, nodes=2)
    market.join("short", "long")
    shares = market.run(WEEK_MS)
    assert abs(shares["short"] - 0.5) < 0.05, shares


def test_who_comes_late_is_neither_starved_nor_favoured_beyond_the_half_life() -> None:
    market = Market(1, dict.fromkeys("abc", ALIKE), nodes=2)
    market.join("a", "b")
    market.run(3 * DAY_MS)
    market.join("c")
    first_hours = market.run(6 * HOUR_MS)
    assert first_hours["c"] > 1 / 3, first_hours
    market.run(18 * HOUR_MS)
    for _ in range(4):
        shares = market.run(DAY_MS)
        assert all(abs(share - 1 / 3) < 0.05 for share in shares.values()), shares


def test_who_was_idle_gets_no_more_than_its_share_once_it_has_caught_up() -> None:
    """A week alone is forgiven within days: what is older than the half-life counts less and less."""
    market = Market(2, dict.fromkeys("ab", ALIKE), nodes=2)
    market.join("a")
    market.run(WEEK_MS)
    market.join("b")
    alone = market.run(DAY_MS)
    assert alone["b"] > 0.5
    market.run(DAY_MS)
    shares = market.run(3 * DAY_MS)
    assert abs(shares["a"] - 0.5) < 0.03, shares
