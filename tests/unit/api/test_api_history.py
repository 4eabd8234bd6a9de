"""History over HTTP: jobs that left the world are listed and shown as before, and use adds up to what was held."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from api_kit import Scene

from muster.lifecycle.gang import RETAIN_MS
from muster.model.access import Grant, Role
from muster.model.event import Exited, Progressed, SetFlavor, Started, Submit
from muster.model.node import Flavor
from muster.model.spec import Spec
from muster.units import HOUR_MS, MICRO, MINUTE_MS, Resources

GPU = Resources(gpus=2, cpu_milli=100)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Job 1 (a, ann, 2 GPUs for an hour, useful) and job 2 (b, failed) have retired; job 3 (a) is up half an hour."""
    scene = Scene(tmp_path)
    follower = scene.follower
    follower.happen(SetFlavor("gpu", Flavor("gpu", price_micros=2 * MICRO)))
    follower.at = HOUR_MS
    follower.happen(
        Submit(Spec(("one",), name="one", tenant="a", ask=GPU), "k1", "api:ann"),
        Submit(Spec(("two",), name="two", tenant="b", ask=GPU), "k2", "api"),
        after_ms=0,
    )
    follower.happen(Started(1, 1), Started(2, 1), after_ms=0)
    follower.happen(Exited(2, 1, 3, note="no such dataset", cause="engine"), after_ms=30 * MINUTE_MS)
    follower.happen(Exited(1, 1, 0), after_ms=30 * MINUTE_MS)
    follower.happen(after_ms=RETAIN_MS + 2 * MINUTE_MS)
    follower.happen(Submit(Spec(("three",), name="three", tenant="a", ask=GPU), "k3", "api"), after_ms=0)
    follower.happen(Started(3, 1), after_ms=0)
    follower.at += 30 * MINUTE_MS
    follower.clock.at = follower.at
    assert list(follower.world.jobs) == [3]
    return scene


def _ids(scene: Scene, query: str, **headers: str) -> list[int]:
    return [job["id"] for job in scene.call("GET", f"/v1/jobs{query}", **headers).json["jobs"]]


def test_a_listing_shows_what_left_the_world_beside_what_is_here(scene: Scene) -> None:
    assert _ids(scene, "") == [3]
    assert _ids(scene, "?state=all") == [3, 2, 1]
    assert _ids(scene, "?state=all&order=oldest") == [1, 2, 3]
    assert _ids(scene, "?state=over") == [2, 1]
    assert _ids(scene, "?phase=failed") == [2]
    assert _ids(scene, "?state=all&tenant=a") == [3, 1]
    assert _ids(scene, f"?state=all&since={2 * HOUR_MS}") == [3, 1]
    page = scene.call("GET", "/v1/jobs?state=all&limit=2").json
    assert ([job["id"] for job in page["jobs"]], page["next_after"]) == ([3, 2], 2)
    assert _ids(scene, "?state=all&limit=2&after=2") == [1]
    assert _ids(scene, "?state=all&limit=2&after=1&order=oldest") == [2, 3]


def test_a_job_that_left_the_world_is_shown_whole(scene: Scene) -> None:
    one = scene.call("GET", "/v1/jobs/1").json
    assert (one["phase"], one["exit_code"], one["spec"]["command"]) == ("succeeded", 0, ["one"])
    hour = 1000 * HOUR_MS
    assert one["account"]["user"] == "ann"
    assert (one["account"]["time"], one["account"]["cost_micros"]) == ({"useful": 2 * hour}, 4 * MICRO)
    assert (one["account"]["started_at_ms"], one["account"]["served_ms"]) == (HOUR_MS, HOUR_MS)
    two = scene.call("GET", "/v1/jobs/2").json
    assert (two["phase"], two["exit_code"], two["account"]["time"]) == ("failed", 3, {"lost": hour})
    assert two["note"] == "no such dataset"
    three = scene.call("GET", "/v1/jobs/3").json
    assert three["account"]["time"] == {"provisional": hour}
    assert scene.call("GET", "/v1/jobs/1/story").json["lines"][-1]["what"] == "retired to history"
    assert scene.call("GET", "/v1/jobs/9").status == 404


def test_use_is_summed_as_asked_and_what_runs_counts(scene: Scene) -> None:
    hour = 1000 * HOUR_MS
    whole = scene.call("GET", "/v1/usage").json
    assert whole["rows"] == [
        {
            "tenant": "a",
            "time": {"useful": 2 * hour, "provisional": hour},
            "cost_micros": 6 * MICRO,
            "jobs": 1,
        },
        {"tenant": "b", "time": {"lost": hour}, "cost_micros": 2 * MICRO, "jobs": 1},
    ]
    by_user = scene.call("GET", "/v1/usage?by=user&tenant=a").json["rows"]
    assert [(row["user"], sum(row["time"].values())) for row in by_user] == [("ann", 2 * hour), ("owner", hour)]
    by_hour = scene.call("GET", f"/v1/usage?by=hour,flavor&since={2 * HOUR_MS}&until={3 * HOUR_MS}").json["rows"]
    assert [(row["hour_ms"], row.get("flavor", ""), row.get("jobs", 0)) for row in by_hour] == [
        (2 * HOUR_MS, "", 1),
        (2 * HOUR_MS, "gpu", 0),
    ]
    page = scene.call("GET", "/v1/usage?limit=1").json
    assert (len(page["rows"]), page["next_after"]) == (1, 1)
    assert scene.call("GET", "/v1/usage?after=1").json["rows"] == whole["rows"][1:]
    assert scene.call("GET", "/v1/usage?by=colour").status == 422


def test_the_past_of_others_is_not_shown(scene: Scene) -> None:
    ann = scene.admit("ann", Grant(Role.VIEWER, "a"), life_ms=10**9)
    assert _ids(scene, "?state=all", authorization=ann) == [3, 1]
    assert _ids(scene, "?state=all&tenant=b", authorization=ann) == []
    assert scene.call("GET", "/v1/jobs/2", authorization=ann).status == 404
    rows = scene.call("GET", "/v1/usage", authorization=ann).json["rows"]
    assert [row["tenant"] for row in rows] == ["a"]


def test_what_jobs_spent_adds_up_to_what_their_tenant_did(scene: Scene) -> None:
    scene.follower.happen(Progressed(3, 1, 1, checkpointing=True), after_ms=0)
    scene.follower.at += 7 * MINUTE_MS
    scene.follower.clock.at = scene.follower.at
    spent: Counter[str] = Counter()
    for job in (1, 3):
        spent.update(scene.call("GET", f"/v1/jobs/{job}").json["account"]["time"])
    [flavor] = scene.call("GET", "/v1/goodput?tenant=a").json["flavors"]
    assert spent == {bucket: time for bucket, time in flavor["time"].items() if time}
    assert spent["checkpointing"] == 2000 * 7 * MINUTE_MS


def test_of_a_job_too_what_history_does_not_have_yet_is_counted_once(scene: Scene) -> None:
    follower, read = scene.follower, scene.follower._journal.find_amounts
    old = read(3)
    follower.happen(Progressed(3, 1, 1, checkpointed=True), after_ms=0)
    follower._journal.find_amounts = lambda *_, **__: old  # type: ignore[method-assign]  # what was read a moment ago
    fresh = scene.call("GET", "/v1/jobs/3").json["account"]["time"]
    follower._journal.find_amounts = read  # type: ignore[method-assign]  # as it was
    assert fresh == scene.call("GET", "/v1/jobs/3").json["account"]["time"]
    assert fresh["useful"] > 0


def test_what_history_does_not_have_yet_is_counted_once(scene: Scene) -> None:
    """A follower ahead of what the store just told adds it; whoever reads again gets the same."""
    follower, read = scene.follower, scene.follower._journal.read_uses
    before = scene.call("GET", "/v1/usage").json["rows"]
    old = read(0, 100)
    follower.happen(Exited(3, 1, 0), after_ms=0)
    follower._journal.read_uses = lambda *_, **__: old  # type: ignore[method-assign]  # what was read a moment ago
    fresh = scene.call("GET", "/v1/usage").json["rows"]
    follower._journal.read_uses = read  # type: ignore[method-assign]  # as it was
    assert fresh == scene.call("GET", "/v1/usage").json["rows"]
    assert sum(fresh[0]["time"].values()) == sum(before[0]["time"].values())
