"""The adviser on packing: what free devices are worth to the classes of jobs that come, learned from those that came.

It counts classes as they are accepted, and nothing else: no trace, no horizon, no end of a job. From time to time it
says anew (see `muster.scheduler.placing.book` for the columns):

    value     what is left of a device is worth, by cutting stock
    on        how much each class counts on each flavor: where it would go if the present mix filled what is free
    price     how much more than elsewhere a flavor would be wanted then
    places    what a place for one of a class is worth: much if places are few, next to nothing if there are plenty

Early, when every job changes the picture, it speaks often; later once in a thousand jobs. It says nothing as long as
the fleet is scored by a profile that does not ask for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from muster.learning.cutting import DEVICE, values_of
from muster.learning.loads import split
from muster.model.advice import PACKING, Advice
from muster.model.event import Advise
from muster.model.fact import Accepted, Fact
from muster.units import DAY_MS, Resources
from muster.world import arena as at
from muster.world.world import World

if TYPE_CHECKING:
    from muster.learning.simplex import Vector

    Amounts: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.int64]]

CLASSES_MAX: Final = 150
COVERED: Final = 0.95
"""Of all jobs that take devices, so many are in the classes that are told."""
FIRST: Final = 20
OFTEN_UNTIL: Final = 2000
SELDOM: Final = 1000
SOLVED_AGAIN: Final = 1.7
"""Cutting stock is solved anew once so many times as many jobs came."""
REMEMBERED: Final = 100_000
"""Once so many are counted, all of them count half: what people run changes, and what is known stays small."""
LASTS_MS: Final = DAY_MS
ONE: Final = 1_000_000
PRICE_FREE: Final = 0.02
PRICE_MAX: Final = 2.0
RARE: Final = 0.02
"""A flavor with less than this part of what is free sets no price."""
SHORTAGE_MAX: Final = 10.0


class Kind(NamedTuple):
    """A class of jobs, as it is counted: what one task asks for, and the flavors that it may run on."""

    cpu_milli: int
    memory_bytes: int
    gpus: int
    gpu_milli: int
    flavors: tuple[str, ...]

    @property
    def size(self) -> int:
        """What it takes of each device."""
        return DEVICE if self.gpus else self.gpu_milli


_WISH: Final = itemgetter(0, 1)


class PackingAdviser:
    """Counts what comes, and speaks when enough is new. `counts` is the mix as it is known."""

    def __init__(self) -> None:
        self.counts: Counter[Kind] = Counter()
        self._seen = self._counted = 0
        self._speaks_at = FIRST
        self._solved_for = 0
        self._values: list[float] = []
        self._renews_at = 0

    def observe(self, world: World, facts: Sequence[Fact]) -> None:  # noqa: ARG002 - the port's
        """Count the tasks of jobs that were accepted."""
        specs = [fact.spec for fact in facts if isinstance(fact, Accepted)]
        asked = [(part.ask, spec.needs.flavors, part.tasks) for spec in specs for part in spec.needs.groups or (spec,)]
        self._seen += sum(spec.tasks for spec in specs)
        for (ask, flavors), alike in groupby(asked, _WISH):  # those who come together are mostly alike
            self._count(ask, flavors, sum(tasks for _, _, tasks in alike))

    def advise(self, world: World, now: int) -> list[Advise]:
        """What is known by now, if it is time to say so."""
        if (self._seen < self._speaks_at and now < self._renews_at) or not self.counts:
            return []
        if not world.profiles[world.profile_used].profile.is_advised:
            return []
        self._speaks_at = self._seen + (max(FIRST, self._seen // 2) if self._seen < OFTEN_UNTIL else SELDOM)
        self._renews_at = now + LASTS_MS // 2
        if self._seen >= SOLVED_AGAIN * self._solved_for:
            self._solved_for = self._seen
            sizes = Counter[int]()
            for kind, count in self.counts.items():
                sizes[kind.gpu_milli] += count if kind.gpu_milli else 0
            self._values = values_of(+sizes)
        known = world.advice.get(PACKING)
        version = 1 if known is None else known.version + 1
        columns = _columns(world, self.counts, self._values)
        return [Advise(PACKING, Advice(version, now + LASTS_MS, columns), cause="adviser on packing")]

    def _count(self, ask: Resources, flavors: tuple[str, ...], tasks: int) -> None:
        if not (ask.gpus or ask.gpu_milli):
            return
        self.counts[_kind(ask, flavors)] += tasks
        self._counted += tasks
        while self._counted > REMEMBERED:
            self.counts = Counter({each: count // 2 for each, count in self.counts.items() if count > 1})
            self._counted = self.counts.total()


@lru_cache(maxsize=1024)
def _kind(ask: Resources, flavors: tuple[str, ...]) -> Kind:
    return Kind(ask.cpu_milli, ask.memory_bytes, ask.gpus, ask.gpu_milli, tuple(sorted(flavors)))


def pick_typical(counts: Counter[Kind], covered: float = COVERED, most: int = CLASSES_MAX) -> list[Kind]:
    """The classes that come most often, until they cover so much of all."""
    total, found, sum_so_far = sum(counts.values()), list[Kind](), 0
    for kind, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if sum_so_far >= covered * total or len(found) >= most:
            break
        found.append(kind)
        sum_so_far += count
    return found


def class_columns(kinds: Sequence[Kind], shares: Sequence[float]) -> dict[str, tuple[int, ...]]:
    """The columns that say what the classes are."""
    return {
        "cpu_milli": tuple(kind.cpu_milli for kind in kinds),
        "memory_bytes": tuple(kind.memory_bytes for kind in kinds),
        "gpus": tuple(kind.gpus for kind in kinds),
        "gpu_milli": tuple(kind.gpu_milli for kind in kinds),
        "share": tuple(int(ONE * share) for share in shares),
        "places": (0,) * len(kinds),
    }


def _columns(world: World, counts: Counter[Kind], values: Sequence[float]) -> dict[str, tuple[int, ...]]:
    """All that there is to say, of the fleet as it is now."""
    view = _View(world, values)
    kinds = pick_typical(counts)
    total = sum(counts[kind] for kind in kinds)
    columns = class_columns(kinds, [counts[kind] / total for kind in kinds])
    columns["value"] = tuple(round(DEVICE * value) for value in values)
    columns["places"] = _places(view, kinds, counts)
    demand: dict[tuple[str, ...], float] = {}
    for kind, count in sorted(counts.items()):
        key = kind.flavors or tuple(view.flavors)
        demand[key] = demand.get(key, 0.0) + count * view.worth(kind)
    free = {name: view.value_on(name) for name in view.flavors}
    loads, parts = split(demand, free)
    for name in view.flavors:
        columns[f"price:{name}"] = (_price(name, loads, free),)
        columns[f"on:{name}"] = _weights(name, kinds, counts, parts, free)
    return columns


class _View:
    """The fleet as numbers: by slot, what is free, device by device, and of which flavor it is."""

    def __init__(self, world: World, values: Sequence[float]) -> None:
        fleet, words = world.fleet, np.asarray(world.fleet.words)
        slots = len(fleet)
        nodes = words[words[at.AT_NODES] : words[at.AT_NODES] + slots * at.NODE_ROW].reshape(slots, at.NODE_ROW)
        begin, width = words[at.AT_DEVICES], words[at.DEVICES]
        self._is_open = nodes[:, at.OPEN] > 0
        self._cpu, self._memory = nodes[:, at.FREE_CPU], nodes[:, at.FREE_MEMORY]
        self._devices: Amounts = words[begin : begin + slots * width].reshape(slots, int(width))
        self._values = np.array(values)
        flavors = [fleet.flavor(slot) for slot in range(slots)]
        self.flavors = sorted({flavors[slot] for slot in range(slots) if fleet.capacities[slot].gpus})
        self._flavor = np.array([self.flavors.index(name) if name in self.flavors else -1 for name in flavors])
        self._worth = np.where(self._is_open, self._values[self._devices].sum(axis=1), 0.0)

    def worth(self, kind: Kind) -> float:
        """What one of a class is worth, in devices."""
        return float(max(1, kind.gpus) * self._values[kind.size])

    def value_on(self, flavor: str) -> float:
        """What is free of a flavor is worth."""
        return float(self._worth[self._flavor == self.flavors.index(flavor)].sum())

    def count_places(self, kind: Kind) -> int:
        """How many of a class would fit now, over all nodes."""
        room = (self._devices // kind.size).sum(axis=1) // max(1, kind.gpus)
        if kind.cpu_milli:
            room = np.minimum(room, self._cpu // kind.cpu_milli)
        if kind.memory_bytes:
            room = np.minimum(room, self._memory // kind.memory_bytes)
        here = self._is_open
        if kind.flavors:
            allowed = [self.flavors.index(name) for name in kind.flavors if name in self.flavors]
            here = here & np.isin(self._flavor, allowed)
        return int(room[here].sum())


def _places(view: _View, kinds: Sequence[Kind], counts: Counter[Kind]) -> tuple[int, ...]:
    """The square of how many would come, if the mix filled what is free, for each place that there is, times the worth
    of one; in thousandths of a thousandth of a device."""
    worth_of_all = sum(count * view.worth(kind) for kind, count in sorted(counts.items())) or 1.0
    free = sum(view.value_on(name) for name in view.flavors)
    found = []
    for kind in kinds:
        coming = counts[kind] * free / worth_of_all
        shortage = min(SHORTAGE_MAX, coming / max(1, view.count_places(kind)))
        found.append(round(ONE * view.worth(kind) * shortage**2))
    return tuple(found)


def _price(name: str, loads: dict[str, float], free: dict[str, float]) -> int:
    """How much more than on the emptiest flavor the load on this one is, in thousandths of what is free of it."""
    total = sum(free.values())
    levels = {flavor: loads[flavor] / free[flavor] for flavor in free if free[flavor] > 0}
    least = min((levels[flavor] for flavor in levels if free[flavor] > RARE * total), default=0.0)
    return round(DEVICE * min(PRICE_MAX, max(0.0, levels.get(name, 0.0) - least - PRICE_FREE)))


def _weights(
    name: str,
    kinds: Sequence[Kind],
    counts: Counter[Kind],
    parts: dict[tuple[str, ...], dict[str, float]],
    free: dict[str, float],
) -> tuple[int, ...]:
    """The mix that is to be expected on a flavor: of each class what would go there, of a million; -1 if it may not."""
    everywhere = tuple(sorted(free))
    raw = [counts[kind] * parts[kind.flavors or everywhere].get(name, 0.0) for kind in kinds]
    total = sum(raw)
    weights: Vector = np.array(raw) / total if total > 0 else np.zeros(len(kinds))
    allowed = [not kind.flavors or name in kind.flavors for kind in kinds]
    return tuple(int(ONE * weight) if may else -1 for weight, may in zip(weights, allowed, strict=True))
