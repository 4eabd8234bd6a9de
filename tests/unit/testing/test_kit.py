"""The kit itself: a rig audits what it is fed, a scene says what went wrong, a script is always the same story."""

from __future__ import annotations

import pytest

from muster.model.errors import InvariantError
from muster.model.event import Cancel
from muster.model.reason import Code
from muster.testing.planted import PLANTED
from muster.testing.rig import Rig
from muster.testing.scene import Scene
from muster.testing.scripts import play
from muster.world.snapshot import digest


def test_a_rig_audits_every_batch() -> None:
    with PLANTED["job_forgotten"]():
        rig = Rig(nodes=1)
        job = rig.submit()
        with pytest.raises(InvariantError, match="no job vanishes"):
            rig.exit(job)


def test_a_rig_stops_a_test_that_begins_wrong() -> None:
    rig = Rig()
    with pytest.raises(AssertionError):
        rig.submit()


def test_a_script_is_always_the_same_story() -> None:
    steps = [(kind % 11, 7 * kind, 13 * kind) for kind in range(60)]
    rigs = [Rig(nodes=3), Rig(nodes=3)]
    for rig in rigs:
        play(rig, steps)
    assert digest(rigs[0].world) == digest(rigs[1].world)


def test_a_scene_names_reasons_refusals_and_nodes() -> None:
    scene = Scene().cluster().job("wide", gang=9).job("a", gpus=8).job("b", gpus=8).run()
    scene.expect(refused={"wide": Code.NEVER_FITS}, reason={"b": Code.NO_ROOM}, on={"a": "node-0"})
    for wrong in ({"refused": {"a": Code.NEVER_FITS}}, {"reason": {"a": Code.NO_ROOM}}, {"on": {"b": "node-0"}}):
        with pytest.raises(AssertionError, match="the story"):
            scene.expect(**wrong)


def test_a_scene_may_be_told_what_no_engine_would_say() -> None:
    Scene().cluster().job("a").run().send(Cancel(99)).expect(running="a")


def test_a_scene_watches_the_laws() -> None:
    with PLANTED["device_given_twice"](), pytest.raises(InvariantError, match="no device is in two leases"):
        Scene().cluster().job("a").job("b").run()
