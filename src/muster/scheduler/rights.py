"""rights: what each claimant may take, as words that compiled code reads; and what that comes to at most.

The table is `muster.policy.taking`; here it is asked once for each kin and kind of victim. Everything is of one look:
who borrows is found anew after each plan of it. Nothing here knows which line is next.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, cast

from muster.model.job import Job
from muster.model.phase import ACTIVE, Why
from muster.model.spec import Needs
from muster.model.tier import Tier
from muster.policy.taking import Kin, Party, Strength, find_right, strength
from muster.scheduler.fit import query_of
from muster.scheduler.kinship import ANYBODY, kinship_of
from muster.scheduler.reach import (
    IF_BORROWING,
    IF_INSIDE,
    IF_OWED,
    KINS,
    STOCK,
    TAKE,
    add_gangs,
    add_tasks,
    count_reach,
    pick_tasks,
    sum_herd,
    sum_tenants,
    sum_tops,
    take_stock,
)
from muster.scheduler.stage import Stage
from muster.scheduler.victims import Candidate
from muster.units import MINUTE_MS, Resources
from muster.world.compiled import Words, blank_words, column_of, words_of
from muster.world.loans import Loans, clear_loans, factors_of
from muster.world.queue import Shape
from muster.world.quota import Fund, Standing
from muster.world.runs import MILLI, Kind, amounts_of
from muster.world.sites import Site
from muster.world.usage import amount_of
from muster.world.world import World

FEW: Final = 8
"""So many lines of a shape are as quick to judge one by one."""
RESTART_MS: Final = MINUTE_MS
"""What a run loses by being stopped, besides what it did since it was last saved."""
_CASES: Final = ((Standing.INSIDE, False, IF_INSIDE), (Standing.BORROWING, False, IF_BORROWING),
                 (Standing.BORROWING, True, IF_OWED))  # fmt: skip
_STRONGEST: Final = Party(Standing.INSIDE, -1, emergency=True)
"""Who may take from everybody: no rank is below 0."""
CODES_MAX: Final = 1024
"""How many answers of the table are kept at most."""
Key: TypeAlias = tuple[Party, str, int, bool]
Amount: TypeAlias = tuple[str, Site, Resources]
"""What a tenant has on a site."""


class Herd(NamedTuple):
    """The tasks of an array on a site: of which funds those borrow that do, and what compiled code has to know of them,
    by age."""

    job: Job
    site: int
    funds: int
    columns: tuple[Words, Any, Any, Words, Words]


class Right:
    """What one claimant may take: its words, and what could come free by it, node by node. If nobody was `found`,
    there is nothing to be read."""

    __slots__ = ("claimant", "found", "owed", "sums", "tenant", "words")

    def __init__(self, claimant: Party, tenant: str, owed: int, words: Words, sums: Words) -> None:
        self.claimant = claimant
        self.tenant = tenant
        self.owed = owed
        self.words = words
        self.sums = sums
        self.found = 0


class Rights:
    """All rights of one look, each made when it is first asked for. `funds` says what those borrow of who were named as
    candidates. Whether it `has_any`: if all are alike and nobody is guaranteed anything, nobody has a right to anybody.
    Then no rows are read; and there is room only where somebody leaves, ever less of it with each plan, so whatever did
    not fit once is `full` until the end of the look."""

    def __init__(self, world: World, stage: Stage, now: int) -> None:
        self._world = world
        self._stage = stage
        self._now = now
        self._runs = world.know_runs()
        self._has_owners = world.quotas.has_owners()
        self.has_any = world.varied > 0 or self._has_owners
        self.rows = self._runs.rows() if self.has_any else blank_words(0)
        self.used = self._runs.used if self.has_any else 0
        self.funds: dict[tuple[int, int], int] = {}
        self._sites = words_of(world.sites.numbers())
        self._loans: Loans | None = None
        self._herds: list[Herd] = []
        self._made: dict[Key, Right] = {}
        self._untaken: dict[tuple[Shape, int], bool] = {}
        self._full: dict[Shape, None] = {}
        self._stock: tuple[Words, Words] | None = None
        self._nothing = self._new_sums()
        self._ranks: tuple[tuple[int, bool], ...] = ()
        self._about_any: dict[Party, bool] = {}
        self._totals: dict[str, tuple[list[str], Words]] = {}
        self._amounts: dict[tuple[Right, bool], list[Amount]] = {}
        if self.has_any and not self._has_owners:
            clear_loans(self.rows, self.used)  # there may have been some when somebody last looked

    def forget(self) -> None:
        """Somebody was taken, or seated: who borrows is another question now."""
        self._loans = self._stock = None
        self._made, self._totals, self._amounts = {}, {}, {}
        self.funds, self._untaken, self._about_any = {}, {}, {}

    def note_full(self, shape: Shape) -> None:
        """A shape did not fit anywhere, and nobody was taken for it: nor will it, if nobody may be."""
        if not self.has_any and not self._world.fleet.overlays.by_name:
            self._full[shape] = None

    def is_full(self, shape: Shape) -> bool:
        """Whether it is known that a shape does not fit in this look any more."""
        return shape in self._full

    def find(self, claimant: Party, tenant: str, owed: Sequence[Fund]) -> Right:
        """The right of a claimant of a tenant that is owed something of some funds."""
        return self._find(claimant, tenant, owed, is_any=False)

    def find_any(self, claimant: Party, top: str, owed: Sequence[Fund]) -> Right:
        """All that any tenant below a child of the root may have a right to; of the borrowers of all, if it is not
        said which child."""
        return self._find(claimant, top, owed, is_any=True)

    def may_take_any(self, claimant: Party) -> bool:
        """Whether there may be anybody whom a claimant has a right to take, of whatever tenant it is."""
        found = self._about_any.get(claimant)
        if found is None:
            found = self._about_any[claimant] = self.has_any and self._is_about_any(self._codes_of(claimant))
        return found

    def may_reach(self, shape: Shape) -> bool:
        """Whether some line of a shape might fit if all went whom anybody has a right to: more than that comes free for
        nobody. If that is nobody, it is seen when its turn comes."""
        if not self.has_any:
            return self._stage.has_leavers()
        return len(shape.lines) <= FEW or self.reaches(
            self._find(_STRONGEST, ANYBODY, [], is_any=True), shape, shape.gang
        )

    def reaches(self, right: Right, shape: Shape, most: int) -> bool:
        """Whether so many tasks of a shape would have room if all went whom the right is about. If that is nobody, the
        answer is the same for all who ask."""
        if right.found:
            return self.reach_of(right, shape.ask, shape.needs, most) >= most
        if not self._stage.has_leavers():
            return False
        known = self._untaken.get((shape, most))
        if known is None:
            known = self._untaken[shape, most] = self.reach_of(right, shape.ask, shape.needs, most) >= most
        return known

    def reach_of(self, right: Right, ask: Resources, needs: Needs, most: int) -> int:
        """How many tasks, up to `most`, would have room then at best."""
        fleet = self._world.fleet
        words = fleet.words
        return count_reach(words, query_of(fleet, ask, 1, needs), right.sums, most)

    def takable(self, fund: Fund, top: str, claimant: Party) -> int:
        """How much of a fund is held below a child of the root by those whom somebody there may take, at most."""
        key = f"{fund.family}/{fund.scope}"
        if key not in self._totals:
            self._totals[key] = self._sum_tops(fund)
        tops, totals = self._totals[key]
        if top not in tops:
            return 0
        kinds, codes = len(self._runs.kinds), self._codes_of(claimant)
        begin = tops.index(top) * kinds
        words = [codes[kind] | codes[kinds + kind] | codes[2 * kinds + kind] for kind in range(kinds)]
        return sum(int(totals[begin + kind]) for kind in range(kinds) if words[kind])

    def amounts(self, right: Right, *, are_whole: bool = False) -> list[Amount]:
        """What each tenant has on each site of what may be taken by a right; as if arrays could be taken whole, if they
        `are_whole`."""
        known = self._amounts.get((right, are_whole))
        if known is None:
            known = self._amounts[right, are_whole] = list(self._sum_amounts(right, are_whole))
        return known

    def find_tasks(self, right: Right, wanted: Words) -> Iterator[tuple[Job, int, int, int, int]]:
        """The tasks of arrays that may be taken and sit on nodes that are wanted: job, task, slot, devices, cost."""
        for herd in self._find_herds():
            job, tasks, funds = herd.job, self._world.arrays[herd.job.id], herd.funds
            picked = words_of(array("q", bytes(16 * max(1, len(herd.columns[0])))))
            for index in range(pick_tasks(*herd.columns, right.words, wanted, picked)):
                task, borrows = int(picked[2 * index]), int(picked[2 * index + 1])
                self.funds[job.id, task] = funds if borrows else 0
                unsaved_ms = self._now - max(tasks.since[task], tasks.saved_at[task])
                cost = amount_of(job.spec.ask, 1) * (unsaved_ms + RESTART_MS)
                yield job, task, tasks.slot[task], tasks.devices[task], cost

    def since(self, each: Candidate) -> int:
        """When somebody got its place."""
        job = self._world.jobs[each.job]
        if isinstance(job.phase, ACTIVE):
            return job.phase.run.since
        return self._world.arrays[job.id].since[each.first]

    def why(self, right: Right, each: Candidate) -> tuple[Party, Why]:
        """A candidate as it stands, and by which right it is taken."""
        world, spec, funds = self._world, each.seat.spec, self.funds[each.job, each.first]
        party = party_of(world, (spec.tier, spec.priority), Standing.BORROWING if funds else Standing.INSIDE)
        kin = kin_of(right.tenant, world.ledger.chain(spec.tenant))
        why = find_right(right.claimant, party, kin, owed=bool(funds & right.owed))
        return party, Why.PREEMPT if why is None else why

    # -- the pieces ----------------------------------------------------------------------------------------------

    def _find(self, claimant: Party, tenant: str, owed: Sequence[Fund], *, is_any: bool) -> Right:
        mask = self._know_loans().mask_of(owed) if owed and self._has_owners else 0
        key = (claimant, tenant, mask, is_any)
        known = self._made.get(key)
        if known is None:
            known = self._made[key] = self._make(*key)
        return known

    def _make(self, claimant: Party, tenant: str, owed: int, is_any: bool) -> Right:
        if not self.may_take_any(claimant):
            return Right(claimant, tenant, owed, self._nothing, self._nothing)
        herds, kinds = self._find_herds(), len(self._runs.kinds)  # they may bring new ones
        words, codes = array("q", (self._now, RESTART_MS, owed, kinds)), self._codes_of(claimant)
        if is_any:
            codes = array("q", codes)
            for kind in range(kinds):
                codes[kind] |= codes[kinds + kind] | codes[2 * kinds + kind]
        words.extend(codes)
        words.extend(kinship_of(self._world).find(tenant, is_any))
        sums = self._new_sums()
        right = Right(claimant, tenant, owed, words_of(words), sums)
        right.found = add_gangs(*self._find_stock(right), right.words, sums)
        for herd in herds:
            tasks = self._world.arrays[herd.job.id]
            since = (words_of(tasks.since), words_of(tasks.saved_at))
            right.found += add_tasks(*herd.columns, *since, right.words, sums)
        return right

    def _sum_amounts(self, right: Right, are_whole: bool) -> Iterator[Amount]:
        world, runs = self._world, self._runs
        sites = world.sites.all
        totals = array("q", bytes(8 * 3 * max(1, len(sites) * len(runs.tenants))))
        words = words_of(totals)
        sum_tenants(self.rows, self.used, right.words, len(sites), words)
        for herd in self._find_herds():
            sum_herd(*herd.columns, right.words, are_whole, len(sites), words)
        for place in range(0, len(totals), 3):
            if any(totals[place : place + 3]):
                tenant, site = divmod(place // 3, len(sites))
                milli, cpu, memory = totals[place : place + 3]
                yield str(runs.tenants.names[tenant]), sites[site], Resources(0, cpu, memory, milli)

    def _is_about_any(self, codes: array[int]) -> bool:
        """Whether there may be anybody, of whatever kin and kind, whom codes are about: of those who borrow only if
        some do."""
        if any(code & IF_INSIDE for code in codes):
            return True
        return any(codes) and self._has_owners and bool(self._know_loans().funds)

    def _find_stock(self, right: Right) -> tuple[Words, Words]:
        """What gangs have, sorted so that a right has to look only at those whom it is about; the same for all."""
        if self._stock is None:
            stock = blank_words(STOCK * max(1, self.used))
            ends = blank_words(2 * len(self._runs.tenants) * len(self._runs.kinds))
            take_stock(self.rows, self.used, right.words, ends, stock)
            self._stock = stock, ends
        return self._stock

    def _new_sums(self) -> Words:
        return blank_words(TAKE * max(1, len(self._world.fleet)))

    def _know_loans(self) -> Loans:
        """Who borrows what on the stage as it is."""
        if self._loans is None:
            world = self._world
            (spread, groups), homes = self._stage.spread(), kinship_of(world).homes
            self._loans = Loans(world.quotas, world.ledger, self._runs, world.sites.all, spread, groups, homes)
            self._herds = [self._herd(world.jobs[number], *where) for number, *where in self._loans.herds()]
        return self._loans

    def _find_herds(self) -> list[Herd]:
        """The tasks of arrays that stay, by site."""
        if self._has_owners:
            self._know_loans()
            return self._herds
        jobs = [self._world.jobs[number] for number in sorted(self._runs.arrays)]
        return [self._herd(job, NO_SITE, 0, 0) for job in jobs]

    def _herd(self, job: Job, site: int, borrowed: int, funds: int) -> Herd:
        """The tasks of an array that stay, of which so many borrow."""
        spec, tasks, runs = job.spec, self._world.arrays[job.id], self._runs
        tenant, kind = runs.tenants.number(spec.tenant), runs.kinds.number((spec.tier, spec.priority))
        amounts = (*amounts_of(spec.ask, 1), amount_of(spec.ask, 1), int(spec.evictable))
        words = words_of(array("q", (site, borrowed, funds, tenant, kind, *amounts)))
        columns = (self._stage.staying(job.id), column_of(tasks.phase), column_of(tasks.slot), self._sites, words)
        return Herd(job, site, funds, columns)

    def _sum_tops(self, fund: Fund) -> tuple[list[str], Words]:
        """What those hold of a fund who may be evicted, by child of the root and kind."""
        world, runs = self._world, self._runs
        herds, kinds = self._find_herds(), len(runs.kinds)
        top_of = [world.ledger.chain(str(name))[-2:][0] for name in runs.tenants.names]
        tops = list(dict.fromkeys(top_of))
        numbers = words_of(array("q", [tops.index(top) for top in top_of] or [0]))
        totals = array("q", bytes(8 * max(1, len(tops) * kinds)))
        factors = factors_of(fund, world.sites.all)
        sum_tops(self.rows, self.used, numbers, kinds, words_of(factors), MILLI + fund.kind, words_of(totals))
        for job, site, *_ in herds:
            spec, tasks = job.spec, world.arrays[job.id].holding
            amount = world.sites.all[site].amounts(spec.ask, tasks)[fund.kind]
            top = tops.index(world.ledger.chain(spec.tenant)[-2:][0])
            totals[top * kinds + runs.kinds.number((spec.tier, spec.priority))] += amount
        return tops, words_of(totals)

    def _codes_of(self, claimant: Party) -> array[int]:
        """A word for each kin and kind; they are the same for as long as tiers and kinds are."""
        key = (claimant, self._tiers())
        known = self._runs.codes.get(key)
        if known is None:
            kinds = self._runs.kinds.names
            known = array("q", bytes(8 * KINS * len(kinds)))
            for kin in Kin:
                for number, kind in enumerate(kinds):
                    known[kin * len(kinds) + number] = self._code(claimant, kin, cast("Kind", kind))
            if len(self._runs.codes) >= CODES_MAX:
                self._runs.codes.clear()
            self._runs.codes[key] = known
        return known

    def _tiers(self) -> tuple[tuple[int, bool], ...]:
        """What the tiers of all kinds are now."""
        names = self._runs.kinds.names
        if len(self._ranks) != len(names):
            tiers = [self._world.tiers[cast("Kind", name)[0]] for name in names]
            self._ranks = tuple((tier.rank, tier.emergency) for tier in tiers)
        return self._ranks

    def _code(self, claimant: Party, kin: Kin, kind: Kind) -> int:
        word = 0
        for standing, owed, bit in _CASES:
            if find_right(claimant, party_of(self._world, kind, standing), kin, owed=owed) is not None:
                word |= bit
        return word


NO_SITE: Final = -1


def party_of(world: World, kind: Kind, standing: Standing) -> Party:
    """A kind as the table sees it."""
    name, priority = kind
    tier: Tier = world.tiers[name]
    return Party(standing, tier.rank, name, priority, tier.emergency)


def strength_of(world: World, job: Job, *, borrows: bool) -> Strength:
    """How strong a job is, if it borrows or if it does not."""
    standing = Standing.BORROWING if borrows else Standing.INSIDE
    return strength(party_of(world, (job.spec.tier, job.spec.priority), standing))


def kin_of(tenant: str, chain: Sequence[str]) -> Kin:
    """What a tenant, of which these are itself and all above it, is to another one."""
    if chain[0] == tenant:
        return Kin.SAME
    return Kin.BELOW if tenant in chain else Kin.OTHER
