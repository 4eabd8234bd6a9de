"""Integer amounts: resources, sizes, durations. No floats, no saturation; what is out of range raises."""

from muster.units.amounts import (
    AMOUNT_MAX,
    UNLIMITED,
    ZERO,
    AmountError,
    Limit,
    Resources,
    check_amount,
    parse_bytes,
    parse_count,
    parse_cpus,
    show_bytes,
    show_cpus,
    show_resources,
    spell_bytes,
)
from muster.units.times import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, parse_duration, show_duration, show_instant

__all__ = [
    "AMOUNT_MAX",
    "DAY_MS",
    "HOUR_MS",
    "MINUTE_MS",
    "SECOND_MS",
    "UNLIMITED",
    "ZERO",
    "AmountError",
    "Limit",
    "Resources",
    "check_amount",
    "parse_bytes",
    "parse_count",
    "parse_cpus",
    "parse_duration",
    "show_bytes",
    "show_cpus",
    "show_duration",
    "show_instant",
    "show_resources",
    "spell_bytes",
]
