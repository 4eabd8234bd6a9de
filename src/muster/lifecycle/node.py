"""The life of a node. Silence makes it unknown and kills nothing; only a fenced node is gone; either may come back."""

from __future__ import annotations

from typing import Final

from muster.model.job import NodePhase

TABLE: Final[dict[NodePhase, dict[NodePhase, str]]] = {
    NodePhase.UP: {NodePhase.UNKNOWN: "silent too long", NodePhase.GONE: "fenced"},
    NodePhase.UNKNOWN: {NodePhase.UP: "seen again", NodePhase.GONE: "fenced"},
    NodePhase.GONE: {NodePhase.UP: "seen again"},
}


def can_move(phase: NodePhase, to: NodePhase) -> bool:
    """Whether the table lets a node in `phase` become `to`."""
    return to in TABLE[phase]
