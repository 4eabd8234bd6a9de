"""booked_quota: whether a window is within the quota of its tenant, beside all else that is booked.

A booking is never evicted, and its jobs need not ask again: so what it may hold is judged when it is made. At every
moment of its window, with whatever else is booked then by anybody who counts on the same lines, it must be under every
limit on the way up and inside the guarantees, as if nobody held anything besides and all nodes were healthy. A node
counts with its devices, one without any with its CPU and memory. Nothing here chooses a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from muster.model.booking import Booking, Window
from muster.model.reason import Code, Reason
from muster.scheduler.reasons import quota_reason
from muster.units import Resources
from muster.world.booking import windows_of
from muster.world.quota import Bound, Check, Fund, Share, inside_at_most
from muster.world.sites import Site
from muster.world.world import World

Amounts: TypeAlias = dict[Site, list[int]]
"""What a window holds, by site and kind."""


class _Sums:
    """What is booked at a moment: by limit, and by share with all below it."""

    def __init__(self, world: World) -> None:
        self._quotas = world.quotas
        self._limited: Counter[tuple[Fund, str]] = Counter()
        self._used: Counter[Share] = Counter()

    def count(self, tenant: str, amounts: Amounts, sign: int) -> None:
        """Count a window on (1) or off (-1)."""
        for check, more in self._parts(tenant, amounts):
            for _, _, name in check.limits:
                self._limited[check.fund, name] += sign * more
            for share in _way_up(check.share):
                self._used[share] += sign * more

    def find_bound(self, tenant: str, amounts: Amounts) -> Bound | None:
        """The first line that a window breaks, which is counted already."""
        for (_, limits, share, fund), more in self._parts(tenant, amounts):
            for _, limit, name in limits:
                held = self._limited[fund, name]
                if more and held > limit:
                    return Bound(Code.NEVER_WITHIN_QUOTA, name, fund.family, fund.scope, held, limit)
            beyond = self._beyond(share) if share is not None else 0
            if share is not None and more and beyond > 0:
                most = inside_at_most(share)
                return Bound(Code.NEVER_INSIDE, share.name, fund.family, fund.scope, most + beyond, most)
        return None

    def _parts(self, tenant: str, amounts: Amounts) -> Iterator[tuple[Check, int]]:
        """What a tenant has to look at, and how much more that is about: over all sites at once."""
        checks: dict[Fund, Check] = {}
        wanted: Counter[Fund] = Counter()
        for site, kinds in amounts.items():
            for check in self._quotas.checks(tenant, site):
                checks[check.fund] = check
                wanted[check.fund] += kinds[check.kind]
        return ((check, wanted[fund]) for fund, check in checks.items())

    def _beyond(self, share: Share) -> int:
        """How much of what is booked in a share is inside no guarantee on the way up."""
        return min(self._load(each) - each.own_claim for each in _way_up(share))

    def _load(self, share: Share) -> int:
        """What is booked in a share beyond what its children's guarantees cover."""
        below = sum(
            self._used[child] - max(0, self._load(child) - child.own_claim)
            for child in share.children
            if self._used[child]
        )
        return self._used[share] - below


def find_quota_fault(world: World, booking: Booking, window: Window) -> Reason | None:
    """What the quota has against a window that has its nodes."""
    if not world.quotas.funds():
        return None
    mine = _amounts_of(world, booking, window, window.slots)
    sums = _Sums(world)
    sums.count(booking.tenant, mine, 1)
    bound = sums.find_bound(booking.tenant, mine)
    for tenant, amounts, sign in () if bound else _beside(world, booking, window):
        sums.count(tenant, amounts, sign)
        bound = sums.find_bound(booking.tenant, mine) if sign > 0 else None
        if bound is not None:
            break
    return None if bound is None else quota_reason(bound.code, bound)


def overlap(one: Window, other: Window) -> bool:
    """Whether two windows have a moment in common."""
    return one.opens_at < other.closes_at and other.opens_at < one.closes_at


def _beside(world: World, booking: Booking, window: Window) -> Iterator[tuple[str, Amounts, int]]:
    """What others hold that are booked meanwhile: as each comes (1) and goes (-1), in the order of time; who goes at
    the moment at which another comes is gone by then."""
    turns: list[tuple[int, int, str, Amounts]] = []
    for other, each in windows_of(world.bookings.values()):
        if other.name != booking.name and overlap(each, window):
            amounts = _amounts_of(world, other, each, window.slots)
            turns += [(each.opens_at, 1, other.tenant, amounts), (each.closes_at, -1, other.tenant, amounts)]
    for _, sign, tenant, amounts in sorted(turns, key=lambda turn: turn[:2]):
        yield tenant, amounts, sign


def _amounts_of(world: World, booking: Booking, window: Window, like: Sequence[int]) -> Amounts:
    """What the nodes of a window count as; those that it lacks will be as large as the largest that it has, or of some
    others."""
    found: Amounts = {}
    fleet, slots = world.fleet, list(window.slots)
    largest = max(slots or like, key=lambda slot: (fleet.capacities[slot].gpus, -slot))
    for slot in [*slots, *[largest] * (booking.nodes - len(slots))]:
        has, site = fleet.capacities[slot], world.site_of(slot)
        kinds = found.setdefault(site, [0, 0, 0])
        for kind, amount in enumerate(site.amounts(Resources(has.gpus) if has.gpus else has)):
            kinds[kind] += amount
    return found


def _way_up(share: Share | None) -> Iterator[Share]:
    while share is not None:
        yield share
        share = share.parent
