"""How long jobs run, as far as history tells: drawn from what jobs like it did, those of its own name first.

A job that runs already is compared with those that ran longer than that; one that outlived them all is taken to go on
for about as long again. Nobody runs longer than its limit. If nothing like it has ended and it has no limit, nobody can
say: `None`.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Final, NamedTuple

from muster.model.spec import Spec
from muster.units import MINUTE_MS

LIKE_LEAST: Final = 3
"""From so few on, what those of one name or of one tenant did is worth more than what all did."""


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
        luck = random.Random(f"{turn}/{job}").random()  # noqa: S311 - no secret rests on it
        most = None if spec.limit_ms is None else max(0, spec.limit_ms - elapsed)
        likes = self.likes(spec)
        if not likes:
            return None if most is None else int(most * (1 + luck) / 2)
        longer = likes[bisect_right(likes, elapsed) :]
        left = longer[int(luck * len(longer))] - elapsed if longer else int(max(elapsed, MINUTE_MS) * (0.5 + luck))
        return left if most is None else min(left, most)

    def likes(self, spec: Spec) -> list[int]:
        """For how long those ran that are most like it, if enough of them are known; else all that are."""
        *fine, coarsest = _classes(spec.tenant, spec.name)
        enough = (self._by_class.get(key, []) for key in fine)
        return next((found for found in enough if len(found) >= LIKE_LEAST), self._by_class.get(coarsest, []))


def _classes(tenant: str, name: str) -> tuple[Hashable, ...]:
    named = ((tenant, name),) if name else ()
    return (*named, (tenant,), ())
