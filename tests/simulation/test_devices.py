"""Stories of devices that fall off, come back, or turn up twice. The laws are checked after every event of them."""

from __future__ import annotations

from muster.model.job import BarKind
from muster.model.reason import Code
from muster.testing.scene import Scene


def kinds_of(scene: Scene, slot: int) -> list[BarKind]:
    return [bar.kind for bar in scene.body.world.fleet.bars.get(slot, ())]


def test_a_device_falls_off_and_only_its_job_moves() -> None:
    scene = Scene().cluster(nodes=2, gpus=2, ids=True)
    scene.job("a", gpus=1).job("b", gpus=1).job("c", gpus=1).run()
    scene.expect(running=("a", "b", "c"), on={"a": "node-0", "b": "node-0", "c": "node-1"})
    scene.lose_device("node-0", 1).run().run()
    scene.expect(running=("a", "b", "c"), on={"a": "node-0", "b": "node-1"})
    job = scene.find_job("b")
    assert job is not None
    assert (job.epoch, job.failures) == (2, 0)


def test_nothing_starts_on_what_fell_off_until_it_is_back() -> None:
    scene = Scene().cluster(nodes=1, gpus=2, ids=True).job("a", gpus=1).run()
    scene.lose_device("node-0", 1).run().job("b", gpus=1).run()
    scene.expect(running="a", waiting="b", reason={"b": Code.NO_ROOM})
    scene.mend_devices("node-0", "node-0.gpu-0", "node-0.gpu-1").run()
    scene.expect(running=("a", "b"))


def test_a_gang_loses_a_device_and_starts_again_as_a_whole() -> None:
    scene = Scene().cluster(nodes=3, gpus=2, ids=True).job("gang", gpus=2, gang=2, minutes=30).run()
    scene.lose_device("node-0", 0).run().run()
    scene.expect(running="gang", on={"gang": ["node-1", "node-2"]})


def test_an_array_loses_the_tasks_on_the_device_and_ends_whole() -> None:
    scene = Scene().cluster(nodes=1, gpus=4, ids=True).job("sweep", gpus=1, array=4, minutes=5).run()
    scene.lose_device("node-0", 2).advance(minutes=12).expect(succeeded="sweep")
    assert list(scene.body.world.arrays[scene.number("sweep")].epoch) == [1, 1, 2, 1]


def test_a_machine_that_reboots_with_less_is_smaller() -> None:
    scene = Scene().cluster(nodes=1, gpus=2, ids=True).job("a", gpus=2).run()
    scene.fail("node-0").lose_device("node-0", 0).advance(minutes=2).bring_back("node-0").run()
    scene.expect(waiting="a").job("b", gpus=1).run().expect(running="b")
    assert scene.body.world.fleet.device_ids[0] == ("node-0.gpu-1",)


def test_a_renamed_machine_gets_no_work_until_its_old_self_is_gone() -> None:
    scene = Scene().cluster(nodes=1, gpus=2, ids=True).cut_off("node-0").advance(minutes=1)
    scene.cluster(nodes=1, gpus=2, ids=True, name="beta").job("a", gpus=2).advance(minutes=2)
    assert kinds_of(scene, 1) == [BarKind.QUARANTINE]
    scene.expect(waiting="a").fence("node-0").run()
    assert kinds_of(scene, 1) == []
    scene.expect(running="a", on={"a": "beta/node-0"})


def test_two_clusters_with_the_same_names_do_not_disturb_each_other() -> None:
    scene = Scene().cluster(nodes=2, gpus=8, name="alpha").cluster(nodes=2, gpus=8, name="beta")
    for name in ("a", "b", "c", "d"):
        scene.job(name, gpus=8)
    scene.run().expect(running=("a", "b", "c", "d"))
    lost = next(name for name in ("a", "b", "c", "d") if scene.nodes_of(name) == ["beta/node-1"])
    scene.fence("beta/node-1").run().expect(waiting=lost)
    scene.drain("alpha/node-1").run()
    assert [kinds_of(scene, slot) for slot in range(4)] == [[], [BarKind.DRAIN], [], []]


def test_an_id_that_is_given_twice_counts_once_and_is_mended() -> None:
    scene = Scene().cluster(nodes=2, gpus=2, ids=True).rename_device("node-1", 0, "node-0.gpu-1").run()
    scene.job("a", gpus=2).job("b", gpus=2).run().expect(running="a", waiting="b", on={"a": "node-0"})
    scene.mend_devices("node-1", "node-1.gpu-0", "node-1.gpu-1").run().expect(running=("a", "b"))
