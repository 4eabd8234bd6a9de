"""The auditor's books of the quota: kept from the facts alone, by other and slower ways than the world's own.

Use is kept per tenant and kind of node and summed up the tree by name; whether a start was right is asked of the whole
tree before and after it. It shares with the world only the words, and how a guarantee is cut when hardware is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from muster.model.node import Flavor, Traits, flavor_of
from muster.model.spec import Spec
from muster.model.tenant import CPU, MEMORY, NOT_DEVICES, OPEN, ROOT, Line, Tenant, device_amount
from muster.units import Resources
from muster.world.law import require, require_same
from muster.world.ledger import Account, Ledger
from muster.world.quota import apportion, children_of, find_line

Key: TypeAlias = tuple[str, str]
Held: TypeAlias = tuple[Spec, Sequence[tuple["Plot", int]]]
"""What somebody holds, on which plots."""
Tree: TypeAlias = dict[str, tuple[int, int]]
"""For each tenant with a guarantee: how much it is, and how much of that is no child's."""

_LIMIT: Final = "a start stays within its tenant's quota"
_FIRM: Final = "what may not be evicted does not borrow"
_SOFT: Final = "who has spent a soft budget does not borrow"
_KEPT: Final = "what others keep stays free"


class Plot(NamedTuple):
    """A node as the quota sees it: what it counts as, where it is, what it has, and what is free if it is healthy."""

    family: str
    units: int
    region: str
    cluster: str
    capacity: Resources = Resources()
    free: Resources | None = None

    def amounts(self, ask: Resources, tasks: int = 1) -> dict[Key, int]:
        """What tasks on it hold, per family and scope."""
        families = {CPU: ask.cpu_milli * tasks, MEMORY: ask.memory_bytes * tasks}
        if self.family not in NOT_DEVICES:
            families[self.family] = device_amount(ask, self.units) * tasks
        scopes = {"", self.region, f"{self.region}/{self.cluster}" if self.cluster else ""}
        return {(family, scope): families[family] for family in families for scope in sorted(scopes)}


def plot_of(
    traits: Traits, whole: Resources, has: Resources, flavors: dict[str, Flavor], free: Resources | None
) -> Plot:
    """What a node counts as: `whole` is what it joined with, `has` what is there of it."""
    name = flavor_of(traits, whole)
    flavor = flavors.get(name, Flavor(name))
    return Plot(flavor.family, flavor.units, traits.place.region, traits.place.cluster, has, free)


class QuotaBooks:
    """`held` is what each tenant itself holds, `used` what it holds with all below it; `healthy` and `free` are what
    there is on healthy nodes, and what nobody holds of it. What a tree says is looked up once per tree."""

    def __init__(self) -> None:
        self.tenants: dict[str, Tenant] = {}
        self.has_owners = False
        self._below: dict[str, list[str]] = {}
        self._held: dict[Account, int] = {}
        self._used: dict[Account, int] = {}
        self._touched: dict[Account, None] = {}
        self._plots: dict[int, Plot] = {}
        self._healthy: dict[Key, int] = {}
        self._free: dict[Key, int] = {}
        self._lines: dict[Account, Line] = {}
        self._claims: dict[Account, int] = {}

    def set_tenant(self, name: str, tenant: Tenant | None) -> None:
        """A tenant changed, or is out of the tree: sum everything up again."""
        if tenant is None:
            del self.tenants[name]
        else:
            self.tenants[name] = tenant
        self._below = children_of(self.tenants)
        self._lines, self._claims = {}, {}
        self.has_owners = any(line.guaranteed for each in self.tenants.values() for line in each.lines)
        self._touched.update(dict.fromkeys(self._used))
        self._used = {}
        for (owner, family, scope), amount in self._held.items():
            self._add(owner, (family, scope), amount)

    def set_plot(self, slot: int, plot: Plot) -> None:
        """A node is this now."""
        before = self._plots.get(slot)
        self._plots[slot] = plot
        for one, sign in ((before, -1), (plot, 1)):
            if one is not None and one.free is not None:
                for totals, amount in ((self._healthy, one.capacity), (self._free, one.free)):
                    for key, part in one.amounts(amount).items():
                        totals[key] = totals.get(key, 0) + sign * part

    def start(
        self, spec: Spec, places: Sequence[tuple[Plot, int]], later: Sequence[Held] = (), *, may_borrow: bool
    ) -> None:
        """Tasks start on nodes, whose plots already say so. What others hold who came `later` than the claim by which
        they do counts in the limits, and is no reason why they would borrow."""
        more, others = _sum(spec, places), [(each.tenant, _sum(each, plots)) for each, plots in later]
        for tenant, amounts in others:
            self._book(tenant, amounts, -1)
        owned = [key for key in more if self._claim(ROOT, key)] if self.has_owners else []
        trees = {key: self._share_out(key) for key in owned}
        before = {key: self._spill(ROOT, key, trees[key]) for key in owned}
        self._book(spec.tenant, more, 1)
        for key, amount in more.items():
            if key in before and self._spill(ROOT, key, trees[key]) > before[key]:
                require(spec.evictable, _FIRM, f"{spec.tenant}: {amount} more of {key}")
                require(may_borrow, _SOFT, f"{spec.tenant}: {amount} more of {key}")
                self._check_kept(spec.tenant, key, trees[key], sum(amounts.get(key, 0) for _, amounts in others))
        for tenant, amounts in others:
            self._book(tenant, amounts, 1)
        for key in more:
            self._check_limits(spec.tenant, key)

    def stop(self, spec: Spec, places: Sequence[tuple[Plot, int]]) -> None:
        """Tasks give back what they held."""
        self._book(spec.tenant, _sum(spec, places), -1)

    def claim(self, spec: Spec, places: Sequence[tuple[Plot, int]], sign: int) -> None:
        """Places are claimed (1) or not any more (-1): they count as held, and nothing is asked."""
        self._book(spec.tenant, _sum(spec, places), sign)

    def compare(self, ledger: Ledger) -> None:
        """Whether the ledger says the same of all that was touched."""
        for account in self._touched:
            kept, booked = ledger.held(*account), self._used.get(account, 0)
            require_same(kept, booked, "the ledger is the sum of the leases", account)
        self._touched.clear()

    def _book(self, tenant: str, more: Mapping[Key, int], sign: int) -> None:
        for key, amount in more.items():
            self._held[(tenant, *key)] = self._held.get((tenant, *key), 0) + sign * amount
            self._add(tenant, key, sign * amount)

    def _add(self, tenant: str, key: Key, amount: int) -> None:
        for name in self.chain(tenant):
            self._used[(name, *key)] = self._used.get((name, *key), 0) + amount
            self._touched[(name, *key)] = None

    def chain(self, tenant: str) -> Iterator[str]:
        """A tenant and all above it."""
        yield tenant
        if tenant != ROOT:
            yield from self.chain(self.tenants.get(tenant, OPEN).parent)

    # -- whether a start was right -------------------------------------------------------------------------------

    def _check_limits(self, tenant: str, key: Key) -> None:
        for name in self.chain(tenant):
            limit, after = self._line(name, key).limit, self._used[(name, *key)]
            require(limit is None or after <= limit, _LIMIT, f"{tenant}: {after} of {limit} of {name} in {key}")

    def _check_kept(self, tenant: str, key: Key, tree: Tree, later: int) -> None:
        chain = list(self.chain(tenant))
        aside = [child for name in chain for child in self._below.get(name, ()) if child not in chain]
        kept, free = sum(self._kept(name, key, tree) for name in aside), self._free.get(key, 0) + later
        require(not kept or free >= kept, _KEPT, f"{tenant} in {key}: {free} free, {kept} kept")

    def _line(self, name: str, key: Key) -> Line:
        known = self._lines.get((name, *key))
        if known is None:
            known = self._lines[(name, *key)] = find_line(self.tenants.get(name, OPEN), *key) or Line(*key)
        return known

    def _claim(self, name: str, key: Key) -> int:
        known = self._claims.get((name, *key))
        if known is None:
            below = sum(self._claim(child, key) for child in self._below.get(name, ()))
            known = self._claims[(name, *key)] = self._line(name, key).guaranteed or below
        return known

    def _share_out(self, key: Key) -> Tree:
        """What each tenant is guaranteed with the hardware that there is, and how much of that is no child's."""
        tree: Tree = {}
        waiting = [(ROOT, min(self._healthy.get(key, 0), self._claim(ROOT, key)))]
        while waiting:
            name, whole = waiting.pop()
            names = [child for child in self._below.get(name, ()) if self._claim(child, key)]
            claims = [self._claim(child, key) for child in names]
            own, *parts = apportion(whole, [self._claim(name, key) - sum(claims), *claims])
            tree[name] = (whole, own)
            waiting += zip(names, parts, strict=True)
        return tree

    def _spill(self, name: str, key: Key, tree: Tree) -> int:
        """What is held below a tenant and covered by no guarantee there."""
        children = [child for child in self._below.get(name, ()) if child in tree]
        covered = sum(self._used.get((child, *key), 0) - self._spill(child, key, tree) for child in children)
        return max(0, self._used.get((name, *key), 0) - covered - tree[name][1])

    def _kept(self, name: str, key: Key, tree: Tree) -> int:
        if name not in tree:
            return 0
        lend = self._line(name, key).lend
        own = 0 if lend is None else tree[name][0] - lend - self._used.get((name, *key), 0)
        return max(0, own, sum(self._kept(child, key, tree) for child in self._below.get(name, ())))


def _sum(spec: Spec, places: Sequence[tuple[Plot, int]]) -> dict[Key, int]:
    more: dict[Key, int] = {}
    for plot, tasks in places:
        for key, amount in plot.amounts(spec.ask, tasks).items():
            if amount:
                more[key] = more.get(key, 0) + amount
    return more
