"""The laws of the quota, in words, over random trees, fleets and histories; drawn by dice, so that trees are deep and
fleets are crowded."""

from __future__ import annotations

import random
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.control.tenants import view_tenants
from muster.model.budget import GPU_HOURS, Budget
from muster.model.event import (
    BarNode,
    DropTenant,
    Event,
    Exited,
    NodeGone,
    NodeSeen,
    NodeSilent,
    SetFlavor,
    SetTenant,
    Submit,
)
from muster.model.job import BarKind, Job
from muster.model.node import Flavor, Place, Traits
from muster.model.phase import ACTIVE
from muster.model.reason import Code
from muster.model.tenant import CPU, FLEET, GPU, GPU_ONE, MEMORY, OPEN, ROOT, Line, Tenant, device_amount
from muster.scheduler.reasons import explain
from muster.testing.rig import Rig, spec
from muster.units import Resources
from muster.world.ledger import Account, Ledger
from muster.world.quota import Share, Standing, apportion, children_of
from muster.world.sites import Site
from muster.world.snapshot import restore, snapshot
from muster.world.tasks import HOLDING, spans_of
from muster.world.world import World

LAWFUL = settings(derandomize=True, deadline=None, max_examples=60)
SEEDS = st.integers(0, 2**32)
NAMES = ("org", "lab", "a", "b", "c")
SCOPES = (FLEET, "eu", "eu/c0")
PASSING = (Code.NOTHING_TO_BORROW, Code.BUDGET_SPENT, Code.SOFT_BUDGET_SPENT)
PLACES = (Place(), Place("eu"), Place("eu", "c0"), Place("us", "c0"))


# -- histories ---------------------------------------------------------------------------------------------------


def open_rig(dice: random.Random) -> Rig:
    """Three flavors of two families, nodes in several places, and a tree of tenants with lines."""
    rig = Rig()
    rig.feed(SetFlavor("h100", Flavor("hopper")), SetFlavor("h200", Flavor("hopper", units=1400)))
    for number in range(dice.randint(2, 5)):
        traits = Traits(dice.choice(("", "h100", "h200")), dice.choice(PLACES))
        rig.feed(NodeSeen(f"n{number}", Resources(dice.randint(2, 8), 16_000, 2**34), traits=traits))
    for _ in range(dice.randint(2, 10)):
        rig.feed(draw_tenant(dice))
    return rig


def draw_tenant(dice: random.Random) -> SetTenant:
    """Often refused, for the tree would be a loop, or promise too much."""
    keys = [(family, scope) for family in (GPU, "hopper", CPU) for scope in SCOPES]
    lines = tuple(draw_line(dice, *key) for key in dice.sample(keys, dice.randint(0, 3)))
    budgets = (Budget(GPU_HOURS, dice.randint(0, 40), dice.random() < 0.5),) if dice.random() < 0.2 else ()
    return SetTenant(dice.choice(NAMES), Tenant(dice.choice((ROOT, ROOT, *NAMES)), lines=lines, budgets=budgets))


def draw_line(dice: random.Random, family: str, scope: str) -> Line:
    one = 1000 if family == CPU else GPU_ONE
    guaranteed = dice.choice((0, dice.randint(1, 12)))
    limit = dice.choice((None, guaranteed + dice.randint(0, 8)))
    lend = dice.choice((None, dice.randint(0, 4)))
    return Line(family, scope, guaranteed * one, *(None if each is None else each * one for each in (limit, lend)))


def draw_work(dice: random.Random, rig: Rig) -> Event:
    """A job comes, or one that runs ends."""
    running = [job.id for job in rig.world.jobs.values() if isinstance(job.phase, ACTIVE) and not job.spec.array]
    if running and dice.random() < 0.4:
        return exit_of(rig, dice.choice(running))
    share = dice.choice((0, 0, 300))
    shape = {"array": dice.randint(1, 6)} if dice.random() < 0.3 else {"gang": 1 if share else dice.randint(1, 4)}
    ask = Resources(0 if share else dice.randint(0, 4), dice.randint(1, 4000), 2**20, share)
    return Submit(spec(ask=ask, tenant=dice.choice((*NAMES, "x")), evictable=dice.random() < 0.6, **shape))


def exit_of(rig: Rig, job: int) -> Event:
    return Exited(job, rig.job(job).epoch, 0, 0, rig.job(job).spec.gang)


def draw_trouble(dice: random.Random, rig: Rig) -> Event:
    """The admin changes the tree, or hardware comes and goes."""
    node = f"n{dice.randint(0, 4)}"
    kind = dice.randint(0, 5)
    if kind == 0:
        return DropTenant(dice.choice(NAMES))
    if kind == 1:
        return NodeSilent(node)
    if kind == 2:
        return NodeGone(node)
    if kind == 3:
        return BarNode(node, BarKind.CORDON, "admin", until=rig.now + 5)
    if kind == 4:
        return NodeSeen(node, Resources(8, 16_000, 2**34), traits=Traits("h100", dice.choice(PLACES)))
    return draw_tenant(dice)


def histories(seed: int, steps: int = 30, *, quiet: bool = False) -> Iterator[Rig]:
    """A rig after each step of its history; in a quiet one only work comes and goes."""
    dice = random.Random(seed)
    rig = open_rig(dice)
    yield rig
    for _ in range(steps):
        trouble = not quiet and dice.random() < 0.3
        rig.feed(draw_trouble(dice, rig) if trouble else draw_work(dice, rig))
        yield rig


# -- by other means: slow, from the records alone ----------------------------------------------------------------


def leases_of(world: World) -> Iterator[tuple[Job, int, int]]:
    for job in world.jobs.values():
        if job.spec.array:
            tasks = world.arrays[job.id]
            for first, count in spans_of(tasks.phase, HOLDING, 0, len(tasks)):
                for index in range(first, first + count):
                    yield job, tasks.slot[index], 1
        elif isinstance(job.phase, ACTIVE):
            for lease in job.phase.run.leases:
                yield job, lease.slot, lease.tasks
    for number, claim in world.claims.items():  # what is kept for somebody counts as held
        for lease in claim.leases:
            yield world.jobs[number], lease.slot, lease.tasks


def above(world: World, name: str) -> list[str]:
    return [name] if name == ROOT else [name, *above(world, world.tenants.get(name, OPEN).parent)]


def amounts_on(world: World, slot: int, ask: Resources) -> dict[tuple[str, str], int]:
    """What an ask on a node counts as, per family and scope."""
    name, place = world.fleet.flavor(slot), world.fleet.traits[slot].place
    flavor = world.flavors.get(name, Flavor(name))
    amounts = {CPU: ask.cpu_milli, MEMORY: ask.memory_bytes}
    if flavor.family not in amounts:
        amounts[flavor.family] = (1000 * ask.gpus + ask.gpu_milli) * flavor.units
    scopes = {FLEET, place.region, f"{place.region}/{place.cluster}" if place.cluster else FLEET}
    return {(family, scope): amount for family, amount in amounts.items() for scope in sorted(scopes)}


def held_by_hand(world: World, *, firm_only: bool = False) -> dict[Account, int]:
    held: dict[Account, int] = {}
    for job, slot, tasks in leases_of(world):
        if firm_only and job.spec.evictable:
            continue
        for key, amount in amounts_on(world, slot, job.spec.ask).items():
            for name in above(world, job.spec.tenant) if amount else ():
                held[(name, *key)] = held.get((name, *key), 0) + amount * tasks
    return held


def healthy_by_hand(world: World, key: tuple[str, str]) -> int:
    fleet = world.fleet
    slots = [slot for slot in range(len(fleet)) if fleet.is_open(slot)]
    return sum(amounts_on(world, slot, fleet.capacity(slot)).get(key, 0) for slot in slots)


def lines_of(world: World) -> list[tuple[str, Line]]:
    return [(name, line) for name in sorted(world.tenants) for line in world.tenants[name].lines]


# -- the laws ----------------------------------------------------------------------------------------------------


@LAWFUL
@given(SEEDS)
def test_the_ledger_is_exact_and_equal_to_a_rebuild(seed: int) -> None:
    """At every node of the tree, in every scope, after every step; and so are a restored world's and a fork's."""
    for rig in histories(seed):
        assert rig.world.ledger.holdings() == held_by_hand(rig.world)
    kept = rig.world.ledger.holdings()
    assert restore(snapshot(rig.world)).ledger.holdings() == kept
    assert rig.world.fork().ledger.holdings() == kept


@LAWFUL
@given(SEEDS)
def test_nobody_is_ever_above_a_limit(seed: int) -> None:
    """As long as nobody lowers one: then it is the start that keeps it, for the tenant and for all above it."""
    for rig in histories(seed, quiet=True):
        held = held_by_hand(rig.world)
        for name, line in lines_of(rig.world):
            assert line.limit is None or held.get((name, line.family, line.scope), 0) <= line.limit


@LAWFUL
@given(SEEDS)
def test_a_guarantee_is_never_eaten_by_work_that_stays(seed: int) -> None:
    """Take away all that may be evicted: then every tenant finds its guarantee, as far as there is hardware for it."""
    for rig in histories(seed, quiet=True):
        world = rig.world
        firm = held_by_hand(world, firm_only=True)
        for name, line in lines_of(world):
            key = (line.family, line.scope)
            others = firm.get((ROOT, *key), 0) - firm.get((name, *key), 0)
            whole = world.quotas.funds()[key].shares[name].whole if line.guaranteed else 0
            assert healthy_by_hand(world, key) - others >= whole


@LAWFUL
@given(SEEDS)
def test_impaired_guarantees_add_up(seed: int) -> None:
    """What is left of the guarantees is what is healthy, or all of them; at each node of the tree the parts make the
    whole; and what is shown as impaired is what is missing."""
    for rig in histories(seed):
        world = rig.world
        for key, fund in world.quotas.funds().items():
            assert fund.root.whole == min(fund.root.claim, healthy_by_hand(world, key))
            check_parts(fund.root)
        for view in view_tenants(world, rig.now):
            for line in view.lines:
                assert 0 <= line.impaired <= line.guaranteed


def check_parts(share: Share) -> None:
    assert share.own + sum(child.whole for child in share.children) == share.whole
    assert share.own_claim + sum(child.claim for child in share.children) == share.claim
    assert 0 <= share.own <= share.own_claim
    for child in share.children:
        assert child.whole <= child.claim
        check_parts(child)


@LAWFUL
@given(st.integers(0, 10**12), st.lists(st.integers(0, 10**12), max_size=9))
def test_a_part_is_its_exact_share_rounded_up_or_down(total: int, claims: list[int]) -> None:
    parts, wanted = apportion(total, claims), sum(claims)
    assert sum(parts) == min(total, wanted)
    if wanted > total:
        assert all(abs(part * wanted - total * claim) < wanted for part, claim in zip(parts, claims, strict=True))


@LAWFUL
@given(SEEDS)
def test_charge_and_refund_are_inverses_wherever_the_tree_moves_meanwhile(seed: int) -> None:
    """And whatever is looked at on the way: it is the sum of what is charged."""
    dice, books = random.Random(seed), Ledger()
    sites = [Site(number, family, 1000 + number, "eu", "c0") for number, family in enumerate((GPU, "hopper", CPU))]
    charged: list[tuple[str, Site, Resources, int]] = []
    for _ in range(60):
        kind = dice.randint(0, 5)
        if kind == 0:
            name, parent = dice.choice(NAMES), dice.choice((ROOT, *NAMES))
            if name not in books.chain(parent):
                books.adopt(name, parent)
        elif kind == 1 and charged:
            books.refund(*charged.pop(dice.randrange(len(charged))))
        elif kind == 2:
            family, scope = dice.choice((GPU, "hopper", CPU, MEMORY)), dice.choice(("", "eu"))
            account = dice.choice((ROOT, *NAMES)), family, scope
            assert books.held(*account) == sum(amount_in(books, account, entry) for entry in charged)
        elif kind == 3:
            books = books.fork()
        else:
            ask = Resources(dice.randint(0, 2), dice.randint(0, 2), dice.randint(0, 2))
            charged.append((dice.choice(NAMES), dice.choice(sites), ask, dice.randint(1, 5)))
            books.charge(*charged[-1])
    for entry in charged:
        books.refund(*entry)
    assert books.holdings() == {}


def amount_in(books: Ledger, account: Account, entry: tuple[str, Site, Resources, int]) -> int:
    """What tasks on a site count for in an account."""
    (name, family, _), (tenant, site, ask, tasks) = account, entry
    amounts = {site.family: device_amount(ask, site.units), CPU: ask.cpu_milli, MEMORY: ask.memory_bytes}
    return amounts.get(family, 0) * tasks if name in books.chain(tenant) else 0


@LAWFUL
@given(SEEDS)
def test_inside_is_what_some_guarantee_covers(seed: int) -> None:
    """By another way: put the amount into the books, and see whether more of them is covered by no guarantee."""
    for rig in histories(seed, steps=12):
        world, dice = rig.world, random.Random(seed)
        for tenant in (*NAMES, "x"):
            slot, ask, tasks = dice.randrange(len(world.fleet)), Resources(dice.randint(0, 3), 700), dice.randint(1, 3)
            found = world.quotas.standing(tenant, world.site_of(slot), ask, tasks)
            if found != Standing.OVER:
                assert (found == Standing.INSIDE) == is_covered(world, tenant, slot, ask, tasks)


def is_covered(world: World, tenant: str, slot: int, ask: Resources, tasks: int) -> bool:
    held = held_by_hand(world)
    for key, amount in amounts_on(world, slot, ask).items():
        tree = {name: (share.own, share.claim) for name, share in shares_of(world, key).items()}
        if not amount or not tree.get(ROOT, (0, 0))[1]:
            continue
        after = {account: used for account, used in held.items() if account[1:] == key}
        before = uncovered(world, ROOT, key, tree, after)
        for name in above(world, tenant):
            after[(name, *key)] = after.get((name, *key), 0) + amount * tasks
        if uncovered(world, ROOT, key, tree, after) > before:
            return False
    return True


def shares_of(world: World, key: tuple[str, str]) -> dict[str, Share]:
    fund = world.quotas.funds().get(key)
    return {} if fund is None else fund.shares


def uncovered(
    world: World, name: str, key: tuple[str, str], tree: dict[str, tuple[int, int]], held: dict[Account, int]
) -> int:
    """What is held below a tenant that neither its guarantee nor one below it covers."""
    owners = [child for child in children_of(world.tenants).get(name, []) if child in tree]
    covered = sum(held.get((child, *key), 0) - uncovered(world, child, key, tree, held) for child in owners)
    return max(0, held.get((name, *key), 0) - covered - tree[name][0])


@LAWFUL
@given(SEEDS)
def test_the_reason_and_the_room_agree_with_the_judgement(seed: int) -> None:
    """A bound is named if and only if the start is not allowed; the headroom is the most tasks that are."""
    for rig in histories(seed, steps=12):
        world, dice = rig.world, random.Random(seed)
        for tenant in (*NAMES, "x"):
            site, evictable = world.site_of(dice.randrange(len(world.fleet))), dice.random() < 0.5
            ask, most = Resources(dice.randint(0, 3), dice.randint(1, 900)), dice.randint(1, 6)
            allowed = [may(world, tenant, site, ask, tasks, evictable=evictable) for tasks in range(1, most + 1)]
            named = [
                world.quotas.find_bound(tenant, site, ask, tasks, evictable=evictable) is None
                for tasks in range(1, most + 1)
            ]
            assert named == allowed
            assert world.quotas.headroom(tenant, site, ask, most, evictable=evictable) == sum(allowed)


def may(world: World, tenant: str, site: Site, ask: Resources, tasks: int, *, evictable: bool) -> bool:
    standing = world.quotas.standing(tenant, site, ask, tasks)
    return standing == Standing.INSIDE or (standing == Standing.BORROWING and evictable)


@LAWFUL
@given(SEEDS)
def test_an_accepted_job_could_start_if_it_were_alone(seed: int) -> None:
    """Nothing waits for a limit or a guarantee that could never let it pass: on an idle, healthy fleet whoever waits
    would start, unless others keep what it would have to borrow, or a budget is of nothing."""
    rig = list(histories(seed, quiet=True))[-1]
    for job in rig.world.jobs.values():
        if rig.world.is_waiting(job):
            alone = idle_twin(rig.world)
            number = alone.submit(
                ask=job.spec.ask, gang=job.spec.gang, tenant=job.spec.tenant, evictable=job.spec.evictable
            )
            waiting = explain(alone.world, alone.job(number))
            assert waiting is None or waiting.reason.code in PASSING, job.spec


def idle_twin(world: World) -> Rig:
    """The same nodes and tenants, and nobody works."""
    twin, fleet = Rig(), world.fleet
    twin.feed(*(SetFlavor(name, flavor) for name, flavor in world.flavors.items()))
    for slot in range(len(fleet)):
        twin.feed(NodeSeen(fleet.names[slot], fleet.capacity(slot), traits=fleet.traits[slot]))
    twin.feed(*(SetTenant(name, world.tenants[name]) for name in in_order(world)))
    return twin


def in_order(world: World) -> list[str]:
    """Parents before children."""
    return sorted(world.tenants, key=lambda name: (len(above(world, name)), name))


def test_the_histories_are_worth_something() -> None:
    """Trees, loans, keepers, impaired guarantees and waiting jobs all occur."""
    seen = dict.fromkeys(("deep", "borrowing", "keeps", "impaired", "waiting"), 0)
    for seed in range(40):
        for rig in histories(seed, steps=20):
            world = rig.world
            funds = world.quotas.funds().values()
            seen["deep"] += any(len(above(world, name)) > 3 for name in world.tenants)
            seen["keeps"] += any(fund.has_keepers for fund in funds)
            seen["impaired"] += any(fund.root.whole < fund.root.claim for fund in funds)
            seen["borrowing"] += any(fund.root.used() > fund.root.whole > 0 for fund in funds)
            seen["waiting"] += any(world.is_waiting(job) for job in world.jobs.values())
    assert all(count > 40 for count in seen.values()), seen
