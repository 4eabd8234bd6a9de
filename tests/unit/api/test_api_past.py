"""The past and trials over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest
from api_kit import Scene

from muster.model.access import Grant, Role
from muster.model.event import Exited, Started

BIG = {"command": ["train"], "ask": {"gpus": 8}}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Job 1 ran for a while, and job 2 waited behind it."""
    made = Scene(tmp_path)
    for body in (BIG, BIG):
        made.call("POST", "/v1/jobs", body)
    made.follower.happen(Started(1, 1, 0), after_ms=1000)
    made.follower.happen(Exited(1, 1, 0), after_ms=1000)
    return made


def test_jobs_nodes_and_tenants_as_they_were(scene: Scene) -> None:
    then = scene.follower.at - 500
    jobs = scene.call("GET", f"/v1/past/{then}/jobs").json["jobs"]
    assert [(job["id"], job["phase"]) for job in jobs] == [(2, "queued"), (1, "running")]
    assert scene.call("GET", f"/v1/past/{then}/jobs/1").json["phase"] == "running"
    assert scene.call("GET", "/v1/jobs/1").json["phase"] == "succeeded"
    assert scene.call("GET", f"/v1/past/{then}/jobs/2/why").json["code"] == "M201"
    assert scene.call("GET", f"/v1/past/{then}/jobs/1/why").json["code"] == "M203"
    assert scene.call("GET", f"/v1/past/{then}/nodes").json[0]["free"].get("gpus", 0) == 0
    assert scene.call("GET", f"/v1/past/{then}/tenants").json[0]["name"] == "default"


def test_rules_and_the_account_as_they_were(scene: Scene) -> None:
    then = scene.follower.at - 500
    scene.call("PUT", "/v1/tiers/gold", {"rank": 1, "longest_wait_ms": 1})
    scene.call("PUT", "/v1/flavors/gpu", {"family": "gpu", "units": 1000, "price_micros": 7})
    assert "gold" in [tier["name"] for tier in scene.call("GET", "/v1/tiers").json]
    assert "gold" not in [tier["name"] for tier in scene.call("GET", f"/v1/past/{then}/tiers").json]
    [flavor] = scene.call("GET", f"/v1/past/{then}/flavors").json
    assert (flavor["name"], flavor.get("price_micros", 0)) == ("gpu", 0)
    assert scene.call("GET", f"/v1/past/{then}/goodput").json["at_ms"] == then
    assert (
        scene.call("GET", f"/v1/past/{then}/bookings").json == scene.call("GET", f"/v1/past/{then}/overlays").json == []
    )


@pytest.mark.parametrize("what", ["tenants", "tiers", "flavors"])
def test_the_past_comes_in_pages_as_the_present_does(scene: Scene, what: str) -> None:
    for name in "ab":
        scene.call("PUT", f"/v1/tenants/{name}", {})
        scene.call("PUT", f"/v1/flavors/{name}", {"units": 1})
    whole = scene.call("GET", f"/v1/past/{scene.follower.at}/{what}").json
    first = scene.call("GET", f"/v1/past/{scene.follower.at}/{what}?limit=1")
    after = first.headers["muster-next-after"]
    rest = scene.call("GET", f"/v1/past/{scene.follower.at}/{what}?after={after}")
    assert len(whole) > 1
    assert first.json + rest.json == whole


def test_nodes_of_the_past_are_narrowed_as_those_of_the_present(scene: Scene) -> None:
    past = f"/v1/past/{scene.follower.at}/nodes"
    assert scene.call("GET", f"{past}?phase=gone").json == []
    assert scene.call("GET", f"{past}?phase=up&flavor=gpu").json == scene.call("GET", past).json != []
    assert scene.call("GET", f"{past}?limit=1&after=0").json == []


def test_a_forecast_says_when_and_whose_end_it_waits_for(scene: Scene) -> None:
    body = {**BIG, "limit_ms": 60_000}
    scene.follower.happen(Started(2, 1, 0), after_ms=1000)
    waiting = scene.call("POST", "/v1/jobs", body).json["job"]
    view = scene.call("GET", f"/v1/jobs/{waiting}/forecast").json
    assert (view["job"], view["rollouts"], view["likes"]) == (waiting, 9, 1)
    assert view["earliest_ms"] >= view["as_of_ms"]
    assert view["words"].endswith("when job 2 of default is over")
    assert "rollouts" not in scene.call("GET", "/v1/jobs/2/forecast").json


@pytest.mark.parametrize(
    ("target", "status", "code"),
    [
        ("/v1/past/1/jobs/1", 404, "M176"),
        ("/v1/past/1/jobs/1/why", 404, "M176"),
        ("/v1/past/1/jobs/9", 404, "M120"),
        ("/v1/past/soon/jobs", 422, "M101"),
    ],
)
def test_what_was_not_there_yet_is_not_found(scene: Scene, target: str, status: int, code: str) -> None:
    reply = scene.call("GET", target)
    assert (reply.status, reply.json["code"]) == (status, code)
    if code == "M176":
        words = "there was no job 1 at 1970-01-01 00:00:00.001Z: it was accepted later"
        assert reply.json["detail"] == words


def test_a_trial_answers_as_the_change_would_and_changes_nothing(scene: Scene) -> None:
    seq = scene.follower.world.seq
    view = scene.call("POST", "/v1/trials/jobs", BIG).json
    assert (view["why"]["code"], view["job"]["phase"]) == ("M201", "queued")
    never = scene.call("POST", "/v1/trials/jobs", {"command": ["x"], "ask": {"gpus": 9}})
    assert (never.status, never.json["code"]) == (422, "M110")
    assert scene.call("PUT", "/v1/trials/tenants/lab", {"lines": [{"family": "gpu", "limit": 1}]}).status == 200
    assert scene.call("PUT", "/v1/trials/tiers/gold", {"rank": 1, "longest_wait_ms": 1}).status == 200
    assert scene.follower.world.seq == scene.follower.kernel.world.seq == seq
    assert "lab" not in scene.follower.world.tenants


def test_what_is_done_to_a_job_can_be_tried_and_is_refused_as_it_would_be(scene: Scene) -> None:
    scene.follower.happen(Started(2, 1, 0), after_ms=1000)
    seq = scene.follower.world.seq
    for verb in ("cancel", "requeue"):
        stops = scene.call("POST", f"/v1/trials/jobs/2/{verb}").json["stops"]
        assert [each["job"] for each in stops] == [2]
    for verb in ("hold", "release"):
        assert scene.call("POST", f"/v1/trials/jobs/2/{verb}").json.get("stops", []) == []
    over = scene.call("POST", "/v1/trials/jobs/1/cancel")
    assert (over.status, over.json["code"]) == (409, "M121")
    assert scene.call("POST", "/v1/trials/jobs/99/cancel").json["code"] == "M120"
    assert scene.follower.world.seq == scene.follower.kernel.world.seq == seq


def test_whom_one_may_not_see_is_counted_and_not_named(scene: Scene) -> None:
    body = {"lines": [{"family": "gpu", "guaranteed": 8_000_000}]}
    scene.call("PUT", "/v1/tenants/lab", {})
    assert scene.call("POST", "/v1/jobs", {**BIG, "tenant": "lab"}).status == 201
    scene.follower.happen(Started(2, 1, 0), after_ms=1000)
    header = scene.admit("ann", Grant(Role.ADMIN, "lab"))
    seen = scene.call("PUT", "/v1/trials/tenants/lab", body).json
    assert [job["job"] for job in seen["stops"]] == [2]
    hidden = scene.call("POST", "/v1/trials/jobs", {**BIG, "tenant": "lab"}, authorization=header)
    assert hidden.json.get("stops", []) == []
