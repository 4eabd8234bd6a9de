"""A job has a tag: whoever has it already is told so, and a change may say which job it was meant for."""

from __future__ import annotations

from pathlib import Path

import pytest
from api_kit import Scene

from muster.lifecycle.gang import RETAIN_MS
from muster.model.event import Exited, Progressed, Started, Submit
from muster.model.spec import Spec
from muster.units import MINUTE_MS

GANG = {"command": ["train"], "ask": {"gpus": 8}}
CHANGES = ("cancel", "hold", "release", "requeue", "scale", "migrate")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    found = Scene(tmp_path)
    assert found.call("POST", "/v1/jobs", GANG).json["job"] == 1
    return found


def tag(scene: Scene, job: int = 1) -> str:
    return scene.call("GET", f"/v1/jobs/{job}").headers["etag"]


def test_whoever_has_the_job_already_gets_no_second_copy(scene: Scene) -> None:
    known = tag(scene)
    same = scene.call("GET", "/v1/jobs/1", if_none_match=known)
    assert (same.status, same.body, same.headers["etag"]) == (304, b"", known)
    assert same.headers["muster-seq"] == scene.call("GET", "/v1/jobs/1").headers["muster-seq"]
    assert scene.call("GET", "/v1/jobs/1", if_none_match=f'"other", W/{known}').status == 304
    assert scene.call("GET", "/v1/jobs/1", if_none_match="*").status == 304, "whatever it is"
    assert scene.call("GET", "/v1/jobs/1", if_none_match='"other"').status == 200


def test_the_tag_follows_all_that_happens_to_a_job_but_not_the_time(scene: Scene) -> None:
    seen = [tag(scene)]
    for event in (Started(1, 1), Progressed(1, 1, 40), Exited(1, 1, 0)):
        scene.follower.happen(event)
        seen.append(tag(scene))
        scene.follower.clock.at += MINUTE_MS
        assert scene.call("GET", "/v1/jobs/1", if_none_match=seen[-1]).status == 304
    assert len(set(seen)) == len(seen)


def test_the_tag_of_an_array_follows_its_tasks(scene: Scene) -> None:
    scene.follower.happen(Exited(1, 1, 0))
    scene.follower.happen(Submit(Spec(("one",), array=3)))
    before = tag(scene, 2)
    scene.follower.happen(Started(2, scene.follower.world.arrays[2].epoch[0]))
    assert tag(scene, 2) != before


def test_one_that_has_left_the_world_has_a_tag_too(scene: Scene) -> None:
    scene.follower.happen(Exited(1, 1, 0))
    scene.follower.happen(after_ms=RETAIN_MS + 2 * MINUTE_MS)
    assert not scene.follower.world.jobs
    assert scene.call("GET", "/v1/jobs/1", if_none_match=tag(scene)).status == 304
    late = scene.call("POST", "/v1/jobs/1/cancel", if_match='"old"')
    assert (late.status, late.json["code"]) == (409, "M121"), "that it is over is all that there is to say"
    assert scene.call("POST", "/v1/jobs/9/cancel", if_match='"old"').status == 404


@pytest.mark.parametrize("verb", CHANGES)
def test_a_change_is_one_of_the_job_that_was_seen(scene: Scene, verb: str) -> None:
    old, body = tag(scene), {"most": 2} if verb == "scale" else {}
    scene.follower.happen(Started(1, 1))
    refused = scene.call("POST", f"/v1/jobs/1/{verb}", body, if_match=old)
    assert (refused.status, refused.json["code"]) == (412, "M319")
    assert refused.json["detail"].startswith("job 1 is not what it was")
    assert scene.call("POST", f"/v1/jobs/1/{verb}", body, if_match=tag(scene)).status != 412
    assert scene.call("POST", f"/v1/jobs/1/{verb}", body, if_match="*").status != 412


def test_what_failed_runs_again_only_of_the_array_that_was_seen(scene: Scene) -> None:
    scene.follower.happen(Exited(1, 1, 0))
    scene.follower.happen(Submit(Spec(("one",), array=2)))
    old = tag(scene, 2)
    scene.follower.happen(Exited(2, scene.follower.world.arrays[2].epoch[0], 1))
    again = {"failed": True}
    refused = scene.call("POST", "/v1/jobs/2/requeue", again, if_match=old)
    assert (refused.status, refused.json["code"]) == (412, "M319")
    assert scene.call("POST", "/v1/jobs/2/requeue", again, if_match=tag(scene, 2)).status == 202
