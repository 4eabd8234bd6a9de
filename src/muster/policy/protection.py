"""Protection: what keeps a run from being stopped for others, and a job from taking again and again.

Minimum run time and the most evictions in a day protect only what is inside its guarantee: what is borrowed is held on
the lender's terms. Nobody has a right to have another one moved, so there they protect whoever runs. A job that has
taken places twice in a day and waits again backs off: a minute before the next time, and twice as long before each one
after it, so that one that fails all the time stops others rarely. And whoever has just come takes nothing by its
priority: where runs are short, a place comes free by itself before much could be won.
"""

from __future__ import annotations

from typing import Final

from muster.model.tier import EVICTIONS_MAX, Tier
from muster.units import DAY_MS, HOUR_MS, INSTANT_MAX, MINUTE_MS, SECOND_MS

BACKOFF_MS: Final = MINUTE_MS
"""How long after the second time that it took places a job takes none."""

PATIENCE_MS: Final = SECOND_MS
"""Priority counts from the next second of the clock on: so all who came in one second are looked at together."""

MOVE_REST_MS: Final = HOUR_MS
"""How long a job that was moved is left where it is; twice as long after each further time in a day."""


def is_protected(tier: Tier, since: int, evicted: tuple[int, ...], now: int) -> bool:
    """Whether a run inside its guarantee, which began at `since` and whose job was evicted then, is left alone."""
    return now < protected_until(tier, since, evicted, now)


def protected_until(tier: Tier, since: int, evicted: tuple[int, ...], now: int) -> int:
    """From when on it may be stopped: it has run long enough, and was stopped rarely enough in the day before."""
    until, lately = since + tier.min_run_ms, recent(evicted, now)
    if tier.evictions_max is None or len(lately) < tier.evictions_max:
        return until
    if not tier.evictions_max:
        return INSTANT_MAX
    return max(until, lately[-tier.evictions_max] + DAY_MS)


def may_move(tier: Tier, since: int, evicted: tuple[int, ...], moves: tuple[int, ...], now: int) -> bool:
    """Whether a run, which began at `since` and whose job was evicted and moved then, may be moved so that others fit:
    its tier allows it so often, it is not protected, and it has rested since it was last moved."""
    lately = recent(moves, now)
    if len(lately) >= tier.moves_max or is_protected(tier, since, evicted, now):
        return False
    return not lately or now >= lately[-1] + (MOVE_REST_MS << (len(lately) - 1))


def has_waited(accepted_at: int, now: int) -> bool:
    """Whether somebody who came then may take places by its priority: it came in an earlier second."""
    return accepted_at < now - now % PATIENCE_MS


def waited_at(now: int) -> int:
    """From when on all may who have come by now."""
    return now - now % PATIENCE_MS + PATIENCE_MS


def may_take(took: tuple[int, ...], now: int) -> bool:
    """Whether a job that took places at these instants may take some again."""
    return now >= takes_again_at(took, now)


def takes_again_at(took: tuple[int, ...], now: int) -> int:
    """From when on it may, or may sooner than it seems now: once the first of them is no longer of the last day."""
    lately = recent(took, now)
    return 0 if len(lately) < 2 else min(lately[-1] + (BACKOFF_MS << (len(lately) - 2)), lately[0] + DAY_MS)


def recent(instants: tuple[int, ...], now: int) -> tuple[int, ...]:
    """Those of the last day, at most as many as are counted."""
    return tuple(at for at in instants if at > now - DAY_MS)[-EVICTIONS_MAX:]
