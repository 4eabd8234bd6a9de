"""preemption: whose places are taken for whom. A transaction: all of a plan or nothing of it.

    1  heads    who waits, in order, and might have a right to somebody's place
    2  rights   by the table (`muster.policy.taking`), and by who borrows now (`muster.world.loans`)
    3  victims  on a stage, whoever loses the least work, and only if the claimant then truly fits (`victims`)
    4  claim    the places are the claimant's from now on; the victims are told to stop, and wait again

A claimant is looked at twice: as work inside its guarantee, and if it would not be, as work that borrows and takes only
what is borrowed. Everything is a function of the world and `now`; nothing is remembered of tries that failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from muster.model import fact
from muster.model.errors import InvariantError
from muster.model.job import Job
from muster.model.phase import ACTIVE, Lease, Running, Starting, Why
from muster.model.tier import Tier
from muster.policy.protection import is_protected, may_take
from muster.policy.taking import Kin, Party, find_right, strength
from muster.scheduler.fit import count_room, find_gang
from muster.scheduler.stage import MARGIN_MS, Seat, Stage
from muster.scheduler.victims import Candidate, Choice, Want, choose, put_back
from muster.scheduler.within import NOWHERE, pools_within
from muster.units import MINUTE_MS
from muster.world.loans import Loans, find_owed
from muster.world.queue import Line
from muster.world.quota import Fund, Standing
from muster.world.runs import RunClass, class_of
from muster.world.usage import amount_of
from muster.world.world import World

CLAIMS_MAX: Final = 64
"""How many claims one cycle makes at most."""
VAIN_MAX: Final = 4
"""For how many lines victims are looked for in vain, before the others have to wait for the next cycle."""
RESTART_MS: Final = MINUTE_MS
"""What a run loses by being stopped, besides what it did so far."""


class Plan(NamedTuple):
    """Whose places a job takes, by which right each, and which leases it then has."""

    job: Job
    claimant: Party
    victims: list[tuple[Candidate, Party, Why]]
    leases: list[Lease]
    until: int

    def facts(self) -> Iterator[fact.Fact]:
        """The plan as facts."""
        cause = f"for job {self.job.id} of {self.job.spec.tenant}"
        for candidate, _, why in self.victims:
            yield fact.StopAsked(candidate.job, why, cause=cause)
        columns = ([x.slot for x in self.leases], [x.tasks for x in self.leases], [x.devices for x in self.leases])
        count = len(self.victims)
        waits_for = f"{count} job{'s' if count != 1 else ''} to stop" if count else "what is being given back"
        yield fact.Claimed(self.job.id, *columns, self.until, waits_for, count)


def plan_takings(world: World, now: int) -> list[fact.Fact]:
    """What is taken from whom now, as facts that are not true yet."""
    heads = _Heads(world)
    lines = heads.find_lines()
    if not lines:
        return []
    facts: list[fact.Fact] = []
    with Stage(world, now) as stage:
        taker = _Taker(world, stage, now)
        for plan in taker.plans(lines):
            check_descent(plan)
            facts += plan.facts()
    return facts


def can_anybody_take(world: World) -> bool:
    """Whether it is worth a look, if somebody waits: not all are alike in tier, priority and guarantee."""
    return world.varied > 0 or world.quotas.has_owners()


def check_descent(plan: Plan) -> None:
    """Whoever takes is stronger than whom it takes from: so over one snapshot, no chain of plans comes back to where it
    began."""
    for candidate, victim, _ in plan.victims:
        if strength(plan.claimant) >= strength(victim):
            evidence = f"job {plan.job.id} {plan.claimant} from job {candidate.job} {victim}"
            raise InvariantError("whoever takes is the stronger one", evidence)


class _Heads:
    """Who might have a right to somebody's place, going by tenant, tier and priority alone."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._classes = world.know_runs().classes()
        self._could: dict[RunClass, bool] = {}
        self._victims = [Standing.INSIDE, Standing.BORROWING] if world.quotas.has_owners() else [Standing.INSIDE]

    def find_lines(self) -> list[Line]:
        """The lines whose first job might take something, in no order."""
        shapes = self._world.queue.shapes.values()
        return [line for shape in shapes for line in shape.lines.values() if self._could_take(line)]

    def _could_take(self, line: Line) -> bool:
        if line.shape.needs.has_company:
            return False  # whom it minds may be gone or come before its claim is served
        key = class_of(self._world.jobs[line.head()])
        known = self._could.get(key)
        if known is None:
            known = self._could[key] = any(self._has_right(key, other) for other in self._classes)
        return known

    def _has_right(self, mine: RunClass, other: RunClass) -> bool:
        world = self._world
        claimant, kin = party_of(world, mine, Standing.INSIDE), kin_of(world, mine[0], other[0])
        parties = [party_of(world, other, standing) for standing in self._victims]
        return any(find_right(claimant, victim, kin, owed=True) is not None for victim in parties)


class _Taker:
    """Makes plans on a stage, one after the other; each counts on those before it."""

    def __init__(self, world: World, stage: Stage, now: int) -> None:
        self._world = world
        self._stage = stage
        self._now = now
        self._loans: Loans | None = None
        self._tables: dict[tuple[Party, RunClass, Kin], _Rights] = {}

    def plans(self, lines: list[Line]) -> Iterator[Plan]:
        """The plans of one cycle, in the order of those who wait."""
        made = in_vain = 0
        for line in self._in_order(lines):
            for number in self._takers(line, CLAIMS_MAX - made):
                plan = self._find_plan(line, self._world.jobs[number])
                if plan is None:
                    in_vain += 1
                    break
                made += 1
                self._loans = None
                yield plan
            if made >= CLAIMS_MAX or in_vain >= VAIN_MAX:
                return

    def _in_order(self, lines: list[Line]) -> list[Line]:
        """As the walk would meet them: whoever is owed first, then by tier, by tenant, and in the leaf."""
        world, tiers = self._world, self._world.tiers
        place = {name: at for at, name in enumerate(world.walk.in_order({x.tenant: None for x in lines}, self._now))}

        def key(line: Line) -> tuple[bool, int, str, int, int]:
            _, rank, tier = line.band
            since = self._now - tiers[tier].longest_wait_ms
            return not self._owed_funds(line), rank, tier, place[line.tenant], line.first(since)

        return sorted(lines, key=key)

    def _takers(self, line: Line, most: int) -> list[int]:
        """The first jobs of a line that have no claim yet, and did not take anything just now."""
        world = self._world
        free = [number for number in line.ids() if number not in world.claims][:most]
        return [number for number in free if may_take(world.jobs[number].took, self._now)]

    def _find_plan(self, line: Line, job: Job) -> Plan | None:
        """As work inside its guarantee, or else as work that borrows."""
        owed = self._owed_funds(line)
        for standing in (Standing.INSIDE, Standing.BORROWING):
            if standing == Standing.BORROWING and not (job.spec.evictable and self._world.quotas.has_owners()):
                break
            claimant = party_of(self._world, class_of(job), standing)
            plan = self._try(line, job, claimant, owed or [])
            if plan is not None:
                return plan
        return None

    def _try(self, line: Line, job: Job, claimant: Party, owed: list[Fund]) -> Plan | None:
        world, shape, spec = self._world, line.shape, job.spec

        def find() -> list[Lease] | None:
            pools = pools_within(world, spec.tenant, shape, claimant.standing)
            fleet = world.fleet
            if pools == NOWHERE or count_room(fleet, shape.ask, shape.needs, pools) < shape.gang:
                return None
            return find_gang(fleet, shape.ask, shape.gang, shape.needs, pools)

        found = list(self._rights(job, claimant, owed))
        choice = self._choose(Want(shape.ask, shape.gang, shape.needs, find), [each for each, _ in found])
        if choice is None:
            return None
        if spec.ask.gpu_milli and self._stage.is_claimed(choice.leases):
            put_back(self._stage, choice.taken)  # a device is claimed by one: the next one waits for the first
            return None
        return self._settle(job, claimant, choice, {each.job: right for each, right in found})

    def _choose(self, want: Want, candidates: list[Candidate]) -> Choice | None:
        """Nobody, if it fits when those are gone who were told to stop; what is free already is the cycle's to give."""
        leases = want.find()
        if leases is not None:
            return Choice(0, [], leases) if self._stage.is_left_to(leases) else None
        return choose(self._stage, self._world.fleet, want, candidates) if candidates else None

    def _settle(self, job: Job, claimant: Party, choice: Choice, rights: dict[int, tuple[Party, Why]]) -> Plan:
        """Let the claimant have its places on the stage, for those who come after it."""
        until = self._now + self._stage.longest_grace(choice.leases) + MARGIN_MS
        self._stage.seat(job, tuple(choice.leases))
        victims = [(each, *rights[each.job]) for each in choice.taken]
        return Plan(job, claimant, victims, choice.leases, until)

    def _rights(self, job: Job, claimant: Party, owed: list[Fund]) -> Iterator[tuple[Candidate, tuple[Party, Why]]]:
        """Everybody whose places the claimant may take, and by which right."""
        world = self._world
        runs = world.know_runs()
        for other in runs.classes():
            kin = kin_of(world, job.spec.tenant, other[0])
            table = self._tables.get((claimant, other, kin))
            if table is None:
                table = self._tables[claimant, other, kin] = _Rights(world, claimant, other, kin)
            if table.is_empty:
                continue
            for number in sorted(runs.by_class[other]):
                found = self._find_candidate(table, world.jobs[number], owed)
                if found is not None:
                    yield found

    def _find_candidate(self, table: _Rights, job: Job, owed: list[Fund]) -> tuple[Candidate, tuple[Party, Why]] | None:
        phase = job.phase
        if not isinstance(phase, (Starting, Running)) or not job.spec.evictable or self._stage.is_gone(job.id):
            return None
        borrowed = self._borrowed_funds(job)
        found = table.find(is_borrowing=bool(borrowed), is_owed=any(fund in owed for fund in borrowed))
        if found is None or (not borrowed and self._is_protected(job, phase.run.since)):
            return None
        cost = amount_of(job.spec.ask, job.spec.gang) * (self._now - phase.run.since + RESTART_MS)
        return Candidate(cost, job.id, 0, Seat(job.id, 0, job.spec, phase.run.leases)), found

    def _is_protected(self, job: Job, since: int) -> bool:
        return is_protected(self._world.tiers[job.spec.tier], since, job.evicted, self._now)

    def _borrowed_funds(self, job: Job) -> list[Fund]:
        if not self._world.quotas.has_owners():
            return []
        if self._loans is None:
            self._loans = self._stage.loans()
        by_slot, leases = self._world.sites.by_slot, job.phase.run.leases if isinstance(job.phase, ACTIVE) else ()
        sites = (by_slot[leases[0].slot],) if len(leases) == 1 else tuple(by_slot[lease.slot] for lease in leases)
        return self._loans.funds_of(job.spec.tenant, job.id, job.spec.ask, sites)

    def _owed_funds(self, line: Line) -> list[Fund] | None:
        """The funds of which one more gang of a line would be covered, on whatever site; None if on none."""
        world, shape, found = self._world, line.shape, False
        funds: list[Fund] = []
        for site in world.sites.inhabited(shape.ask):
            owed = find_owed(world.quotas, line.tenant, site, shape.ask, shape.gang)
            if owed is not None:
                found = True
                funds += [fund for fund in owed if fund not in funds]
        return funds if found else None


class _Rights:
    """What one claimant may take from one class: by whether the victim borrows, and something that it is owed."""

    def __init__(self, world: World, claimant: Party, other: RunClass, kin: Kin) -> None:
        inside, borrowing = (party_of(world, other, standing) for standing in (Standing.INSIDE, Standing.BORROWING))
        self._table = {
            (False, False): (inside, find_right(claimant, inside, kin)),
            (True, False): (borrowing, find_right(claimant, borrowing, kin)),
            (True, True): (borrowing, find_right(claimant, borrowing, kin, owed=True)),
        }
        self.is_empty = all(why is None for _, why in self._table.values())

    def find(self, *, is_borrowing: bool, is_owed: bool) -> tuple[Party, Why] | None:
        """The victim as it stands, and by which right it is taken."""
        party, why = self._table[is_borrowing, is_owed]
        return None if why is None else (party, why)


def party_of(world: World, side: RunClass, standing: Standing) -> Party:
    """A class as the table sees it."""
    _, name, priority = side
    tier: Tier = world.tiers[name]
    return Party(standing, tier.rank, name, priority, tier.emergency)


def kin_of(world: World, tenant: str, other: str) -> Kin:
    """What another tenant is to one."""
    if tenant == other:
        return Kin.SAME
    return Kin.BELOW if tenant in world.ledger.chain(other) else Kin.OTHER
