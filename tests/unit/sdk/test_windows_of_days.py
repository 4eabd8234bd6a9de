"""Windows that recur: at the same time of day, whatever the clocks do."""

from __future__ import annotations

import pytest

from muster.sdk.windows import expand_windows
from muster.units import DAY_MS, HOUR_MS, AmountError, show_instant


def opens(begin: str, *, every: str = "day", times: int = 3, zone: str = "Europe/Berlin") -> list[str]:
    return [show_instant(at)[:16] for at, _ in expand_windows(begin, HOUR_MS, 0, every=every, times=times, zone=zone)]


def test_a_window_is_at_the_same_time_of_day_across_daylight_saving() -> None:
    assert opens("2026-03-28 09:00") == ["2026-03-28 08:00", "2026-03-29 07:00", "2026-03-30 07:00"]
    assert opens("2026-10-24 09:00") == ["2026-10-24 07:00", "2026-10-25 08:00", "2026-10-26 08:00"]
    assert opens("2026-10-20 09:00", every="week", times=2) == ["2026-10-20 07:00", "2026-10-27 08:00"]


def test_a_time_that_is_skipped_is_later_and_one_that_comes_twice_is_the_first() -> None:
    assert opens("2026-03-28 02:30", times=3)[1:] == ["2026-03-29 01:30", "2026-03-30 00:30"]
    assert opens("2026-10-24 02:30", times=3) == ["2026-10-24 00:30", "2026-10-25 00:30", "2026-10-26 01:30"]


@pytest.mark.parametrize(
    ("begin", "zone", "found"),
    [
        ("2026-03-29 02:30", "Europe/Berlin", ["03-29 01:30", "03-30 00:30", "03-31 00:30"]),
        ("2026-03-29 01:30", "Europe/London", ["03-29 01:30", "03-30 00:30", "03-31 00:30"]),
        ("2026-10-04 02:15", "Australia/Lord_Howe", ["10-03 15:45", "10-04 15:15", "10-05 15:15"]),
        ("2026-04-05 01:45", "Australia/Lord_Howe", ["04-04 14:45", "04-05 15:15", "04-06 15:15"]),
        ("2026-03-08 02:30", "America/St_Johns", ["03-08 06:00", "03-09 05:00", "03-10 05:00"]),
        ("2026-11-01T01:30-05:00", "America/New_York", ["11-01 06:30", "11-02 06:30", "11-03 06:30"]),
    ],
)
def test_clocks_that_change_on_the_first_day_change_no_other(begin: str, zone: str, found: list[str]) -> None:
    assert opens(begin, zone=zone) == [f"2026-{at}" for at in found]


def test_one_window_is_exactly_what_is_said() -> None:
    assert expand_windows("2h", 3, DAY_MS) == [(DAY_MS + 2 * HOUR_MS, DAY_MS + 2 * HOUR_MS + 3)]
    assert opens("2026-10-25T02:30+01:00", every="", times=1) == ["2026-10-25 01:30"]
    lasting = expand_windows("2026-03-29 01:00", 4 * HOUR_MS, 0, every="day", times=2, zone="Europe/Berlin")
    assert [closes - at for at, closes in lasting] == [4 * HOUR_MS, 4 * HOUR_MS]


@pytest.mark.parametrize(
    ("begin", "words"),
    [
        ("soon", {}),
        ("2h", {"every": "month"}),
        ("2h", {"zone": "Mars/Base"}),
        ("2h", {"zone": "../etc"}),
        ("2h", {"times": 65}),
        ("2h", {"times": 0}),
    ],
)
def test_what_cannot_be_read_is_said(begin: str, words: dict[str, object]) -> None:
    with pytest.raises(AmountError):
        expand_windows(begin, 1, 0, **words)  # type: ignore[arg-type]  # of several types on purpose
