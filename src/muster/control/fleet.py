"""The fleet as a reader sees it: nodes, what they are, what is free on them, and what keeps work off. Built on read."""

from __future__ import annotations

from muster.model.errors import RejectedError
from muster.model.job import Bar, NodePhase
from muster.model.reason import Reason
from muster.wire.views import BarView, NodeView
from muster.world.world import World


def view_nodes(world: World) -> list[NodeView]:
    """Every node, by slot."""
    return [view_node(world, slot) for slot in range(len(world.fleet))]


def view_node(world: World, slot: int) -> NodeView:
    """One node."""
    fleet = world.fleet
    return NodeView(
        name=fleet.shown()[slot],
        phase=NodePhase(fleet.phase[slot]).name.lower(),
        capacity=fleet.capacity(slot),
        free=fleet.free(slot),
        jobs=len(fleet.holders.get(slot, ())),
        bars=[_bar(bar) for bar in fleet.bars.get(slot, ())],
    )


def get_slot(world: World, reference: str) -> int:
    """The node that somebody means; RejectedError if that is none, or several."""
    slot = world.fleet.find_slot(reference)
    if isinstance(slot, Reason):
        raise RejectedError(slot)
    return slot


def _bar(bar: Bar) -> BarView:
    return BarView(bar.kind.value, bar.owner, bar.since, bar.reason, bar.until, bar.lets_finish)
