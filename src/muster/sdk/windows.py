"""Windows that recur: the same time of day, in a zone with its daylight saving, as instants.

The server knows no zones, so whoever books says every window. A time of day that the clocks skip is as much later as
they are put forward; one that comes twice is the first of the two. A window lasts as long as it says, whatever the
clocks do meanwhile.
"""

from __future__ import annotations

import datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from muster.model.booking import WINDOWS_MAX
from muster.units import AmountError, parse_instant

EVERY: Final = {"day": 1, "week": 7}
_MS: Final = datetime.timedelta(milliseconds=1)
_ELSEWHERE: Final = datetime.timezone(datetime.timedelta(hours=1))
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def expand_windows(
    begin: str, span_ms: int, now_ms: int, *, every: str = "", times: int = 1, zone: str = "UTC"
) -> list[tuple[int, int]]:
    """The windows from `begin` on, as (opens, closes): one, or one every day or week at that time in the zone."""
    if every not in ("", *EVERY):
        raise AmountError(f"every {every!r} is not day or week")
    if not 1 <= times <= WINDOWS_MAX:
        raise AmountError(f"times {times} is not between 1 and {WINDOWS_MAX}")
    where = find_zone(zone)
    first_ms = parse_instant(begin, now_ms, where)
    first = _find_clock(begin, now_ms, first_ms, where)
    step = datetime.timedelta(days=EVERY.get(every, 0))
    days = [(first + number * step).replace(tzinfo=where, fold=0) for number in range(1, times if every else 1)]
    opens = [first_ms, *((day - _EPOCH) // _MS for day in days)]
    return [(at, at + span_ms) for at in opens]


def _find_clock(begin: str, now_ms: int, first_ms: int, zone: datetime.tzinfo) -> datetime.datetime:
    """What the clocks of a zone should show at every begin: what was said, though they skip it on the first day; or
    what they show then, if an instant was said."""
    as_utc = parse_instant(begin, now_ms)
    is_of_zone = as_utc != parse_instant(begin, now_ms, _ELSEWHERE)
    clock = _EPOCH + as_utc * _MS if is_of_zone else (_EPOCH + first_ms * _MS).astimezone(zone)
    return clock.replace(tzinfo=None)


def find_zone(name: str) -> datetime.tzinfo:
    """The zone of that name."""
    if name == "UTC":
        return datetime.UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise AmountError(f"there is no time zone {name!r} here, such as Europe/Berlin") from error
