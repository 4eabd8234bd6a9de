"""What a broken law is: an InvariantError that names the law and shows the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from muster.model.errors import InvariantError

Key = TypeVar("Key")
Value = TypeVar("Value")


def require(holds: bool, law: str, evidence: str) -> None:
    """Raise unless a law holds."""
    if not holds:
        raise InvariantError(law, evidence)


def require_same(kept: object, booked: object, law: str, of: object = "") -> None:
    """Raise unless what is kept is what is booked. The evidence is written only if it is needed."""
    if kept != booked:
        raise InvariantError(law, f"{of}: kept {kept}, booked {booked}" if of else f"kept {kept}, booked {booked}")


def first_change(kept: Mapping[Key, Value], wanted: Mapping[Key, Value]) -> str:
    """Evidence: the first key of which something else is kept than is wanted."""
    for key in (*kept, *wanted):
        if kept.get(key) != wanted.get(key):
            return f"{key}: kept {kept.get(key)}, wanted {wanted.get(key)}"
    return ""
