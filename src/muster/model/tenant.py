"""Tenants: the nodes of the quota tree, and the lines that say how much of a kind of capacity each may hold.

A line is about one family of GPUs, or about `cpu` or `memory` of all nodes, in the whole fleet or in one scope of it.
GPUs are counted in thousandths of a device times the exchange units of its flavor, so that fractions and generations
add up as integers; the one function that counts them, and the one that shows them, stand here. Whether somebody may
start is decided in `muster.world.quota`.
"""

from __future__ import annotations

from typing import Final

from muster.model.budget import Budget
from muster.model.node import UNITS_ONE
from muster.model.record import Record
from muster.units import (
    AMOUNT_MAX,
    AmountError,
    Limit,
    Resources,
    parse_bytes,
    parse_cpus,
    parse_millionths,
    show_bytes,
    show_cpus,
    show_millionths,
)

ROOT: Final = ""
"""The name of the top of the tree, which nobody can be called."""
FLEET: Final = ""
"""The scope of a line that counts everywhere; another one is `region` or `region/cluster`."""
GPU: Final = "gpu"
CPU: Final = "cpu"
MEMORY: Final = "memory"
NOT_DEVICES: Final = (CPU, MEMORY)
"""Families that are not GPUs: a flavor whose family is called so has no line for its devices."""
WEIGHT_MAX: Final = 1_000_000
LINES_MAX: Final = 64
DEPTH_MAX: Final = 8
DEVICE_MILLI: Final = 1000
GPU_ONE: Final = DEVICE_MILLI * UNITS_ONE
"""One whole device of a flavor that counts as one."""


class Line(Record, frozen=True):
    """One quota line of a tenant. `guaranteed` is its own whenever it wants it, `limit` the most it may hold (None is
    UNLIMITED), and `lend` how much of the unused guarantee others may borrow (None is all)."""

    family: str
    scope: str = FLEET
    guaranteed: int = 0
    limit: Limit = None
    lend: Limit = None


class Tenant(Record, frozen=True):
    """A node of the quota tree. One that nobody named is a child of the root, with weight 1 and without any."""

    parent: str = ROOT
    weight: int = 1
    lines: tuple[Line, ...] = ()
    budgets: tuple[Budget, ...] = ()


OPEN: Final = Tenant()


def device_amount(ask: Resources, units: int = UNITS_ONE) -> int:
    """The devices of an ask, on a flavor with these exchange units, as a GPU family's lines count them."""
    return (ask.gpus * DEVICE_MILLI + ask.gpu_milli) * units


def gpu_amount(gpus: int) -> int:
    """So many whole devices of a flavor that counts as one."""
    return gpus * GPU_ONE


def limits(gpus: Limit = None, cpu_milli: Limit = None, memory_bytes: Limit = None) -> tuple[Line, ...]:
    """Lines that only limit, over the whole fleet: what plain GPUs, CPU and memory a tenant may hold. More GPUs than
    can be counted are as many as can be."""
    amounts = (
        (CPU, cpu_milli),
        (GPU, None if gpus is None else min(gpu_amount(gpus), AMOUNT_MAX)),
        (MEMORY, memory_bytes),
    )
    return tuple(Line(family, limit=amount) for family, amount in amounts if amount is not None)


def parse_amount(family: str, text: str) -> int:
    """`16` or `0.5` GPUs, `64` CPUs, `512Gi`: what `show_amount` shows."""
    if family == MEMORY:
        return parse_bytes(text)
    if family == CPU:
        return parse_cpus(text)
    try:
        return parse_millionths(text)
    except AmountError as error:
        raise AmountError(f"{family} {text!r} is not a number of GPUs such as 16 or 0.5") from error


def name_line(family: str, scope: str) -> str:
    """A line's name in a reason: `h100`, or `h100 in eu/alpha`."""
    return f"{family} in {scope}" if scope else family


def show_amount(family: str, amount: int) -> str:
    """An amount of a line: `16 GPUs`, `0.45 GPUs`, `64 CPUs`, `512Gi`."""
    if family == MEMORY:
        return show_bytes(amount)
    if family == CPU:
        return f"{show_cpus(amount)} CPU{'' if amount == 1000 else 's'}"
    return f"{show_millionths(amount)} GPU{'' if amount == GPU_ONE else 's'}"
