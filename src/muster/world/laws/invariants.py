"""The laws of a world, checked in full: every index is compared with a rebuild from the content.

`check_world` is stateless and costs what exists, so it runs at sampled moments; `muster.world.audit.auditor` checks
each entry as it comes. Neither decides anything, and neither knows why the world came to be as it is. A broken law is
an InvariantError that names the law and shows the evidence.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from muster.model.budget import GPU_HOURS, MONEY
from muster.model.errors import InvariantError
from muster.model.job import Job
from muster.model.node import NO_LACK, Lack, address_of
from muster.model.partition import devices_in
from muster.model.phase import ACTIVE, TERMINAL, Lease, Queued, Running, Spread, TaskPhase
from muster.model.spec import is_varied
from muster.model.tenant import CPU, DEPTH_MAX, MEMORY, NOT_DEVICES, ROOT
from muster.wire.codec import decode_entry
from muster.world.accounting import capacity_time, read_account
from muster.world.apply import apply_entry
from muster.world.arena import DEVICE, FREE_MASK
from muster.world.audit.group import asks_of, held_by
from muster.world.claiming import claimed_on, is_moving, slots_of
from muster.world.company import name_of, names_in
from muster.world.laws.again import check_again
from muster.world.laws.booking import check_bookings
from muster.world.laws.box import check_boxes
from muster.world.laws.crowd import check_crowd
from muster.world.laws.end import check_ends
from muster.world.laws.floor import check_floors
from muster.world.laws.holding import Holding, plain
from muster.world.laws.law import first_change, require
from muster.world.laws.limit import check_task_limits
from muster.world.laws.mark import check_marks
from muster.world.laws.move import check_movers
from muster.world.laws.overlay import check_overlays
from muster.world.laws.queue import check_queue
from muster.world.laws.width import check_throttle, check_widths
from muster.world.ledger import Account
from muster.world.promises import count_promised
from muster.world.runs import Runs, class_of, find_runs
from muster.world.sightings import devices_of, is_quarantined
from muster.world.snapshot import digest
from muster.world.tasks import HOLDING, LIVE, NOWHERE, Tasks, spans_of
from muster.world.timers import BarEnd
from muster.world.tour import Tour
from muster.world.world import World


def check_world(world: World) -> None:
    """Check every law of one world; the first that is broken raises."""
    for check in LAWS:
        check(world)


def fold(entries: Iterable[bytes], world: World | None = None) -> World:
    """The world that encoded entries lead to, from the first one or on from a given world."""
    folded = World() if world is None else world
    for data in entries:
        entry = decode_entry(data)
        apply_entry(folded, entry.seq, entry.at, entry.facts)
    return folded


def check_same(living: World, folded: World) -> None:
    """The law of the journal: the living world is the fold of its facts."""
    require(
        digest(living) == digest(folded),
        "the world is the fold of its facts",
        f"entry {living.seq}: living {digest(living)}, folded {digest(folded)} of {folded.seq}",
    )


def _check_counts(world: World) -> None:
    law = "accepted jobs are queued, active, over or retired"
    kinds = (Queued, Spread, *ACTIVE, *TERMINAL)
    odd = [number for number, job in world.jobs.items() if job.id != number or not isinstance(job.phase, kinds)]
    require(not odd, law, f"jobs {odd[:5]} are in no known phase")
    there = len(world.jobs) + world.retired
    require(world.accepted == there, law, f"accepted {world.accepted}, here and retired {there}")
    newest = max(world.jobs, default=0)
    require(world.next_job > newest, "job ids rise", f"next is {world.next_job}, newest is {newest}")


def _check_gangs(world: World) -> None:
    law = "a gang holds all its places or none"
    for job in world.jobs.values():
        if isinstance(job.phase, ACTIVE):
            run = job.phase.run
            require(run.epoch == job.epoch, "a run has its job's epoch", f"job {job.id}: {run.epoch}, {job.epoch}")
        has_ranks = job.id in world.ranks
        wants_ranks = isinstance(job.phase, ACTIVE) and (job.spec.gang > 1 or job.spec.gang_most > 0)
        require(has_ranks == wants_ranks, law, f"job {job.id}: ranks kept {has_ranks}, wanted {wants_ranks}")
    strangers = [number for number in world.ranks if number not in world.jobs]
    require(not strangers, law, f"ranks of unknown jobs {strangers[:5]}")


def _check_arrays(world: World) -> None:
    for number, tasks in world.arrays.items():
        job = world.jobs.get(number)
        require(job is not None and bool(job.spec.array), "no job vanishes", f"array {number} has no job")
        counts = [tasks.phase.count(phase) for phase in TaskPhase]
        require(counts == tasks.counts, "counts are those of the column", f"array {number}: {tasks.counts}, {counts}")
        _check_free_tasks(number, tasks)
        if job is not None:
            over = isinstance(job.phase, TERMINAL)
            require(over == (not tasks.live), "an array ends with its last task", f"array {number}: {counts}")
    missing = [number for number, job in world.jobs.items() if bool(job.spec.array) != (number in world.arrays)]
    require(not missing, "no job vanishes", f"arrays without columns {missing[:5]}")


def _check_free_tasks(number: int, tasks: Tasks) -> None:
    """Tasks that hold no place have no slot and no devices; `leases_of` looks at the others."""
    others = tuple(phase for phase in TaskPhase if phase not in HOLDING)
    for first, count in spans_of(tasks.phase, others, 0, len(tasks)):
        slots, devices = tasks.slot[first : first + count], tasks.devices[first : first + count]
        empty = slots == array("i", [NOWHERE]) * count and devices == array("q", bytes(8 * count))
        require(empty, "a task has a place if and only if it holds one", f"array {number}, tasks from {first}")


def _check_places(world: World) -> None:
    fleet = world.fleet
    held: dict[int, Holding] = {}
    holders: dict[int, dict[int, int]] = {}
    for job, slot, tasks, devices in leases_of(world):
        name, ask = fleet.names[slot] if 0 <= slot < len(fleet) else "nowhere", job.spec.ask
        require(name != "nowhere", "a task has a place if and only if it holds one", f"job {job.id}, slot {slot}")
        books = held.setdefault(slot, Holding())
        asked = 1 if ask.gpu_milli else ask.gpus * tasks
        require(
            devices_in(devices).bit_count() == asked, "a lease has the devices it asked for", f"job {job.id} on {name}"
        )
        whole = books.add(ask, tasks, devices)
        require(whole, "no device is in two leases", f"job {job.id} on {name}: {devices:b}")
        here = holders.setdefault(slot, {})
        here[job.id] = here.get(job.id, 0) + tasks
    require(fleet.holders == holders, "holders are those of the leases", first_change(fleet.holders, holders))
    for slot, name in enumerate(fleet.names):
        _check_slot(world, slot, name, held.get(slot, Holding()))


def _check_slot(world: World, slot: int, name: str, held: Holding) -> None:
    fleet, capacity = world.fleet, world.fleet.capacities[slot]
    fits = all(device < capacity.gpus for device in held.devices) and min(held.left_of(capacity)) >= 0
    require(fits, "allocations fit their node", f"{name} holds {held.amounts} of {capacity}")
    lack = fleet.missing(slot)
    left, rests = held.left_of(capacity, lack), held.rests_of(capacity, lack)
    wanted = (sum(1 << device for device, rest in enumerate(rests) if rest == DEVICE), *left, rests)
    kept = (fleet.read(FREE_MASK, slot), *plain(fleet.free(slot)), fleet.devices(slot))
    taken = [held.slots.get(device, 0) for device in range(capacity.gpus)]
    require(fleet.slots_taken(slot) == taken, "free is capacity minus what is held", f"{name}: slots {taken}")
    require(kept == wanted, "free is capacity minus what is held", f"{name}: columns {kept}, leases leave {wanted}")


def leases_of(world: World) -> Iterator[tuple[Job, int, int, int]]:
    """Every (job, slot, tasks, devices) that is held, from the content alone."""
    for job in world.jobs.values():
        if isinstance(job.phase, ACTIVE):
            yield from held_by(job, job.phase.run.places)
    for number, tasks in world.arrays.items():
        for first, count in spans_of(tasks.phase, HOLDING, 0, len(tasks)):
            for task in range(first, first + count):
                yield world.jobs[number], tasks.slot[task], 1, tasks.devices[task]


def _check_ledger(world: World) -> None:
    """At every node of the tree, and in every scope."""
    used: dict[Account, int] = {}
    for job, slot, tasks in _counted(world):
        site = world.site_of(slot)
        gpus, cpu, memory = site.amounts(job.spec.ask, tasks)
        amounts = {CPU: cpu, MEMORY: memory} | ({} if site.family in NOT_DEVICES else {site.family: gpus})
        for name in _above(world, job.spec.tenant):
            for scope in site.scopes():
                for family, amount in amounts.items():
                    used[(name, family, scope)] = used.get((name, family, scope), 0) + amount
    wanted = {account: amount for account, amount in used.items() if amount}
    kept = world.ledger.holdings()
    require(kept == wanted, "the ledger is the sum of the leases", first_change(kept, wanted))


def _counted(world: World) -> Iterator[tuple[Job, int, int]]:
    """Every (job, slot, tasks) that the quota counts: what is held, and what is claimed."""
    for job, slot, tasks, _ in leases_of(world):
        yield job, slot, tasks
    for number, claim in world.claims.items():
        for job, slot, tasks, _ in held_by(world.jobs[number], claim.leases):
            yield job, slot, tasks


def _check_budgets(world: World) -> None:
    """What everybody spends is what is held at the price that it was begun with, and every budget has its account."""
    budgets = world.budgets
    rates: dict[tuple[str, str], int] = {}
    for job, slot, tasks, _ in leases_of(world):
        name, flavor = world.fleet.flavor(slot), world.flavor_of(slot)
        milli = (1000 * job.spec.ask.gpus + job.spec.ask.gpu_milli) * tasks
        price = budgets.prices.get(job.id, {}).get(name, flavor.price_micros)
        spends = {GPU_HOURS: 0 if flavor.family in NOT_DEVICES else milli * flavor.units, MONEY: milli * price}
        for owner in _above(world, job.spec.tenant):
            for unit, rate in spends.items():
                rates[(owner, unit)] = rates.get((owner, unit), 0) + rate
    kept = {(each.tenant, each.budget): each.rate for each in budgets.all()}
    wanted = {
        (name, budget): rates.get((name, budget.unit), 0)
        for name, tenant in world.tenants.items()
        for budget in tenant.budgets
    }
    require(kept == wanted, "what is spent in a moment is that of the leases", first_change(kept, wanted))
    for job_id, name in [(number, name) for number, prices in budgets.prices.items() for name in prices]:
        holds = any(job_id in here and world.fleet.flavor(slot) == name for slot, here in world.fleet.holders.items())
        require(holds, "an old price is kept for what is held", f"job {job_id}: {name}")


def _above(world: World, tenant: str) -> Iterator[str]:
    """A tenant and all above it, the root too, by the records alone."""
    for _ in range(DEPTH_MAX + 2):
        yield tenant
        if tenant == ROOT:
            return
        tenant = world.tenant_of(tenant).parent
    raise InvariantError("the tree of tenants ends at its root", tenant)


def _check_sites(world: World) -> None:
    """What each slot counts as, what is healthy, and what is held on nodes that are not."""
    fleet, sites = world.fleet, world.sites
    nodes, healthy, closed = [0] * len(sites.all), [[0, 0, 0] for _ in sites.all], [[0, 0, 0] for _ in sites.all]
    for slot in range(len(fleet)):
        site, flavor, place = world.site_of(slot), world.flavor_of(slot), fleet.traits[slot].place
        known = (site.family, site.units, site.region, site.cluster)
        wanted = (flavor.family, flavor.units, place.region, place.cluster)
        require(known == wanted, "a slot counts as its flavor and place", f"{fleet.names[slot]}: {known}, {wanted}")
        nodes[site.number] += 1
        if fleet.is_open(slot):
            _add(healthy[site.number], site.amounts(fleet.capacity(slot)))
    for job, slot, tasks, _ in leases_of(world):
        if not fleet.is_open(slot):
            site = world.site_of(slot)
            _add(closed[site.number], site.amounts(job.spec.ask, tasks))
    kept, counted = (sites.nodes, sites.healthy, sites.closed), (nodes, healthy, closed)
    require(kept == counted, "sites are those of the nodes", f"kept {kept}, counted {counted}")


def _add(vector: list[int], amounts: tuple[int, int, int]) -> None:
    for kind, amount in enumerate(amounts):
        vector[kind] += amount


def _check_devices(world: World) -> None:
    """Every device counts once: of the live nodes that are not in quarantine for it, one claims it."""
    fleet = world.fleet
    owners: dict[str, int] = {}
    for slot in range(len(fleet)):
        for device in () if is_quarantined(fleet, slot) else devices_of(fleet, slot):
            other = owners.setdefault(device, slot)
            where = f"{device}: {fleet.addresses[other]} and {fleet.addresses[slot]}"
            require(other == slot, "no device is in two nodes", where)
    for slot, lack in fleet.lacks.items():
        whole, count = fleet.capacities[slot], lack.devices.bit_count()
        sound = not lack.devices >> whole.gpus and lack.amount.gpus == count and lack != NO_LACK
        few = all(a <= b for a, b in zip(plain(lack.amount), plain(whole), strict=True))
        require(sound and few, "a node lacks only what it joined with", f"{fleet.addresses[slot]}: {lack} of {whole}")


def _check_index(world: World) -> None:
    """The arena is what a lay-out from nothing would be, but for bounds, which may be above the truth."""
    fleet = world.fleet
    addresses = [address_of(name, fleet.traits[slot].place) for slot, name in enumerate(fleet.names)]
    named = {address: slot for slot, address in enumerate(addresses)}
    require(fleet.slot_of == named, "a slot belongs to one node", first_change(fleet.slot_of, named))
    require(fleet.addresses == addresses, "a slot belongs to one node", "addresses differ from names and places")
    fault = fleet.find_index_fault()
    require(fault is None, "the index is what is free", str(fault))


def _check_bars(world: World) -> None:
    law = "a node has one bar of a kind and an owner"
    for slot, bars in world.fleet.bars.items():
        keys = [(bar.kind, bar.owner) for bar in bars]
        tidy = bool(keys) and 0 <= slot < len(world.fleet) and keys == sorted(dict.fromkeys(keys))
        require(tidy, law, f"slot {slot}: {keys}")


def _check_blocked(world: World) -> None:
    """A task is blocked as long as its like is not over, those in all arrays that it follows have not succeeded, or as
    many of its own array are at it as may be."""
    law = "a task is blocked until its like is over"
    for number, tasks in world.arrays.items():
        job = world.jobs[number]
        likes = [world.arrays[other].phase for other in job.spec.likes if other in job.waits and other in world.arrays]
        is_full = check_throttle(world, job, tasks)
        for first, count in spans_of(tasks.phase, (TaskPhase.BLOCKED,), 0, len(tasks)):
            for task in range(first, first + count):
                stages = [phases[task] for phases in likes if phases[task] != TaskPhase.SUCCEEDED]
                is_open = bool(stages) and all(TaskPhase(stage) in LIVE for stage in stages)
                require(is_open or (is_full and not stages), law, f"job {number}, task {task}: {stages}")


def _check_successors(world: World) -> None:
    """Who waits for others is found by them, and none of them is over."""
    wanted: dict[int, list[int]] = {}
    for number, job in sorted(world.jobs.items()):
        named = [each.job for each in job.spec.after]
        waits = not job.waits or (not isinstance(job.phase, TERMINAL) and set(job.waits) <= set(named))
        require(waits, "a job waits for those that it names", f"job {number}: {job.waits} of {named}")
        for other in job.waits:
            wanted.setdefault(other, []).append(number)
    kept = {number: sorted(jobs) for number, jobs in world.successors.items()}
    require(kept == wanted, "who waits for others is found by them", first_change(kept, wanted))
    _check_blocked(world)
    over = [number for number in wanted if number not in world.jobs or isinstance(world.jobs[number].phase, TERMINAL)]
    require(not over, "nobody waits for a job that is over", f"jobs {over[:5]}: {[wanted[n] for n in over[:5]]}")


def _check_timers(world: World) -> None:
    timers, jobs = world.timers.fork(), world.jobs.copy()
    limits: list[tuple[int, int]] = []
    ended: list[tuple[int, int]] = []
    while (found := timers.find_limit(jobs)) is not None:
        limits.append(found)
        del jobs[found[1]]
    jobs = world.jobs.copy()
    while (found := timers.find_ended(jobs)) is not None:
        ended.append(found)
        del jobs[found[1]]
    law = "every limit and every end has its timer"
    wanted = sorted(_limits(world))
    require(sorted(limits) == wanted, law, f"limits found {sorted(limits)[:5]}, wanted {wanted[:5]}")
    overdue = [number for deadline, number in wanted if deadline <= world.now]
    require(not overdue, "no run goes on past its limit", f"at {world.now}: jobs {overdue[:5]}")
    over = sorted((job.phase.since, job.id) for job in world.jobs.values() if isinstance(job.phase, TERMINAL))
    require(sorted(ended) == over, law, f"ends found {len(ended)}, wanted {len(over)}")


def _check_bar_ends(world: World) -> None:
    timers, bars = world.timers.fork(), world.fleet.bars.copy()
    found: list[BarEnd] = []
    while (end := timers.find_bar(bars)) is not None:
        found.append(end)
        bars[end[1]] = tuple(bar for bar in bars[end[1]] if (bar.kind, bar.owner) != end[2:])
    wanted = sorted(
        (bar.until, slot, bar.kind, bar.owner)
        for slot, here in world.fleet.bars.items()
        for bar in here
        if bar.until is not None
    )
    require(found == wanted, "every bar that ends has its timer", f"found {found[:5]}, wanted {wanted[:5]}")
    overdue = [end for end in wanted if end[0] <= world.now]
    require(not overdue, "no bar stands past its time", f"at {world.now}: {overdue[:5]}")


def _limits(world: World) -> Iterator[tuple[int, int]]:
    for job in world.jobs.values():
        if isinstance(job.phase, Running) and job.spec.limit_ms is not None:
            yield job.phase.since + job.spec.limit_ms, job.id


def _check_usage(world: World) -> None:
    """Charges are those of books that were opened anew and of the leases, and the walk goes by them."""
    twin = World()
    twin.now, twin.sites = world.now, world.sites
    twin.tenants.update(world.tenants)
    for tenant, family, uses in world.usage.books(world.now):
        twin.usage.book(tenant, family, uses, world.now)
    for job in world.jobs.values():
        if isinstance(job.phase, ACTIVE):
            run = job.phase.run
            twin.charge(job.spec, run.places, world.now, run.find_end(job.spec.limit_ms))
    for job, slot, tasks, _ in leases_of(world):
        if job.spec.array:
            twin.charge(job.spec, [Lease(slot, tasks)], world.now)
    for tenant in dict.fromkeys((*world.usage.accounts, *twin.usage.accounts)):
        kept, wanted = world.usage.charge(tenant, world.now), twin.usage.charge(tenant, world.now)
        require(kept == wanted, "use follows from what is held", f"{tenant}: kept {kept}, wanted {wanted}")
    _check_walk(world, twin)


def _check_walk(world: World, twin: World) -> None:
    """Every band meets first whoever the shares say, however the walk came to be as it is."""
    twin.walk.reset()
    world.walk.settle(world.now)
    for shape in world.queue.shapes.values():
        for band in shape.bands.values():
            met, wanted = Tour(world.walk, [band.met]).find_first(), next(twin.walk.in_order(band.lines, world.now))
            require(met == wanted, "the walk goes by the shares", f"met {met}, wanted {wanted}")


def _check_claims(world: World) -> None:
    """Whoever has a claim waits for its places, or moves to them, and what it claims is kept from everybody else."""
    claimed: dict[int, Lack] = {}
    claimants: dict[int, list[int]] = {}
    for number, claim in world.claims.items():
        job = world.jobs.get(number)
        moves = job is not None and is_moving(world, job)
        waits = job is not None and (world.is_waiting(job) or moves) and not (job.held or job.stands_back)
        require(waits, "whoever has a claim waits", f"job {number}")
        check_movers(world, number, claim)
        width, most = claim.width, 0 if job is None else job.spec.places
        if number in world.arrays:
            most = len(claim.movers) or world.arrays[number].counts[TaskPhase.QUEUED]
        require(0 < width <= most, "a claim is for a job's tasks", f"job {number}: {width} of {most}")
        for slot in slots_of(claim):
            claimants.setdefault(slot, []).append(number)
        claimed |= claimed_on(world, slots_of(claim))
    kept = {slot: sorted(jobs) for slot, jobs in world.claimants.items()}
    wanted = {slot: sorted(jobs) for slot, jobs in claimants.items()}
    require(kept == wanted, "it is known who claims something where", first_change(kept, wanted))
    require(world.fleet.claimed == claimed, "what is claimed is kept", first_change(world.fleet.claimed, claimed))
    overdue = [number for number, claim in world.claims.items() if claim.until <= world.now]
    require(not overdue, "no claim stands past its time", f"at {world.now}: jobs {overdue[:5]}")


def _check_runs(world: World) -> None:
    """Who holds places is who has leases; and it is known how many are not plain."""
    holders = {job.id: class_of(job) for job, _, _, _ in leases_of(world)}
    if world.runs is not None:
        kept, held = world.runs.all(), sorted(holders)
        require(kept == held, "runs are those who hold places", f"kept {kept[:5]}, wanted {held[:5]}")
        counts, counted = world.runs.counts(), dict(Counter(holders.values()))
        require(counts == counted, "runs are counted by their class", first_change(counts, counted))
        rows, wanted = (runs.content() for runs in (world.runs, _runs_anew(world)))
        require(rows == wanted, "the rows of runs are their leases, by age", first_change(rows, wanted))
    varied = sum(is_varied(job.spec) for job in world.jobs.values())
    require(world.varied == varied, "it is known how many jobs are varied", f"kept {world.varied}, wanted {varied}")
    owed = count_promised(world)
    require(world.promised == owed, "it is known how much is promised", f"kept {world.promised}, wanted {owed}")


def _runs_anew(world: World) -> Runs:
    return find_runs(world.jobs, world.arrays, world.goodput.marks, world.sites.by_slot)


def _check_goodput(world: World) -> None:
    """Whatever a moment was spent on, it was one thing: what was held, by tenants and jobs, and what was not, by
    nodes, add up to all that there was."""
    for flavor, times in read_account(world, world.now).items():
        wanted, parts = capacity_time(world, flavor, world.now), sum(times.values())
        require(parts == wanted, "every moment is in one bucket", f"{flavor}: {parts} of {wanted}, {times}")
        negative = {bucket.value: time for bucket, time in times.items() if time < 0}
        require(not negative, "every moment is in one bucket", f"{flavor}: {negative}")
    strangers = [number for number in world.goodput.marks if not isinstance(world.jobs[number].phase, ACTIVE)]
    require(not strangers, "marks are those of runs", f"jobs {strangers[:5]}")


def _check_keys(world: World) -> None:
    wanted = {(job.spec.tenant, job.key): job.id for job in world.jobs.values() if job.key}
    kept = dict(world.keys.items())
    require(kept == wanted, "a key names one live job", first_change(kept, wanted))


def _check_mix(world: World) -> None:
    """Tasks by size, of all jobs that are not over; nothing is kept while nobody weighs it."""
    if world.mix is None or not world.fleet.profile.fitting:
        require(world.mix is None and not world.fleet.profile.fitting, "a mix is kept if it is weighed", str(world.mix))
        return
    wanted: dict[int, int] = {}
    for job in world.jobs.values():
        for ask, tasks in () if isinstance(job.phase, TERMINAL) else asks_of(job.spec):
            if ask.gpus > 1:
                wanted[ask.gpus] = wanted.get(ask.gpus, 0) + tasks
    require(world.mix.counts == wanted, "the mix is that of the live jobs", f"kept {world.mix.counts}, found {wanted}")


def _check_company(world: World) -> None:
    """Whoever is mentioned is watched, and is where the leases are."""
    company = world.fleet.company.by_name
    for job in world.jobs.values():
        missing = [name for name in names_in(job.spec.needs) if name not in company]
        require(not missing, "whoever is mentioned is watched", f"job {job.id}: {missing}")
    wanted: dict[str, dict[int, int]] = {name: {} for name in company}
    for slot, here in world.fleet.holders.items() if company else ():
        for number, tasks in here.items():
            places = wanted.get(name_of(world.jobs[number].spec))
            if places is not None:
                places[slot] = places.get(slot, 0) + tasks
    require(company == wanted, "company is where the leases are", f"kept {company}, found {wanted}")


LAWS: Final = (
    _check_counts,
    _check_company,
    _check_mix,
    check_crowd,
    _check_gangs,
    check_widths,
    _check_arrays,
    _check_devices,
    _check_places,
    check_boxes,
    check_floors,
    check_bookings,
    check_overlays,
    _check_ledger,
    _check_sites,
    _check_budgets,
    _check_index,
    _check_bars,
    check_queue,
    _check_successors,
    _check_timers,
    _check_bar_ends,
    check_ends,
    check_task_limits,
    _check_keys,
    _check_claims,
    check_again,
    check_marks,
    _check_runs,
    _check_usage,
    _check_goodput,
)
