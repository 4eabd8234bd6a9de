"""preemption: whose places are taken for whom. A transaction: all of a plan or nothing of it.

    1  heads    who waits, in order, and might have a right to somebody's place
    2  rights   by the table (`muster.policy.taking`), and by who borrows now (`muster.world.loans`): see `rights`
    3  reach    whether it would fit if all went whom it has a right to: see `reach`
    4  victims  on a stage, whoever loses the least work, and only if the claimant then truly fits (`victims`)
    5  claim    the places are the claimant's from now on; the victims are told to stop, and wait again

A claimant is looked at twice: as work inside its guarantee, and if it would not be, as work that borrows and takes only
what is borrowed. A guest, which yields when it expects to end, takes nobody's place, and only what elastic gangs have
beyond their least. Everything is a function of the world and `now`; nothing is remembered of tries that failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from muster.model import fact
from muster.model.errors import InvariantError
from muster.model.job import Job
from muster.model.phase import TAKEN, Lease, TaskPhase, Why, columns_of
from muster.model.tier import PRIORITY_MAX
from muster.policy.protection import has_waited, is_protected, may_take
from muster.policy.taking import Party, strength
from muster.scheduler.placing.fit import count_room, count_unrationed, find_gang, find_pools, find_tasks
from muster.scheduler.placing.within import EVERYWHERE, NOWHERE, can_start, pools_within
from muster.scheduler.stage import Stage
from muster.scheduler.taking.extras import Extras, Shrink, has_extras
from muster.scheduler.taking.heads import Heads
from muster.scheduler.taking.herds import MARGIN_MS
from muster.scheduler.taking.near import Neighbourhood
from muster.scheduler.taking.rights import Right, Rights, party_of
from muster.scheduler.taking.teams import lead_of
from muster.scheduler.taking.victims import Candidate, Choice, Want, choose
from muster.world.line import Line
from muster.world.queue import Shape
from muster.world.quota import Fund, Standing
from muster.world.world import World

CLAIMS_MAX: Final = 64
"""How many claims one cycle makes at most."""
FOR_JOB: Final = "for job"


class Victim(NamedTuple):
    """Somebody who is taken: as what, and by which right."""

    candidate: Candidate
    party: Party
    why: Why


class Plan(NamedTuple):
    """Whose places a job takes, and which leases it then has."""

    job: Job
    claimant: Party
    victims: list[Victim]
    leases: list[Lease]
    until: int
    shrinks: Sequence[Shrink] = ()

    def facts(self) -> Iterator[fact.Fact]:
        """The plan as facts."""
        cause = f"{FOR_JOB} {self.job.id} of {self.job.spec.tenant}"
        yield from (shrink.fact(cause) for shrink in self.shrinks)
        for candidate, _, why in self.victims:
            if not candidate.seat.spec.array:
                yield fact.StopAsked(candidate.job, why, cause=cause)
        for why in TAKEN:
            tasks = [each.candidate for each in self.victims if each.why == why and each.candidate.seat.spec.array]
            for job, first, count in _ranges_of(tasks):
                yield fact.TasksMoved(job, first, count, TaskPhase.STOPPING, cause, why=why)
        columns = columns_of(self.leases)
        count = len(self.victims) + len(self.shrinks)
        waits_for = f"{count} job{'s' if count != 1 else ''} to stop" if count else "what is being given back"
        yield fact.Claimed(self.job.id, *columns, self.until, waits_for, count)


def _ranges_of(tasks: list[Candidate]) -> list[tuple[int, int, int]]:
    """Tasks of arrays as ranges: (job, first, count)."""
    ranges: list[tuple[int, int, int]] = []
    for job, first in sorted((each.job, each.first) for each in tasks):
        if ranges and ranges[-1][0] == job and sum(ranges[-1][1:]) == first:
            ranges[-1] = (job, ranges[-1][1], ranges[-1][2] + 1)
        else:
            ranges.append((job, first, 1))
    return ranges


def plan_takings(world: World, now: int) -> list[fact.Fact]:
    """What is taken from whom now, as facts that are not true yet."""
    if not world.know_runs().has_any():
        return []
    facts: list[fact.Fact] = []
    with Stage(world, now) as stage:
        taker = _Taker(world, stage, now)
        for plan in taker.plans():
            check_descent(plan)
            facts += plan.facts()
        taker.close()
    return facts


def plan_taking(world: World, now: int, job: Job) -> Plan | None:
    """What one job that waits would take now, if nobody else who waits took anything."""
    line = world.queue.find_line(job)
    if line is None or not world.know_runs().has_any():
        return None
    with Stage(world, now) as stage:
        return _Taker(world, stage, now).plan_for(line, job)


def can_anybody_take(world: World) -> bool:
    """Whether it is worth a look, if somebody waits: not all are alike in tier, priority and guarantee, or somebody
    has more than it needs."""
    return world.varied > 0 or world.quotas.has_owners() or has_extras(world)


def check_descent(plan: Plan) -> None:
    """Whoever takes is stronger than whom it takes from: so over one snapshot, no chain of plans comes back to where it
    began."""
    for candidate, victim, _ in plan.victims:
        if strength(plan.claimant) >= strength(victim):
            evidence = f"job {plan.job.id} {plan.claimant} from job {candidate.job} {victim}"
            raise InvariantError("whoever takes is the stronger one", evidence)


class _Taker:
    """Makes plans on a stage, one after the other; each counts on those before it."""

    def __init__(self, world: World, stage: Stage, now: int) -> None:
        self._world = world
        self._stage = stage
        self._now = now
        self._extras = Extras(world, stage, now) if world.widths.elastic else None
        self._rights = Rights(world, stage, now)
        self._heads = Heads(world, self._rights, now)
        self._has_bounds = world.quotas.has_bounds()

    def plans(self) -> Iterator[Plan]:
        """The plans of one cycle, in the order of those who wait."""
        made = 0
        for line in self._heads.in_order():
            for number in self._takers(line, CLAIMS_MAX - made):
                job = self._world.jobs[number]
                plan = self._find_plan(line, job)
                if plan is None and job.spec.yields:
                    continue  # a guest takes nobody's place; those behind it may
                if plan is None:
                    break
                made += 1
                self._rights.forget()
                yield plan
            if made >= CLAIMS_MAX:
                return

    def close(self) -> None:
        """There are no more."""
        self._rights.close()

    def plan_for(self, line: Line, job: Job) -> Plan | None:
        """The plan of one job, if it may take at all."""
        return self._find_plan(line, job) if self._heads.may_look(line) else None

    def _takers(self, line: Line, most: int) -> Iterator[int]:
        """The first jobs of a line that have no claim yet, and did not take anything just now."""
        world = self._world
        free = islice((number for number in line.ids() if number not in world.claims), most)
        return (number for number in free if may_take(world.jobs[number].took, self._now))

    def _find_plan(self, line: Line, job: Job) -> Plan | None:
        """As work inside its guarantee, or else as work that borrows. Whoever has just come takes nothing by its
        priority."""
        spec, owed = job.spec, self._heads.owed_funds(line, self._rights.rooms(line.tenant))
        kind = (spec.tier, spec.priority if has_waited(job.accepted_at, self._now) else -PRIORITY_MAX)
        for standing in (Standing.INSIDE, Standing.BORROWING):
            if standing == Standing.BORROWING and not (spec.evictable and self._world.quotas.has_owners()):
                break
            right = self._find_right(line, party_of(self._world, kind, standing), owed)
            if right is None:
                continue
            for width in self._widths(line, job, right):
                plan = self._try(line, job, right, width)
                if plan is not None:
                    return plan
        return None

    def _find_right(self, line: Line, claimant: Party, owed: list[Fund] | None) -> Right | None:
        """What a claimant may take that is owed something of some funds, or of none. What it is owed only when those
        are gone whom it may take anyway, it may reclaim too: its own lower work must not keep it from its guarantee.
        None if it is to be inside that, and would not be even then."""
        right = self._rights.find(claimant, line.tenant, owed or [])
        if owed is None and claimant.standing == Standing.INSIDE:
            if right.found:
                owed = self._heads.owed_funds(line, self._rights.rooms_beside(right, are_whole=True))
            return None if owed is None else self._rights.find(claimant, line.tenant, owed)
        return right

    def _widths(self, line: Line, job: Job, right: Right) -> Iterator[int]:
        """For how many tasks at once: all of a gang; of an array as many as wait, and then fewer and fewer."""
        if not job.spec.array:
            yield line.shape.gang
            return
        width = self._world.arrays[job.id].get_queued(job.spec.array)[1]
        width = self._rights.reach_of(right, job.spec.ask, job.spec.needs, width)
        while width:
            yield width
            width //= 2

    def _try(self, line: Line, job: Job, right: Right, width: int) -> Plan | None:
        shape = line.shape if width == line.shape.gang else Shape((*line.shape.key[:1], width, *line.shape.key[2:]))
        rights = self._rights
        if self._has_bounds and not self._is_within(job, right, shape):
            return None
        if (rights.has_any or job.spec.array) and not rights.reaches(right, shape, width):
            return None  # else it is as quick to see whether it fits
        want = self._want(shape, job, right.claimant)
        leases = want.find()
        if leases is None and not rights.has_any:
            self._note_full(shape, job, right)
        choice = None if leases is None else Choice(0, [], leases)
        may_choose = choice is None and right.found and not job.spec.yields
        if may_choose and (self._has_bounds or self._is_within(job, right, shape)):
            choice = self._choose(shape, want, right)
        if choice is None:
            return None
        if job.spec.ask.gpu_milli and self._stage.is_claimed(choice.leases):
            for each in choice.taken:  # a device is claimed by one: the next one waits for the first
                self._stage.give_back(each.seat)
            return None
        return self._settle(job, right, want, choice)

    def _note_full(self, shape: Shape, job: Job, right: Right) -> None:
        """A shape did not fit; if that was for no want of quota, it does not for others either."""
        if pools_within(self._world, job.spec.tenant, shape, right.claimant.standing) is EVERYWHERE:
            self._rights.note_full(shape)

    def _want(self, shape: Shape, job: Job, claimant: Party) -> Want:
        """What has to fit. Of a gang of several groups, room is made for the first of them, and more until all fit."""
        world, spec, lead = self._world, job.spec, lead_of(shape)
        fleet, count = world.fleet, count_room if job.spec.array else count_unrationed

        def find() -> list[Lease] | None:
            pools = pools_within(world, spec.tenant, shape, claimant.standing)
            if pools == NOWHERE or count(fleet, lead.ask, shape.needs, pools, lead.gang) < lead.gang:
                return None
            if spec.array:
                return find_tasks(fleet, shape.ask, shape.gang, shape.needs, pools)
            return find_gang(fleet, shape.ask, shape.gang, shape.needs, pools)

        def room() -> tuple[int, list[int]]:
            pools = pools_within(world, spec.tenant, shape, claimant.standing)
            usable = find_pools(fleet, shape.ask, shape.needs)
            kept = usable if pools is None else [pool for pool in usable if pool in pools]
            return count_unrationed(fleet, shape.ask, shape.needs, pools), kept

        return Want(lead.ask, lead.gang, shape.needs, find, None if shape.needs.groups else room)

    def _choose(self, shape: Shape, want: Want, right: Right) -> Choice | None:
        """Among those on the nodes that promise most; if that is not enough, among all."""
        near, fleet = Neighbourhood(self._world, self._rights, right, lead_of(shape)), self._world.fleet
        for slots in near.rounds():
            candidates = [each for each in near.candidates() if not self._is_protected(each)]
            choice = choose(self._stage, fleet, want, candidates, slots) if candidates else None
            if choice is not None:
                return choice
        return None

    def _is_within(self, job: Job, right: Right, shape: Shape) -> bool:
        """Whether the quota would let it start anywhere if all went whom the right is about."""
        world = self._world
        if not world.quotas.is_any():
            return True
        return can_start(world, job.spec.tenant, shape, right.claimant.standing, self._rights.rooms_beside(right))

    def _settle(self, job: Job, right: Right, want: Want, choice: Choice) -> Plan | None:
        """Let the claimant have its places on the stage, for those who come after it. Nothing is to be done for one
        who waits for nobody."""
        if self._extras is None:
            return self._seat(job, right, choice, [])
        shrinks, leases = self._extras.spend(want.find, [each.job for each in choice.taken], choice.leases)
        plan = self._seat(job, right, choice._replace(leases=leases), shrinks)
        self._extras.resume()
        return plan

    def _seat(self, job: Job, right: Right, choice: Choice, shrinks: list[Shrink]) -> Plan | None:
        if not (choice.taken or shrinks or self._stage.is_left_to(choice.leases)):
            return None
        until = self._now + self._stage.longest_grace(choice.leases) + MARGIN_MS
        victims = [Victim(each, *self._rights.why(right, each)) for each in choice.taken]
        self._stage.seat(job, tuple(choice.leases))
        self._stage.tell(each.seat for each in choice.taken)
        return Plan(job, right.claimant, victims, choice.leases, until, shrinks)

    def _is_protected(self, each: Candidate) -> bool:
        """Whether somebody inside its guarantee is left alone still."""
        if self._rights.funds[each.job, each.first]:
            return False
        job = self._world.jobs[each.job]
        return is_protected(self._world.tiers[job.spec.tier], self._rights.since(each), job.evicted, self._now)
