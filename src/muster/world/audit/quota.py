"""The auditor's books of the quota: kept from the facts alone, by other and slower ways than the world's own.

Use is kept per tenant and kind of node and summed up the tree by name; whether a start was right is asked of the whole
tree before and after it. It shares with the world only the words, and how a guarantee is cut when hardware is missing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from muster.model.spec import Spec
from muster.model.tenant import CPU, MEMORY, NOT_DEVICES, OPEN, ROOT, Line, Tenant, device_amount
from muster.units import Resources
from muster.world.laws.law import require, require_same
from muster.world.ledger import Account, Ledger
from muster.world.quota import apportion, children_of, find_line

Key: TypeAlias = tuple[str, str]
Held: TypeAlias = tuple[Spec, Sequence[tuple["Plot", int]]]
"""What somebody holds, on which plots."""
FindHeld: TypeAlias = Callable[[], Sequence[Held]]
Lump: TypeAlias = dict[Key, int]
"""What several places come to."""
Tree: TypeAlias = dict[str, tuple[int, int]]
"""For each tenant with a guarantee: how much it is, and how much of that is no child's."""

_LIMIT: Final = "a start stays within its tenant's quota"
_FIRM: Final = "what may not be evicted does not borrow"
_SOFT: Final = "who has spent a soft budget does not borrow"
_KEPT: Final = "what others keep stays free"


class Plot:
    """A node as the quota sees it: what it counts as and where it is, with the keys that what is held there counts for.
    Nodes that are alike in this share one."""

    __slots__ = ("_cpu", "_devices", "_memory", "family", "units")

    def __init__(self, family: str, units: int, region: str, cluster: str) -> None:
        self.family = family
        self.units = units
        scopes = sorted({"", region, f"{region}/{cluster}" if cluster else ""})
        self._cpu, self._memory = ([(kind, scope) for scope in scopes] for kind in (CPU, MEMORY))
        self._devices = [] if family in NOT_DEVICES else [(family, scope) for scope in scopes]

    def amounts(self, ask: Resources, tasks: int = 1) -> list[tuple[Key, int]]:
        """What tasks on it hold, per family and scope; nothing is said of what they hold nothing of."""
        devices = device_amount(ask, self.units) if self._devices else 0
        parts = ((self._cpu, ask.cpu_milli), (self._memory, ask.memory_bytes), (self._devices, devices))
        return [(key, amount * tasks) for keys, amount in parts if amount for key in keys]


class Stock(NamedTuple):
    """What a node counts for: what it has, and what is free of it if it is healthy."""

    plot: Plot
    has: Resources
    free: Resources | None


class QuotaBooks:
    """`held` is what each tenant itself holds, `used` what it holds with all below it; `healthy` and `free` are what
    there is on healthy nodes, and what nobody holds of it. What a tree says is looked up once per tree."""

    def __init__(self) -> None:
        self.tenants: dict[str, Tenant] = {}
        self.has_owners = False
        self._below: dict[str, list[str]] = {}
        self._held: defaultdict[Account, int] = defaultdict(int)
        self._used: defaultdict[Account, int] = defaultdict(int)
        self._touched: dict[Account, None] = {}
        self._stocks: dict[int, Stock] = {}
        self._healthy: defaultdict[Key, int] = defaultdict(int)
        self._free: defaultdict[Key, int] = defaultdict(int)
        self._forget_tree()

    def _forget_tree(self) -> None:
        """Nothing is known of a tree that is another now."""
        self._chains: dict[str, list[str]] = {}
        self._accounts: dict[tuple[str, Key], list[Account]] = {}
        self._lines: dict[Account, Line] = {}
        self._claims: dict[Account, int] = {}
        self._trees: dict[Key, tuple[int, Tree]] = {}

    def set_tenant(self, name: str, tenant: Tenant | None) -> None:
        """A tenant changed, or is out of the tree: sum everything up again."""
        if tenant is None:
            del self.tenants[name]
        else:
            self.tenants[name] = tenant
        self._below = children_of(self.tenants)
        self._forget_tree()
        self.has_owners = any(line.guaranteed for each in self.tenants.values() for line in each.lines)
        self._touched.update(dict.fromkeys(self._used))
        self._used.clear()
        for (owner, *key), amount in self._held.items():
            self._add(self._accounts_of(owner, (key[0], key[1])), amount)

    def set_stock(self, slot: int, stock: Stock) -> None:
        """A node counts for this now."""
        before = self._stocks.get(slot)
        self._stocks[slot] = stock
        for one, sign in ((before, -1), (stock, 1)):
            if one is not None and one.free is not None:
                for totals, amount in ((self._healthy, one.has), (self._free, one.free)):
                    for key, part in one.plot.amounts(amount):
                        totals[key] += sign * part

    def start(
        self, spec: Spec, places: Sequence[tuple[Plot, int]], find_later: FindHeld | None = None, *, may_borrow: bool
    ) -> None:
        """Tasks start on nodes, whose stocks already say so. What others hold who came later than the claim by which
        they do counts in the limits, and is no reason why they would borrow: it is looked for if there is one."""
        more = _sum(((spec, places),))
        trees = {key: self._share_out(key) for key in more if self.has_owners and self._claim(ROOT, key)}
        loans = self._borrow(spec.tenant, more, trees)
        others = _sum_by_tenant(find_later(), loans) if loans and find_later is not None else {}
        if others:  # with less held nobody borrows more, so it is enough to look again at what would be borrowed
            for tenant, amounts in ((spec.tenant, more), *others.items()):
                self._book(tenant, amounts, -1)
            loans = self._borrow(spec.tenant, more, trees)
        for key in loans:
            require(spec.evictable, _FIRM, f"{spec.tenant}: {more[key]} more of {key}")
            require(may_borrow, _SOFT, f"{spec.tenant}: {more[key]} more of {key}")
            self._check_kept(spec.tenant, key, trees[key], sum(lump.get(key, 0) for lump in others.values()))
        for tenant, amounts in others.items():
            self._book(tenant, amounts, 1)
        for key in more:
            self._check_limits(spec.tenant, key)

    def stop(self, spec: Spec, places: Sequence[tuple[Plot, int]]) -> None:
        """Tasks give back what they held."""
        self._book(spec.tenant, _sum(((spec, places),)), -1)

    def claim(self, spec: Spec, places: Sequence[tuple[Plot, int]], sign: int) -> None:
        """Places are claimed (1) or not any more (-1): they count as held, and nothing is asked."""
        self._book(spec.tenant, _sum(((spec, places),)), sign)

    def compare(self, ledger: Ledger) -> None:
        """Whether the ledger says the same of all that was touched."""
        for account in self._touched:
            kept, booked = ledger.held(*account), self._used.get(account, 0)
            require_same(kept, booked, "the ledger is the sum of the leases", account)
        self._touched.clear()

    def _book(self, tenant: str, more: Lump, sign: int) -> None:
        for key, amount in more.items():
            accounts = self._accounts_of(tenant, key)
            self._held[accounts[0]] += sign * amount
            self._add(accounts, sign * amount)

    def _add(self, accounts: list[Account], amount: int) -> None:
        for account in accounts:
            self._used[account] += amount
            self._touched[account] = None

    def _accounts_of(self, tenant: str, key: Key) -> list[Account]:
        """Of a tenant and all above it, what they have of a key."""
        known = self._accounts.get((tenant, key))
        if known is None:
            known = self._accounts[tenant, key] = [(name, *key) for name in self.chain(tenant)]
        return known

    def chain(self, tenant: str) -> list[str]:
        """A tenant and all above it."""
        known = self._chains.get(tenant)
        if known is None:
            above = self.chain(self.tenants.get(tenant, OPEN).parent) if tenant != ROOT else []
            known = self._chains[tenant] = [tenant, *above]
        return known

    # -- whether a start was right -------------------------------------------------------------------------------

    def _borrow(self, tenant: str, more: Lump, trees: Mapping[Key, Tree]) -> list[Key]:
        """Book what starts, and say of which keys some of it is covered by no guarantee."""
        before = {key: self._spill(ROOT, key, tree) for key, tree in trees.items()}
        self._book(tenant, more, 1)
        return [key for key, tree in trees.items() if self._spill(ROOT, key, tree) > before[key]]

    def _check_limits(self, tenant: str, key: Key) -> None:
        for name in self.chain(tenant):
            limit, after = self._line(name, key).limit, self._used[(name, *key)]
            require(limit is None or after <= limit, _LIMIT, f"{tenant}: {after} of {limit} of {name} in {key}")

    def _check_kept(self, tenant: str, key: Key, tree: Tree, later: int) -> None:
        chain = self.chain(tenant)
        aside = [child for name in chain for child in self._below.get(name, ()) if child not in chain]
        kept, free = sum(self._kept(name, key, tree) for name in aside), self._free[key] + later
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
        there, known = min(self._healthy[key], self._claim(ROOT, key)), self._trees.get(key)
        if known is None or known[0] != there:
            known = self._trees[key] = there, self._find_tree(key, there)
        return known[1]

    def _find_tree(self, key: Key, there: int) -> Tree:
        tree: Tree = {}
        waiting = [(ROOT, there)]
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


def _sum(held: Iterable[Held]) -> Lump:
    """What is held in all: tasks that are alike are counted first."""
    counts: defaultdict[tuple[Plot, Resources], int] = defaultdict(int)
    for spec, places in held:
        ask = spec.ask
        for plot, tasks in places:
            counts[plot, ask] += tasks
    more: defaultdict[Key, int] = defaultdict(int)
    for (plot, ask), tasks in counts.items():
        for key, amount in plot.amounts(ask, tasks):
            more[key] += amount
    return more


def _sum_by_tenant(held: Sequence[Held], keys: Sequence[Key]) -> dict[str, Lump]:
    """What each tenant has in all of what is held, as far as it is of these keys."""
    by_tenant: dict[str, list[Held]] = {}
    for each in held:
        by_tenant.setdefault(each[0].tenant, []).append(each)
    lumps = {tenant: _sum(mine) for tenant, mine in by_tenant.items()}
    return {tenant: {key: lump[key] for key in keys if key in lump} for tenant, lump in lumps.items()}
