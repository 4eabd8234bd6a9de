"""What a user asks for: a job's spec, and the one check of it.

A job is one gang of `gang` tasks that start together, or an array of `array` one-task gangs. `ask` is per task.
The check knows the spec alone; whether the fleet or the quota could ever hold it is the kernel's question.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from muster.model.reason import Code, Reason
from muster.units import AMOUNT_MAX, SECOND_MS, Limit, Resources

GANG_MAX: Final = 100_000
ARRAY_MAX: Final = 1_000_000
COMMAND_BYTES_MAX: Final = 128 * 1024
ENV_BYTES_MAX: Final = 64 * 1024
PATH_BYTES_MAX: Final = 4096
RETRIES_MAX: Final = 1000
KEY_CHARS_MAX: Final = 128

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@/-]{0,127}")
_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")


class Spec(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A job as its owner describes it; journaled as a map, so that fields may come and go by name."""

    command: tuple[str, ...]
    name: str = ""
    tenant: str = "default"
    gang: int = 1
    array: int = 0
    ask: Resources = Resources(cpu_milli=1000)
    env: dict[str, str] = {}
    workdir: str = ""
    limit_ms: Limit = None
    grace_ms: int = 10 * SECOND_MS
    retries: int = 0

    @property
    def tasks(self) -> int:
        """How many tasks the job has in all."""
        return self.array or self.gang


def is_name(text: str) -> bool:
    """Whether `text` may name a tenant, a node or a job."""
    return _NAME.fullmatch(text) is not None


def find_fault(spec: Spec) -> Reason | None:
    """The first thing wrong with a spec by itself, or None."""
    for check in (_find_count_fault, _find_amount_fault, _find_name_fault, _find_size_fault):
        fault = check(spec)
        if fault is not None:
            return fault
    return None


def _find_count_fault(spec: Spec) -> Reason | None:
    for field, value, least, most in (
        ("gang", spec.gang, 1, GANG_MAX),
        ("array", spec.array, 0, ARRAY_MAX),
        ("retries", spec.retries, 0, RETRIES_MAX),
    ):
        if not least <= value <= most:
            return Reason(Code.BAD_AMOUNT, field, needed=value, available=most, detail=f"between {least} and {most}")
    if spec.array and spec.gang != 1:
        return Reason(Code.BAD_SPEC, "array", detail="an array's tasks are gangs of one; leave `gang` out")
    return None


def _find_amount_fault(spec: Spec) -> Reason | None:
    amounts = {
        "ask.gpus": spec.ask.gpus,
        "ask.cpu_milli": spec.ask.cpu_milli,
        "ask.memory_bytes": spec.ask.memory_bytes,
        "grace_ms": spec.grace_ms,
        "limit_ms": 1 if spec.limit_ms is None else spec.limit_ms,
    }
    for field, value in amounts.items():
        least = 1 if field == "limit_ms" else 0
        if not least <= value or value > AMOUNT_MAX // spec.tasks:
            return Reason(Code.BAD_AMOUNT, field, needed=value, available=AMOUNT_MAX, detail=f"at least {least}")
    if not (spec.ask.gpus or spec.ask.cpu_milli or spec.ask.memory_bytes):
        return Reason(Code.ASKS_NOTHING, "ask")
    return None


def _find_name_fault(spec: Spec) -> Reason | None:
    for field, text in (("name", spec.name or "unnamed"), ("tenant", spec.tenant)):
        if not is_name(text):
            return Reason(Code.BAD_NAME, field, needed=len(text), available=128, detail=text[:40])
    for name in spec.env:
        if not _ENV_NAME.fullmatch(name):
            return Reason(Code.BAD_NAME, "env", needed=len(name), available=255, detail=name[:40])
    return None


def _find_size_fault(spec: Spec) -> Reason | None:
    sizes = {
        "command": (sum(len(word.encode()) + 1 for word in spec.command), COMMAND_BYTES_MAX),
        "env": (sum(len(name) + len(value.encode()) + 2 for name, value in spec.env.items()), ENV_BYTES_MAX),
        "workdir": (len(spec.workdir.encode()), PATH_BYTES_MAX),
    }
    for field, (size, most) in sizes.items():
        if size > most:
            return Reason(Code.TOO_LARGE, field, needed=size, available=most)
    if not spec.command or not spec.command[0]:
        return Reason(Code.BAD_SPEC, "command", detail="a job needs a command to run")
    if any("\0" in text for text in (*spec.command, spec.workdir, *spec.env.values())):
        return Reason(Code.BAD_SPEC, "command", detail="a NUL byte cannot be passed to a process")
    return None
