"""Failures that users of other schedulers report, F7 to F12, each as a story that goes well here; each with the bugs
that would bring it about planted, which the laws then find in the same story. Every law is watched after every event,
and before every event a restored world has to decide as the living one does: that is the restart."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muster.model.errors import InvariantError
from muster.model.event import Exited
from muster.model.fact import Claimed, Fact, Requeued
from muster.testing.planted import PLANTED
from muster.testing.scene import Scene

LEDGER = "the ledger is the sum of the leases"
RESTORE = "a restored world decides like the living one"


def goes_wrong(story: Callable[[], object], **plants: str) -> None:
    """With each of these bugs planted, the story breaks a law; without any it does not, or it would not end."""
    story()
    for name, law in plants.items():
        with PLANTED[name](), pytest.raises(InvariantError, match=law):
            story()


def lent() -> Scene:
    """Two nodes, all of them borrowed from their owner by jobs of two GPUs: g0 to g3 on the first."""
    scene = Scene().cluster(nodes=2, gpus=8).share("owner", 8)
    for number in range(8):
        scene.job(f"g{number}", gpus=2, tenant="guest", minutes=600)
    return scene.run()


def eviction() -> None:
    """An owner takes its own back and leaves again; what was stopped holds nothing meanwhile, and all of it after."""
    scene = lent().job("mine", gpus=8, tenant="owner", minutes=30).run().expect(held={"owner": 8, "guest": 8})
    scene.advance(minutes=31).expect(held={"owner": 0, "guest": 16}, succeeded="mine")


def test_f7_quota_is_released_after_an_eviction() -> None:
    goes_wrong(eviction, quota_kept_after_eviction=LEDGER)


def shrinking() -> None:
    """A gang has more than it needs until somebody waits; then it has its least, and the ledger says so."""
    scene = Scene().cluster(nodes=3, gpus=8).job("wide", gpus=8, gang=1, gang_most=3, in_place=True, minutes=600)
    scene.run().expect(held={"default": 24})
    scene.job("other", gpus=8, tenant="guest", minutes=600).run().expect(held={"default": 16, "guest": 8})


def test_f7_quota_is_released_when_a_gang_shrinks() -> None:
    goes_wrong(shrinking, shrink_keeps_quota=LEDGER)


def claiming() -> None:
    """An owner has a claim and waits for its victims; who comes meanwhile is judged beside it, also after a restart."""
    scene = lent().job("mine", gpus=8, tenant="owner", minutes=60)
    scene.job("late", gpus=8, tenant="owner").expect(waiting=("mine", "late"))
    scene.run().expect(held={"owner": 8, "guest": 8}, waiting=("late", "g0", "g1", "g2", "g3"))


def test_f8_quota_is_not_under_counted_after_a_restart() -> None:
    goes_wrong(claiming, claim_forgotten_by_restore=RESTORE)


def ends() -> None:
    """Jobs end in every way, one of them after it was evicted; none of them ever starts again."""
    scene = lent().job("mine", gpus=8, tenant="owner", minutes=5).job("bad", minutes=5, codes=(3,))
    scene.run().cancel("g4").advance(minutes=6).job("next", minutes=1).advance(minutes=5)
    scene.send(Exited(scene.number("mine"), 1, 1)).advance(minutes=5)  # a late word of its end
    before = scene.find_job("g0")
    scene.expect(succeeded=("mine", "next"), failed="bad", cancelled="g4")
    assert before is not None
    assert (before.spec.ask.gpus, before.failures, before.epoch) == (2, 0, 2), "it runs again with the same request"


def test_f9_what_is_over_is_not_admitted_again_and_what_was_evicted_is_not_over() -> None:
    goes_wrong(
        ends,
        over_and_admitted_again=RESTORE,
        terminal_overwritten="terminal is final",
        evicted_for_good="what is sent back to the queue does not end",
    )


def staggered() -> None:
    """Victims leave one by one, and small jobs that would fit into each gap are waiting; nobody is taken twice."""
    scene, facts = lent(), list[Fact]()
    scene.body.observers.append(lambda outcome, _: facts.extend(outcome.facts))
    for number in range(8):
        scene.job(f"small{number}", gpus=1, tenant="guest", minutes=600)
    scene.job("mine", gpus=8, tenant="owner", minutes=600).run().expect(held={"owner": 8, "guest": 8})
    scene.advance(hours=2)
    assert sum(isinstance(item, Claimed) for item in facts) == 1
    assert sum(isinstance(item, Requeued) for item in facts) == 4


def test_f10_what_is_freed_for_somebody_is_not_stolen_before_all_victims_are_gone() -> None:
    goes_wrong(staggered, claim_not_kept="what is claimed goes to nobody else|free is capacity minus what is held")


def equals() -> None:
    """Two tenants who own nothing and want everything: neither takes the other's places, however long they wait."""
    scene = Scene().cluster(nodes=1, gpus=8).job("one", gpus=8, tenant="a", minutes=600)
    scene.run().job("two", gpus=8, tenant="b", tier="critical", minutes=600).advance(hours=2)
    scene.expect(running="one", waiting="two")


def test_f10_places_do_not_go_round_in_a_circle() -> None:
    goes_wrong(equals, the_weaker_takes="whoever takes is the stronger one")


def flapping() -> None:
    """Whatever node a large job is on is drained, again and again: it takes others' places at most a few times."""
    scene, facts = Scene().cluster(nodes=2, gpus=8), list[Fact]()
    for number in range(4):
        scene.job(f"low{number}", gpus=4, tier="opportunistic", minutes=6000)
    scene.run().job("large", gpus=8, minutes=6000).run()
    scene.body.observers.append(lambda outcome, _: facts.extend(outcome.facts))
    for _ in range(20):
        for node in scene.nodes_of("large"):
            scene.drain(node, now=True).advance(minutes=1).uncordon(node)
        scene.advance(minutes=2)
    assert sum(isinstance(item, Claimed) and item.victims > 0 for item in facts) <= 6


def test_f11_one_flapping_job_does_not_cause_a_cascade() -> None:
    goes_wrong(flapping, flapping_job_never_backs_off="a job that takes again and again backs off")


def two_gangs() -> None:
    """Two gangs of three nodes on four: one starts whole and the other waits whole, and has its turn."""
    scene = Scene().cluster(nodes=4, gpus=8)
    scene.job("one", gpus=8, gang=3, minutes=30).job("two", gpus=8, gang=3, minutes=30)
    scene.run().expect(running="one", waiting="two").advance(minutes=31).expect(succeeded="one", running="two")


def broken() -> None:
    """Both of two gangs lose a node for good: each keeps its others for a while, then one goes on with what is left."""
    scene = Scene().cluster(nodes=6, gpus=8)
    scene.job("one", gpus=8, gang=3, minutes=60).job("two", gpus=8, gang=3, minutes=60).run()
    for name in ("one", "two"):
        scene.fail(node := scene.nodes_of(name)[0]).fence(node)
    scene.run().expect(waiting=("one", "two")).advance(minutes=12).expect(running="one", waiting="two")
    scene.advance(minutes=61).expect(succeeded="one", running="two")


def test_f12_a_gang_starts_whole_or_not_at_all() -> None:
    goes_wrong(two_gangs, partial_gang="a gang holds all its places or none")


def test_f12_broken_gangs_keep_what_is_left_and_do_not_wait_for_each_other_for_ever() -> None:
    goes_wrong(
        broken,
        broken_gang_keeps_nothing="a broken gang keeps what is left",
        broken_gangs_wait_for_ever="a claim has an end to come, and soon",
    )
