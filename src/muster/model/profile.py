"""Profiles: the integer weights of the score terms, as values that print, compare and are checked.

An admin stores profiles by name; every change of one gives it a new version. The fleet is scored by the one that is in
use. What a term looks at is told in `muster.scheduler.placing.terms`; here nobody knows a node.
"""

from __future__ import annotations

from typing import Final

from muster.model.record import Record

PROFILES_MAX: Final = 64
TERM_WEIGHT_MAX: Final = 1_000_000
"""A score is a sum of weights, each times at most 1000: it stays far inside a word."""
WORTH_WEIGHT_MAX: Final = 10_000
"""The same for the terms that are weighed in tenths, and summed before they are compared."""
DEFAULT_NAME: Final = "default"


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
    steadiness: int = 100
    fitting: int = 0
    chance: int = 0
    alignment: int = 0
    clustering: int = 0
    breaking: int = 0
    snugness: int = 0
    fragments: int = 0
    pattern: int = 0
    price: int = 0
    displacement: int = 0
    stranding: int = 0

    @property
    def is_exact(self) -> bool:
        """Whether a term is weighed that sees nodes one by one."""
        return any(getattr(self, term) for term in EXACT_TERMS)

    @property
    def is_advised(self) -> bool:
        """Whether a term is weighed that goes by advice on packing."""
        return any(getattr(self, term) for term in ADVISED_TERMS)


class Edition(Record, frozen=True):
    """A profile as it is stored: the first version is 1, and every change counts one up."""

    profile: Profile
    version: int


DEFAULT: Final = Profile()
PROFILES: Final = {DEFAULT_NAME: Edition(DEFAULT, 1)}
"""The profiles of a world in which nobody stored any."""
TERMS: Final = Profile.__struct_fields__
"""The names of the terms, in their order."""
EXACT_TERMS: Final = TERMS[TERMS.index("chance") :]
"""Those that see nodes one by one."""
ADVISED_TERMS: Final = TERMS[TERMS.index("fragments") :]
"""Those that go by advice on packing."""
WORTH_TERMS: Final = TERMS[TERMS.index("pattern") :]
"""Those that say what a node is worth."""
