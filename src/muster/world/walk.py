"""The walk: down the tree of tenants, at each node to the child with the smallest share of use.

The share of a node is the charge of all below it, over its weight; of equal ones the name that sorts first goes first.
A tenant with children and with work of its own is met among its children as one child more, of weight 1. The children
of each node stand in one list; whoever's charge changed is moved in it before the next walk, and all are looked at
again with the hour. Whoever waits stands there where it belongs; for what, is for the callers to say, who name those
that are to be met.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice, pairwise
from operator import itemgetter
from typing import Final, TypeAlias

from muster.model.tenant import OPEN, ROOT, Tenant
from muster.world.usage import BUCKET_MS, Usage

OWN: Final = "\0"
"""Before the name of a tenant with children: its own work, which is met before theirs if the shares are equal."""
FEW: Final = 8
"""Up to which part of a list (an eighth) its members are moved one by one; else it is sorted again."""

Step: TypeAlias = tuple[int, str]
"""A share and a name: the smaller one is met first."""
Met: TypeAlias = Collection[Collection[str]]
"""The nodes at which or below which somebody is to be met, in several parts. Whoever leaves one of them meanwhile, or
with it, may still be met."""
_NAME: Final = itemgetter(1)
Path: TypeAlias = tuple[tuple[str, int], ...]
"""The nodes from a child of the root down to a tenant's own work, each with its weight."""


class Siblings:
    """The children of one node, by name and in order: at least those that somebody waits below."""

    __slots__ = ("_by_name", "_order")

    def __init__(self) -> None:
        self._by_name: dict[str, Step] = {}
        self._order: list[Step] = []

    def stand(self, steps: Mapping[str, Step]) -> None:
        """Let children stand there from now on."""
        by_name, order = self._by_name, self._order
        if len(steps) * FEW > len(order):
            by_name.update(steps)
            self._order = sorted(by_name.values())
            return
        for name, step in steps.items():
            old = by_name.get(name)
            if step != old:
                if old is not None:
                    del order[bisect_left(order, old)]
                insort(order, step)
                by_name[name] = step

    def find_first(self, met: Met) -> Step | None:
        """Whoever stands first of those who are to be met. The largest part is asked first: most likely, the others
        then have few to look at."""
        order, by_name, first = self._order, self._by_name, None
        for names in sorted(met, key=len, reverse=True) if len(met) > 1 else met:
            end = len(order) if first is None else bisect_left(order, first)
            if 2 * len(names) < end:  # so few that all of them are sooner looked at; who waits stands far behind
                step = min(filter(None, map(by_name.get, names)), default=None)
            else:
                step = by_name.get(next(filter(names.__contains__, map(_NAME, islice(order, end))), ""))
            if step is not None and (first is None or step < first):
                first = step
        return first

    def find_after(self, step: Step, met: Met) -> Iterator[Step]:
        """Those who stand behind a step, in order."""
        behind = islice(self._order, bisect_right(self._order, step), None)
        if len(met) == 1:
            (names,) = met
            return map(self._by_name.__getitem__, filter(names.__contains__, map(_NAME, behind)))

        def is_met(step: Step) -> bool:
            for names in met:  # noqa: SIM110 - a generator for each would take longer than all that it looks at
                if step[1] in names:
                    return True
            return False

        return filter(is_met, behind)


class Walk:
    """`touched` are the tenants that may stand elsewhere than they do. In a tree that `is_flat` all are right below the
    root. `_waiting` counts the lines of each tenant; `_charges` are the charges of tenants and `_totals` those of all
    below a node, when they were last looked at; `siblings` are the children of each node that has any, and stand where
    they belong once the walk is settled. `_spots` are above each node that was met the next one, and its own weight."""

    __slots__ = (
        "_bucket",
        "_charges",
        "_parents",
        "_paths",
        "_spots",
        "_tenants",
        "_totals",
        "_usage",
        "_waiting",
        "is_flat",
        "siblings",
        "touched",
    )

    def __init__(self, usage: Usage, tenants: Mapping[str, Tenant]) -> None:
        self._usage = usage
        self._tenants = tenants
        self._waiting: dict[str, int] = {}
        self.reset()

    def reset(self) -> None:
        """The tree or the hour is another one: everybody is looked at again before the next walk."""
        self.touched = dict.fromkeys((*self._usage.accounts, *self._waiting))
        self._bucket = -1
        self._parents = frozenset(tenant.parent for tenant in self._tenants.values())
        self._charges: dict[str, int] = {}
        self._totals: dict[str, int] = {}
        self.siblings: dict[str, Siblings] = {ROOT: Siblings()}
        self._paths: dict[str, Path] = {}
        self._spots: dict[str, tuple[str, int]] = {}
        self.is_flat = self._parents <= {ROOT}

    def path(self, tenant: str) -> Path:
        """The way from the root to a tenant."""
        return self._paths.get(tenant) or self._find_path(tenant)

    def follow(self, other: Walk) -> None:
        """The same wait as in another walk."""
        self._waiting = other._waiting.copy()
        self.reset()

    def join(self, tenant: str) -> None:
        """A tenant has one line more."""
        lines = self._waiting.get(tenant, 0)
        self._waiting[tenant] = lines + 1
        if not lines:
            self.touched[tenant] = None

    def leave(self, tenant: str) -> None:
        """A tenant has one line less."""
        lines = self._waiting[tenant] - 1
        if lines:
            self._waiting[tenant] = lines
        else:
            del self._waiting[tenant]

    def waiting(self) -> Collection[str]:
        """Every tenant that has a line."""
        return self._waiting.keys()

    def has_others(self, tenant: str) -> bool:
        """Whether anybody but a tenant waits."""
        return len(self._waiting) > (tenant in self._waiting)

    def top(self) -> Siblings:
        """The children of the root. The walk must be settled."""
        return self.siblings[ROOT]

    def charge(self, tenant: str) -> int:
        """A tenant's charge in the hour in which the walk was settled."""
        account = self._usage.accounts.get(tenant)
        return 0 if account is None else account.charge(self._bucket)

    def step(self, tenant: str) -> Step:
        """Where a tenant right below the root stands by its charge of now."""
        account, path = self._usage.accounts.get(tenant), self._paths.get(tenant) or self._find_path(tenant)
        return 0 if account is None else account.charge(self._bucket) // path[0][1], tenant

    def total(self, node: str) -> int:
        """The charge of all below a node when the walk was settled."""
        found = self._totals.get(node)
        return self.charge(node) if found is None else found

    def change(self, tenant: str) -> int:
        """By how much a tenant that is not right below the root is charged more since the walk was settled."""
        return self.charge(tenant) - self._charges.get(tenant, 0)

    def in_order(self, tenants: Iterable[str], now: int) -> Iterator[str]:
        """Tenants in the order in which they would be met if nobody's share changed, whether they wait or not."""
        self.settle(now)
        ways = {name: [(self.total(node) // weight, node) for node, weight in self.path(name)] for name in tenants}
        return iter(sorted(ways, key=ways.__getitem__))

    def settle(self, now: int) -> None:
        """Let everybody stand where they belong."""
        bucket = now // BUCKET_MS
        if bucket != self._bucket:
            self.reset()
            self._bucket = bucket
        paths, accounts, waiting = self._paths, self._usage.accounts, self._waiting
        top: dict[str, Step] = {}
        moves = {ROOT: top}
        grown: dict[str, int] = {}
        for tenant in self.touched:
            path = paths.get(tenant) or self._find_path(tenant)
            if len(path) > 1:
                self._climb(tenant, path, grown, moves)
            elif tenant in waiting:  # whoever does not is not met, and is touched when it joins
                account = accounts.get(tenant)
                top[tenant] = (0 if account is None else account.charge(bucket) // path[0][1], tenant)
        self.touched.clear()
        for node, change in grown.items():
            self._grow(node, change, moves)
        for parent, steps in moves.items():
            self.siblings[parent].stand(steps)

    def _climb(self, tenant: str, path: Path, grown: dict[str, int], moves: dict[str, dict[str, Step]]) -> None:
        """Count by how much all nodes above a tenant have grown, and correct where it stands itself, if it waits."""
        account, known, (node, weight) = self._usage.accounts.get(tenant), self._charges.get(tenant), path[-1]
        charge = 0 if account is None else account.charge(self._bucket)
        if charge != known:
            self._charges[tenant] = self._totals[node] = charge
            change = charge - (known or 0)
            for above, _ in path[:-1]:
                grown[above] = grown.get(above, 0) + change
        if tenant in self._waiting:
            moves.setdefault(path[-2][0], {})[node] = (charge // weight, node)

    def _grow(self, node: str, change: int, moves: dict[str, dict[str, Step]]) -> None:
        """Correct where a node stands that has others below it, whose charges changed together by so much."""
        total = self._totals[node] = self._totals.get(node, 0) + change
        if node not in self.siblings:
            self.siblings[node] = Siblings()
        parent, weight = self._spots[node]
        moves.setdefault(parent, {})[node] = (total // weight, node)

    def _find_path(self, tenant: str) -> Path:
        own = [(OWN + tenant, 1)] if tenant in self._parents else []
        found = self._paths[tenant] = (*reversed([*self._above(tenant)]), *own)
        for (parent, _), (node, weight) in pairwise(((ROOT, 1), *found)):
            self._spots[node] = parent, weight
        return found

    def _above(self, tenant: str) -> Iterator[tuple[str, int]]:
        """A tenant and all above it but the root, each with its weight."""
        while tenant != ROOT:
            record = self._tenants.get(tenant, OPEN)
            yield tenant, record.weight
            tenant = record.parent
