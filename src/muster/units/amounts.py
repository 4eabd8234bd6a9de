"""Amounts are integers with one stated ceiling, and `Resources` is the vector of them.

CPU is counted in thousandths of a core and memory in bytes, so that nothing is ever rounded. An amount above
AMOUNT_MAX raises instead of saturating: a quota that silently sticks at its ceiling is a quota nobody enforces.
UNLIMITED is a limit, never an amount: it cannot be added to anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import astuple

AMOUNT_MAX: Final = 2**62
Limit: TypeAlias = int | None
MICRO: Final = 1_000_000
UNLIMITED: Final = None


class AmountError(ValueError):
    """An amount is malformed or out of range."""


def check_amount(value: int, what: str = "amount", least: int = 0) -> int:
    """Return `value` if least <= value <= AMOUNT_MAX, else raise."""
    if not least <= value <= AMOUNT_MAX:
        raise AmountError(f"{what} is {value}; it must be between {least} and 2^62")
    return value


class Resources(msgspec.Struct, frozen=True, gc=False, cache_hash=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a task asks for, a node has, or a tenant holds at once.

    `gpu_milli` is a share of one device, in thousandths, for an ask that wants less than a whole one.
    """

    gpus: int = 0
    cpu_milli: int = 0
    memory_bytes: int = 0
    gpu_milli: int = 0
    disk_bytes: int = 0
    network_mbps: int = 0

    def plus(self, other: Resources) -> Resources:
        """The sum, checked."""
        return _checked(map(int.__add__, astuple(self), astuple(other)))

    def minus(self, other: Resources) -> Resources:
        """The difference, checked: it raises rather than going below zero."""
        return _checked(map(int.__sub__, astuple(self), astuple(other)))

    def times(self, count: int) -> Resources:
        """`count` of these, checked."""
        return _checked(amount * count for amount in astuple(self))


def _checked(amounts: Iterable[int]) -> Resources:
    found = Resources(*amounts)
    if not all(0 <= amount <= AMOUNT_MAX for amount in astuple(found)):
        raise AmountError(f"resources out of range: {found}")
    return found


ZERO: Final = Resources()

_COUNT: Final = re.compile(r"\d{1,19}")
_PERCENT: Final = re.compile(r"(?P<whole>\d{1,3})(\.(?P<part>\d))?%")
_WIDTH: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_SIDES: Final = re.compile(r"(\d{1,5})x(\d{1,5})x(\d{1,5})")
_SHARE: Final = re.compile(r"0\.(?P<part>\d{1,3})")
_CPUS: Final = re.compile(r"(?P<whole>\d{1,16})(?:\.(?P<part>\d{1,3}))?|(?P<milli>\d{1,19})m")
_MILLIONTHS: Final = re.compile(r"(?P<whole>\d{1,12})(?:\.(?P<part>\d{1,6}))?")
_BYTES: Final = re.compile(r"(?P<number>\d{1,19})\s*(?P<unit>[KMGTP]i?)?B?")
_PART_OF_BYTES: Final = re.compile(r"(?P<whole>\d{1,6})\.(?P<part>\d{1,3})\s*(?P<unit>[MGTP]i?)B?")
_BYTE_UNITS: Final = {
    "": 1,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
}
_NEXT_UNIT: Final = str.maketrans("MGTP", "KMGT")


def parse_count(text: str, what: str = "count") -> int:
    """`8` -> 8."""
    if not _COUNT.fullmatch(text):
        raise AmountError(f"{what} {text!r} is not a whole number such as 8")
    return check_amount(int(text), what)


def parse_share(text: str) -> int:
    """`80%` or `2.5%` -> thousandths."""
    match = _PERCENT.fullmatch(text)
    if match is None:
        raise AmountError(f"share {text!r} is not a part of a hundred such as 80% or 2.5%")
    return int(match["whole"]) * 10 + int(match["part"] or "0")


def show_share(milli: int) -> str:
    """800 -> `80%`."""
    return f"{milli // 10}%" if milli % 10 == 0 else f"{milli // 10}.{milli % 10}%"


def parse_sides(text: str, what: str = "shape") -> tuple[int, int, int]:
    """`4x4x2` -> (4, 4, 2)."""
    match = _SIDES.fullmatch(text)
    if match is None:
        raise AmountError(f"{what} {text!r} is not three sides such as 4x4x2")
    return int(match[1]), int(match[2]), int(match[3])


def parse_width(text: str, what: str = "gang") -> tuple[int, int]:
    """`4` -> (4, 0), `2-8` -> (2, 8): how many tasks, or at least and at most how many."""
    match = _WIDTH.fullmatch(text)
    if match is None:
        raise AmountError(f"{what} {text!r} is not a number of tasks such as 4, or 2-8")
    return int(match[1]), int(match[2] or 0)


def show_sides(sides: Sequence[int]) -> str:
    """(4, 4, 2) -> `4x4x2`."""
    return "x".join(map(str, sides))


def parse_cpus(text: str) -> int:
    """`2`, `0.5` or `500m` -> thousandths of a core."""
    match = _CPUS.fullmatch(text)
    if match is None:
        raise AmountError(f"cpus {text!r} is not a number of cores such as 2, 0.5 or 500m")
    if match["milli"]:
        return check_amount(int(match["milli"]), "cpus")
    return check_amount(int(match["whole"]) * 1000 + int((match["part"] or "").ljust(3, "0")), "cpus")


def parse_millionths(text: str) -> int:
    """`16` or `0.45` of something -> millionths of it."""
    match = _MILLIONTHS.fullmatch(text)
    if match is None:
        raise AmountError(f"{text!r} is not a number such as 16 or 0.45")
    return check_amount(int(match["whole"]) * MICRO + int((match["part"] or "").ljust(6, "0")), "amount")


def parse_gpus(text: str) -> tuple[int, int]:
    """`8` -> eight whole devices; `0.5` -> no whole one, and 500 thousandths of one."""
    match = _SHARE.fullmatch(text)
    if match is not None:
        return 0, int(match["part"].ljust(3, "0"))
    if not _COUNT.fullmatch(text):
        raise AmountError(f"gpus {text!r} is not a whole number such as 8, or a share of one such as 0.5")
    return parse_count(text, "gpus"), 0


def parse_bytes(text: str) -> int:
    """`64Gi`, `500M` or `1024` -> bytes."""
    match = _BYTES.fullmatch(text)
    if match is None:
        raise AmountError(f"size {text!r} is not a number of bytes such as 64Gi, 500M or 1024{_in_whole_units(text)}")
    return check_amount(int(match["number"]) * _BYTE_UNITS[match["unit"] or ""], "size")


def _in_whole_units(text: str) -> str:
    """`: write 1536Mi`, for `1.5Gi`; part of the smaller unit is a whole one."""
    match = _PART_OF_BYTES.fullmatch(text)
    if match is None:
        return ""
    thousandths = int(match["whole"]) * 1000 + int(match["part"].ljust(3, "0"))
    smaller = match["unit"].translate(_NEXT_UNIT)
    step = _BYTE_UNITS[match["unit"]] // _BYTE_UNITS[smaller]
    return f"; write {-(-thousandths * step // 1000)}{smaller}"


def parse_money(text: str) -> int:
    """`2.50` -> millionths of whatever currency the installation counts in."""
    try:
        return parse_millionths(text)
    except AmountError as error:
        raise AmountError(f"price {text!r} is not an amount such as 2.50") from error


def show_money(micros: int) -> str:
    """Millionths -> `2.50`: at least two decimals, and as many as it takes."""
    whole, part = divmod(micros, MICRO)
    return f"{whole}.{f'{part:06d}'.rstrip('0').ljust(2, '0')}"


def show_cpus(cpu_milli: int) -> str:
    """Thousandths of a core -> `2` or `0.5`."""
    whole, part = divmod(cpu_milli, 1000)
    return f"{whole}.{part:03d}".rstrip("0") if part else str(whole)


def show_millionths(amount: int) -> str:
    """Millionths of something -> `16` or `0.45`."""
    whole, part = divmod(amount, MICRO)
    return f"{whole}.{part:06d}".rstrip("0") if part else str(whole)


def show_bytes(size: int) -> str:
    """Bytes -> the largest binary unit that divides it exactly, else one decimal."""
    for unit in ("Pi", "Ti", "Gi", "Mi", "Ki"):
        scale = _BYTE_UNITS[unit]
        if size >= scale:
            return f"{size // scale}{unit}" if size % scale == 0 else f"{size * 10 // scale / 10}{unit}"
    return f"{size}B"


def spell_bytes(size: int) -> str:
    """Bytes -> the largest binary unit that divides it, however many digits: `parse_bytes` gives the same back."""
    for unit in ("Pi", "Ti", "Gi", "Mi", "Ki"):
        if size and size % _BYTE_UNITS[unit] == 0:
            return f"{size // _BYTE_UNITS[unit]}{unit}"
    return str(size)


def show_resources(amount: Resources) -> str:
    """`8 GPUs, 64 CPUs, 512Gi`; what is zero is left out."""
    parts = []
    if amount.gpus:
        parts.append(f"{amount.gpus} GPU{'s' if amount.gpus != 1 else ''}")
    if amount.gpu_milli:
        parts.append(f"{show_cpus(amount.gpu_milli)} of a GPU")
    if amount.cpu_milli:
        parts.append(f"{show_cpus(amount.cpu_milli)} CPU{'s' if amount.cpu_milli != 1000 else ''}")
    if amount.memory_bytes:
        parts.append(show_bytes(amount.memory_bytes))
    if amount.disk_bytes:
        parts.append(f"{show_bytes(amount.disk_bytes)} of disk")
    if amount.network_mbps:
        parts.append(f"{amount.network_mbps} Mbit/s")
    return ", ".join(parts) or "nothing"
