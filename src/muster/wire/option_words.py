"""Options in words: what somebody may change so that a job starts, as a sentence and as the flag of `muster run` that
takes it. Whether it would help is found out elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from muster.model.reason import Code
from muster.units import Resources, show_bytes, show_cpus, spell_bytes

Change: TypeAlias = tuple[str, int | str, int | str] | tuple[str, int | str, int | str, int]
"""A field, what was asked, what would do, and how many would have to stop first."""


class Flag(NamedTuple):
    """How a field is typed, exactly, and what it is called in a sentence."""

    name: str
    spell: Callable[[Any], str]
    what: str


FLAGS: Final = {
    "gang": Flag("--gang", str, "tasks at once"),
    "spares": Flag("--spares", str, "spares"),
    "gpus": Flag("--gpus", str, "GPUs per task"),
    "cpu_milli": Flag("--cpus", show_cpus, "CPUs per task"),
    "memory_bytes": Flag("--memory", spell_bytes, "memory per task"),
    "within": Flag("--within", str, "all within one"),
    "spread": Flag("--spread", str, "spread over"),
    "flavors": Flag("--flavor", str, "flavor"),
    "tier": Flag("--tier", str, "tier"),
}
SHOW: Final[dict[str, Callable[[Any], str]]] = {"cpu_milli": show_cpus, "memory_bytes": show_bytes}
_BOUNDS: Final = {Code.NO_ROOM: "room", Code.OVER_QUOTA: "quota"}


def spell_flag(field: str, value: int | str) -> str:
    """An amount or a name as `muster run` takes it: `--memory 61Gi`. Nothing is rounded; no name is no flag."""
    flag = FLAGS[field]
    return f"no {flag.name}" if value == "" else f"{flag.name} {flag.spell(value)}"


def spell_ask(ask: Resources) -> str:
    """An ask as `muster run` takes it; memory that is not asked for is left out."""
    fields = [field for field in ask.__struct_fields__ if field == "cpu_milli" or getattr(ask, field)]
    return " ".join(spell_flag(field, getattr(ask, field)) for field in fields)


def put_option_in_words(field: str, asked: int | str, to: int | str, stops: int = 0) -> str:
    """One change: `tasks at once: 2 instead of 4`."""
    flag, show = FLAGS[field], SHOW.get(field, str)
    return f"{flag.what}: {flag.spell(to) or 'nothing'} instead of {show(asked)}{_say_stops(stops, ', ')}"


def put_offer_in_words(options: Sequence[Change], *, is_array: bool, is_next: bool) -> str:
    """All of them in one line; or that none would do, or that none is needed."""
    who = "its first task starts" if is_array else "starts"
    if is_next:
        return f"{who} with the next cycle, as it is"
    if not options:
        return "no single change of its size, place or tier would start it now"
    return f"{who} now if: {' · '.join(_spell_change(*option) for option in options)}"


def _spell_change(field: str, asked: int | str, to: int | str, stops: int = 0) -> str:
    return f"{spell_flag(field, to)} (asked {SHOW.get(field, str)(asked)}{_say_stops(stops, '; ')})"


def _say_stops(stops: int, mark: str) -> str:
    return f"{mark}{stops} {'jobs' if stops != 1 else 'job'} would stop for it first" if stops else ""


def name_bound(code: Code) -> str:
    """What keeps more from starting, in one word."""
    return _BOUNDS[code]
