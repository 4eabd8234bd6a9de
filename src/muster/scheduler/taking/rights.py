"""rights: what each claimant may take, as words that compiled code reads; and what that comes to at most.

The table is `muster.policy.taking`; here it is asked once for each kin and kind of victim. Everything is of one look:
who borrows is found anew after each plan of it. Nothing here knows which line is next.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, cast

from muster.model.job import Job
from muster.model.phase import ACTIVE, Why
from muster.model.spec import Needs
from muster.model.tier import Tier
from muster.policy.taking import Kin, Party, Strength, find_right, strength
from muster.scheduler.placing.fit import query_of
from muster.scheduler.stage import Stage
from muster.scheduler.taking.kinship import ANYBODY, kinship_of
from muster.scheduler.taking.reach import (
    CODES,
    IF_BORROWING,
    IF_INSIDE,
    IF_OWED,
    KINDS,
    KINS,
    add_gangs,
    add_tasks,
    count_reach,
    count_untaken,
    has_gangs,
    pick_gangs,
    pick_tasks,
    sheet_size,
    sum_herd,
    sum_tenants,
    sum_tops,
    wipe,
)
from muster.scheduler.taking.victims import Candidate
from muster.units import MINUTE_MS, Resources
from muster.world.compiled import Words, blank_words, column_of, find_filled, words_of
from muster.world.loans import Loans, clear_loans, factors_of, no_edges
from muster.world.queue import Shape
from muster.world.quota import Fund, Room, Standing
from muster.world.runs import MILLI, Kind, amounts_of
from muster.world.sites import Site
from muster.world.usage import amount_of
from muster.world.world import World

FEW: Final = 256
"""So many lines of a shape are as quick to judge one by one."""
RESTART_MS: Final = MINUTE_MS
"""What a run loses by being stopped, besides what it did since it was last saved."""
_CASES: Final = ((Standing.INSIDE, False, IF_INSIDE), (Standing.BORROWING, False, IF_BORROWING),
                 (Standing.BORROWING, True, IF_OWED))  # fmt: skip
_STRONGEST: Final = Party(Standing.INSIDE, -1, emergency=True)
"""Who may take from everybody: no rank is below 0."""
SHEETS_MAX: Final = 16
"""How many sheets are kept for the next look at most: each is as large as the fleet."""
CODES_MAX: Final = 1024
"""How many answers of the table are kept at most."""
_NO_WORDS: Final = blank_words(0)
Key: TypeAlias = tuple[Party, str, int, bool]
Amount: TypeAlias = tuple[str, Site, Resources]
"""What a tenant has on a site."""
Rooms: TypeAlias = Sequence[Sequence[Room]]
"""What is left for a tenant, fund by fund, on each site by its number."""


class Herd(NamedTuple):
    """The tasks of an array on a site: of which funds those borrow that do, whose and of which kind they are by number,
    and what compiled code has to know of them, by age; and from when on their work would be lost."""

    job: Job
    site: int
    funds: int
    tenant: int
    kind: int
    columns: tuple[Words, Any, Any, Words, Words]
    times: tuple[Words, Words]


class Right:
    """What one claimant may take: its words, and a sheet with what could come free by it, node by node, once somebody
    has asked for it. If nobody was `found`, there is nothing to be read."""

    __slots__ = ("claimant", "found", "owed", "sheet", "tenant", "words")

    def __init__(self, claimant: Party, tenant: str, owed: int) -> None:
        self.claimant = claimant
        self.tenant = tenant
        self.owed = owed
        self.words = _NO_WORDS
        self.sheet: Words | None = None
        self.found = False


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
        self._ends = words_of(self._runs.ends) if self._runs.ends else blank_words(0)
        self._no_edges = no_edges(self._runs)
        self.funds: dict[tuple[int, int], int] = {}
        self._sites = words_of(world.sites.numbers())
        self._loans: Loans | None = None
        self._herds: list[Herd] | None = None
        self._flocks: dict[tuple[int, int], list[Herd]] = {}
        self._made: dict[Key, Right] = {}
        self._untaken: dict[tuple[Resources, Needs, int], int] = {}
        self._full: dict[Shape, None] = {}
        self._ranks: tuple[tuple[int, bool], ...] = ()
        self._about_any: dict[Party, bool] = {}
        self._totals: dict[Fund, tuple[list[str], Words]] = {}
        self._takable: dict[tuple[Fund, str, Party], int] = {}
        self._rooms: dict[str, Rooms] = {}
        self._beside: dict[tuple[Right, bool], Rooms] = {}
        if self.has_any and not self._has_owners:
            clear_loans(self._runs)  # there may have been some when somebody last looked

    def forget(self) -> None:
        """Somebody was taken, or seated: who borrows is another question now."""
        self._keep_sheets()
        self._loans = self._herds = None
        self._made, self._totals, self._takable, self._rooms, self._beside = {}, {}, {}, {}, {}
        self.funds, self._untaken, self._about_any = {}, {}, {}

    def close(self) -> None:
        """The look is over: others may have its sheets."""
        self._keep_sheets()
        self._made = {}

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
        """Whether so many tasks of a shape would have room if all went whom the right is about, or those of each of its
        groups. If that is nobody, the answer is the same for all who ask."""
        if not (right.found or self._stage.has_leavers()):
            return False
        asked = [(group.ask, group.tasks) for group in shape.needs.groups] or [(shape.ask, most)]
        return all(self.reach_of(right, ask, shape.needs, tasks) >= tasks for ask, tasks in asked)

    def reach_of(self, right: Right, ask: Resources, needs: Needs, most: int) -> int:
        """How many tasks, up to `most`, would have room then at best."""
        fleet, key = self._world.fleet, (ask, needs, most)
        words, untaken = fleet.words, self._untaken.get(key)
        query = query_of(fleet, ask, 1, needs)
        if untaken is None:
            untaken = self._untaken[key] = count_untaken(words, query, most)
        if not right.found or untaken >= most:
            return untaken
        return count_reach(words, query, self.sheet_of(right), untaken, most)

    def sheet_of(self, right: Right) -> Words:
        """What could come free by a right, node by node."""
        if right.sheet is None:
            sheet = right.sheet = self._find_sheet()
            add_gangs(self.rows, self._ends, self._find_edges(), right.words, sheet)
            for herd in self._herds_of(right):
                add_tasks(*herd.columns, *herd.times, right.words, sheet)
        return right.sheet

    def takable(self, fund: Fund, top: str, claimant: Party) -> int:
        """How much of a fund is held below a child of the root by those whom somebody there may take, at most."""
        found = self._takable.get((fund, top, claimant))
        if found is None:
            found = self._takable[fund, top, claimant] = self._sum_takable(fund, top, claimant)
        return found

    def rooms(self, tenant: str) -> Rooms:
        """What is left for a tenant on each site, by its number."""
        found = self._rooms.get(tenant)
        if found is None:
            quotas, sites = self._world.quotas, self._world.sites.all
            found = self._rooms[tenant] = [quotas.rooms(tenant, site) for site in sites]
        return found

    def rooms_beside(self, right: Right, *, are_whole: bool = False) -> Rooms:
        """What would be left for the tenant of a right if all went whom it is about; and all of arrays, if they
        `are_whole`."""
        if not right.found:
            return self.rooms(right.tenant)
        found = self._beside.get((right, are_whole))
        if found is None:
            ledger, quotas, sites = self._world.ledger, self._world.quotas, self._world.sites.all
            amounts = list(self._amounts(self._sum_up(right, are_whole=are_whole)))
            for name, site, amount in amounts:
                ledger.charge(name, site, amount, -1)
            found = self._beside[right, are_whole] = [quotas.rooms(right.tenant, site) for site in sites]
            for name, site, amount in amounts:
                ledger.charge(name, site, amount, 1)
        return found

    def pick_gangs(self, right: Right, wanted: Words) -> list[int]:
        """Where the rows begin of gangs that may be taken and have a place on a node that is wanted, the oldest
        first."""
        picked = blank_words(max(1, self.used))
        count = pick_gangs(self.rows, self._ends, self._find_edges(), right.words, wanted, picked)
        return sorted(picked[:count].tolist())

    def find_tasks(self, right: Right, wanted: Words) -> Iterator[tuple[Job, int, int, int, int]]:
        """The tasks of arrays that may be taken and sit on nodes that are wanted: job, task, slot, devices, cost."""
        for herd in self._herds_of(right):
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
        right = Right(claimant, tenant, owed)
        if not self.may_take_any(claimant):
            return right
        self._find_herds()  # which may bring new kinds
        kinds = len(self._runs.kinds)
        words, codes = array("q", (self._now, RESTART_MS, owed, kinds)), self._codes_of(claimant)
        if is_any:
            codes = array("q", codes)
            for kind in range(kinds):
                codes[kind] |= codes[kinds + kind] | codes[2 * kinds + kind]
        words.extend(codes)
        words.extend(kinship_of(self._world).find(tenant, is_any))
        right.words = words_of(words)
        is_of_gangs = has_gangs(self.rows, self._ends, self._find_edges(), right.words)
        right.found = is_of_gangs or self._sum_herds(right, self._herds_of(right), self._blank_totals()) > 0
        return right

    def _sum_up(self, right: Right, *, are_whole: bool) -> Words:
        """What those have who may be taken by a right, by tenant and site: of arrays all, if they `are_whole`."""
        totals = self._blank_totals()
        sum_tenants(self.rows, self._ends, self._find_edges(), right.words, len(self._world.sites.all), totals)
        self._sum_herds(right, self._find_herds() if are_whole else self._herds_of(right), totals, are_whole=are_whole)
        return totals

    def _sum_herds(self, right: Right, herds: Iterable[Herd], totals: Words, *, are_whole: bool = False) -> int:
        """Add what tasks of herds have, and how many these are."""
        sites = len(self._world.sites.all)
        return sum(sum_herd(*herd.columns, right.words, are_whole, sites, totals) for herd in herds)

    def _blank_totals(self) -> Words:
        return blank_words(3 * max(1, len(self._world.sites.all) * len(self._runs.tenants)))

    def _amounts(self, totals: Words) -> Iterator[Amount]:
        """What each tenant has on each site: mostly few have anything."""
        sites, names = self._world.sites.all, self._runs.tenants.names
        for place in dict.fromkeys(word // 3 for word in find_filled(totals, 1)):
            milli, cpu, memory = (int(totals[3 * place + kind]) for kind in range(3))
            tenant, site = divmod(place, len(sites))
            yield str(names[tenant]), sites[site], Resources(0, cpu, memory, milli)

    def _is_about_any(self, codes: array[int]) -> bool:
        """Whether there may be anybody, of whatever kin and kind, whom codes are about: of those who borrow only if
        some do."""
        if any(code & IF_INSIDE for code in codes):
            return True
        return any(codes) and self._has_owners and bool(self._know_loans().funds)

    def _find_sheet(self) -> Words:
        """A blank one: of those that others left, if they are of a fleet as large."""
        sheets, size = self._runs.sheets, sheet_size(len(self._world.fleet))
        while sheets:
            sheet = sheets.pop()
            if len(sheet) == size:
                return sheet
        return blank_words(size)

    def _keep_sheets(self) -> None:
        """Nobody asks for these rights any more."""
        for right in self._made.values():
            if right.sheet is not None and len(self._runs.sheets) < SHEETS_MAX:
                wipe(right.sheet)
                self._runs.sheets.append(right.sheet)

    def _know_loans(self) -> Loans:
        """Who borrows what on the stage as it is."""
        if self._loans is None:
            world = self._world
            (spread, groups), homes = self._stage.spread(), kinship_of(world).homes
            self._loans = Loans(world.quotas, world.ledger, self._runs, world.sites.all, spread, groups, homes)
        return self._loans

    def _find_edges(self) -> Words:
        """Where those begin on each shelf who borrow."""
        return self._know_loans().edges if self._has_owners else self._no_edges

    def _find_herds(self) -> list[Herd]:
        """The tasks of arrays that stay, by site."""
        if self._herds is None:
            jobs = self._world.jobs
            if self._has_owners:
                self._herds = [self._herd(jobs[number], *where) for number, *where in self._know_loans().herds()]
            else:
                self._herds = [self._herd(jobs[number], NO_SITE, 0, 0) for number in sorted(self._runs.arrays)]
            self._flocks = {}
            for herd in self._herds:
                self._flocks.setdefault((herd.tenant, herd.kind), []).append(herd)
        return self._herds

    def _herds_of(self, right: Right) -> list[Herd]:
        """Those of which some may be taken by a right: it is the same for all of a tenant and kind."""
        words, kinds = right.words, right.words[KINDS]
        self._find_herds()
        return [
            herd
            for (tenant, kind), herds in self._flocks.items()
            if words[CODES + words[CODES + KINS * kinds + tenant] * kinds + kind]
            for herd in herds
        ]

    def _herd(self, job: Job, site: int, borrowed: int, funds: int) -> Herd:
        """The tasks of an array that stay, of which so many borrow."""
        spec, tasks, runs = job.spec, self._world.arrays[job.id], self._runs
        tenant, kind = runs.tenants.number(spec.tenant), runs.kinds.number((spec.tier, spec.priority))
        amounts = (*amounts_of(spec.ask, 1), amount_of(spec.ask, 1), int(spec.evictable))
        words = words_of(array("q", (site, borrowed, funds, tenant, kind, *amounts)))
        columns = (self._stage.staying(job.id), column_of(tasks.phase), column_of(tasks.slot), self._sites, words)
        return Herd(job, site, funds, tenant, kind, columns, (words_of(tasks.since), words_of(tasks.saved_at)))

    def _sum_takable(self, fund: Fund, top: str, claimant: Party) -> int:
        if fund not in self._totals:
            self._totals[fund] = self._sum_tops(fund)
        tops, totals = self._totals[fund]
        if top not in tops:
            return 0
        kinds, codes = len(self._runs.kinds), self._codes_of(claimant)
        begin = tops.index(top) * kinds
        words = [codes[kind] | codes[kinds + kind] | codes[2 * kinds + kind] for kind in range(kinds)]
        return sum(int(totals[begin + kind]) for kind in range(kinds) if words[kind])

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
        for herd in herds:
            amount = world.sites.all[herd.site].amounts(herd.job.spec.ask, world.arrays[herd.job.id].holding)[fund.kind]
            totals[int(numbers[herd.tenant]) * kinds + herd.kind] += amount
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
