"""heads: whose turn it is to look for somebody to take. Lines that surely find nobody are passed over as cheaply as can
be: many at once, by what all of them could have at most.

All lines of a shape, tier and priority that would borrow may take the same: if their shape does not fit even with all
of that gone, none of them is looked at. For a place inside a guarantee, all tenants below one child of the root share
what is left of their guarantees, and what could be taken among them: if that is less than one gang, none of them is.
Which lines might is decided before anybody takes anything; but a look ends after some claims, so lines are sorted when
their tenant is met, and not before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from muster.model.tenant import ROOT
from muster.policy.taking import Party
from muster.scheduler.taking.rights import Rights, party_of
from muster.world.line import Line
from muster.world.loans import find_owed
from muster.world.queue import Shape
from muster.world.quota import Fund, Room, Share, Standing, load
from muster.world.runs import Kind
from muster.world.world import World

FEW: Final = 4
"""So few lines of a band are tried one by one: to ask first whether they might costs as much as to try them."""
Rung: TypeAlias = tuple[bool, int, str]
"""What goes before the walk: whether it is owed nothing, rank and name of its tier."""
Lines: TypeAlias = Mapping[str, Line]
"""Lines of one shape, by tenant."""


class Heads:
    """The lines of one look."""

    def __init__(self, world: World, rights: Rights, now: int) -> None:
        self._world = world
        self._rights = rights
        self._now = now
        self._has_owners = world.quotas.has_owners()
        self._borrowing: dict[tuple[Shape, Kind], bool] = {}
        self._inside: dict[tuple[Shape, str, Kind], bool] = {}
        self._funds = [fund for fund in world.quotas.funds().values() if fund.root.children]
        self._tops: dict[str, str] = {}
        self._rooms: dict[tuple[str, str, str], int] = {}

    def in_order(self) -> Iterator[Line]:
        """The lines that might take something, as the walk would meet them: whoever is owed first, then by tier, by
        tenant, and in the leaf. Those of a shape that turned out not to fit meanwhile are passed over."""
        walk, tiers, is_full = self._world.walk, self._world.tiers, self._rights.is_full
        for (_, _, tier), parts in sorted(self._find_rungs().items()):
            since = self._now - tiers[tier].longest_wait_ms
            for tenant in walk.in_order({name: None for lines in parts for name in lines}, self._now):
                here = [lines[tenant] for lines in parts if tenant in lines]
                for _, line in sorted([(line.first(since), line) for line in here if not is_full(line.shape)]):
                    if not is_full(line.shape):
                        yield line

    def owed_funds(self, line: Line, rooms: Sequence[Sequence[Room]]) -> list[Fund] | None:
        """The funds of which one more gang of a line would be covered, on whatever site, if so much is left for its
        tenant on each; None if on none."""
        world, shape, found = self._world, line.shape, False
        if not self._has_owners:
            return []
        funds: list[Fund] = []
        for site in world.sites.inhabited(shape.ask):
            owed = find_owed(rooms[site.number], site, shape.ask, shape.gang)
            if owed is not None:
                found = True
                funds += [fund for fund in owed if fund not in funds]
        return funds if found else None

    def may_look(self, line: Line) -> bool:
        """Whether the head of a line might take something."""
        priority = line.head_priority()
        return self._may_take(line.shape) and self._might(line, (line.band[2], priority))

    def _may_take(self, shape: Shape) -> bool:
        """Those who mind others take nothing: they may be gone or come before a claim is served. Nor do those who wait
        for their window."""
        needs = shape.needs
        return not (needs.has_company or needs.booking in self._world.bookings)

    def _find_rungs(self) -> dict[Rung, list[Lines]]:
        """The lines that might, shape by shape: none of one that would not fit even with all gone who may be taken by
        anybody."""
        rungs: dict[Rung, list[Lines]] = {}
        for shape in self._world.queue.shapes.values():
            if self._may_take(shape) and self._rights.may_reach(shape):
                for (_, rank, tier), band in shape.bands.items():
                    for is_unowed, lines in self._find_lines(tier, band.lines):
                        rungs.setdefault((is_unowed, rank, tier), []).append(lines)
        return rungs

    def _find_lines(self, tier: str, lines: Lines) -> list[tuple[bool, Lines]]:
        """Those of a band that might, and whether they are owed nothing: all, if nobody may take anybody's place."""
        if not self._rights.has_any:
            return [(False, lines)]
        found = (dict[str, Line](), dict[str, Line]())
        for tenant, line in lines.items() if len(lines) <= FEW else self._who_might(tier, lines):
            is_unowed = self._has_owners and self.owed_funds(line, self._rights.rooms(tenant)) is None
            found[is_unowed][tenant] = line
        return [(bool(number), those) for number, those in enumerate(found) if those]

    def _who_might(self, tier: str, lines: Lines) -> Iterator[tuple[str, Line]]:
        """Those of many lines that might: there may be many thousands, of a few kinds."""
        known, minding, tops = dict[tuple[str, int], bool](), dict[int, bool](), self._tops
        for tenant, line in lines.items():
            priority = line.head_priority()
            minds = minding.get(priority)
            if minds is None:
                minds = minding[priority] = self._minds_tenants((tier, priority))
            top = (tops.get(tenant) or self._top_of(tenant)) if minds else ROOT
            might = known.get((top, priority))
            if might is None:
                might = known[top, priority] = self._might(line, (tier, priority))
            if might:
                yield tenant, line

    def _minds_tenants(self, kind: Kind) -> bool:
        """Whether it matters of which tenant a claimant of some kind is: not if it could take nobody, whoever it is."""
        return self._has_owners or self._rights.may_take_any(self._party(kind, Standing.INSIDE))

    def _might(self, line: Line, kind: Kind) -> bool:
        shape, top = line.shape, self._top_of(line.tenant)
        inside = self._inside.get((shape, top, kind))
        if inside is None:
            inside = self._inside[shape, top, kind] = self._might_inside(shape, top, kind)
        return inside or (self._has_owners and shape.evictable and self._might_borrow(shape, kind))

    def _might_borrow(self, shape: Shape, kind: Kind) -> bool:
        found = self._borrowing.get((shape, kind))
        if found is None:
            right = self._rights.find_any(self._party(kind, Standing.BORROWING), "", [])
            found = self._borrowing[shape, kind] = self._rights.reaches(right, shape, shape.gang)
        return found

    def _might_inside(self, shape: Shape, top: str, kind: Kind) -> bool:
        funds: list[Fund] | None = self._find_covered(shape, top, kind) if self._has_owners else []
        if funds is None:
            return False
        right = self._rights.find_any(self._party(kind, Standing.INSIDE), top, funds)
        return self._rights.reaches(right, shape, shape.gang)

    def _find_covered(self, shape: Shape, top: str, kind: Kind) -> list[Fund] | None:
        """The funds of which somebody below a child of the root might be owed a gang, with all gone whom it might take
        among its own; None if it would be covered on no site."""
        party, found = self._party(kind, Standing.INSIDE), False
        owed: list[Fund] = []
        for site in self._world.sites.inhabited(shape.ask):
            amounts = site.amounts(shape.ask, shape.gang)
            funds = [fund for fund in self._funds if fund.has_site(site) and amounts[fund.kind]]
            if all(self._covers(fund, top, amounts[fund.kind], party) for fund in funds):
                owed += [fund for fund in funds if fund not in owed]
                found = True
        return owed if found else None

    def _covers(self, fund: Fund, top: str, amount: int, party: Party) -> bool:
        missing = amount - self._room_in(fund, top)
        return missing <= 0 or missing <= self._rights.takable(fund, top, party)

    def _room_in(self, fund: Fund, top: str) -> int:
        key = (fund.family, fund.scope, top)
        room = self._rooms.get(key)
        if room is None:
            share = fund.shares.get(top)
            room = self._rooms[key] = 0 if share is None or top == ROOT else room_in(share)
        return room

    def _party(self, kind: Kind, standing: Standing) -> Party:
        return party_of(self._world, kind, standing)

    def _top_of(self, tenant: str) -> str:
        found = self._tops.get(tenant)
        if found is None:
            found = self._tops[tenant] = self._world.ledger.chain(tenant)[-2] if tenant != ROOT else ROOT
        return found


def room_in(share: Share) -> int:
    """What is left of all guarantees in a share and below it."""
    return max(0, share.own - load(share)) + sum(room_in(child) for child in share.children)
