"""The quota algebra: where a tenant stands with more of something, in small functions over integers.

A *fund* is all there is of one (family, scope). Tenants with a guarantee there have a *share* of it, in a tree like
their own; `used` is what the ledger says that a share holds.

    whole     a guarantee, as far as healthy capacity covers all of them
    own       the part of it that no child's guarantee takes
    load      what a tenant and those below it hold beyond the guarantees of its children
    inside    how much more stays within the guarantees on the way up to the root
    kept      what others must leave: the unused guarantee that is not lent

What is more than `inside` is borrowed: it must be within every limit on the way up, and what everybody else keeps must
stay free. A fund in which nobody has a guarantee has no owners, so nothing there is borrowed. Nothing here knows jobs
or nodes, or what is done about where a tenant stands.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from muster.model.reason import Code
from muster.model.record import Record
from muster.model.spec import Spec
from muster.model.tenant import CPU, DEVICE_MILLI, MEMORY, ROOT, Line, Tenant
from muster.units import AMOUNT_MAX, Limit, Resources
from muster.world.budgets import SCALE, Account, Budgets
from muster.world.ledger import Ledger, Total, kind_of
from muster.world.memory import Memory
from muster.world.sites import Site, Sites


class Standing(enum.IntEnum):
    """Where a tenant would stand with so much more."""

    INSIDE = 0
    BORROWING = 1
    OVER = 2


ANSWERS_MAX: Final = 100_000
_INSIDE, _BORROWING, _OVER = Standing  # members are slow to look up


class Share:
    """A tenant's part of a fund. `claim` is its guarantee, `own_claim` the part that is no child's; `whole` and `own`
    are what healthy capacity leaves of them. `total` is the ledger's, where anybody has a guarantee."""

    __slots__ = ("children", "claim", "lend", "name", "own", "own_claim", "parent", "total", "whole")

    def __init__(self, name: str, parent: Share | None, lend: Limit = None) -> None:
        self.name = name
        self.total = Total(0)
        self.parent = parent
        self.lend = lend
        self.children: list[Share] = []
        self.claim = self.own_claim = self.whole = self.own = 0

    def used(self) -> int:
        """What it holds, with all below it."""
        return self.total.held


def load(share: Share) -> int:
    """What is held in a share beyond what its children's guarantees cover."""
    return share.used() - sum(absorbed(child) for child in share.children) if share.children else share.used()


def absorbed(share: Share) -> int:
    """What is held in a share and covered by its guarantee; the rest weighs on the share above."""
    return share.used() - max(0, load(share) - share.own)


def inside(share: Share, wanted: int) -> int:
    """How much more a share could hold within its guarantee, and then within what those above it have to spare; once
    that is as much as is wanted, nobody looks further."""
    here = max(0, share.own - load(share)) if share.own else 0
    if here >= wanted or share.parent is None:
        return here
    return here + inside(share.parent, wanted - here)


def kept(share: Share) -> int:
    """The unused guarantee of a share that it does not lend, or its children do not, whichever is more."""
    lent = share.whole if share.lend is None else share.lend
    return max(0, share.whole - lent - share.used(), sum(kept(child) for child in share.children))


def kept_elsewhere(share: Share, but: Share | None = None) -> int:
    """What everybody keeps who is not on the way from a share up to the root."""
    here = sum(kept(child) for child in share.children if child is not but)
    return here if share.parent is None else here + kept_elsewhere(share.parent, share)


def inside_at_most(share: Share) -> int:
    """What `inside` could ever be: nobody holds anything and everything is healthy."""
    return share.own_claim if share.parent is None else share.own_claim + inside_at_most(share.parent)


def apportion(total: int, claims: Sequence[int]) -> list[int]:
    """Claims, or what is left of each when there is less: parts by largest remainder, ties to whoever comes first."""
    wanted = sum(claims)
    if wanted <= total:
        return list(claims)
    parts = [total * claim // wanted for claim in claims]
    by_remainder = sorted(range(len(claims)), key=lambda index: (-(total * claims[index] % wanted), index))
    for index in by_remainder[: total - sum(parts)]:
        parts[index] += 1
    return parts


def shrink(share: Share, whole: int) -> None:
    """Give a share this much of its claim, and its children theirs of it; they add up."""
    share.whole = whole
    share.own, *parts = apportion(whole, [share.own_claim, *(child.claim for child in share.children)])
    for child, part in zip(share.children, parts, strict=True):
        shrink(child, part)


class Fund:
    """All of one (family, scope): the limits of those who have one, and the shares of those who have a guarantee."""

    __slots__ = ("family", "has_keepers", "kind", "limits", "root", "scope", "shares", "sites")

    def __init__(self, family: str, scope: str) -> None:
        self.family = family
        self.scope = scope
        self.kind = kind_of(family)
        self.limits: dict[str, int] = {}
        self.root = Share(ROOT, None)
        self.shares: dict[str, Share] = {ROOT: self.root}
        self.sites: list[int] = []
        self.has_keepers = False

    def has_site(self, site: Site) -> bool:
        """Whether what is held on a site counts here."""
        return self.scope in site.scopes() and self.family in (site.family, CPU, MEMORY)


class Bound(Record, frozen=True):
    """What keeps a tenant from more: whose line it is that binds, and how much is left there."""

    code: Code
    tenant: str
    family: str
    scope: str
    needed: int
    room: int


class Check(NamedTuple):
    """What a tenant has to look at in one fund: the limits on its way up, as (total, limit, name) and the lowest first,
    and the nearest share, if there are any."""

    kind: int
    limits: tuple[tuple[Total, int, str], ...]
    share: Share | None
    fund: Fund


class Room(NamedTuple):
    """What is left for a tenant in one fund: within its limits, inside the guarantees, and of what it could borrow;
    None where nobody has a guarantee, or keeps anything."""

    kind: int
    limit: int
    inside: Limit
    borrowable: Limit
    fund: Fund


class Quotas:
    """The funds of a world and what each tenant has to look at: an index over tenants, sites and ledger, made when it
    is first asked for after the tree or its lines changed. Answers about them are remembered as long as they and the
    nodes are as they are; and what is left of shares from the second question on, as long as nobody holds more or less.
    """

    __slots__ = (
        "_asked",
        "_borrowables",
        "_budgets",
        "_checks",
        "_funds",
        "_has_keepers",
        "_has_owners",
        "_insides",
        "_is_flat",
        "_is_known",
        "_ledger",
        "_sites",
        "_tenants",
        "_version",
    )

    def __init__(self, tenants: Mapping[str, Tenant], ledger: Ledger, sites: Sites, budgets: Budgets) -> None:
        self._tenants = tenants
        self._ledger = ledger
        self._sites = sites
        self._budgets = budgets
        self._funds: dict[tuple[str, str], Fund] | None = None
        self._checks: list[dict[str, tuple[Check, ...]]] = []
        self._is_known = False
        self._has_keepers = False
        self._has_owners = False
        self._is_flat = True
        self._asked = Memory(ANSWERS_MAX)
        self._version = -1
        self._insides: dict[Share, int] = {}
        self._borrowables: dict[Share, int] = {}

    # -- what is asked -------------------------------------------------------------------------------------------

    def standing(self, tenant: str, site: Site, ask: Resources, tasks: int) -> Standing:
        """Where a tenant would stand with `tasks` more of an ask on a site. What is not asked for cannot be over."""
        try:
            checks = self._checks[site.number][tenant]
        except LookupError:
            checks = self.checks(tenant, site)
        found = _INSIDE
        if checks:
            gpus = (ask.gpus * DEVICE_MILLI + ask.gpu_milli) * site.units
            amounts = gpus * tasks, ask.cpu_milli * tasks, ask.memory_bytes * tasks
            for kind, limits, share, fund in checks:
                more = amounts[kind]
                if not more:
                    continue
                for total, limit, _ in limits:
                    if total.held + more > limit:
                        return _OVER
                if share is not None and more > self.inside(share, more):
                    found = _BORROWING
                    if fund.has_keepers and more > self._borrowable(fund, share):
                        return _OVER
        return self._after_spending(tenant, ask, found) if self._budgets.accounts else found

    def rooms(self, tenant: str, site: Site) -> list[Room]:
        """What is left for a tenant on a site, fund by fund: for whoever asks about many asks at once."""
        found: list[Room] = []
        for kind, limits, share, fund in self.checks(tenant, site):
            limit = min((limit - total.held for total, limit, _ in limits), default=AMOUNT_MAX)
            inside = None if share is None else self.inside(share, AMOUNT_MAX)
            borrowable = None if share is None or not fund.has_keepers else self._borrowable(fund, share)
            found.append(Room(kind, limit, inside, borrowable, fund))
        return found

    def standing_in(self, rooms: Iterable[Room], tenant: str, site: Site, ask: Resources, tasks: int) -> Standing:
        """Where it would stand with `tasks` more of an ask there, if that is what is left: see `standing`."""
        amounts, found = site.amounts(ask, tasks), _INSIDE
        for kind, limit, inside, borrowable, _ in rooms:
            more = amounts[kind]
            if more > limit and more:
                return _OVER
            if more and inside is not None and more > inside:
                found = _BORROWING
                if borrowable is not None and more > borrowable:
                    return _OVER
        return self._after_spending(tenant, ask, found) if self._budgets.accounts else found

    def is_any(self) -> bool:
        """Whether there is anything by which anybody could stand elsewhere than inside."""
        return bool(self.funds() or self._budgets.accounts)

    def is_bound(self, tenant: str) -> bool:
        """Whether there is anything by which a tenant could stand elsewhere than inside."""
        return bool(self._budgets.accounts) or any(self.checks(tenant, site) for site in self._sites.all)

    def has_limits_left(self, tenant: str, site: Site, ask: Resources, tasks: int) -> bool:
        """Whether `tasks` more of an ask on a site would be within all limits on the way up."""
        amounts = site.amounts(ask, tasks)
        return all(
            total.held + amounts[check.kind] <= limit or not amounts[check.kind]
            for check in self.checks(tenant, site)
            for total, limit, _ in check.limits
        )

    def headroom(self, tenant: str, site: Site, ask: Resources, most: int, *, evictable: bool) -> int:
        """How many of `most` more tasks of an ask a tenant may start on a site; what must stay may not borrow."""
        spent = self._find_spent(tenant, ask)
        if spent is not None and not spent.budget.soft:
            return 0
        each, evictable = site.amounts(ask), evictable and spent is None
        for check in self.checks(tenant, site):
            if each[check.kind]:
                for bound in self._bounds(check, each[check.kind] * most, evictable=evictable):
                    most = min(most, max(0, bound.room) // each[check.kind])
        return most

    def find_bound(self, tenant: str, site: Site, ask: Resources, tasks: int, *, evictable: bool) -> Bound | None:
        """The first thing that keeps a tenant from `tasks` more of an ask on a site now."""
        spent = self._find_spent(tenant, ask)
        if spent is not None and not spent.budget.soft:
            return self._spent_bound(Code.BUDGET_SPENT, spent)
        amounts = site.amounts(ask, tasks)
        for check in self.checks(tenant, site):
            more = amounts[check.kind]
            for bound in self._bounds(check, more, evictable=evictable and spent is None) if more else ():
                if bound.room < more:
                    is_borrowed = evictable and bound.code == Code.MAY_NOT_BORROW
                    return self._spent_bound(Code.SOFT_BUDGET_SPENT, spent) if spent and is_borrowed else bound
        return None

    def find_lasting_bound(self, spec: Spec, site: Site) -> Bound | None:
        """The first thing that would keep a gang from starting on a site if nobody held anything and all were
        healthy."""
        amounts = site.amounts(*spec.whole)
        for kind, limits, share, fund in self.checks(spec.tenant, site):
            more = amounts[kind]
            if limits and more > limits[0][1]:
                _, limit, name = limits[0]
                return Bound(Code.NEVER_WITHIN_QUOTA, name, fund.family, fund.scope, more, limit)
            if share is not None and not spec.evictable and more > inside_at_most(share):
                return Bound(Code.NEVER_INSIDE, share.name, fund.family, fund.scope, more, inside_at_most(share))
        return None

    def inside(self, share: Share, wanted: int) -> int:
        """How much more stays within the guarantees, as far as the nodes of now cover them; or as much as is wanted."""
        if not self._is_known:
            self.funds()
        if not self._is_unchanged():
            return inside(share, wanted)
        found = self._insides.get(share)
        if found is None:
            found = self._insides[share] = inside(share, AMOUNT_MAX)
        return found

    def funds(self) -> Mapping[tuple[str, str], Fund]:
        """Every fund that a line is about."""
        if self._funds is None:
            self._funds = self._build()
        if not self._is_known:
            self._measure(self._funds.values())
        return self._funds

    def has_owners(self) -> bool:
        """Whether anybody is guaranteed anything, so that something may be borrowed."""
        if not self._is_known:
            self.funds()
        return self._has_owners

    def has_bounds(self) -> bool:
        """Whether there is anything but room by which what is borrowed could be refused."""
        return bool(self._budgets.accounts) or any(fund.limits or fund.has_keepers for fund in self.funds().values())

    def recall(self, key: object) -> Any:
        """An answer that was kept, and holds for tree and nodes as they are."""
        if not self._is_known:
            self.funds()
        return self._asked.get(key)

    def remember(self, key: object, answer: object) -> None:
        """Keep an answer for `recall`."""
        self._asked[key] = answer

    def healthy(self, fund: Fund) -> int:
        """What there is of a fund on nodes that are up and unbarred."""
        return sum(self._sites.healthy[number][fund.kind] for number in fund.sites)

    def free(self, fund: Fund) -> int:
        """What of it nobody holds."""
        closed = sum(self._sites.closed[number][fund.kind] for number in fund.sites)
        return self.healthy(fund) - fund.root.used() + closed

    def checks(self, tenant: str, site: Site) -> tuple[Check, ...]:
        """All that a tenant has to look at before it holds something on a site."""
        if not self._is_known:
            self.funds()
        while len(self._checks) <= site.number:
            self._checks.append({})
        known = self._checks[site.number].get(tenant)
        if known is None:
            known = self._checks[site.number][tenant] = tuple(self._gather(tenant, site))
        return known

    def find_kin(self, tenant: str, names: Collection[str]) -> list[str]:
        """Those among `names` to whom it matters that a tenant gave something back: all below the same child of the
        root, who share its lines; or everybody, if some keep what they do not use."""
        self.funds()
        if self._has_keepers:
            return list(names)
        if self._is_flat:
            return [tenant] if tenant in names else []
        top = self._ledger.chain(tenant)[-2]
        return [name for name in names if self._ledger.chain(name)[-2] == top]

    # -- what changed --------------------------------------------------------------------------------------------

    def forget_tenants(self) -> None:
        """The tree or its lines changed."""
        self._funds = None
        self._is_known = False
        self._checks.clear()

    def forget_nodes(self) -> None:
        """Nodes or their sites changed."""
        self._is_known = False

    # -- the pieces ----------------------------------------------------------------------------------------------

    def _find_spent(self, tenant: str, ask: Resources) -> Account | None:
        """The budget that binds; only devices cost something."""
        has_devices = ask.gpus or ask.gpu_milli
        return self._budgets.find_spent(tenant) if self._budgets.accounts and has_devices else None

    def _after_spending(self, tenant: str, ask: Resources, found: Standing) -> Standing:
        """A hard budget that is spent ends starts, a soft one borrowing."""
        spent = self._find_spent(tenant, ask)
        return found if spent is None or (spent.budget.soft and found is _INSIDE) else _OVER

    def _spent_bound(self, code: Code, spent: Account) -> Bound:
        budget = spent.budget
        used = spent.spent(self._budgets.now) // SCALE[budget.unit]
        return Bound(code, spent.tenant, budget.unit, "", used, budget.amount)

    def _bounds(self, check: Check, more: int, *, evictable: bool) -> Iterator[Bound]:
        """Everything that bounds a tenant in one fund now, whether it binds or not."""
        fund, share = check.fund, check.share
        for total, limit, name in check.limits:
            room = limit - total.held
            yield Bound(Code.OVER_QUOTA, name, fund.family, fund.scope, more, room)
        if share is None:
            return
        room = inside(share, more)
        if not evictable:
            yield Bound(Code.MAY_NOT_BORROW, share.name, fund.family, fund.scope, more, room)
        elif fund.has_keepers:
            room = max(room, self._borrowable(fund, share))
            yield Bound(Code.NOTHING_TO_BORROW, share.name, fund.family, fund.scope, more, room)

    def _borrowable(self, fund: Fund, share: Share) -> int:
        """What is free and kept by nobody else. Where nobody keeps anything it is not asked: room alone decides."""
        if not self._is_unchanged():
            return self.free(fund) - kept_elsewhere(share)
        found = self._borrowables.get(share)
        if found is None:
            found = self._borrowables[share] = self.free(fund) - kept_elsewhere(share)
        return found

    def _is_unchanged(self) -> bool:
        """Whether all hold what they did, on nodes as they were, when this was last asked: neither version ever falls,
        so their sum says it. Else what was remembered is forgotten."""
        version = self._ledger.version + self._sites.version
        if version == self._version:
            return True
        self._version = version
        self._insides.clear()
        self._borrowables.clear()
        return False

    def _gather(self, tenant: str, site: Site) -> Iterator[Check]:
        chain, ledger = self._ledger.chain(tenant), self._ledger
        for fund in self.funds().values():
            if not fund.has_site(site):
                continue
            limits = [
                (ledger.total(name, fund.family, fund.scope), fund.limits[name], name)
                for name in chain
                if name in fund.limits
            ]
            limits.sort(key=lambda item: item[1])
            nearest = next(fund.shares[name] for name in chain if name in fund.shares)
            share = nearest if fund.root.children else None
            if limits or share is not None:
                yield Check(fund.kind, tuple(limits), share, fund)

    def _build(self) -> dict[tuple[str, str], Fund]:
        funds: dict[tuple[str, str], Fund] = {}
        children = children_of(self._tenants)
        for name in sorted(self._tenants):
            for line in self._tenants[name].lines:
                key = (line.family, line.scope)
                fund = funds.get(key)
                if fund is None:
                    fund = funds[key] = Fund(*key)
                if line.limit is not None:
                    fund.limits[name] = line.limit
        for fund in funds.values():
            self._add_shares(fund, fund.root, children)
            for share in fund.shares.values() if fund.root.children else ():
                share.total = self._ledger.total(share.name, fund.family, fund.scope)
        self._has_keepers = any(fund.has_keepers for fund in funds.values())
        self._has_owners = any(fund.root.children for fund in funds.values())
        self._is_flat = all(one.parent == ROOT for one in self._tenants.values())
        return {key: funds[key] for key in sorted(funds)}

    def _add_shares(self, fund: Fund, share: Share, children: Mapping[str, Sequence[str]]) -> int:
        """Hang the shares of all below a tenant into the tree, and give back what they claim together."""
        for name in children.get(share.name, ()):
            line = find_line(self._tenants[name], fund.family, fund.scope)
            child = Share(name, share, None if line is None else line.lend)
            below = self._add_shares(fund, child, children)
            child.claim = (line.guaranteed if line is not None else 0) or below
            child.own_claim = child.claim - below
            if child.claim:
                share.children.append(child)
                fund.shares[name] = child
                fund.has_keepers |= child.lend is not None
        share.claim = sum(child.claim for child in share.children)
        return share.claim

    def _measure(self, funds: Iterable[Fund]) -> None:
        """Which sites each fund has, and what healthy capacity leaves of the guarantees."""
        for fund in funds:
            fund.sites = [site.number for site in self._sites.all if fund.has_site(site)]
            if fund.root.children:
                shrink(fund.root, min(fund.root.claim, self.healthy(fund)))
        self._asked = Memory(ANSWERS_MAX)
        self._version = -1
        self._is_known = True


def children_of(tenants: Mapping[str, Tenant]) -> dict[str, list[str]]:
    """The names right below each name, in order."""
    found: dict[str, list[str]] = {}
    for name in sorted(tenants):
        found.setdefault(tenants[name].parent, []).append(name)
    return found


def find_line(tenant: Tenant, family: str, scope: str) -> Line | None:
    """A tenant's line for a family and scope."""
    return next((line for line in tenant.lines if (line.family, line.scope) == (family, scope)), None)
