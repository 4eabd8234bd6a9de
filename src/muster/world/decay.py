"""Decay: what an amount of some age still weighs, as a table of integers. Nothing that is stored is ever decayed."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

WEIGHT_BITS: Final = 20


def halve_every(half_life: int, kept: int) -> tuple[int, ...]:
    """2^20 by age, halved every `half_life` buckets: the largest integers whose power does not exceed that of the true
    weight, for all ages up to `kept`."""
    whole = 1 << WEIGHT_BITS
    first = [
        bisect_right(range(whole + 1), 1 << (WEIGHT_BITS * half_life - age), key=lambda weight: weight**half_life) - 1
        for age in range(half_life)
    ]
    return tuple(first[age % half_life] >> (age // half_life) for age in range(kept + 1))
