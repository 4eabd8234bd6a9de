"""Small stories, each about one promise. The laws are checked after every event of them."""

from __future__ import annotations

import pytest

from muster.model.advice import Advice
from muster.model.budget import GPU_HOURS, Budget
from muster.model.errors import InvariantError
from muster.model.event import Advise, ScaleJob, SetTenant
from muster.model.reason import Code
from muster.model.tenant import Tenant
from muster.simulator.engine import Network
from muster.testing.planted.advice import advice_forgotten_by_restore
from muster.testing.planted.fleet import unbar_wakes_nobody
from muster.testing.planted.jobs import over_ranks_restarted
from muster.testing.scene import Scene
from muster.units import HOUR_MS, MINUTE_MS, Resources


def test_what_fits_runs_and_what_does_not_waits() -> None:
    (
        Scene()
        .cluster(nodes=2, gpus=8)
        .job("train", gpus=8, gang=2, minutes=30)
        .job("next", gpus=8, minutes=30)
        .run()
        .expect(running="train", waiting="next", reason={"next": Code.NO_ROOM}, on={"train": ["node-0", "node-1"]})
        .advance(minutes=30)
        .run()
        .expect(succeeded="train", running="next")
    )


def test_a_tenant_stays_within_its_quota_and_holds_up_nobody_else() -> None:
    (
        Scene()
        .cluster(nodes=2, gpus=8)
        .tenant("lab", gpus=8)
        .job("first", gpus=8, tenant="lab")
        .job("second", gpus=8, tenant="lab")
        .job("other", gpus=8, tenant="shop")
        .run()
        .expect(running=["first", "other"], waiting="second", reason={"second": Code.OVER_QUOTA})
        .expect(held={"lab": 8, "shop": 8})
        .cancel("first")
        .run()
        .expect(cancelled="first", waiting="", running=["other", "second"])
    )


def test_a_bigger_quota_lets_the_waiting_start() -> None:
    (
        Scene()
        .cluster(nodes=2)
        .tenant("lab", gpus=8)
        .job("a", gpus=8, tenant="lab")
        .job("b", gpus=8, tenant="lab")
        .run()
        .expect(waiting="b")
        .tenant("lab", gpus=16)
        .run()
        .expect(running=["a", "b"])
    )


def test_a_small_job_behind_a_blocked_gang_is_not_held_up() -> None:
    (
        Scene()
        .cluster(nodes=2)
        .job("long", gpus=8)
        .job("gang", gpus=8, gang=2)
        .job("small", gpus=1)
        .run()
        .expect(running=["long", "small"], waiting="gang")
    )


def test_what_can_never_start_is_refused_at_once() -> None:
    (
        Scene()
        .cluster(nodes=2)
        .tenant("lab", gpus=4)
        .job("wide", gpus=8, gang=3)
        .job("greedy", gpus=8, tenant="lab")
        .expect(refused={"wide": Code.NEVER_FITS, "greedy": Code.NEVER_WITHIN_QUOTA})
    )


def test_silence_kills_nothing() -> None:
    (
        Scene()
        .cluster(nodes=2)
        .job("train", gpus=8, gang=2, minutes=60)
        .run()
        .cut_off("node-1")
        .advance(minutes=20)
        .expect(running="train")
        .bring_back("node-1")
        .advance(minutes=45)
        .expect(succeeded="train")
    )


def test_work_that_ended_in_silence_is_heard_of_later() -> None:
    (
        Scene()
        .cluster(nodes=1)
        .job("short", minutes=5)
        .run()
        .cut_off("node-0")
        .advance(minutes=10)
        .expect(running="short")
        .bring_back("node-0")
        .run()
        .expect(succeeded="short")
    )


def test_a_fenced_node_gives_its_work_back_to_the_line() -> None:
    (
        Scene()
        .cluster(nodes=2)
        .job("train", gpus=8, minutes=60)
        .run()
        .expect(on={"train": "node-0"})
        .fail("node-0")
        .advance(minutes=1)
        .expect(running="train")
        .fence("node-0")
        .run()
        .expect(running="train", on={"train": "node-1"})
    )


def test_a_gang_that_loses_a_node_stops_whole_and_starts_whole() -> None:
    (
        Scene()
        .cluster(nodes=3)
        .job("train", gpus=8, gang=2, minutes=60)
        .run()
        .fail("node-1")
        .fence("node-1")
        .run()
        .run()
        .expect(running="train", on={"train": ["node-0", "node-2"]})
    )


def test_a_node_that_forgot_its_work_loses_it() -> None:
    scene = Scene().cluster(nodes=1).job("train", minutes=60).run().fail("node-0").advance(minutes=2)
    scene.bring_back("node-0").run().run().expect(running="train")
    job = scene.find_job("train")
    assert job is not None
    assert job.epoch == 2


def test_a_failed_try_is_repeated_as_often_as_asked_for() -> None:
    (
        Scene()
        .cluster()
        .job("flaky", minutes=1, codes=(1, 1, 0), retries=2)
        .job("hopeless", minutes=1, codes=(3,), retries=1)
        .advance(minutes=5)
        .expect(succeeded="flaky", failed="hopeless")
    )


def test_a_limit_ends_a_run() -> None:
    Scene().cluster().job("endless", minutes=600, limit_ms=60_000).advance(minutes=2).expect(failed="endless")


def test_an_array_fills_what_is_free_and_goes_on_as_it_empties() -> None:
    (
        Scene()
        .cluster(nodes=2)
        .job("sweep", gpus=1, array=40, minutes=10)
        .run()
        .expect(tasks={"sweep": {"waiting": 24, "running": 16}})
        .advance(minutes=10)
        .run()
        .expect(tasks={"sweep": {"waiting": 8, "running": 16, "succeeded": 16}})
        .cancel("sweep")
        .run()
        .expect(cancelled="sweep", tasks={"sweep": {"succeeded": 16, "cancelled": 24}})
    )


def test_an_array_loses_only_the_tasks_of_the_lost_node() -> None:
    (
        Scene()
        .cluster(nodes=2)
        .job("sweep", gpus=1, array=16, minutes=60)
        .run()
        .fail("node-1")
        .fence("node-1")
        .run()
        .expect(tasks={"sweep": {"waiting": 8, "running": 8}})
        .bring_back("node-1")
        .run()
        .expect(tasks={"sweep": {"running": 16}})
    )


def test_a_cancel_while_starting_is_confirmed_before_the_place_is_given_away() -> None:
    (
        Scene()
        .cluster()
        .job("first", gpus=8)
        .job("second", gpus=8)
        .cancel("first")
        .expect(stopping="first", waiting="second")
        .run()
        .expect(cancelled="first", running="second")
    )


def test_a_cancel_of_what_waits_is_done_at_once() -> None:
    Scene().cluster().job("a", gpus=8).job("b", gpus=8).run().cancel("b").expect(cancelled="b", running="a")


def test_a_repeated_submit_is_one_job() -> None:
    scene = Scene().cluster().job("once", key="k").job("once", key="k").run()
    assert scene.body.world.accepted == 1


def test_jobs_leave_the_world_a_while_after_their_end() -> None:
    scene = Scene().cluster().job("short", minutes=1).advance(minutes=3).expect(succeeded="short")
    scene.advance(hours=1)
    assert scene.find_job("short") is None
    assert scene.body.world.retired == 1


def test_cpu_work_goes_beside_gpu_work_and_not_in_its_way() -> None:
    (
        Scene()
        .cluster(nodes=2)
        .job("train", gpus=8)
        .job("prepare", ask=Resources(cpu_milli=4000))
        .run()
        .expect(on={"train": "node-0", "prepare": "node-0"})
    )


def late_half_of_a_gang() -> Scene:
    """The node of rank 1 reconnects while the gang still starts; rank 0 has already ended and been forgotten."""
    scene = Scene().cluster(nodes=2).cut_off("node-1").job("gang", gpus=8, gang=2, minutes=1)
    return scene.advance(minutes=3).expect(starting="gang").bring_back("node-1").run()


def test_a_rank_that_is_over_is_not_started_again_for_another_ranks_node() -> None:
    scene = late_half_of_a_gang()
    assert scene.body.engine.find_live(scene.number("gang"), 0, 1) is None, scene.story()
    scene.advance(minutes=3).expect(succeeded="gang")


def test_without_the_fence_it_would_be() -> None:
    with over_ranks_restarted():
        scene = late_half_of_a_gang()
    assert scene.body.engine.find_live(scene.number("gang"), 0, 1) is not None


def test_a_bad_network_changes_no_end() -> None:
    network = Network(lost=400, doubled=400, late_ms=120_000)
    for seed in range(5):
        scene = Scene(seed, network).cluster(nodes=2)
        scene.job("gang", gpus=8, gang=2, minutes=5).job("sweep", gpus=1, array=20, minutes=5)
        scene.advance(minutes=50).expect(succeeded=["gang", "sweep"])


def test_a_wrong_expectation_shows_the_story() -> None:
    scene = Scene().cluster().job("train").run()
    with pytest.raises(AssertionError, match="Placed"):
        scene.expect(waiting="train")
    with pytest.raises(TypeError, match="no phase is called"):
        scene.expect(walking="train")


def test_a_cordon_keeps_new_work_off_until_it_ends() -> None:
    (
        Scene()
        .cluster(nodes=2, gpus=8)
        .job("old", gpus=4, minutes=60)
        .run()
        .cordon("node-0", minutes=30)
        .job("new", gpus=4, minutes=90)
        .job("big", gpus=8, minutes=5)
        .run()
        .expect(running=["old", "new"], waiting="big", on={"old": "node-0", "new": "node-1"})
        .expect(reason={"big": Code.NO_ROOM})
        .job("small", gpus=1, minutes=90, ask=Resources(4, 1000, 2**30))
        .job("last", gpus=4, minutes=90)
        .run()
        .expect(on={"small": "node-1"}, waiting=["big", "last"])
        .advance(minutes=30)
        .expect(on={"last": "node-0"}, waiting="big")
    )


def test_a_drain_lets_finish_and_then_the_node_is_empty() -> None:
    (
        Scene()
        .cluster(nodes=1, gpus=8)
        .job("old", gpus=4, minutes=10)
        .run()
        .drain("node-0")
        .job("new", gpus=4)
        .run()
        .expect(running="old", waiting="new")
        .advance(minutes=10)
        .expect(succeeded="old", waiting="new", held={"default": 0})
        .uncordon("node-0")
        .run()
        .expect(running="new")
    )


def test_a_drain_that_lets_nothing_finish_moves_everything() -> None:
    (
        Scene(seed=5)
        .cluster(nodes=3, gpus=8)
        .job("gang", gpus=8, gang=2, minutes=30, retries=0)
        .job("sweep", gpus=2, array=4, minutes=30, retries=0)
        .run()
        .expect(running=["gang", "sweep"], on={"gang": ["node-0", "node-1"], "sweep": "node-2"})
        .drain("node-2", now=True)
        .run()
        .expect(tasks={"sweep": {"waiting": 4}}, running="gang")
        .drain("node-0", now=True)
        .run()
        .expect(on={"sweep": "node-1"}, waiting="gang")
        .uncordon("node-0")
        .uncordon("node-2")
        .run()
        .expect(running=["gang", "sweep"], on={"gang": ["node-0", "node-2"]})
        .advance(minutes=31)
        .expect(succeeded=["gang", "sweep"])
    )


def test_a_node_that_was_cut_off_hears_of_its_drain_when_it_is_back() -> None:
    (
        Scene()
        .cluster(nodes=1, gpus=8)
        .job("old", gpus=8, minutes=60)
        .run()
        .cut_off("node-0")
        .advance(minutes=1)
        .drain("node-0", now=True)
        .run()
        .expect(stopping="old")
        .bring_back("node-0")
        .run()
        .expect(waiting="old")
        .uncordon("node-0")
        .run()
        .expect(running="old")
    )


def test_a_gang_is_moved_off_a_node_and_ends_there() -> None:
    (
        Scene()
        .cluster(nodes=4, gpus=8)
        .job("train", gpus=8, gang=2, minutes=60)
        .run()
        .expect(on={"train": ["node-0", "node-1"]})
        .migrate("train", "node-1")
        .job("rival", gpus=8, gang=2, minutes=60)
        .expect(stopping="train", waiting="rival")
        .run()
        .expect(running=["train", "rival"], on={"train": ["node-0", "node-2"], "rival": ["node-1", "node-3"]})
        .advance(hours=3)
        .expect(succeeded=["rival", "train"])
    )


def test_a_gang_in_place_outlives_its_node() -> None:
    (
        Scene()
        .cluster(nodes=4, gpus=8)
        .job("train", gpus=8, gang=3, gang_most=3, in_place=True, minutes=60)
        .run()
        .expect(on={"train": ["node-0", "node-1", "node-2"]})
        .fail("node-1")
        .advance(minutes=1)
        .fence("node-1")
        .run()
        .expect(running="train", on={"train": ["node-0", "node-2", "node-3"]})
        .fail("node-3")
        .advance(minutes=1)
        .fence("node-3")
        .run()
        .expect(running="train", on={"train": ["node-0", "node-2"]})
        .bring_back("node-1")
        .run()
        .expect(running="train", on={"train": ["node-0", "node-1", "node-2"]})
        .advance(hours=2)
        .expect(succeeded="train")
    )


def test_a_budget_that_is_spent_stops_what_runs_until_its_next_period() -> None:
    """Ten GPU-hours in every three hours: ten GPUs of the lab spend them in one, and somebody else goes on."""
    budget = Budget(GPU_HOURS, 10_000_000, period_ms=3 * HOUR_MS)
    (
        Scene()
        .cluster(nodes=2, gpus=8)
        .send(SetTenant("lab", Tenant(budgets=(budget,))))
        .job("train", gpus=2, gang=4, minutes=90, tenant="lab", retries=0)
        .job("sweep", gpus=1, array=2, minutes=90, tenant="lab", retries=0)
        .job("notebook", gpus=0, minutes=240, tenant="lab")
        .job("other", gpus=4, minutes=240)
        .advance(minutes=58)
        .expect(running=["train", "sweep", "notebook", "other"])
        .advance(minutes=5)
        .expect(waiting=["train", "sweep"], running=["notebook", "other"], tasks={"sweep": {"waiting": 2}})
        .expect(reason={"train": Code.BUDGET_SPENT, "sweep": Code.BUDGET_SPENT}, held={"lab": 0})
        .advance(hours=2)
        .expect(running=["train", "sweep", "notebook", "other"])
        .advance(hours=4)
        .expect(waiting=["train", "sweep"], succeeded=["notebook", "other"])
    )


def test_a_gang_that_shrank_once_keeps_its_place_as_any_other_when_a_node_forgets_it() -> None:
    """What it was sent back for the last time does not count any more."""
    scene = Scene().cluster(nodes=2).job("wide", gpus=4, gang=2, gang_most=4, minutes=600).advance(minutes=1)
    scene.send(ScaleJob(scene.number("wide"), 2)).advance(minutes=5)
    scene.fail("node-0").bring_back("node-0").advance(minutes=5).expect(running="wide", on={"wide": ["node-0"]})


def bar_that_is_lifted() -> Scene:
    """A job waits for nothing but the end of a cordon."""
    scene = Scene().cluster(nodes=1, gpus=8).cordon("node-0").job("big", gpus=8, minutes=5)
    return scene.run().expect(waiting="big").uncordon("node-0").run()


def test_whoever_waited_for_a_barred_node_starts_once_the_bar_is_lifted() -> None:
    bar_that_is_lifted().expect(running="big")


def test_a_bar_that_wakes_nobody_when_it_is_lifted_is_found() -> None:
    """Planted here: few storms lift a bar while nothing else wakes those who wait for it."""
    with unbar_wakes_nobody(), pytest.raises(InvariantError, match="a restored world decides like the living one"):
        bar_that_is_lifted()


def advice_that_ends() -> Scene:
    """An adviser's word is in force for a minute."""
    return Scene().cluster().send(Advise("prices", Advice(1, MINUTE_MS, {"value": (3,)}))).advance(minutes=2)


def test_advice_is_gone_when_its_time_is_over() -> None:
    assert not advice_that_ends().body.world.advice


def test_advice_that_a_restart_forgets_is_found() -> None:
    """Planted here: few storms look closely at one of the few moments at which advice counts."""
    with advice_forgotten_by_restore(), pytest.raises(InvariantError, match="a restored world decides like the living"):
        advice_that_ends()
