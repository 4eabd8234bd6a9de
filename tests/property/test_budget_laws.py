"""The laws of budgets: spent is the sum over leases of rate times time, to the last unit, however often it is read and
however the batches are cut; and the moment at which one will be spent follows from it."""

from __future__ import annotations

import random
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.control.tenants import view_tenants
from muster.kernel.kernel import Outcome
from muster.model import fact
from muster.model.budget import GPU_HOURS, MONEY, Budget
from muster.model.event import Cancel, Event, Exited, NodeSeen, SetFlavor, SetTenant, Submit
from muster.model.node import Flavor, Traits
from muster.model.phase import ACTIVE
from muster.model.reason import Refused
from muster.model.spec import Spec
from muster.model.tenant import GPU, Line, Tenant, gpu_amount
from muster.testing.rig import Rig, spec
from muster.units import MINUTE_MS, Resources
from muster.world.apply import unroll
from muster.world.budgets import SCALE
from muster.world.laws.invariants import check_world
from muster.world.snapshot import restore, snapshot

LAWFUL = settings(derandomize=True, deadline=None, max_examples=30)
SEEDS = st.integers(0, 2**32)
PARENTS = {"org": "", "a": "org", "b": "org", "c": ""}


class Lease:
    """One task's hold on one node, as the facts tell it."""

    def __init__(self, job: int, spec: Spec, slot: int, rates: dict[str, int], begin: int) -> None:
        self.job, self.spec, self.slot, self.rates, self.begin = job, spec, slot, rates, begin
        self.end: int | None = None

    def spent(self, unit: str, since: int, now: int) -> int:
        end = now if self.end is None else self.end
        return self.rates[unit] * max(0, end - max(self.begin, since))


class Witness:
    """Writes down every lease with its begin, its end and the price of its flavor when the job first held some."""

    def __init__(self) -> None:
        self.leases: list[Lease] = []
        self.flavors: dict[str, Flavor] = {}
        self.specs: dict[int, Spec] = {}

    def see(self, rig: Rig, outcome: Outcome) -> None:
        for item in outcome.facts:
            if isinstance(item, fact.FlavorSet):
                self.flavors[item.name] = item.flavor
            elif isinstance(item, fact.Accepted):
                self.specs[item.job] = item.spec
            elif isinstance(item, fact.Placed):
                for job, run in unroll(item, outcome.at):
                    self.begin(rig, job, [lease.slot for lease in run.leases for _ in range(lease.tasks)], outcome.at)
            elif isinstance(item, fact.TasksPlaced):
                slots = [slot for slot, count in zip(item.slots, item.counts, strict=True) for _ in range(count)]
                self.begin(rig, item.job, slots, outcome.at)
            elif isinstance(item, fact.Ended | fact.Requeued) and not self.specs[item.job].array:
                self.finish(item.job, outcome.at)
            elif isinstance(item, fact.TasksEnded):
                self.finish(item.job, outcome.at, item.total)

    def begin(self, rig: Rig, job: int, slots: list[int], at: int) -> None:
        for slot in slots:
            name = rig.world.fleet.flavor(slot)
            flavor, ask = self.flavors.get(name, Flavor(name)), self.specs[job].ask
            mine = [lease for lease in self.leases if lease.job == job and lease.end is None]
            paid = [lease.rates[MONEY] for lease in mine if rig.world.fleet.flavor(lease.slot) == name]
            milli = 1000 * ask.gpus + ask.gpu_milli
            rates = {GPU_HOURS: milli * flavor.units, MONEY: paid[0] if paid else milli * flavor.price_micros}
            self.leases.append(Lease(job, self.specs[job], slot, rates, at))

    def finish(self, job: int, at: int, count: int | None = None) -> None:
        """Tasks of an array run on one node here, so which of them ends does not matter."""
        open_ones = [lease for lease in self.leases if lease.job == job and lease.end is None]
        for lease in open_ones[:count]:
            lease.end = at

    def spent(self, tenant: str, unit: str, since: int, now: int) -> int:
        below = [lease for lease in self.leases if tenant in (lease.spec.tenant, PARENTS.get(lease.spec.tenant))]
        return sum(lease.spent(unit, since, now) for lease in below)


def opening(dice: random.Random) -> list[Event]:
    """Arrays fit on one node only; two flavors with prices; budgets at every level of the tree."""
    events: list[Event] = [
        SetFlavor(GPU, Flavor(GPU, price_micros=7)),
        SetFlavor("h100", Flavor("hopper", units=1300, price_micros=11)),
        NodeSeen("n0", Resources(8, 64_000, 2**36)),
        NodeSeen("n1", Resources(8, 1000, 2**36), traits=Traits("h100")),
    ]
    for name, parent in PARENTS.items():
        line = Line(GPU, guaranteed=gpu_amount(4 if name == "org" else dice.randint(0, 2)))
        events.append(SetTenant(name, Tenant(parent, lines=(line,), budgets=draw_budgets(dice))))
    return events


def draw_budgets(dice: random.Random) -> tuple[Budget, ...]:
    kinds = [(unit, soft) for unit in (GPU_HOURS, MONEY) for soft in (False, True)]
    return tuple(
        Budget(
            unit, dice.randint(0, 4_000_000), soft, dice.choice((0, MINUTE_MS, 61 * MINUTE_MS + 1)), dice.randint(0, 99)
        )
        for unit, soft in sorted(dice.sample(kinds, dice.randint(0, 3)))
    )


def draw(dice: random.Random, rig: Rig) -> Event:
    running = [job for job in rig.world.jobs.values() if isinstance(job.phase, ACTIVE)]
    kind = dice.randint(0, 9)
    if kind < 3 and running:
        job = dice.choice(running)
        return Exited(job.id, job.epoch, dice.randint(0, 1), 0, job.spec.gang)
    if kind == 3:
        return Cancel(dice.randint(1, max(1, rig.world.next_job - 1)))
    if kind == 4:
        return SetFlavor("h100", Flavor("hopper", units=1300, price_micros=dice.randint(0, 30)))
    if kind == 5:
        arrays = [number for number in rig.world.arrays if number in rig.world.jobs]
        return Exited(dice.choice(arrays), 1, 0, dice.randint(0, 2), 1) if arrays else Cancel(1)
    tenant, retries = dice.choice(("a", "b", "c", "org", "x")), dice.randint(0, 1)
    if kind == 6:
        ask = Resources(1, 2000)
        return Submit(spec(ask=ask, tenant=tenant, array=3))
    ask = Resources(0, 500, 0, 250) if dice.random() < 0.3 else Resources(dice.randint(0, 3), 100)
    return Submit(spec(ask=ask, tenant=tenant, gang=1 if ask.gpu_milli else dice.randint(1, 2), retries=retries))


def lives(seed: int, width: int = 1) -> Iterator[tuple[Rig, Witness]]:
    """A rig and its witness after every batch of up to `width` events."""
    dice, rig, witness = random.Random(seed), Rig(), Witness()
    opened = rig.feed(*opening(dice))
    assert not [answer for answer in opened.answers if isinstance(answer, Refused)]
    witness.see(rig, opened)
    for _ in range(30):
        gap = dice.choice((0, 1, 999, MINUTE_MS, 10 * MINUTE_MS, 3 * 60 * MINUTE_MS))
        events = [draw(dice, rig) for _ in range(dice.randint(1, width))]
        witness.see(rig, rig.feed(*events, after_ms=gap))
        yield rig, witness


def check_exact(rig: Rig, witness: Witness, now: int) -> None:
    for account in rig.world.budgets.all():
        wanted = witness.spent(account.tenant, account.budget.unit, account.budget.starts_at(now), now)
        assert account.spent(now) == wanted, (account.tenant, account.budget)


@LAWFUL
@given(SEEDS, st.integers(1, 5))
def test_spent_is_the_sum_over_leases_of_rate_times_time(seed: int, width: int) -> None:
    """At each batch, and also at moments after it at which nothing happens, beyond the end of the period too."""
    for rig, witness in lives(seed, width):
        for later in (0, 1, 12_345, 5 * 60 * MINUTE_MS):
            check_exact(rig, witness, rig.now + later)


@LAWFUL
@given(SEEDS)
def test_reading_changes_nothing(seed: int) -> None:
    for rig, _ in lives(seed):
        before = snapshot(rig.world)
        view_tenants(rig.world, rig.now + 10**9)
        assert snapshot(rig.world) == before


@LAWFUL
@given(SEEDS)
def test_a_restored_world_has_spent_the_same_and_goes_on_spending_so(seed: int) -> None:
    for rig, witness in lives(seed):
        twin = Rig()
        twin.kernel.world = restore(snapshot(rig.world))
        check_world(twin.world)
        check_exact(twin, witness, rig.world.now + 77)
        assert twin.world.budgets.find_turn() == rig.world.budgets.find_turn()


@LAWFUL
@given(SEEDS, st.integers(1, 5))
def test_the_moment_at_which_a_hard_budget_will_be_spent_is_exact_and_somebody_wakes_for_it(
    seed: int, width: int
) -> None:
    for rig, _ in lives(seed, width):
        wake_at = rig.outcomes[-1].wake_at
        for account in rig.world.budgets.all():
            most, ends_at = account.budget.amount * SCALE[account.budget.unit], account.ends_at()
            if ends_at is not None and not account.budget.soft and not account.is_spent(rig.now):
                assert account.base + account.rate * (ends_at - 1) < most <= account.base + account.rate * ends_at
                assert wake_at is not None
                assert wake_at <= ends_at


@LAWFUL
@given(SEEDS)
def test_what_is_shown_is_rounded_down_and_never_more_than_was_spent(seed: int) -> None:
    rig, _ = list(lives(seed))[-1]
    shown = {
        (view.name, one.unit, one.soft): one.spent for view in view_tenants(rig.world, rig.now) for one in view.budgets
    }
    for account in rig.world.budgets.all():
        budget, spent = account.budget, account.spent(rig.now)
        here = shown[(account.tenant, budget.unit, budget.soft)]
        assert here * SCALE[budget.unit] <= spent < (here + 1) * SCALE[budget.unit]


def test_the_lives_are_worth_something() -> None:
    seen = dict.fromkeys(("spent", "turned", "old price", "waits", "soft", "stopped"), 0)
    for seed in range(60):
        for rig, _ in lives(seed, 3):
            accounts = list(rig.world.budgets.all())
            spent = [one for one in accounts if one.budget.amount and one.is_spent(rig.now)]
            seen["spent"] += any(not one.budget.soft for one in spent)
            seen["soft"] += any(one.budget.soft for one in spent)
            seen["turned"] += any(isinstance(item, fact.BudgetTurned) for item in rig.outcomes[-1].facts)
            seen["old price"] += bool(rig.world.budgets.prices)
            stops = [item for item in rig.outcomes[-1].facts if isinstance(item, fact.StopAsked | fact.TasksMoved)]
            seen["stopped"] += any(item.cause.startswith("budget ") for item in stops)
            seen["waits"] += bool(rig.world.queue.outside)
    assert all(count > 30 for count in seen.values()), seen
