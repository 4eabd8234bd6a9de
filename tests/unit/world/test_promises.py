"""What tiers promise: taken in while it fits, gone by in the order, and told when it cannot be kept any more."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from msgspec.structs import replace

from muster.control.views import view_job, view_tiers
from muster.kernel import requests
from muster.model.errors import InvariantError
from muster.model.event import ScaleJob, SetTier, Submit
from muster.model.group import Group
from muster.model.phase import Queued
from muster.model.reason import Code, Refused
from muster.model.spec import Needs, Spec
from muster.model.tier import Promise, Tier
from muster.scheduler.reasons import find_shortfall
from muster.testing.planted.waits import promise_without_order
from muster.testing.scene import Scene
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS, Resources
from muster.world.promises import find_deficit, latest_start, promisable

HALF = Promise(500, 2 * HOUR_MS)


def promising(promise: Promise = HALF, gpus: int = 8) -> Scene:
    scene = Scene().cluster(nodes=1, gpus=gpus)
    return scene.send(SetTier("steady", Tier(150, DAY_MS, promise=promise)))


def test_promises_are_taken_in_while_they_fit() -> None:
    """Half of sixteen GPUs is all that there is."""
    scene = promising().job("one", gpus=8, tier="steady").job("two", gpus=8, tier="steady")
    assert scene.body.world.promised == promisable(scene.body.world) == 8000
    scene.job("three", gpus=1, tier="steady").expect(refused={"three": Code.PROMISES_FULL})
    scene.job("other", gpus=8).job("sweep", gpus=1, array=4, tier="steady")
    scene.cancel("two").job("four", gpus=8, tier="steady")
    assert scene.body.world.promised == 8000


def test_a_gang_of_several_groups_is_promised_its_share_too() -> None:
    """Its own ask says nothing then: what its workers ask for does."""
    groups = (Group("driver", 1, Resources(cpu_milli=1000)), Group("worker", 2, Resources(2, 1000, 2**20)))
    fields: dict[str, Any] = {
        "gang": 3,
        "ask": Resources(cpu_milli=1000),
        "needs": Needs(groups=groups),
        "tier": "steady",
    }
    scene = promising(Promise(1000, HOUR_MS)).job("other", gpus=8, minutes=120).job("one", minutes=600, **fields)
    assert scene.body.world.promised == 4000
    scene.job("two", **fields).expect(refused={}).job("three", **fields).expect(refused={"three": Code.PROMISES_FULL})
    scene.advance(minutes=30)
    job = scene.find_job("one")
    assert job is not None
    assert find_deficit(job, scene.body.world.tiers["steady"], scene.body.world.now) > 0
    assert find_shortfall(scene.body.world, job, scene.body.world.now) is not None


def test_the_books_notice_promises_beyond_what_there_is() -> None:
    """Planted here: storms hardly ever promise so much."""
    scene = promising().job("one", gpus=8, tier="steady").job("two", gpus=8, tier="steady")
    with (
        mock.patch.object(requests, "_find_promises_full", return_value=None),
        pytest.raises(InvariantError, match="promises are taken in while they fit"),
    ):
        scene.job("three", gpus=1, tier="steady")


def test_a_refusal_says_how_much_it_would_be() -> None:
    scene = promising(Promise(1000, HOUR_MS), gpus=4).job("one", gpus=4, tier="steady")
    spec = Spec(("work",), "two", ask=Resources(2, 1000, 2**20), tier="steady")
    answer = scene.body.ask(Submit(spec, "")).answers[-1]
    assert isinstance(answer, Refused)
    assert (answer.reason.code, answer.reason.needed, answer.reason.available) == (Code.PROMISES_FULL, 6000, 4000)


def test_a_tier_promises_nothing_that_those_who_are_here_would_not_get() -> None:
    scene = Scene().cluster(nodes=1, gpus=8).job("one", gpus=8).job("two", gpus=8)
    answer = scene.body.ask(SetTier("standard", Tier(200, DAY_MS, promise=Promise(501, HOUR_MS)))).answers[-1]
    assert isinstance(answer, Refused)
    assert answer.reason.code == Code.PROMISES_FULL
    assert scene.body.world.tiers["standard"].promise is None


@pytest.mark.parametrize("promise", [Promise(0, HOUR_MS), Promise(1001, HOUR_MS), Promise(500, 0), Promise(500, -1)])
def test_a_promise_that_makes_no_sense_is_refused(promise: Promise) -> None:
    answer = Scene().cluster().body.ask(SetTier("steady", Tier(150, DAY_MS, promise=promise))).answers[-1]
    assert isinstance(answer, Refused)
    assert answer.reason.code == Code.BAD_AMOUNT


def test_who_has_least_time_left_to_be_kept_its_promise_goes_first() -> None:
    """Both want all; the one that was up before can wait for longer, though it is older."""
    scene = promising().job("old", gpus=8, tier="steady", minutes=600).advance(minutes=30)
    scene.job("young", gpus=8, tier="steady", minutes=600).advance(minutes=5)
    scene.requeue("old").run().expect(running="young", waiting="old")


def test_the_books_notice_who_stands_as_if_nothing_were_promised() -> None:
    """Planted here: storms hardly ever let two wait of which the older was up for longer."""
    with promise_without_order():
        scene = promising().job("old", gpus=8, tier="steady", minutes=600).advance(minutes=30)
        scene.job("young", gpus=8, tier="steady", minutes=600).advance(minutes=5).cordon("node-0").requeue("old")
        with pytest.raises(InvariantError, match="the leaf goes by its table"):
            scene.run()


def test_without_a_promise_the_older_goes_first() -> None:
    scene = Scene().cluster(nodes=1, gpus=8).job("old", gpus=8, minutes=600).advance(minutes=30)
    scene.job("young", gpus=8, minutes=600).advance(minutes=5)
    scene.requeue("old").run().expect(running="old", waiting="young")


def test_a_tier_that_begins_to_promise_orders_those_who_wait() -> None:
    scene = Scene().cluster(nodes=1, gpus=8).job("old", gpus=4, minutes=600).advance(minutes=30)
    scene.job("block", gpus=8, tier="critical", minutes=60).run()
    scene.job("young", gpus=4, minutes=600).job("full", gpus=4, tier="critical", minutes=10).run()
    scene.send(SetTier("standard", Tier(200, DAY_MS, promise=Promise(100, HOUR_MS))))
    world = scene.body.world
    assert world.queue.line_of(world.jobs[scene.number("young")]).dated
    scene.send(SetTier("standard", Tier(200, DAY_MS)))
    assert not world.queue.line_of(world.jobs[scene.number("young")]).dated


def test_a_deficit_is_told_as_soon_as_it_is_certain() -> None:
    """An hour of two is promised: after an hour of waiting every minute is missed for good."""
    scene = promising().job("first", gpus=8, tier="critical", minutes=600).job("late", gpus=8, tier="steady")
    world, job = scene.advance(minutes=50).body.world, scene.number("late")
    assert find_shortfall(world, world.jobs[job], world.now + 5 * MINUTE_MS) is None
    at = world.jobs[job].accepted_at + 90 * MINUTE_MS
    reason = find_shortfall(world, world.jobs[job], at)
    assert reason is not None
    assert (reason.code, reason.needed, reason.available) == (Code.BEHIND_PROMISE, HOUR_MS, 30 * MINUTE_MS)
    late = view_job(world, world.jobs[job], now=at).late
    assert late == "behind what its tier promises: by 30m of 1h that it is to be up by the end of its window"


def test_windows_follow_each_other_and_what_was_missed_in_one_is_owed_in_the_next() -> None:
    """Half of every two hours: a job that waited for the first window catches up in the second."""
    scene = (
        promising().job("first", gpus=8, tier="critical", minutes=120).job("late", gpus=8, tier="steady", minutes=600)
    )
    world, job = scene.advance(minutes=119).body.world, scene.number("late")
    begun = world.jobs[job].accepted_at

    def behind(minutes: int) -> int:
        return find_deficit(world.jobs[job], world.tiers["steady"], begun + minutes * MINUTE_MS) // MINUTE_MS

    assert [behind(minutes) for minutes in (60, 90, 119)] == [0, 30, 59]
    scene.advance(minutes=11).expect(running="late")
    assert behind(130) in (50, 51), "ten minutes of an hour are made up for"
    scene.advance(minutes=60)
    assert behind(200) == 0


def test_who_had_its_share_of_one_window_goes_by_the_next() -> None:
    """Of two that were up for more than the first window owes them, the one that was up for less goes first."""
    scene = promising().job("old", gpus=8, tier="steady", minutes=600).advance(minutes=150)
    job = scene.body.world.jobs[scene.number("old")]
    served = replace(job, phase=Queued(0), served_ms=150 * MINUTE_MS)
    assert latest_start(HALF, served) == job.accepted_at + 3 * HOUR_MS + 150 * MINUTE_MS, "an hour of the third window"
    assert latest_start(HALF, replace(served, served_ms=30 * MINUTE_MS)) == job.accepted_at + 90 * MINUTE_MS


def test_tiers_tell_what_they_promised_and_who_is_behind() -> None:
    scene = promising().job("first", gpus=8, tier="critical", minutes=600).job("late", gpus=8, tier="steady")
    scene.advance(minutes=90).job("next", gpus=1)
    view = next(view for view in view_tiers(scene.body.world) if view.name == "steady")
    assert (view.promised, view.behind) == (4000, 1)


def test_what_is_promised_is_kept_in_step_with_who_is_here() -> None:
    """Whoever comes, is over, is scaled or gets another tier: counted anew it is the same (watched by every scene)."""
    scene = promising(Promise(100, HOUR_MS)).job("wide", gpus=1, gang=2, gang_most=4, tier="steady", minutes=5)
    world = scene.job("other", gpus=3, tier="steady").run().body.world
    assert world.promised == 500
    scene.send(ScaleJob(scene.number("wide"), 4, 3)).run()
    assert world.promised == 600
    scene.send(SetTier("steady", Tier(150, DAY_MS, promise=Promise(200, HOUR_MS))))
    assert world.promised == 1200
    scene.advance(minutes=10).expect(succeeded="wide")
    assert world.promised == 600
    scene.send(SetTier("steady", Tier(150, DAY_MS)))
    assert world.promised == 0
