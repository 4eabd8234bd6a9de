"""Durations and instants are integer milliseconds, parsed and printed in one place."""

from __future__ import annotations

import pytest

from muster.units import (
    INSTANT_MAX,
    AmountError,
    parse_duration,
    parse_instant,
    parse_past,
    show_duration,
    show_instant,
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("90s", 90_000), ("1h30m", 5_400_000), ("2d", 172_800_000), ("5ms", 5), ("0s", 0), ("1m1ms", 60_001)],
)
def test_durations(text: str, wanted: int) -> None:
    assert parse_duration(text) == wanted


@pytest.mark.parametrize("text", ["", "5", "s", "1.5h", "-1s", "1 h", "1w", "9999999999999999d", "1h junk"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(AmountError):
        parse_duration(text)


@pytest.mark.parametrize(
    ("span_ms", "words"),
    [(0, "0ms"), (999, "999ms"), (4200, "4.2s"), (60_000, "1m"), (5_400_000, "1h 30m"), (93_784_000, "1d 2h")],
)
def test_words_for_durations(span_ms: int, words: str) -> None:
    assert show_duration(span_ms) == words


def test_words_for_instants() -> None:
    assert show_instant(0) == "1970-01-01 00:00:00.000Z"
    assert show_instant(1_767_225_600_120) == "2026-01-01 00:00:00.120Z"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1970-01-01", 0),
        ("2026-01-01 00:00:00.120Z", 1_767_225_600_120),
        ("2026-01-01T01:00+01:00", 1_767_225_600_000),
        ("2026-01-01 00:00", 1_767_225_600_000),
        ("1h30m", 5_400_007),
        ("9999-12-31 23:59:59.999", INSTANT_MAX),
    ],
)
def test_instants(text: str, wanted: int) -> None:
    assert parse_instant(text, now_ms=7) == wanted


@pytest.mark.parametrize("text", ["", "soon", "5", "2026-13-01", "1969-12-31", "-1h", "9999-12-31T23:59:59-12:00"])
def test_what_is_no_instant(text: str) -> None:
    with pytest.raises(AmountError):
        parse_instant(text, now_ms=7)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("10m", "2026-11-15 02:50:00.000Z"),
        ("02:30", "2026-11-15 02:30:00.000Z"),
        ("03:30", "2026-11-14 03:30:00.000Z"),
        ("2026-11-01 14:05", "2026-11-01 14:05:00.000Z"),
    ],
)
def test_the_past_is_so_long_ago_or_a_clock_time_of_the_last_day(text: str, shown: str) -> None:
    now = parse_instant("2026-11-15 03:00", 0)
    assert show_instant(parse_past(text, now)) == shown
