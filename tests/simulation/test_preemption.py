"""Stories of taking: owners get back what they lent, higher tiers go first, and nobody is stopped in vain."""

from __future__ import annotations

import pytest

from muster.model.errors import InvariantError
from muster.model.event import SetTier
from muster.model.fact import ClaimDropped, Claimed, Fact, StopAsked
from muster.model.node import Spot, Traits
from muster.model.phase import Why
from muster.model.reason import Code
from muster.model.spec import Needs
from muster.model.tier import Tier
from muster.policy.protection import waited_at
from muster.testing.planted import PLANTED
from muster.testing.scene import Scene
from muster.units import HOUR_MS, MINUTE_MS, Resources


def watch(scene: Scene) -> list[Fact]:
    """All facts from now on."""
    seen: list[Fact] = []
    scene.body.observers.append(lambda outcome, _: seen.extend(outcome.facts))
    return seen


def stopped(facts: list[Fact]) -> list[int]:
    return [item.job for item in facts if isinstance(item, StopAsked)]


def lent(owner_gpus: int = 8) -> Scene:
    """Two nodes, all of them borrowed by jobs of two GPUs: g0 to g3 on the first, g4 to g7 on the second."""
    scene = Scene().cluster(nodes=2, gpus=8).share("owner", owner_gpus)
    for number in range(8):
        scene.job(f"g{number}", gpus=2, tenant="guest", minutes=600)
    return scene.run()


def test_an_owner_gets_back_what_it_lent_within_the_grace() -> None:
    scene = lent().job("mine", gpus=4, gang=2, tenant="owner")
    scene.expect(waiting="mine", reason={"mine": Code.CLAIMED})
    scene.run().expect(running=("mine", "g4", "g5", "g6", "g7"), waiting=("g0", "g1", "g2", "g3"))


def test_what_is_stopped_waits_with_the_same_request_and_starts_again() -> None:
    scene = lent().job("mine", gpus=8, tenant="owner", minutes=30)
    before = scene.find_job("g0")
    scene.run().advance(minutes=31).expect(succeeded="mine", running=[f"g{number}" for number in range(8)])
    after = scene.find_job("g0")
    assert before is not None
    assert after is not None
    assert (after.spec, after.failures) == (before.spec, 0)


def test_only_as_much_as_is_needed() -> None:
    scene = lent()
    facts = watch(scene)
    scene.job("mine", gpus=2, tenant="owner").run().expect(held={"owner": 2, "guest": 14})
    assert len(stopped(facts)) == 1


def test_many_small_owners_are_served_at_once_on_one_node() -> None:
    """Claims share a node: eight of them do not wait for each other's victims."""
    scene = Scene().cluster(nodes=1, gpus=8).share("owner", 8)
    for number in range(8):
        scene.job(f"g{number}", tenant="guest")
    scene.run()
    for number in range(8):
        scene.job(f"m{number}", tenant="owner")
    scene.run().expect(held={"owner": 8, "guest": 0})


def test_beyond_its_guarantee_nobody_takes_anything() -> None:
    scene = lent(owner_gpus=4).job("mine", gpus=8, tenant="owner").run()
    scene.expect(waiting="mine", held={"guest": 16})


def test_what_may_not_be_evicted_stays() -> None:
    scene = Scene().cluster(nodes=1, gpus=8).share("firm", 8)
    scene.job("firm", gpus=8, tenant="firm", evictable=False).run()
    scene.job("urgent", gpus=8, tenant="firm", tier="critical").run().expect(running="firm", waiting="urgent")


def test_a_higher_tier_takes_from_its_own_tenant() -> None:
    scene = Scene().cluster(nodes=1, gpus=8).job("low", gpus=8, tier="opportunistic").run()
    facts = watch(scene)
    scene.job("high", gpus=8).run().expect(running="high", waiting="low")
    assert [item.why for item in facts if isinstance(item, StopAsked)] == [Why.PREEMPT]


def test_a_higher_tier_takes_nothing_from_a_stranger_who_owns_as_much() -> None:
    scene = Scene().cluster(nodes=1, gpus=8).job("low", gpus=8, tier="opportunistic", tenant="a").run()
    scene.job("high", gpus=8, tenant="b", tier="critical").run().expect(running="low", waiting="high")


def test_unless_it_is_an_emergency() -> None:
    scene = Scene().cluster(nodes=1, gpus=8).send(SetTier("alarm", Tier(10, HOUR_MS, emergency=True)))
    scene.job("low", gpus=8, tier="critical", tenant="a").run()
    scene.job("high", gpus=8, tenant="b", tier="alarm").run().expect(running="high", waiting="low")


def test_priority_takes_within_one_tenant_and_tier() -> None:
    scene = Scene().cluster(nodes=1, gpus=8).job("low", gpus=8, tenant="a").run()
    scene.job("other", gpus=8, tenant="b", priority=9).run().expect(running="low")
    scene.job("high", gpus=8, tenant="a", priority=1).run().expect(running="high", waiting=("low", "other"))


def test_priority_counts_from_the_next_second_on() -> None:
    """Until then a place may come free by itself; if none does, the second itself wakes the kernel."""
    scene = Scene().cluster(nodes=1, gpus=8).job("low", gpus=8).run()
    stops: list[int] = []
    scene.body.observers.append(lambda outcome, _: stops.extend(outcome.at for _ in stopped(outcome.facts)))
    scene.job("high", gpus=8, priority=1).expect(running="low", waiting="high", reason={"high": Code.NO_ROOM})
    scene.run().expect(running="high", waiting="low")
    high = scene.find_job("high")
    assert high is not None
    assert stops == [waited_at(high.accepted_at)]


def test_a_limit_is_made_room_for_by_the_own_lower_tier() -> None:
    scene = Scene().cluster(nodes=2, gpus=8).tenant("a", gpus=8).job("low", gpus=8, tenant="a").run()
    scene.job("high", gpus=8, tenant="a", tier="critical").run().expect(running="high", waiting="low")


def test_freed_places_are_not_given_away_before_all_victims_are_gone() -> None:
    """Victims leave one by one; small jobs that would fit into each gap are waiting."""
    scene = lent()
    facts = watch(scene)
    for number in range(8):
        scene.job(f"small{number}", gpus=1, tenant="guest")
    scene.job("mine", gpus=8, tenant="owner").run().expect(held={"owner": 8, "guest": 8})
    assert len(stopped(facts)) == 4


@pytest.mark.parametrize("end", ["cancel", "hold"])
def test_who_does_not_want_to_start_any_more_gives_up_its_claim(end: str) -> None:
    scene = lent().job("mine", gpus=8, tenant="owner")
    facts = watch(scene)
    getattr(scene, end)("mine")
    assert isinstance(facts[0], ClaimDropped)
    scene.run().expect(held={"owner": 0, "guest": 16})


def test_a_claim_on_a_node_that_fails_is_given_up_and_made_elsewhere() -> None:
    scene = lent().job("mine", gpus=8, tenant="owner").expect(reason={"mine": Code.CLAIMED})
    facts = watch(scene)
    scene.cordon("node-0")
    assert [type(item).__name__ for item in facts[:2]] == ["NodeBarred", "ClaimDropped"]
    scene.run().expect(running="mine", on={"mine": "node-1"})


def test_a_claim_is_given_up_when_its_time_comes() -> None:
    scene = lent().job("mine", gpus=8, tenant="owner")
    claims = [claim.until for claim in scene.body.world.claims.values()]
    scene.cut_off("node-0").advance(minutes=3)
    assert claims
    assert all(claim.until > claims[0] for claim in scene.body.world.claims.values())


def test_a_gang_is_taken_as_a_whole_and_counts_once() -> None:
    scene = Scene().cluster(nodes=4, gpus=8).share("owner", 8)
    scene.job("gang", gpus=8, gang=3, tenant="guest").job("single", gpus=8, tenant="guest").advance(minutes=10)
    facts = watch(scene)
    scene.job("mine", gpus=8, tenant="owner").run()
    assert stopped(facts) == [scene.number("single")]


def test_the_cheapest_are_taken() -> None:
    scene = Scene().cluster(nodes=2, gpus=8).share("owner", 8)
    scene.job("old", gpus=8, tenant="guest", minutes=600).advance(minutes=60).job("new", gpus=8, tenant="guest")
    scene.run().job("mine", gpus=8, tenant="owner").run().expect(running=("old", "mine"))


def test_a_second_job_of_the_owner_does_not_take_for_what_the_first_will_hold() -> None:
    scene = lent(owner_gpus=8)
    facts = watch(scene)
    scene.job("one", gpus=8, tenant="owner").job("two", gpus=8, tenant="owner").run()
    assert len(stopped(facts)) == 4
    assert sum(isinstance(item, Claimed) for item in facts) == 1
    scene.expect(running=("one", "g4", "g5", "g6", "g7"))


def takings_of_a_flapping_job() -> int:
    """Whatever node the large job is on is drained, again and again: how often it takes others' places in an hour."""
    scene = Scene().cluster(nodes=2, gpus=8)
    for number in range(4):
        scene.job(f"low{number}", gpus=4, tier="opportunistic", minutes=6000)
    facts = watch(scene.run().job("large", gpus=8, minutes=6000).run())
    for _ in range(20):
        for node in scene.nodes_of("large"):
            scene.drain(node, now=True).advance(minutes=1).uncordon(node)
        scene.advance(minutes=2)
    return sum(isinstance(item, Claimed) and item.victims > 0 for item in facts)


def test_a_flapping_job_does_not_stop_others_again_and_again() -> None:
    """F11: a large job whose nodes fail again and again stops others at most a few times; without the back-off, each
    time, and the books notice."""
    assert takings_of_a_flapping_job() <= 6
    with (
        PLANTED["flapping_job_never_backs_off"](),
        pytest.raises(InvariantError, match="a job that takes again and again backs off"),
    ):
        takings_of_a_flapping_job()


@pytest.mark.parametrize(
    ("failure", "plant"),
    [
        ("F7: quota is not released after an eviction", "quota_kept_after_eviction"),
        ("F8: quota is under-counted after a restart", "claim_forgotten_by_restore"),
        ("F9: what was evicted ends, or what is over is let in again", "evicted_for_good"),
        ("F9: terminal is final", "terminal_overwritten"),
        ("F10: freed places are given away before all victims are gone", "claim_not_kept"),
        ("F10: places go round in a circle", "the_weaker_takes"),
        ("F10: whoever is served counts behind those who came while it waited", "served_as_new"),
        ("F11: a flapping job stops others each time", "flapping_job_never_backs_off"),
        ("F12: a gang starts in part", "partial_gang"),
        ("F12: a broken gang loses what is left of its places", "broken_gang_keeps_nothing"),
        ("F12: two broken gangs wait for each other for ever", "broken_gangs_wait_for_ever"),
    ],
)
def test_the_catalogue_of_failures_has_its_planted_bugs(failure: str, plant: str) -> None:
    """`test_planted.py` proves that each is found."""
    assert plant in PLANTED, failure


def test_who_wants_a_box_of_a_torus_takes_the_one_that_loses_least() -> None:
    """A ring of eight nodes, and on each of them a job that runs for so many minutes; a pair of neighbours is wanted.

    t0   t1   t2   t3   t4   t5   t6   t7
    70    1   50   70   40   41   70   70        t1 and t2 lose 51, t4 and t5 would lose 81
    """
    scene = Scene()
    for number in range(8):
        scene.node(f"t{number}", Resources(4, 64_000, 2**38), Traits(spot=Spot("t", (8, 1, 1), (number, 0, 0))))
    scene.advance(seconds=1)
    for number in range(8):
        scene.job(f"on-{number}", gpus=4, tier="opportunistic", minutes=600)
    for at, number in ((20, 2), (29, 5), (30, 4), (69, 1)):
        scene.body.run_until(at * MINUTE_MS)
        scene.cancel(f"on-{number}").run().job(f"new-{number}", gpus=4, tier="opportunistic", minutes=600)
    scene.advance(minutes=1).job("box", gpus=4, gang=2, needs=Needs(shape=(2, 1, 1)), minutes=60).run()
    scene.expect(on={"box": ("t1", "t2")}, waiting=("new-1", "new-2"))
