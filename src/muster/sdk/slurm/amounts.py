"""Amounts as Slurm writes them: minutes, megabytes, indexes of arrays, kinds of GPUs. It knows values and no flags."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from muster.units import AmountError

INDEXES_MAX: Final = 1_000_000
_UNITS: Final = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
_SIZE: Final = re.compile(r"(\d{1,12})([KMGTP]?)B?", re.IGNORECASE)
_TIME: Final = re.compile(r"(?:(?P<days>\d{1,6})-)?(?P<parts>\d{1,9}(?::\d{1,9}){0,2})")
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")
_GPU: Final = re.compile(r"(?:gpu:)?(?:(?P<kind>[A-Za-z][\w.@-]*):)?(?P<count>\d{1,9})")
_PARTS: Final = re.compile(r",(?![^(]*\))")
_GRES: Final = re.compile(r"gpu(?::(?P<kind>[A-Za-z][\w.@-]*))?(?::(?P<count>\d{1,9}))?(?:\(S:[\d,-]+\))?")
_SIGNAL: Final = re.compile(r"(?:[RB]{1,2}:)?(?P<name>\w{1,10})(?:@(?P<before>\d{1,5}))?", re.IGNORECASE)
_SIGNAL_NUMBERS: Final = {"1": "HUP", "2": "INT", "10": "USR1", "12": "USR2", "15": "TERM"}
_FOREVER: Final = frozenset({"infinite", "unlimited", "0"})


class Ending(NamedTuple):
    """By which signal a job is told to end, and how many seconds before it is ended."""

    name: str
    before_s: int


class Indexes(NamedTuple):
    """The indexes of an array, and how many of them may run at once (0: all)."""

    values: tuple[int, ...]
    at_once: int

    @property
    def step(self) -> int:
        """From one to the next, if they are evenly apart; else 0."""
        steps = {after - before for before, after in zip(self.values, self.values[1:], strict=False)}
        return steps.pop() if len(steps) == 1 else 0 if steps else 1


def read_signal(text: str) -> Ending:
    """`USR1@120`, `B:SIGTERM` or `10`; without a time, a minute."""
    found = _SIGNAL.fullmatch(text)
    name = "" if found is None else found["name"].upper().removeprefix("SIG")
    name = _SIGNAL_NUMBERS.get(name, name)
    if found is None or name not in _SIGNAL_NUMBERS.values():
        raise AmountError(f"{text[:40]!r} is none of {', '.join(_SIGNAL_NUMBERS.values())}, as in USR1@120")
    return Ending(name, int(found["before"] or 60))


def read_count(text: str) -> int:
    """`8`."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise AmountError(f"{text[:40]!r} is not a whole number")
    return int(text)


def read_bytes(text: str) -> int:
    """`4000` (megabytes) or `64G`, in units of 1024."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise AmountError(f"{text[:40]!r} is not a size such as 4000 or 64G")
    return int(found[1]) * _UNITS[found[2].upper() or "M"]


def read_seconds(text: str) -> int | None:
    """`30` (minutes), `30:00`, `2:00:00`, `1-12`, `1-12:30` or `1-12:30:00`; None is no limit."""
    if text.lower() in _FOREVER:
        return None
    found = _TIME.fullmatch(text)
    if found is None:
        raise AmountError(f"{text[:40]!r} is not a time such as 30, 2:00:00 or 1-12:00:00")
    parts = [int(part) for part in found["parts"].split(":")]
    if found["days"] is not None:  # days-hours[:minutes[:seconds]]
        hours, minutes, seconds = (*parts, 0, 0)[:3]
        return ((int(found["days"]) * 24 + hours) * 60 + minutes) * 60 + seconds
    if len(parts) == 3:
        return (parts[0] * 60 + parts[1]) * 60 + parts[2]
    return parts[0] * 60 + (parts[1] if len(parts) == 2 else 0)


def read_indexes(text: str) -> Indexes:
    """`0-99`, `1-10:2`, `1,5,9` or `0-99%10`."""
    ranges, _, most = text.partition("%")
    values: list[int] = []
    for part in ranges.split(","):
        found = _RANGE.fullmatch(part)
        if found is None:
            raise AmountError(f"{part[:40]!r} is not an index or a range such as 0-99 or 1-10:2")
        first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
        if last < first or not step or len(values) + (last - first) // step >= INDEXES_MAX:
            raise AmountError(f"{part[:40]!r} has no index, or more than {INDEXES_MAX}")
        values += range(first, last + 1, step)
    return Indexes(tuple(dict.fromkeys(values)), read_count(most) if most else 0)


def read_gpus(text: str) -> tuple[str, int]:
    """`8`, `h100:8`, `gpu:8` or `gpu:h100:8` -> the kind, if it is named, and how many."""
    found = _GPU.fullmatch(text)
    if found is None:
        raise AmountError(f"{text[:40]!r} is not a number of GPUs such as 8 or h100:8")
    return found["kind"] or "", int(found["count"])


class Gres(NamedTuple):
    """GPUs of each kind, and what else was asked for by the same flag."""

    gpus: tuple[tuple[str, int], ...]
    others: tuple[str, ...]


def read_gres(text: str) -> Gres:
    """`gpu:h100:8`, `gpu:h100` (one), or a list that also has what is no GPU, such as `tmpfs:10G,gpu:8(S:0-1)`."""
    gpus: list[tuple[str, int]] = []
    others: list[str] = []
    for part in _PARTS.split(text):
        if part.partition(":")[0] != "gpu":
            others.append(part)
            continue
        found = _GRES.fullmatch(part)
        if found is None:
            raise AmountError(f"{part[:40]!r} is not a number of GPUs such as gpu:8 or gpu:h100:8")
        gpus.append((found["kind"] or "", 1 if found["count"] is None else int(found["count"])))
    return Gres(tuple(gpus), tuple(others))
