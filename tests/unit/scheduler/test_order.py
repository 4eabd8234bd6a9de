"""The order is a walk: band, tier, tenant, and in the leaf priority, who is due, size and id."""

from __future__ import annotations

import random

import pytest

from muster.model import event, fact
from muster.model.node import Traits
from muster.model.spec import Needs
from muster.model.tenant import GPU, Line, gpu_amount
from muster.model.tier import Tier
from muster.scheduler.order import Round
from muster.testing.rig import Rig, spec
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS, Resources
from muster.world.decay import WEIGHT_BITS
from muster.world.line import Line as WaitingLine
from muster.world.usage import amount_of, paid_until


def started(rig: Rig, since: int = 0) -> list[int]:
    """The jobs in the order in which they got their places."""
    facts = [item for outcome in rig.outcomes[since:] for item in outcome.facts]
    return [job for item in facts if isinstance(item, fact.Placed) for job in item.jobs]


def blocked() -> tuple[Rig, int]:
    """One node that somebody holds whole, and how many batches there were so far."""
    rig = Rig(nodes=1, gpus=8)
    rig.submit(8, tenant="blocker")
    return rig, len(rig.outcomes)


def test_the_smallest_share_goes_first_whoever_came_first() -> None:
    rig = Rig(nodes=2, gpus=8)
    rig.submit(6, tenant="a")
    rig.submit(2, tenant="b")
    blocker = rig.submit(8, tenant="blocker")
    jobs = [rig.submit(8, tenant=name) for name in "abc"]
    rig.exit(blocker)
    assert started(rig)[-1] == jobs[2], "c has used nothing"


def test_tenants_of_equal_use_take_turns() -> None:
    rig, since = blocked()
    jobs = [rig.submit(1, tenant=name) for name in "aaabbbccc"]
    rig.exit(1)
    assert started(rig, since) == [jobs[index] for index in (0, 3, 6, 1, 4, 7, 2, 5)]


def test_a_better_tier_goes_before_a_smaller_share() -> None:
    rig = Rig(nodes=2, gpus=8)
    rig.submit(8, tenant="a")
    rig.submit(8, tenant="blocker")
    standard = rig.submit(8, tenant="b")
    critical = rig.submit(8, tenant="a", tier="critical")
    rig.submit(8, tenant="b", tier="opportunistic")
    rig.exit(2)
    assert started(rig)[-1] == critical
    rig.exit(critical)
    assert started(rig)[-1] == standard


def test_a_tier_that_is_set_orders_whoever_waits_anew() -> None:
    rig, _ = blocked()
    rig.submit(8, tenant="a")
    low = rig.submit(8, tenant="b", tier="opportunistic")
    rig.feed(event.SetTier("opportunistic", Tier(1, DAY_MS)))
    rig.exit(1)
    assert started(rig)[-1] == low


def test_priority_orders_the_jobs_of_one_tenant_and_never_compares_tenants() -> None:
    rig, since = blocked()
    jobs = [rig.submit(2, tenant="a"), rig.submit(2, tenant="a", priority=1000), rig.submit(2, tenant="b", priority=-9)]
    rig.submit(8, tenant="z", priority=-1000)
    rig.exit(1)
    assert started(rig, since) == [jobs[1], jobs[2], jobs[0]]


def test_in_a_leaf_the_smaller_one_goes_first_and_then_the_lower_id() -> None:
    rig, since = blocked()
    four, two = rig.submit(4, tenant="a"), rig.submit(2, tenant="a")
    pair, one = rig.submit(1, tenant="a", gang=2), rig.submit(1, tenant="a")
    rig.exit(1)
    assert started(rig, since) == [one, two, pair]
    assert rig.phase(four) == "Queued"


def test_in_a_leaf_one_of_a_priority_or_with_a_due_time_goes_before_smaller_ones_whenever_it_came() -> None:
    rig, since = blocked()
    one, three = rig.submit(1, tenant="a"), rig.submit(3, tenant="a")
    dated = rig.submit(2, tenant="a", due_at=DAY_MS)
    favoured = rig.submit(3, tenant="a", priority=1)
    rig.exit(1)
    assert started(rig, since) == [favoured, dated, one]
    assert rig.phase(three) == "Queued"


def test_whoever_is_due_goes_before_smaller_ones_but_not_before_a_priority_or_a_tier() -> None:
    rig, since = blocked()
    old = rig.submit(8, tenant="a")
    rig.feed(after_ms=DAY_MS - 1)
    small = rig.submit(7, tenant="a")
    favoured = rig.submit(8, tenant="a", priority=1)
    critical = rig.submit(8, tenant="a", tier="critical")
    for job in (1, critical, favoured, old):
        rig.exit(job)
    assert started(rig, since) == [critical, favoured, old, small]


def test_an_infeasible_or_over_quota_head_never_blocks_another_pool_or_tenant() -> None:
    """A gang that does not fit and jobs over their quota, both with the smallest shares and in the best tier."""
    rig = Rig(nodes=2, gpus=8)
    rig.tenant("poor", gpus=8)
    rig.submit(8, tenant="poor", evictable=False)
    rig.submit(4, tenant="busy")
    parked = [rig.submit(1, tenant="poor", tier="critical") for _ in range(3)]
    gang = rig.submit(8, gang=2, tenant="large", tier="critical", priority=1000)
    others = [rig.submit(2, tenant="busy"), rig.submit(1, tenant="large"), rig.submit(1, tenant="busy")]
    assert [rig.phase(job) for job in (*parked, gang)] == ["Queued"] * 4
    assert [rig.phase(job) for job in others] == ["Starting"] * 3


def test_a_head_without_room_in_its_pool_never_blocks_another_pool() -> None:
    rig = Rig(nodes=0)
    for name, flavor in (("h1", "h100"), ("a1", "a100")):
        rig.feed(event.NodeSeen(name, Resources(8, 64_000, 2**38), traits=Traits(flavor)))
    hopper, ampere = Needs(flavors=("h100",)), Needs(flavors=("a100",))
    rig.submit(8, tenant="a", needs=hopper)
    head = rig.submit(1, tenant="b", needs=hopper, tier="critical", priority=1000)
    behind = rig.submit(1, tenant="b", needs=ampere, tier="opportunistic", priority=-1000)
    assert (rig.phase(head), rig.phase(behind)) == ("Queued", "Starting")


def test_work_inside_its_guarantee_goes_before_work_that_would_borrow() -> None:
    """Whatever the tier and the share: `owner` has used a day of the whole node, and still its guarantee is its own."""
    rig = Rig(nodes=1, gpus=8)
    rig.tenant("owner", Line(GPU, guaranteed=gpu_amount(4)))
    first = rig.submit(8, tenant="owner", tier="critical")
    borrower = rig.submit(8, tenant="guest", tier="critical")
    inside = rig.submit(4, tenant="owner", tier="opportunistic")
    rig.feed(after_ms=DAY_MS)
    rig.exit(first)
    assert (rig.phase(inside), rig.phase(borrower)) == ("Starting", "Queued")


def test_an_array_borrows_only_when_nobody_is_left_inside() -> None:
    """Of 8 free GPUs, 2 are a's own and 2 are b's; a borrows the rest after b has what is its own."""
    rig = Rig(nodes=1, gpus=8)
    for name in "ab":
        rig.tenant(name, Line(GPU, guaranteed=gpu_amount(2)))
    blocker = rig.submit(8, tenant="c")
    arrays = [rig.submit(1, tenant=name, array=count) for name, count in (("a", 20), ("b", 2))]
    rig.exit(blocker)
    assert [rig.world.arrays[job].counts[1] for job in arrays] == [6, 2]


def test_the_walk_goes_down_the_tree() -> None:
    """
    root ┬ lab ┬ x     x and y take turns inside the lab, and the lab with z
         │     └ y
         └ z
    """
    rig, since = blocked()
    rig.tenant("lab")
    for name in "xy":
        rig.tenant(name, parent="lab")
    jobs = {name: [rig.submit(1, tenant=name) for _ in range(4)] for name in "xyz"}
    rig.exit(1)
    x, y, z = (jobs[name] for name in "xyz")
    assert started(rig, since) == [x[0], z[0], y[0], z[1], x[1], z[2], y[1], z[3]]


def test_a_tenant_with_children_is_met_among_them() -> None:
    rig, since = blocked()
    rig.tenant("lab")
    rig.tenant("x", parent="lab")
    jobs = [rig.submit(1, tenant=name) for name in ("lab", "x", "lab", "x")]
    rig.exit(1)
    assert started(rig, since) == jobs


def test_a_tree_that_changes_orders_whoever_waits_anew() -> None:
    rig = Rig(nodes=2, gpus=8)
    rig.submit(6, tenant="x")
    blocker = rig.submit(8, tenant="blocker")
    x, z = rig.submit(8, tenant="x"), rig.submit(8, tenant="z")
    rig.tenant("z", weight=1, parent="")
    rig.tenant("x", weight=1_000_000)
    rig.submit(2, tenant="z")
    rig.exit(blocker)
    assert (rig.phase(x), rig.phase(z)) == ("Starting", "Queued"), "6 GPUs over a million are less than 2 over 1"


@pytest.mark.parametrize("seed", range(6))
def test_nobody_is_passed_more_often_than_the_shares_say(seed: int) -> None:
    """The bound on waiting: whoever has a share smaller by d goes first at most d / c + 1 times, where c is the charge
    of one of its jobs over its weight; of equal shares and charges, that is once each."""
    dice = random.Random(seed)
    rig = Rig(nodes=8, gpus=8)
    for number, name in enumerate("abcd"):
        rig.tenant(name, weight=1 + number % 2 * dice.randrange(3))
        rig.submit(1, tenant=name, gang=dice.randrange(1, 9))
    blocker = rig.submit(1, tenant="blocker", gang=64 - sum(rig.job(number).spec.gang for number in range(1, 5)))
    for name in "abcd" * 9:
        rig.submit(1, tenant=name)
    weights = {name: rig.world.tenants[name].weight for name in "abcd"}
    shares = {name: rig.world.usage.charge(name, rig.now) // weights[name] for name in "abcd"}
    before = len(rig.outcomes)
    rig.exit(blocker)
    order = [rig.job(number).spec.tenant for number in started(rig, before)]
    charge = amount_of(Resources(1), 1) * (paid_until(rig.now) - rig.now) << WEIGHT_BITS
    for mine in "abcd":
        ahead = order[: order.index(mine)]
        for other in set("abcd") - {mine}:
            gap = max(-1, (shares[mine] - shares[other]) * weights[other] // charge)
            assert ahead.count(other) <= gap + 1, (mine, other, order)


def test_arrays_of_several_tenants_share_what_is_free() -> None:
    rig = Rig(nodes=4, gpus=8)
    blocker = rig.submit(8, tenant="blocker", gang=4)
    arrays = [rig.submit(1, tenant=name, array=100) for name in "ab"]
    rig.exit(blocker)
    assert [rig.world.arrays[job].counts[1] for job in arrays] == [16, 16]


def test_nobody_starts_before_one_of_a_smaller_share_who_asks_for_the_same() -> None:
    """The promise, in any history: whoever starts has the smallest share of all who wait in its band and shape."""
    dice = random.Random(5)
    rig = Rig(nodes=3, gpus=4)
    running: list[int] = []
    for _ in range(600):
        gpus, name = dice.choice((1, 2)), dice.choice("abcd")
        before = len(rig.outcomes)
        rig.feed(event.Submit(spec(gpus, tenant=name)), after_ms=dice.choice((1000, MINUTE_MS, HOUR_MS)))
        if running and dice.random() < 0.9:
            number = running.pop(dice.randrange(len(running)))
            waiting = _shares_of_waiting(rig)
            rig.exit(number)
            for job in started(rig, before + 1)[:1]:
                who, ended = rig.job(job).spec, rig.job(number).spec.tenant
                shares = waiting[who.ask]
                assert shares[who.tenant] == min(shares.values()) or who.tenant == ended, "whose share just fell"
        running += started(rig, before)


def _shares_of_waiting(rig: Rig) -> dict[Resources, dict[str, int]]:
    found: dict[Resources, dict[str, int]] = {}
    for number in rig.world.queue.waiting():
        who = rig.job(number).spec
        found.setdefault(who.ask, {})[who.tenant] = rig.world.usage.charge(who.tenant, rig.now + 1)
    return found


def test_many_who_are_passed_by_do_not_hide_who_comes_behind_them() -> None:
    """A tour that is begun anew meets them again: once it was begun for ever."""
    rig, _ = blocked()
    jobs = [rig.submit(8, tenant=name) for name in "abcdefgh"]
    rig.world.queue.wake_all()
    turns = Round(rig.world, rig.now)
    for job in jobs[:-1]:
        found = turns.find_next()
        assert found is not None
        assert found[1] == job
        turns.pass_by(found[0])
    turns = _begun_anew(turns)
    last = turns.find_next()
    assert last is not None
    assert last[1] == jobs[-1]


def _begun_anew(turns: Round) -> Round:
    turns._tour = None  # as when somebody was served, or the last tour came to its end
    return turns


def test_a_line_is_looked_at_as_often_as_it_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once more for each start of its tenant: where many lines are due that differ, a cycle would take minutes."""
    count, looks, honest = 40, [0], WaitingLine.first
    rig = Rig(nodes=count, gpus=1)
    blockers = [rig.submit(1, tenant="blocker") for _ in range(count)]
    jobs = [rig.submit(ask=Resources(1, 1000 + number)) for number in range(count)]

    def first(line: WaitingLine, since: int) -> int:
        looks[0] += 1
        return honest(line, since)

    monkeypatch.setattr(WaitingLine, "first", first)
    since = len(rig.outcomes)
    rig.feed(*[event.Exited(job, 1, 0, 0, 1) for job in blockers], after_ms=30 * DAY_MS)
    assert started(rig, since) == jobs
    assert count <= looks[0] <= 4 * count
