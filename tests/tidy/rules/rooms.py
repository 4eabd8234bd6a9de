"""Imports go downwards only. import-linter says the same of the import graph; this says it of one file at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rules.tree import Violation, imported_names, nodes_of, room_of

# The lowest first; rooms on one line stand side by side and never import each other.
LAYERS: Final = (
    ("units",),
    ("model",),
    ("wire",),
    ("world",),
    ("lifecycle", "policy"),
    ("scheduler",),
    ("kernel",),
    ("ports",),
    ("engines", "stores", "simulator", "learning", "access", "outward"),
    ("control", "forecast"),
    ("sdk",),
    ("api", "cli"),
    ("app",),
    ("testing",),
)
RANKS: Final = {room: rank for rank, layer in enumerate(LAYERS) for room in layer}

# Rooms that may see less than all that is below them.
NARROW: Final = {
    "sdk": frozenset({"units", "model", "wire"}),
    "cli": frozenset({"units", "model", "wire", "sdk"}),
    "control": frozenset(RANKS) - {"engines", "stores", "outward"},
    "forecast": frozenset(RANKS) - {"engines", "stores", "outward", "access", "simulator"},
}


def may_import(room: str, other: str) -> bool:
    """Whether code in `room` may import `other`."""
    if room == other:
        return True
    return RANKS[other] < RANKS[room] and other in NARROW.get(room, RANKS)


def check_rooms(path: str, source: str) -> Iterator[Violation]:
    """A room imports only what is below it, and only rooms that stand in the order."""
    room = room_of(path)
    if room is None:
        return
    if room not in RANKS:
        yield Violation(path, 1, f"room {room} does not stand in the order of rooms")
        return
    for node in nodes_of(source):
        for name in imported_names(node, path):
            other = _room_named(name)
            if other is not None and not may_import(room, other):
                yield Violation(path, getattr(node, "lineno", 1), f"{room} imports {other}")


def _room_named(dotted: str) -> str | None:
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "muster" and parts[1] in RANKS else None
