"""The law of one slot: what a world says of a node is what the facts say of it. Two ways to the same numbers."""

from __future__ import annotations

from muster.model.job import NodePhase
from muster.model.node import NO_LACK, Lack
from muster.units import DAY_MS
from muster.world.audit.books import NodeBook
from muster.world.laws.holding import plain
from muster.world.laws.law import require, require_same
from muster.world.losses import DAYS_KEPT
from muster.world.world import World


def compare_slot(world: World, slot: int, node: NodeBook, missing: Lack, at: int) -> None:
    """Whether a world says the same of a node, of which so much is `missing` for those who would start."""
    fleet = world.fleet
    left, rests = node.held.left_of(node.capacity, missing), node.held.rests_of(node.capacity, missing)
    wanted = (*left, rests, node.phase)
    kept = (*plain(fleet.free(slot)), fleet.devices(slot), fleet.phase[slot])
    require_same(kept, wanted, "free is capacity minus what is held", node.name)
    taken = [node.held.slots.get(device, 0) for device in range(node.capacity.gpus)]
    require_same(fleet.slots_taken(slot), taken, "free is capacity minus what is held", node.name)
    same = (fleet.traits[slot], fleet.device_ids.get(slot, ())) == (node.traits, node.devices)
    require(same, "traits are what the facts say", node.name)
    lack = fleet.lacks.get(slot, NO_LACK)
    require_same(lack, node.lack, "a node lacks what the facts say", node.name)
    require_same(fleet.said.get(slot), node.said, "what a node will be is what the facts say", node.name)
    is_waited_for = node.said is None or node.phase != NodePhase.UP or not node.held.is_nothing()
    require(is_waited_for, "a node that is idle is what it said", node.name)
    booked = sum(points for day, points in node.losses if at // DAY_MS - day <= DAYS_KEPT)
    require_same(fleet.losses.count(slot, at), booked, "losses are what the facts say", node.name)
    bars = {(bar.kind, bar.owner): bar for bar in fleet.bars.get(slot, ())}
    require_same(bars, node.bars, "bars are what the facts say", node.name)
