"""What a search that tries everything finds: the reference for choices that are made without trying everything."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from muster.scheduler.stage import Stage
from muster.scheduler.victims import Candidate, Want


def least_cost(stage: Stage, want: Want, candidates: Sequence[Candidate]) -> int | None:
    """What the cheapest of all sets of victims costs with which a gang fits; None if it fits with none of them."""
    best: int | None = None
    for count in range(len(candidates) + 1):
        for some in combinations(candidates, count):
            cost = sum(each.cost for each in some)
            if best is not None and cost >= best:
                continue
            for each in some:
                stage.take(each.seat)
            if want.find() is not None:
                best = cost
            for each in some:
                stage.give_back(each.seat)
    return best
