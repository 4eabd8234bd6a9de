"""The witness: it watches a run and gives a picture of it, of bounded size however long the run is.

It sees facts and the world after each batch, in a simulation or in a league's trial, and changes neither. Jobs are told
by the chronicle; how the fleet stood is looked at now and then: when there are too many looks, every second one goes
and they come half as often. A `Picture` is a plain value: it is written as JSON, and drawn by `muster.simulator.pages`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from muster.model import fact
from muster.simulator.chronicle import Chronicle, Life
from muster.units import HOUR_MS, MINUTE_MS
from muster.world.world import World

LOOKS_MAX: Final = 512
NODES_READ: Final = 1_000_000
"""Nodes that are read in all the looks that are kept; on a large fleet there are fewer looks."""
TENANTS_MAX: Final = 7
OTHERS: Final = "others"
POINTS_MAX: Final = 160
GANGS_MAX: Final = 24
SPANS_MAX: Final = 40
SHORT_MS: Final = 10 * MINUTE_MS
"""A run counts as at least so long where a slowdown is told: else the shortest jobs would tell it all."""


class Look(msgspec.Struct, frozen=True, gc=False):
    """How things stood: devices held, jobs waiting, and devices free on nodes in use and on idle ones."""

    at_ms: int
    held: int
    waiting: int
    free_broken: int
    free_whole: int


class Gang(msgspec.Struct, frozen=True):
    """One of the widest jobs: when it came, when it held its places, and when it was over."""

    name: str
    tenant: str
    gpus: int
    submit_ms: int
    spans_ms: list[tuple[int, int]]
    ended_ms: int | None


class Share(msgspec.Struct, frozen=True):
    """What became of one tenant's jobs. The wait is until the first start; `waits` are points of its distribution:
    this long or less, so many per cent of those who started."""

    tenant: str
    jobs: int
    gpu_hours: float
    median_wait_ms: int
    p90_wait_ms: int
    slowdown: float
    waits: list[tuple[int, float]]


class Picture(msgspec.Struct, frozen=True):
    """A run, as much of it as fits on a page. Instants count from its beginning."""

    span_ms: int
    gpus: int
    jobs: int
    looks: list[Look]
    shares: list[Share]
    gangs: list[Gang]
    fairness: float


class Witness:
    """Who watches one run."""

    def __init__(self) -> None:
        self.chronicle = Chronicle()
        self._looks: list[Look] = []
        self._begin: int | None = None
        self._at = self._next = self._gpus = 0
        self._step_ms = MINUTE_MS

    def watch(self, world: World, at: int, facts: Iterable[fact.Fact]) -> None:
        """See one batch, after it was applied."""
        self._begin = at if self._begin is None else self._begin
        self._at = at
        self.chronicle.take(at, facts)
        if at >= self._next:
            self._look(world, at)

    def picture(self) -> Picture:
        """What was seen so far."""
        begin = self._begin or 0
        lives = list(self.chronicle.lives.values())
        shares = _shares(lives)
        return Picture(
            span_ms=self._at - begin,
            gpus=self._gpus,
            jobs=len(lives),
            looks=[msgspec.structs.replace(look, at_ms=look.at_ms - begin) for look in self._looks],
            shares=shares,
            gangs=[_gang(life, begin) for life in _widest(lives)],
            fairness=_jain([share.slowdown for share in shares if share.slowdown]),
        )

    def _look(self, world: World, at: int) -> None:
        fleet, broken, whole = world.fleet, 0, 0
        for slot in range(len(fleet)):
            free = fleet.find_free(slot)
            if free is not None and fleet.is_idle(slot):
                whole += free[0]
            elif free is not None:
                broken += free[0]
        self._gpus = max(self._gpus, sum(capacity.gpus for capacity in fleet.capacities))
        self._looks.append(Look(at, self.chronicle.gpus_held, len(world.queue), broken, whole))
        if len(self._looks) >= max(32, min(LOOKS_MAX, NODES_READ // max(1, len(fleet)))):
            self._looks = self._looks[::2]
            self._step_ms *= 2
        self._next = at + self._step_ms


def _shares(lives: Sequence[Life]) -> list[Share]:
    """The tenants with the most device time, and all others as one."""
    by_tenant: dict[str, list[Life]] = {}
    for life in lives:
        by_tenant.setdefault(life.spec.tenant, []).append(life)
    ranked = sorted(by_tenant.items(), key=lambda pair: (-_gpu_ms(pair[1]), pair[0]))
    found = [_share(tenant, theirs) for tenant, theirs in ranked[:TENANTS_MAX]]
    rest = [life for _, theirs in ranked[TENANTS_MAX:] for life in theirs]
    return [*found, _share(OTHERS, rest)] if rest else found


def _share(tenant: str, lives: Sequence[Life]) -> Share:
    waits = sorted(life.spans[0][0] - life.submit for life in lives if life.spans)
    over = [life for life in lives if life.ended >= 0 and life.spans]
    slowdowns = [max(1.0, (life.ended - life.submit) / max(life.held_ms, SHORT_MS)) for life in over]
    return Share(
        tenant=tenant,
        jobs=len(lives),
        gpu_hours=round(_gpu_ms(lives) / HOUR_MS, 1),
        median_wait_ms=waits[len(waits) // 2] if waits else 0,
        p90_wait_ms=waits[len(waits) * 9 // 10] if waits else 0,
        slowdown=round(sum(slowdowns) / len(slowdowns), 3) if slowdowns else 0.0,
        waits=_distribution(waits),
    )


def _distribution(ordered: Sequence[int]) -> list[tuple[int, float]]:
    """At most so many points of how values are spread, the last one with all of them."""
    count = len(ordered)
    cuts = sorted({(at + 1) * count // POINTS_MAX for at in range(POINTS_MAX)} - {0})
    return [(ordered[cut - 1], round(100 * cut / count, 2)) for cut in cuts]


def _gpu_ms(lives: Iterable[Life]) -> int:
    return sum(life.area_ms * life.ask.gpus for life in lives)


def _widest(lives: Iterable[Life]) -> list[Life]:
    """The widest, and of equals the earliest; told in the order in which they came."""
    ranked = sorted((life for life in lives if life.gpus), key=lambda life: (-life.gpus, life.number))
    return sorted(ranked[:GANGS_MAX], key=lambda life: life.number)


def _gang(life: Life, begin: int) -> Gang:
    spans = [(first - begin, last - begin) for first, last in life.spans[-SPANS_MAX:]]
    ended = life.ended - begin if life.ended >= 0 else None
    name = f"{life.number} {life.spec.name}".strip()
    return Gang(name, life.spec.tenant, life.gpus, life.submit - begin, spans, ended)


def _jain(values: Sequence[float]) -> float:
    """Jain's index: 1 if all are alike, and down to one part in so many as there are."""
    squares = len(values) * sum(value * value for value in values)
    return round(sum(values) ** 2 / squares, 3) if squares else 1.0
