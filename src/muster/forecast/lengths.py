"""How long jobs run, as far as history tells: drawn from what jobs like it did, those of its own name first.

What few of a name did is little evidence, so a draw is from those only as often as there are many of them, else from
its tenant's, else from all, and now and then it is like nobody. A job that runs already is compared with those that ran
longer than that; one that outlived them all goes on for about as long again, or for much longer. Nobody runs longer
than its limit. If nothing has ended and it has no limit, nobody can say: `None`.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import Final, NamedTuple

from muster.model.spec import Spec
from muster.units import MINUTE_MS

DOUBT: Final = 3
"""So many of a class are believed every second time; of ten times as many, ten times in eleven."""
LUCK_LEAST: Final = 0.02
"""Nobody is taken to go on for more than fifty times as long as it did."""


class Ran(NamedTuple):
    """A job that is over: whose it was, and for how long it was up."""

    tenant: str
    name: str
    run_ms: int


class Lengths:
    """What ended, by class from fine to coarse; each class is sorted by length."""

    def __init__(self, ended: Iterable[Ran]) -> None:
        found: defaultdict[Hashable, list[int]] = defaultdict(list)
        for ran in ended:
            for key in _classes(ran.tenant, ran.name):
                found[key].append(ran.run_ms)
        self._by_class = {key: sorted(lengths) for key, lengths in found.items()}

    def draw(self, job: int, spec: Spec, elapsed: int, turn: int) -> int | None:
        """How much longer a job goes on; the same job and turn have the same luck whatever else is different."""
        dice = random.Random(f"{turn}/{job}")  # noqa: S311 - no secret rests on it
        most = None if spec.limit_ms is None else max(0, spec.limit_ms - elapsed)
        if not self._by_class:
            return None if most is None else int(most * (1 + dice.random()) / 2)
        left = self._draw_left(dice, spec, elapsed)
        return left if most is None else min(left, most)

    def count_likes(self, spec: Spec) -> int:
        """Of how many it is known for how long they ran, of the finest class of which anybody is."""
        return next((len(found) for found in self._likes(spec) if found), 0)

    def _draw_left(self, dice: random.Random, spec: Spec, elapsed: int) -> int:
        for likes in self._likes(spec):
            first = bisect_right(likes, elapsed)
            longer = len(likes) - first
            belief, luck = dice.random(), dice.random()
            if belief * (longer + DOUBT) < longer:
                return likes[first + int(luck * longer)] - elapsed
        everybody, luck = self._by_class[()], max(LUCK_LEAST, dice.random())
        return int(max(elapsed, everybody[len(everybody) // 2], MINUTE_MS) * (1 - luck) / luck)

    def _likes(self, spec: Spec) -> Iterable[Sequence[int]]:
        return (self._by_class.get(key, ()) for key in _classes(spec.tenant, spec.name))


def _classes(tenant: str, name: str) -> tuple[Hashable, ...]:
    named = ((tenant, name),) if name else ()
    return (*named, (tenant,), ())
