"""A tour: one walk down the tree after another, as long as nothing is given back.

Whoever is served has a larger share than before, and nobody has a smaller one. So nobody has to be sorted again: the
children of a node are taken in the order that they had; whoever was served waits beside them, in a heap, until its new
share is the smallest. A tour costs what it meets. It does not know what anybody waits for: who has nothing to start is
dropped by the caller, and not met again.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush, heapreplace

from muster.model.tenant import ROOT
from muster.world.walk import OWN, Met, Siblings, Step, Walk


class Level:
    """The children of one node. In the `heap` are those who were served, each with its share of now, and `_next`, the
    first of those who still stand as they stood: so on its top is who has the smallest share. Most tours are over with
    whoever is first, so those behind `_next` are not looked for before they are needed."""

    __slots__ = ("_met", "_next", "_rest", "_siblings", "heap")

    def __init__(self, siblings: Siblings, met: Met) -> None:
        self._siblings = siblings
        self._met = met
        self._next = siblings.find_first(met)
        self._rest: Iterator[Step] | None = None
        self.heap = [] if self._next is None else [self._next]

    def replace_first(self, step: Step | None) -> None:
        """Whoever is first has another share now, or is not met again."""
        heap = self.heap
        if heap[0] is self._next:
            self._look_on(heap[0])
        heappop(heap) if step is None else heapreplace(heap, step)

    def _look_on(self, step: Step) -> None:
        """Let the next one who still stands come, behind one that did."""
        if self._rest is None:
            self._rest = self._siblings.find_after(step, self._met)
        self._next = next(self._rest, None)
        if self._next is not None:
            heappush(self.heap, self._next)


class Tour:
    """Whose turn it is among those who are to be met. The walk must be settled, and stay as it is.

    `_trail` are the levels on the way to whose turn it is, `_changes` what tenants were charged since the walk was
    settled, and `_grown` the same of all below a node; neither is needed right below the root. If all are right below
    it, there is only one level, which is `_top`.
    """

    __slots__ = ("_changes", "_grown", "_levels", "_met", "_top", "_trail", "_walk")

    def __init__(self, walk: Walk, met: Met) -> None:
        self._walk = walk
        self._met = met
        self._top = Level(walk.top(), met)
        if not walk.is_flat:
            self._levels: dict[str, Level] = {ROOT: self._top}
            self._trail: list[Level] = []
            self._changes: dict[str, int] = {}
            self._grown: dict[str, int] = {}

    def find_first(self) -> str | None:
        """The tenant whose turn it is; None if there is nobody left."""
        if not self._walk.is_flat:
            return self._find_below()
        heap = self._top.heap
        return heap[0][1] if heap else None

    def drop(self) -> None:
        """Whose turn it is has nothing to start."""
        (self._top if self._walk.is_flat else self._trail[-1]).replace_first(None)

    def serve(self, tenant: str, *, has_more: bool) -> None:
        """Whose turn it is was charged for a start. Who has nothing more to start is not met again, nor is a node
        without anybody left below it."""
        walk = self._walk
        if walk.is_flat or len(path := walk.path(tenant)) == 1:
            self._top.replace_first(walk.step(tenant) if has_more else None)
            return
        change = walk.change(tenant)
        more = change - self._changes.get(tenant, 0)
        self._changes[tenant] = change
        for level, (node, weight) in zip(reversed(self._trail), reversed(path), strict=True):
            grown = self._grown[node] = self._grown.get(node, 0) + more
            level.replace_first(((walk.total(node) + grown) // weight, node) if has_more else None)
            has_more = bool(level.heap)

    def _find_below(self) -> str | None:
        """The same down a tree, where a child may turn out to have nobody left below it."""
        trail, levels, siblings = self._trail, self._levels, self._walk.siblings
        trail.clear()
        node = ROOT
        while node in siblings:
            level = levels.get(node)
            if level is None:
                level = levels[node] = Level(siblings[node], self._met)
            if level.heap:
                trail.append(level)
                node = level.heap[0][1]
            elif not trail:
                return None
            else:
                trail[-1].replace_first(None)
                trail.clear()
                node = ROOT
        return node.removeprefix(OWN)
