"""A Profile: the integer weights of the score terms, as one value that prints, compares and is checked."""

from __future__ import annotations

from typing import Final

from muster.model.record import Record


class Profile(Record, frozen=True):
    """Weights, in the order of the table in `terms`. What packs devices weighs most: free devices that nobody can use
    together are what a fleet of accelerators loses first."""

    packing: int = 1000
    filling: int = 100
    balance: int = 10
    sparing: int = 3000
    mending: int = 3000
    scarcity: int = 50
    cost: int = 50


DEFAULT: Final = Profile()
