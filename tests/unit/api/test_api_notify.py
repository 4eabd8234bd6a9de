"""Routes for notices over HTTP: seen by all who may name one, whole by admins of all, and tried by operators."""

from __future__ import annotations

from pathlib import Path

from api_kit import Scene

from muster.model.access import Grant, Role


def test_where_a_route_leads_is_for_admins(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    ann = scene.admit("ann", Grant(Role.ADMIN, "a"))
    [whole] = scene.call("GET", "/v1/notify").json
    assert (whole["target"], whole["tenants"], whole["on"]) == ("hooks.x", ["a"], ["job_failed"])
    [part] = scene.call("GET", "/v1/notify", authorization=ann).json
    assert (part["name"], part.get("target"), part.get("tenants")) == ("team", None, None)


def test_a_trial_arrives_or_says_why_not(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    sent = scene.call("POST", "/v1/trials/notify/team")
    assert (sent.status, sent.json["is_delivered"]) == (200, True)
    assert [notice.id for notice in scene.ear.heard] == [sent.json["id"]]
    scene.ear.refusals = 1
    assert scene.call("POST", "/v1/trials/notify/team").json["words"] == "not now"
    assert scene.call("POST", "/v1/trials/notify/nobody").status == 404
