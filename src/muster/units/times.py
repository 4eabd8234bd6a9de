"""Time is integer milliseconds since the epoch; a duration is integer milliseconds.

The only place that parses or prints either. Nothing here reads a clock.
"""

from __future__ import annotations

import datetime
import re
from typing import Final

from muster.units.amounts import AmountError, check_amount

SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
INSTANT_MAX: Final = 253_402_300_799_999  # the last millisecond of the year 9999: what can be shown as a date

_UNITS: Final = {"d": DAY_MS, "h": HOUR_MS, "m": MINUTE_MS, "s": SECOND_MS, "ms": 1}
_PART: Final = re.compile(r"(\d{1,16})(ms|d|h|m|s)")
_CLOCK: Final = re.compile(r"\d{2}:\d{2}(?::\d{2})?")
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_DURATION: Final = re.compile(r"(?:\d{1,16}(?:ms|d|h|m|s))+")


def parse_duration(text: str) -> int:
    """`90s`, `1h30m` or `2d` -> milliseconds."""
    if not _DURATION.fullmatch(text):
        raise AmountError(f"duration {text!r} is not a time such as 90s, 1h30m or 2d")
    return check_amount(sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(text)), "duration")


def show_duration(span_ms: int) -> str:
    """Milliseconds -> at most two units: `1h 30m`, `4.2s`, `300ms`."""
    if span_ms < SECOND_MS:
        return f"{span_ms}ms"
    if span_ms < MINUTE_MS:
        return f"{span_ms // 100 / 10:g}s"
    parts = []
    for unit in ("d", "h", "m", "s"):
        count, span_ms = divmod(span_ms, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])


def parse_instant(text: str, now_ms: int, zone: datetime.tzinfo = datetime.UTC) -> int:
    """`2026-11-15 14:05`, with a zone or else in this one, or so long after now, as in `2h` -> milliseconds since the
    epoch."""
    if _DURATION.fullmatch(text):
        at_ms = now_ms + parse_duration(text)
    else:
        try:
            at = datetime.datetime.fromisoformat(text)
        except ValueError:
            words = "is not a date such as 2026-11-15 14:05, 2026-11-15T14:05+02:00, or a length of time such as 2h"
            raise AmountError(f"time {text!r} {words}") from None
        since = (at if at.tzinfo else at.replace(tzinfo=zone)) - _EPOCH
        at_ms = since // datetime.timedelta(milliseconds=1)
    if not 0 <= at_ms <= INSTANT_MAX:
        raise AmountError(f"time {text!r} is not between 1970 and the end of 9999")
    return at_ms


def parse_past(text: str, now_ms: int) -> int:
    """The same for what has been: a length of time is one ago, and `03:10` is the last time it was that late (UTC)."""
    if _DURATION.fullmatch(text):
        return max(0, now_ms - parse_duration(text))
    if is_clock_time(text):
        today = show_instant(now_ms)[:10]
        at_ms = parse_instant(f"{today} {text}", now_ms)
        return at_ms if at_ms <= now_ms else at_ms - DAY_MS
    return parse_instant(text, now_ms)


def is_clock_time(text: str) -> bool:
    """Whether it names a time of day, `03:10`, and so no day."""
    return _CLOCK.fullmatch(text) is not None


def show_instant(at_ms: int) -> str:
    """Milliseconds since the epoch -> `2026-11-15 14:05:09.120Z`."""
    at = datetime.datetime.fromtimestamp(at_ms // 1000, datetime.UTC)
    return f"{at:%Y-%m-%d %H:%M:%S}.{at_ms % 1000:03d}Z"
