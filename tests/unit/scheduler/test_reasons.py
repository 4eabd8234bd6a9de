"""Why a job waits: the sum of what is ahead counts every waiting task, and may be more than any amount."""

from __future__ import annotations

from muster.kernel.kernel import Kernel
from muster.model.event import NodeSeen, SetFlavor, Submit
from muster.model.node import Flavor, Spot, Traits
from muster.model.reason import Code
from muster.model.spec import Needs, Spec
from muster.model.tenant import GPU
from muster.scheduler.reasons import explain
from muster.testing.scene import Scene
from muster.units import AMOUNT_MAX, Resources
from muster.wire.words import put_in_words
from muster.world.world import World

HUGE = 2**50


def queue_up(*specs: Spec) -> World:
    """A node of one core with as much memory as a node may have, and these jobs in its line."""
    kernel = Kernel(World())
    kernel.handle([NodeSeen("n0", Resources(cpu_milli=1000, memory_bytes=HUGE))], 0)
    kernel.handle([Submit(spec) for spec in specs], 1)
    return kernel.world


def test_what_is_ahead_counts_every_waiting_task() -> None:
    core = Resources(cpu_milli=1000)
    world = queue_up(Spec(("x",)), Spec(("x",), array=5, ask=core), Spec(("x",), ask=core))
    waiting = explain(world, world.jobs[3])
    assert waiting is not None
    assert (waiting.reason.code, waiting.position, waiting.ahead) == (Code.NO_ROOM, 2, [2])
    assert waiting.ahead_total == Resources(cpu_milli=5000)


def test_more_may_wait_than_any_amount() -> None:
    world = queue_up(*(Spec(("x",), array=4000, ask=Resources(memory_bytes=HUGE)) for _ in range(3)))
    waiting = explain(world, world.jobs[3])
    assert waiting is not None
    assert waiting.ahead_total.memory_bytes == 7999 * HUGE > AMOUNT_MAX


def test_what_runs_does_not_wait() -> None:
    world = queue_up(Spec(("x",)))
    assert explain(world, world.jobs[1]) is None


def says(scene: Scene, name: str) -> str:
    """Why somebody waits, in words, up to the instant that is named."""
    job = scene.find_job(name)
    assert job is not None
    waiting = explain(scene.body.world, job)
    assert waiting is not None
    return put_in_words(waiting.reason).what.partition(" until")[0]


def test_who_claims_places_is_told_how_many_are_stopped_for_it() -> None:
    scene = Scene().cluster(nodes=1, gpus=8).share("owner", 8)
    scene.job("one", gpus=4, tenant="guest").job("two", gpus=4, tenant="guest").run()
    scene.job("half", gpus=4, tenant="owner")
    assert says(scene, "half") == "waiting for its places: 1 job is being stopped for it (claim"
    scene.cancel("half").run().job("all", gpus=8, tenant="owner")
    assert says(scene, "all") == "waiting for its places: 2 jobs are being stopped for it (claim"


def test_who_moves_waits_for_itself() -> None:
    scene = Scene().cluster(nodes=6, gpus=8).job("gang", gpus=8, gang=2).job("sweep", gpus=4, array=2).run()
    moving = "moving: 2 tasks of its own have to be gone before it goes on in its new place, which is kept"
    for name in ("gang", "sweep"):
        assert says(scene.migrate(name), name) == moving


def test_who_lacks_only_quota_is_told_that_its_places_are_free() -> None:
    scene = Scene().cluster(nodes=1, gpus=8).tenant("lab", gpus=8)
    scene.send(SetFlavor("big", Flavor(GPU))).node("other", Resources(8, 64_000, 2**39), Traits(flavor="big"))
    scene.run().job("low", gpus=8, tenant="lab", tier="opportunistic").run().expect(on={"low": "node-0"})
    scene.job("high", gpus=4, tenant="lab", needs=Needs(flavors=("big",)))
    said = "waiting for its quota or a budget: its places are free and kept for it, and 1 job is being stopped"
    assert says(scene, "high") == f"{said} elsewhere (claim"


def test_who_backs_off_is_told_until_when() -> None:
    scene = Scene().cluster(nodes=1, gpus=8).job("low", gpus=8, tier="opportunistic", minutes=6000)
    scene.run().job("high", gpus=8, minutes=6000).run()
    for _ in range(2):
        scene.expect(running="high", waiting="low").hold("high").requeue("high").run().expect(running="low")
        scene.release("high").advance(seconds=6)
    said = "1 task of 8 GPUs, 8 CPUs, 8Gi must start, 0 would fit now"
    assert says(scene, "high") == (
        f"waiting for room: {said} (it had others stopped 2 times in a day, and has none stopped"
    )
    scene.advance(minutes=1).expect(running="high")


def test_who_lacks_a_box_is_told_how_many_spots_are_free() -> None:
    scene, size = Scene(), (4, 1, 1)
    for at in range(4):
        scene.node(f"t{at}", Resources(4, 64_000, 2**38), Traits("tpu", spot=Spot("pod", size, (at, 0, 0))))
    scene.run()
    for at in range(4):
        scene.job(f"one{at}", gpus=4, needs=Needs(shape=(1, 1, 1)))
    scene.run()
    for name in [name for name in ("one0", "one1", "one2", "one3") if scene.nodes_of(name)[0] in ("t0", "t2")]:
        scene.cancel(name)
    scene.run().job("pair", gpus=4, gang=2, needs=Needs(shape=(2, 1, 1)))
    said = "2 tasks of 4 GPUs, 4 CPUs, 4Gi must start together, 0 would fit now"
    assert says(scene, "pair") == f"waiting for room: {said} (as a box of 2x1x1; 2 apart from each other)"
