"""Bounds: what is wrong with one plain value of a spec, whatever its other fields say.

It knows no spec and no clock: whether an instant is past already, or a time long enough, is known elsewhere.
"""

from __future__ import annotations

from muster.model.reason import Code, Reason
from muster.units import AMOUNT_MAX, INSTANT_MAX, Limit


def find_time_fault(limit_ms: Limit, grace_ms: int) -> Reason | None:
    """What is wrong with how long a job may run, or take to stop."""
    if not 0 <= grace_ms <= AMOUNT_MAX:
        return Reason(Code.BAD_AMOUNT, "grace_ms", needed=grace_ms, available=AMOUNT_MAX, detail="from 0 to 2^62")
    if limit_ms is not None and not 1 <= limit_ms <= AMOUNT_MAX:
        return Reason(Code.BAD_AMOUNT, "limit_ms", needed=limit_ms, available=AMOUNT_MAX, detail="from 1 to 2^62")
    return None


def find_estimate_fault(array: int, expect_ms: int) -> Reason | None:
    """What is wrong with how long somebody thinks that a job runs."""
    if not 1 <= expect_ms <= AMOUNT_MAX:
        return Reason(Code.BAD_AMOUNT, "expect_ms", needed=expect_ms, available=AMOUNT_MAX, detail="from 1 to 2^62")
    return Reason(Code.BAD_SPEC, "expect_ms", detail="it is for gangs; an array has none") if array else None


def find_due_fault(due_at: int) -> Reason | None:
    """What is wrong with an instant; whether it is past already is not known here."""
    if 0 < due_at <= INSTANT_MAX:
        return None
    return Reason(Code.BAD_AMOUNT, "due_at", needed=due_at, available=INSTANT_MAX, detail=f"from 1 to {INSTANT_MAX}")


def find_text_fault(field: str, text: str, most: int) -> Reason | None:
    """What is wrong with words that a process is to be given: too many bytes, or one that ends them."""
    if len(text) > most // 4 and len(text.encode()) > most:
        return Reason(Code.TOO_LARGE, field, needed=len(text.encode()), available=most)
    if "\0" in text:
        return Reason(Code.BAD_SPEC, field, detail="a NUL byte cannot be passed to a process")
    return None
