"""Planted bugs: each breaks one guard of the core for the length of a `with`, to prove that the harness finds it.

A harness that never failed has proven nothing. Nothing here is ever used outside tests, and every plant is taken out
again on the way out.
"""

from __future__ import annotations

from typing import Final

from muster.testing.planted import (
    account,
    advice,
    calendar,
    feeds,
    fleet,
    jobs,
    moves,
    places,
    shares,
    taking,
    waits,
    widths,
)
from muster.testing.planted.plant import Plant

_ROOMS: Final = (jobs, places, shares, fleet, waits, calendar, taking, account, advice, widths, feeds, moves)
PLANTED: Final[dict[str, Plant]] = {plant.__name__: plant for room in _ROOMS for plant in room.PLANTS}
