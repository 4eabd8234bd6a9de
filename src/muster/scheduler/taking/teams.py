"""teams: where the groups of a gang that waits would have room, one after the other, and who has to go for that.

The group that asks for the most devices comes first, as if it were alone: see `muster.scheduler.clearing`. Once it has
its room, each of the others is looked at in the same domain: with less free where those before it went, and with what
comes free by those who are gone for them already. A gang of one kind is its own first group, and has no others. It
knows amounts and costs; whether all of it truly fits is seen on the stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from msgspec.structs import astuple

from muster.model.spec import Needs, Spec
from muster.scheduler.taking.victims import Candidate, Node, Step, Want, first_steps, steps_on
from muster.units import Resources
from muster.world.queue import Shape
from muster.world.runs import amounts_of

Bundle: TypeAlias = tuple[Candidate, ...]
"""Who has to go together before anything of use comes free."""
Asked: TypeAlias = tuple[Resources, int]
"""What a task asks for, and how many ask for it."""


def asks_of(spec: Spec) -> list[Asked]:
    """What a gang asks for: group by group, the one with the most devices first."""
    return _in_order(spec.needs) or [(spec.ask, spec.places)]


def lead_of(shape: Shape) -> Shape:
    """The shape that the first group of a gang would have alone."""
    asks = _in_order(shape.needs)
    return Shape((*asks[0], shape.needs, shape.evictable)) if asks else shape


def _in_order(needs: Needs) -> list[Asked]:
    places = sorted(range(len(needs.groups)), key=lambda at: ([-kind for kind in astuple(needs.groups[at].ask)], at))
    return [(needs.groups[at].ask, needs.groups[at].tasks) for at in places]


class Others:
    """The other groups of a gang in one domain. What is wanted for each, and the first steps of it, are known for the
    nodes as they are; the bundles are by node and number."""

    def __init__(self, wants: Sequence[Want], nodes: Sequence[Node], bundles: Mapping[tuple[int, int], Bundle]) -> None:
        self._bundles = bundles
        self._nodes = {node.slot: node for node in nodes} if wants else {}
        self._wants = [(want, sorted(first_steps(want, nodes))) for want in wants]

    def add(self, window: Sequence[Step], ask: Resources) -> list[Step] | None:
        """The steps of the first group, each for one ask, and behind them those of the others; None if there are not
        enough for one of them. Of the nodes on which nothing changed by those before it, it needs no more than it has
        tasks."""
        steps, asked = list(window), [(step.slot, ask) for step in window]
        for want, first in self._wants:
            changed = self._find_changed(steps, asked)
            as_they_were = islice((step.slot for step in first if step.slot not in changed), want.gang)
            nodes = [*changed.values(), *(self._nodes[slot] for slot in as_they_were)]
            more = list(islice(steps_on(want, nodes, first_steps(want, nodes)), want.gang))
            if len(more) < want.gang:
                return None
            steps += more
            asked += [(step.slot, want.ask) for step in more]
        return steps

    def _find_changed(self, steps: Sequence[Step], asked: Sequence[tuple[int, Resources]]) -> dict[int, Node]:
        """The nodes to which some went, or from which some are gone, as they are then."""
        bundles = [self._bundles[part[1:3]] for step in steps for part in step.taken]
        gone = {each[1:3]: each for bundle in bundles for each in bundle}
        slots = {slot for slot, _ in asked} | {lease.slot for each in gone.values() for lease in each.seat.leases}
        by_slot = {slot: list[Resources]() for slot in sorted(slots) if slot in self._nodes}
        for slot, ask in asked:
            by_slot[slot].append(ask)
        return {slot: self._change(self._nodes[slot], gone, asks) for slot, asks in by_slot.items()}

    def _change(self, node: Node, gone: Mapping[tuple[int, int], Candidate], asks: Sequence[Resources]) -> Node:
        """A node with some gone, and with tasks that ask for this."""
        free = list(node.free)
        here = []
        for each, amounts in node.here:
            if all(one[1:3] in gone for one in self._bundles[each[1:3]]):
                free = [have + more for have, more in zip(free, amounts, strict=True)]
            else:
                here.append((each, amounts))
        for ask in asks:
            free = [have - less for have, less in zip(free, amounts_of(ask, 1), strict=True)]
        return Node(node.slot, (free[0], free[1], free[2]), here)
