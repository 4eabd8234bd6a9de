"""Loans: which runs are on borrowed capacity now. A function of what is held and guaranteed, and of nothing else.

*Of what a tenant holds beyond the guarantees on its way up, the newest runs are the borrowed ones.* At every node of
the tree the oldest runs are covered first, by the part of its guarantee that is no child's; what is left over weighs on
the node above, and what is left over at the root is borrowed. A gang of which any part is borrowed borrows. A run is as
old as its leases; an array, whose tasks come and go, as the array itself.

It knows nothing of who may take what from whom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from muster.units import Resources
from muster.world.ledger import Ledger
from muster.world.quota import Fund, Quotas, Share, inside, load
from muster.world.sites import Site


class Holding(NamedTuple):
    """What one run holds: its age, and how many tasks of which ask on each site."""

    since: int
    job: int
    ask: Resources
    places: list[tuple[Site, int]]

    def amount_in(self, fund: Fund) -> int:
        """How much of a fund it holds."""
        return sum(site.amounts(self.ask, tasks)[fund.kind] for site, tasks in self.places if fund.has_site(site))


class Weight(NamedTuple):
    """How much of a run is not covered so far; sorts by age."""

    since: int
    job: int
    amount: int


HoldingsOf: TypeAlias = Callable[[str], Iterable[Holding]]
"""What the runs of a tenant hold."""


class Loans:
    """Who borrows of which funds. What a tenant holds that has no guarantee, and nobody above it, is all borrowed; of
    the others it is looked up who is left over at the root."""

    def __init__(self, quotas: Quotas, ledger: Ledger, tenants: Iterable[str], holdings_of: HoldingsOf) -> None:
        self._ledger = ledger
        self._left: dict[int, list[Fund]] = {}
        self._unowned: dict[tuple[object, ...], list[Fund]] = {}
        self._lent = [fund for fund in quotas.funds().values() if fund.root.children and load(fund.root) > 0]
        names = list(tenants) if self._lent else []
        for fund in self._lent:
            members: dict[str, list[str]] = {}
            for tenant in names:
                members.setdefault(self._share_of(fund, tenant), []).append(tenant)
            for child in fund.root.children:
                for weight in _left_over(child, fund, members, holdings_of):
                    self._left.setdefault(weight.job, []).append(fund)

    def funds_of(self, tenant: str, job: int, ask: Resources, sites: tuple[Site, ...]) -> list[Fund]:
        """The funds of which a tenant's run on some sites borrows."""
        if not self._lent:
            return []
        key = (tenant, ask, sites[0].number if len(sites) == 1 else sites)
        unowned = self._unowned.get(key)
        if unowned is None:
            unowned = self._unowned[key] = [fund for fund in self._lent if self._is_unowned(fund, tenant, ask, sites)]
        return [*self._left[job], *unowned] if job in self._left else unowned

    def _is_unowned(self, fund: Fund, tenant: str, ask: Resources, sites: tuple[Site, ...]) -> bool:
        """Whether nobody on a tenant's way up has a guarantee of a fund that it holds something of."""
        if self._share_of(fund, tenant) != fund.root.name:
            return False
        return any(fund.has_site(site) and site.amounts(ask)[fund.kind] for site in sites)

    def _share_of(self, fund: Fund, tenant: str) -> str:
        return next(name for name in self._ledger.chain(tenant) if name in fund.shares)


def find_owed(quotas: Quotas, tenant: str, site: Site, ask: Resources, tasks: int) -> list[Fund] | None:
    """The funds of which a tenant's guarantees cover so much more on a site; None if in one they do not. Limits are not
    looked at: whoever stands in the way of them may be gone."""
    amounts, owed = site.amounts(ask, tasks), []
    for check in quotas.checks(tenant, site):
        more = amounts[check.kind]
        if more and check.share is not None:
            if inside(check.share, more) < more:
                return None
            owed.append(check.fund)
    return owed


def _left_over(share: Share, fund: Fund, members: dict[str, list[str]], holdings_of: HoldingsOf) -> list[Weight]:
    """What is held below a share and covered by no guarantee there: of the newest runs."""
    more = load(share) - share.own
    if more <= 0:
        return []
    weights = [weight for child in share.children for weight in _left_over(child, fund, members, holdings_of)]
    for tenant in members.get(share.name, ()):
        for run in holdings_of(tenant):
            amount = run.amount_in(fund)
            if amount:
                weights.append(Weight(run.since, run.job, amount))
    return list(_newest(weights, more))


def _newest(weights: list[Weight], more: int) -> Iterator[Weight]:
    """The newest weights that make up an amount; of the last one, as much as is missing."""
    for weight in sorted(weights, reverse=True):
        part = min(weight.amount, more)
        yield weight._replace(amount=part)
        more -= part
        if not more:
            return
