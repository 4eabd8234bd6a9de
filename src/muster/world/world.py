"""The world: all that Muster knows, in memory, and the few primitives that change it.

Jobs, tenants and tiers are frozen records in dicts; nodes and array tasks are columns; use is kept by the hour. Queue,
successors, walk, timers, ends, sites, ledger and quotas are indexes over them and can always be rebuilt. The primitives
come in pairs with exact inverses (`hold` and `release`, `hold_tasks` and `release_tasks`) and keep every index in step;
`apply` and `Draft` are the only callers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from muster.model.advice import Advice
from muster.model.booking import Booking
from muster.model.claim import Claim
from muster.model.errors import InvariantError
from muster.model.job import Bar, BarKind, Job, Meter, NodePhase
from muster.model.node import PLAIN, Flavor, Lack, Said, Traits
from muster.model.phase import ACTIVE, TERMINAL, Lease, Phase, Queued, Run, Starting, Succeeded, TaskPhase
from muster.model.profile import DEFAULT_NAME, PROFILES, Edition
from muster.model.ranges import Ranges
from muster.model.spec import Needs, Spec, is_varied
from muster.model.tenant import CPU, OPEN, ROOT, Tenant
from muster.model.tier import TIERS, Tier, moves_of
from muster.units import Limit, Resources
from muster.world.budgets import Account, Budgets
from muster.world.calendar import Ends
from muster.world.claiming import charge_claim, is_spoken_for, spoken_for
from muster.world.company import NAMES_MAX, Company, names_in
from muster.world.equals import Equals
from muster.world.fleet import Fleet, FreeVector
from muster.world.goodput import Goodput, Stock
from muster.world.keys import Keys
from muster.world.ledger import Ledger
from muster.world.line import Line
from muster.world.mix import Mix
from muster.world.others import leave_others, wait_for_others
from muster.world.overlays import set_watts, wake_for_budget
from muster.world.pools import Pool
from muster.world.promises import count_promised
from muster.world.queue import Queue
from muster.world.quota import Quotas, Standing
from muster.world.runs import Runs, find_runs
from muster.world.seating import occupy_all, rows_of, vacate_all
from muster.world.sites import Site, Sites
from muster.world.spending import rebudget, spend
from muster.world.tasks import Tasks
from muster.world.timers import Timers
from muster.world.usage import Usage
from muster.world.walk import Walk
from muster.world.widths import Widths, hold_ranks

_INSIDE, _OVER = Standing.INSIDE, Standing.OVER  # members are slow to look up


class World:
    """The state. `seq` and `now` are those of the newest entry folded into it. `claimants` are by slot who claims
    something there (replaced, never changed: forks share)."""

    __slots__ = (
        "accepted", "advice", "arrays", "bookings", "budgets", "claimants", "claims", "ends", "equals", "flavors",
        "fleet", "goodput", "jobs", "keys", "ledger", "meters", "mix", "moves_most", "next_job", "now",
        "profile_used", "profiles", "promised", "queue", "quotas", "ranks", "retired", "runs", "seq", "sites",
        "successors", "tenants", "tickets", "tiers", "timers", "usage", "varied", "walk", "widths",
    )  # fmt: skip

    def __init__(self) -> None:
        self.seq = self.now = 0
        self.next_job = 1
        self.accepted = self.retired = self.tickets = self.varied = self.moves_most = self.promised = 0
        self.fleet = Fleet()
        self.flavors: dict[str, Flavor] = {}
        self.tenants: dict[str, Tenant] = {}
        self.sites, self.ledger = Sites(), Ledger()
        self.budgets = Budgets(self.ledger)
        self.quotas = Quotas(self.tenants, self.ledger, self.sites, self.budgets)
        self.equals = Equals()
        self.jobs: dict[int, Job] = {}
        self.arrays: dict[int, Tasks] = {}
        self.ranks: dict[int, bytearray] = {}
        self.claims: dict[int, Claim] = {}
        self.claimants: dict[int, tuple[int, ...]] = {}
        self.bookings: dict[str, Booking] = {}
        self.runs: Runs | None = None
        self.keys = Keys()
        self.tiers: dict[str, Tier] = TIERS.copy()
        self.profiles: dict[str, Edition] = PROFILES.copy()
        self.profile_used = DEFAULT_NAME
        self.mix: Mix | None = None
        self.advice: dict[str, Advice] = {}
        self.meters: dict[int, Meter] = {}
        self.usage = Usage()
        self.walk = Walk(self.usage, self.tenants)
        self.queue = Queue(self.walk)
        self.successors: dict[int, dict[int, None]] = {}
        self.timers, self.ends = Timers(), Ends()
        self.goodput, self.widths = Goodput(), Widths()

    def hold(self, job: Job, run: Run, at: int, line: Line | None = None) -> None:
        """Give a waiting gang its leases; its `line` may be at hand. The inverse of `release`."""
        spec, leases, fleet = job.spec, run.leases, self.fleet
        for ask, part in spec.parts(leases):
            occupy_all(fleet, job.id, ask, part)
            self.goodput.take(ask, part, at)
        end = run.find_end(spec.limit_ms)
        if end is not None:
            self.ends.add(job.id, end)
        self.charge(spec, leases, at, end)
        if spec.expect_ms is not None or self.ends.advised:
            self.ends.foretell(job.id, spec, run.since)
        if self.budgets.accounts:
            spend(self, job, leases, 1)
        if fleet.company.by_name:
            fleet.company.seat(spec, leases, 1)
        self.dequeue(job) if line is None else self.queue.leave(line, job)
        if spec.gang > 1 or spec.gang_most:
            run = hold_ranks(self, job, run)
        if (sharing := self.tiers[spec.tier].sharing) is not None:
            self.queue.floors.seat(job, run.since, sharing)
        if self.runs is not None:
            self.runs.add_gang(job, run, self.sites.by_slot, run.since)
        self.jobs[job.id] = job.moved(Starting(at, run), run.epoch)

    def release(self, job: Job, after: Job, at: int) -> None:
        """Take a gang's leases back; `after` is what becomes of the job: over, or waiting again."""
        phase = job.phase
        if isinstance(phase, ACTIVE):
            self.goodput.close(job, phase.run, at, is_useful=type(after.phase) is Succeeded)
            self._leave(job, phase.run, at)
        else:
            self.dequeue(job)
        self.jobs[job.id] = after
        if type(after.phase) is Queued:
            self.enqueue(after)
        else:
            self.timers.watch(after)

    def hold_tasks(
        self, job: Job, first: int, slots: list[int], counts: list[int], devices: list[int], at: int, ticket: int
    ) -> None:
        """Give waiting tasks of an array, from `first` on, their places. The inverse of `release_tasks`."""
        tasks, ask, count = self.arrays[job.id], job.spec.ask, sum(counts)
        leases = list(map(Lease, slots, counts, devices))
        rows = rows_of(leases)
        occupy_all(self.fleet, job.id, ask, leases, rows)
        tasks.seat(first, rows, ask.gpus)
        tasks.give(first, count, at, ticket)
        self.goodput.take(ask, leases, at)
        self.charge(job.spec, leases, at)
        if self.budgets.accounts:
            spend(self, job, leases, 1)
        if self.fleet.company.by_name:
            self.fleet.company.seat(job.spec, leases, 1)
        tasks.set_phase(first, count, TaskPhase.STARTING)
        if job.spec.limit_ms is not None:
            self.ends.spread[job.id] = None
        if self.runs is not None:
            self.runs.add_array(job)
        if tasks.counts[TaskPhase.QUEUED] == spoken_for(self, job.id):
            self.dequeue(job)

    def release_tasks(self, job: Job, ranges: Ranges, after: TaskPhase, at: int) -> None:
        """Take the places of tasks back, which go upwards; they are over, or wait again."""
        tasks, ask = self.arrays[job.id], job.spec.ask
        leases = tasks.leases(ranges, shared=ask.gpu_milli > 0)
        if ask.gpus or ask.gpu_milli:
            self.goodput.close_tasks(job, tasks, ranges, at, is_useful=after == TaskPhase.SUCCEEDED)
        self.vacate(job, leases, at)
        if self.budgets.accounts:
            spend(self, job, leases, -1)
        if job.id in self.budgets.prices:
            self.budgets.drop_prices(job.id, self.fleet.flavors_held(job.id))
        self.refund(job.spec, leases, at)
        if self.fleet.company.by_name:
            self.leave_company(job.spec, leases)
        is_first = after == TaskPhase.QUEUED and tasks.counts[TaskPhase.QUEUED] == spoken_for(self, job.id)
        if job.spec.limit_ms is not None:
            self.timers.tasks.leave(job.id, job.spec.limit_ms, tasks, ranges)
        tasks.leave(ranges, after)
        if is_first and tasks.counts[TaskPhase.QUEUED] > spoken_for(self, job.id):
            self.enqueue(job)
        if not tasks.holding:
            self.ends.spread.pop(job.id, None)
            if self.runs is not None:
                self.runs.remove(job)

    def charge(self, spec: Spec, leases: Sequence[Lease], at: int, end: Limit = None, sign: int = 1) -> None:
        """Leases are in the ledger, and count as use from now on: predictably until `end`. Its own inverse with the
        sign -1."""
        if len(leases) == 1 and not spec.needs.groups:
            lease = leases[0]
            self._count(spec.tenant, self.sites.by_slot[lease.slot], spec.ask, sign * lease.tasks, at, end)
        else:
            for site, ask, tasks in self.sites.share(spec, leases):
                self._count(spec.tenant, site, ask, sign * tasks, at, end)

    def _count(self, tenant: str, site: Site, ask: Resources, tasks: int, at: int, end: Limit) -> None:
        """So many tasks more of an ask are held on a site, and used from now on."""
        gpus = self.ledger.charge(tenant, site, ask, tasks)
        if gpus:
            self.usage.step(tenant, site.family, gpus, at, end)
        else:
            self.usage.step(tenant, CPU, ask.cpu_milli * tasks, at, end)
        self.walk.touched[tenant] = None

    def enqueue(self, job: Job) -> None:
        """A job waits, or some tasks of an array do: for others to get as far as it wants them, or in its line unless
        it is held."""
        if job.waits:
            wait_for_others(self, job)
        if not (job.held or (job.waits and job.stands_back)):
            self.queue.add(job, self.tiers[job.spec.tier])

    def dequeue(self, job: Job) -> None:
        """Nothing of a job waits any longer, unless it is for its like."""
        if job.waits and job.stands_back:
            leave_others(self, job)
        elif not job.held:
            self.queue.remove(job)

    def set_held(self, job: Job, held: bool) -> None:
        """Keep a job out of its line, or let it back in."""
        is_waiting = self.is_waiting(job)
        if is_waiting:
            self.dequeue(job)
        after = self.jobs[job.id] = replace(job, held=held)
        if is_waiting:
            self.enqueue(after)

    def is_waiting(self, job: Job) -> bool:
        """Whether a job, or part of an array, waits; in a line, for others, or held."""
        if job.spec.array:
            return bool(self.arrays[job.id].counts[TaskPhase.QUEUED])
        return isinstance(job.phase, Queued)

    def is_in_line(self, job: Job) -> bool:
        """Whether it waits and is met in its line, as soon as it is not held and others are as far as it wants them: an
        array that claims places for all its tasks that wait is in none."""
        return self.is_waiting(job) and not is_spoken_for(self, job.id)

    def set_tier(self, name: str, tier: Tier) -> None:
        """Say what a tier is; whoever waits in it stands where its rank says."""
        self.tiers[name] = tier
        self.moves_most, self.promised = moves_of(self.tiers), count_promised(self)
        self.queue.rerank(name, tier, self.jobs)

    def set_profile(self, name: str, edition: Edition) -> None:
        """Store a profile; the fleet is scored anew if it is the one in use."""
        self.profiles[name] = edition
        if name == self.profile_used:
            self.use_profile(name)

    def use_profile(self, name: str) -> None:
        """Score the fleet by this profile from now on."""
        self.profile_used = name
        self.fleet.weigh(self.profiles[name].profile, self.jobs)
        self.recount_mix()

    def recount_mix(self) -> None:
        """The mix is that of the live jobs; none is kept unless the profile weighs it."""
        self.mix = Mix(self.jobs.values()) if self.fleet.profile.fitting else None

    def keep_company(self, needs: Needs) -> None:
        """Watch whom needs mention; if there are too many by now, only whom somebody mentions who is here."""
        if len(self.fleet.company.by_name) >= NAMES_MAX:
            self.recount_company()
        self.fleet.company.watch(names_in(needs), self.jobs, self.fleet.holders)

    def recount_company(self) -> None:
        """Watch whom somebody mentions who is here."""
        names = [name for job in self.jobs.values() if job.spec.needs.has_company for name in names_in(job.spec.needs)]
        self.fleet.company = Company()
        if names:
            self.fleet.company.watch(names, self.jobs, self.fleet.holders)

    def wake_company(self) -> None:
        """Somebody who is watched came or went: whoever minds is worth a try, and may stand better."""
        self.fleet.company.has_grown = False
        self.queue.wake_company()
        self.wake_outside()

    def join(
        self, slot: int, name: str, capacity: Resources, traits: Traits = PLAIN, devices: tuple[str, ...] = ()
    ) -> None:
        """A node joins, or an idle one changed: everybody is worth a try."""
        if slot < len(self.sites.by_slot):
            self._count_off(slot)
        claims = self.claimants.get(slot, ())
        for job in claims:
            charge_claim(self, job, -1)
        self.fleet.join(slot, name, capacity, traits, devices)
        self.sites.settle(self.fleet, slot, self.flavor_of(slot))
        self.goodput.settle(self.fleet, slot)
        for job in claims:
            charge_claim(self, job, 1)
        self._count_on(slot)
        self.queue.wake_all()

    def hear(self, slot: int, traits: Traits, later: Said | None) -> None:
        """A busy node has other labels or taints, or will be another one when it is idle: everybody is worth a try."""
        self.fleet.hear(slot, traits, later)
        self.quotas.forget_nodes()
        self.queue.wake_all()

    def set_lack(self, slot: int, lack: Lack) -> None:
        """A busy node has less than it joined with, or has it again: everybody is worth a try."""
        self._count_off(slot)
        self.fleet.set_lack(slot, lack)
        self._count_on(slot)
        self.queue.wake_all()

    def set_phase(self, slot: int, phase: NodePhase) -> None:
        """A node's phase changed: everybody is worth a try."""
        self._count_off(slot)
        self.fleet.set_phase(slot, phase)
        self._count_on(slot)
        self.queue.wake_all()

    def bar(self, slot: int, bar: Bar) -> None:
        """Bar a node, and note when the bar ends by itself."""
        self._count_off(slot)
        self.fleet.bar(slot, bar)
        self._count_on(slot)
        self.timers.watch_bar(slot, bar)

    def unbar(self, slot: int, kind: BarKind, owner: str) -> None:
        """Lift a bar: whoever waits is worth a try."""
        self._count_off(slot)
        self.fleet.unbar(slot, kind, owner)
        self._count_on(slot)
        self.queue.wake_all()

    def set_flavor(self, name: str, flavor: Flavor) -> None:
        """Say what a flavor is; its nodes, which hold nothing if it counts as something else now, count anew."""
        before = self.flavors.get(name, Flavor(name)).price_micros
        if flavor.price_micros != before:
            self.budgets.keep_price(sorted(self.fleet.jobs_on(name)), name, before)
        self.flavors[name] = flavor
        self.fleet.set_price(name, flavor.price_micros)
        set_watts(self, name, flavor)
        self.fleet.set_cuts(name, flavor)
        for slot in range(len(self.fleet)):
            if self.fleet.flavor(slot) == name:
                self._count_off(slot)
                self.sites.settle(self.fleet, slot, flavor)
                self._count_on(slot)

    def set_tenant(self, name: str, tenant: Tenant) -> None:
        """Put a tenant into the tree, or change it there. What is held stays held."""
        before = self.tenant_of(name)
        self.tenants[name] = tenant
        self.ledger.adopt(name, tenant.parent)
        rebudget(self, name, before, tenant)
        self.quotas.forget_tenants()
        self.queue.regrow()
        self.wake_outside()

    def drop_tenant(self, name: str) -> None:
        """Take a tenant out of the tree."""
        before = self.tenants.pop(name)
        self.ledger.adopt(name, ROOT)
        rebudget(self, name, before, OPEN)
        self.quotas.forget_tenants()
        self.queue.regrow()
        self.wake_outside()

    def turn_budget(self, account: Account, since: int) -> None:
        """A new period of a budget began: who waited for it is worth a try."""
        self.budgets.turn(account, since)
        self.wake_outside()

    def know_runs(self) -> Runs:
        """Who holds places; from the first question on it is kept."""
        if self.runs is None:
            self.runs = find_runs(self.jobs, self.arrays, self.goodput.marks, self.sites.by_slot)
        return self.runs

    def put(self, job: Job) -> None:
        """Replace a job's record and note what its phase implies for the timers."""
        self.jobs[job.id] = job
        if job.spec.limit_ms is not None or type(job.phase) in TERMINAL:
            self.timers.watch(job)

    def set_job_phase(self, job: Job, phase: Phase) -> Job:
        """Replace the phase of a job that is not over, and nothing else."""
        after = self.jobs[job.id] = job.moved(phase, job.epoch)
        if job.spec.limit_ms is not None:
            self.timers.watch(after)
        return after

    def forget(self, numbers: Sequence[int]) -> None:
        """Drop jobs that are over."""
        jobs, arrays, meters = self.jobs, self.arrays, self.meters
        for number in numbers:
            job = jobs.pop(number)
            if type(job.phase) not in TERMINAL:
                raise InvariantError("no job vanishes", f"job {number} is to retire and is not over")
            self.varied -= is_varied(job.spec)
            if arrays:
                arrays.pop(number, None)
            if meters:
                meters.pop(number, None)
            if job.key:
                self.keys.drop(job.spec.tenant, job.key)
        self.retired += len(numbers)

    def tenant_of(self, name: str) -> Tenant:
        """A tenant; one that was never named is a child of the root and has no lines."""
        return self.tenants.get(name, OPEN)

    def site_of(self, slot: int) -> Site:
        """Where the capacity of a node counts."""
        return self.sites.by_slot[slot]

    def site_of_pool(self, pool: Pool) -> Site:
        """Where the capacity of a pool counts."""
        flavor = self.flavors.get(pool.flavor) or Flavor(pool.flavor)
        return self.sites.get(flavor, pool.region, pool.cluster)

    def flavor_of(self, slot: int) -> Flavor:
        """What the capacity of a node counts as; a flavor that was never set is a family of its own."""
        name = self.fleet.flavor(slot)
        return self.flavors.get(name) or Flavor(name)

    def standing_on(self, site: Site, line: Line) -> Standing:
        """Where a line would stand with one more gang on a site: what may not be evicted may not borrow. A booking has
        its room already."""
        shape = line.shape
        if self.bookings and shape.needs.booking in self.bookings:
            return _INSIDE
        standing = self.quotas.standing(line.tenant, site, shape.ask, shape.gang)
        return standing if standing is _INSIDE or shape.evictable else _OVER

    def standing_of(self, line: Line) -> Standing:
        """The best that a line would stand with one more gang, on whatever site."""
        return self.standing_among(self.sites.inhabited(line.shape.ask), line)

    def standing_among(self, sites: Sequence[Site], line: Line) -> Standing:
        """The best that it would stand on one of these sites."""
        best = _OVER if sites else _INSIDE
        for site in sites:
            best = min(best, self.standing_on(site, line))
            if best is _INSIDE:  # nothing is better, and where nobody has a quota it is so at once
                break
        return best

    def wake_outside(self) -> None:
        """Let everybody stand as well as they do now."""
        for tenant in list(self.queue.outside):
            self.wake_tenant(tenant)

    def wake_tenant(self, tenant: str) -> None:
        """Let a tenant's lines stand as well as they do now."""
        self.queue.wake_for_quota(tenant, self.standing_of)

    def fork(self) -> World:
        """An independent copy, for what-if; it never leaves the process."""
        twin = self.fork_places()
        twin.accepted, twin.retired, twin.varied, twin.tickets = self.accepted, self.retired, self.varied, self.tickets
        twin.goodput = self.goodput.fork()
        twin.jobs, twin.keys = self.jobs.copy(), self.keys.fork()
        twin.queue, twin.timers, twin.ends = self.queue.fork(twin.walk), self.timers.fork(), self.ends.fork()
        twin.arrays = {number: tasks.fork() for number, tasks in self.arrays.items()}
        twin.successors = {number: jobs.copy() for number, jobs in self.successors.items()}
        twin.ranks = {number: ranks[:] for number, ranks in self.ranks.items()}
        twin.claims, twin.claimants, twin.widths = self.claims.copy(), self.claimants.copy(), self.widths.fork()
        twin.runs = None if self.runs is None else self.runs.fork()
        return twin

    def fork_places(self) -> World:
        """A copy of all that there is and of how much everybody holds of it, without the jobs: enough to ask whether
        something could start, and however many wait, as cheap."""
        twin = World()
        twin.seq, twin.now, twin.next_job = self.seq, self.now, self.next_job
        twin.flavors, twin.tenants, twin.tiers = self.flavors.copy(), self.tenants.copy(), self.tiers.copy()
        twin.moves_most, twin.promised = self.moves_most, self.promised
        twin.profiles, twin.profile_used, twin.meters = self.profiles.copy(), self.profile_used, self.meters.copy()
        twin.bookings, twin.equals = self.bookings.copy(), self.equals
        twin.mix, twin.advice = None if self.mix is None else self.mix.fork(), self.advice.copy()
        twin.fleet, twin.ledger, twin.sites = self.fleet.fork(), self.ledger.fork(), self.sites.fork()
        twin.budgets = self.budgets.fork(twin.ledger)
        twin.quotas, twin.usage = Quotas(twin.tenants, twin.ledger, twin.sites, twin.budgets), self.usage.fork()
        twin.walk = Walk(twin.usage, twin.tenants)
        twin.queue = Queue(twin.walk)
        twin.goodput.by_slot = [Stock("")] * len(self.fleet)  # what might start is not in the account
        return twin

    def _leave(self, job: Job, run: Run, at: int) -> None:
        """A gang gives back all that it holds."""
        spec, leases = job.spec, run.leases
        if run.spares:
            leases = run.places
            self.goodput.close_spares(job, at)
        if self.goodput.marks:
            self.goodput.marks.pop(job.id, None)
        self.vacate(job, leases, at)
        if self.budgets.accounts:
            spend(self, job, leases, -1)
        if self.budgets.prices and job.id in self.budgets.prices:
            self.budgets.drop_prices(job.id)
        end = run.find_end(spec.limit_ms)
        self.refund(spec, leases, at, end)
        if end is not None or self.ends.told:
            self.ends.leave(job.id, end)
        if job.id in self.ranks:
            del self.ranks[job.id]
            self.widths.leave(job.id)
        if self.runs is not None:
            self.runs.remove(job)
        if self.queue.floors.by_scope:
            self.queue.floors.unseat(job)
        if self.fleet.company.by_name:
            self.leave_company(spec, leases)

    def vacate(self, job: Job, leases: Sequence[Lease], at: int) -> None:
        """Tasks leave their nodes: whoever could use what they had is worth a try, unless no new work may go there."""
        fleet = self.fleet
        for ask, part in job.spec.parts(leases):
            if fleet.lacks:
                self._vacate_lacking(job.id, ask, part, at)
            else:
                vacate_all(fleet, job.id, ask, part)
                self.goodput.take(ask, part, at, -1)
            for lease in part:
                vector = fleet.find_free(lease.slot)
                if vector is not None:
                    self.wake_for_room(lease.slot, vector)
                else:
                    if lease.slot not in fleet.lacks:
                        self.goodput.shut(fleet, ask, lease, at)
                    self.sites.give_back(lease.slot, ask, lease.tasks)
                    if fleet.overlays.has_refused:
                        wake_for_budget(self)

    def _vacate_lacking(self, job: int, ask: Resources, leases: Sequence[Lease], at: int) -> None:
        """The same where some nodes lack something: what comes free of it there is not to be had."""
        fleet, goodput = self.fleet, self.goodput
        lacking = {lease.slot: None for lease in leases if lease.slot in fleet.lacks}
        for slot in lacking:
            goodput.count(fleet, slot, -1, at)
        vacate_all(fleet, job, ask, leases)
        for slot in lacking:
            goodput.count(fleet, slot, 1, at)
        goodput.take(ask, [lease for lease in leases if lease.slot not in lacking], at, -1)

    def wake_for_room(self, slot: int, vector: FreeVector) -> None:
        """Something came free: whoever fits there, or would stand better there, is worth a try."""
        self.queue.wake_for_room(slot, vector)
        if self.fleet.overlays.has_refused:
            wake_for_budget(self)
        if self.queue.outside and len(self.sites.all) > 1:
            self._wake_on_site(self.sites.by_slot[slot])

    def leave_company(self, spec: Spec, leases: Sequence[Lease]) -> None:
        """A job gave its places back."""
        if self.fleet.company.seat(spec, leases, -1):
            self.wake_company()

    def _wake_on_site(self, site: Site) -> None:
        """There is more room on a site: some may stand outside for want of it where they would stand better."""
        for tenant in list(self.queue.outside):
            self.queue.wake_for_quota(tenant, partial(self.standing_on, site))

    def refund(self, spec: Spec, leases: Sequence[Lease], at: int, end: Limit = None) -> None:
        """The inverse of `charge`: what is given back may let others start."""
        self.charge(spec, leases, at, end, -1)
        if self.queue.outside:
            self.wake_kin(spec.tenant)

    def wake_kin(self, tenant: str) -> None:
        """A tenant holds less: whoever shares its lines may stand better."""
        if self.queue.outside:
            for name in self.quotas.find_kin(tenant, self.queue.outside):
                self.wake_tenant(name)

    def _count_off(self, slot: int) -> None:
        """A node is to change."""
        self.sites.count(self.fleet, slot, -1)
        self.goodput.count(self.fleet, slot, -1, self.budgets.now)

    def _count_on(self, slot: int) -> None:
        """A node is what it is now: what is healthy changed, and so may what the quota lets through."""
        self.sites.count(self.fleet, slot, 1)
        self.goodput.count(self.fleet, slot, 1, self.budgets.now)
        self.quotas.forget_nodes()
        self.wake_outside()
