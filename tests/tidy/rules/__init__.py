"""The rules of the house, as pure functions from (path, source) to violations.

A rule reads text or syntax and nothing else: it imports no room of Muster, so it still speaks when the tree is broken.
"""

from __future__ import annotations

from typing import Final

from rules import purity, rooms, shape
from rules.tree import Rule

SYNTAX_RULES: Final[tuple[Rule, ...]] = (
    rooms.check_rooms,
    purity.check_impure_imports,
    purity.check_impure_calls,
    purity.check_exactness,
    purity.check_set_order,
    shape.check_sizes,
    shape.check_words,
    shape.check_docstring,
    shape.check_silencers,
    shape.check_excepts,
    shape.check_safety,
    shape.check_sleeps,
)
