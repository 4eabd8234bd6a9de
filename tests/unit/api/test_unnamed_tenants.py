"""A job that names no tenant: the server says whose it is, by what the token allows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from api_kit import Reply, Scene

from muster.model.access import Grant, Role
from muster.model.event import SetTenant
from muster.model.tenant import Tenant

UNNAMED = {"command": ["x"], "tenant": ""}
LEFT_OUT = {"command": ["x"]}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    found = Scene(tmp_path)
    found.follower.happen(*(SetTenant(name, Tenant()) for name in ("lab", "vision", "default")))
    return found


def submit(scene: Scene, who: str = "", **fields: Any) -> Reply:
    return scene.call("POST", "/v1/jobs", {**UNNAMED, **fields}, **({"authorization": who} if who else {}))


def tenant_of(scene: Scene, reply: Reply) -> str:
    assert reply.status == 201, reply.json
    return scene.follower.world.jobs[reply.json["job"]].spec.tenant


def test_it_is_for_the_only_tenant_of_whoever_asks(scene: Scene) -> None:
    ann = scene.admit("ann", Grant(Role.USER, "lab"), Grant(Role.VIEWER, "vision"))
    assert tenant_of(scene, submit(scene, ann)) == "lab"
    assert submit(scene, ann, tenant="default").json["code"] == "M112", "what is named is what is meant"
    bulk = scene.call("POST", "/v1/jobs/bulk", {"jobs": [{"spec": UNNAMED}]}, authorization=ann)
    assert scene.follower.world.jobs[bulk.json["jobs"][0]["job"]].spec.tenant == "lab"
    assert scene.call("POST", "/v1/trials/jobs", UNNAMED, authorization=ann).status == 200


def test_left_out_is_the_same_as_empty(scene: Scene) -> None:
    ann = scene.admit("ann", Grant(Role.USER, "lab"))
    assert tenant_of(scene, scene.call("POST", "/v1/jobs", LEFT_OUT, authorization=ann)) == "lab"
    bulk = scene.call("POST", "/v1/jobs/bulk", {"jobs": [{"spec": LEFT_OUT}]}, authorization=ann)
    assert scene.follower.world.jobs[bulk.json["jobs"][0]["job"]].spec.tenant == "lab"
    both = scene.admit("bob", Grant(Role.USER, "vision"), Grant(Role.USER, "lab"))
    assert scene.call("POST", "/v1/jobs", LEFT_OUT, authorization=both).json["code"] == "M177"
    named = scene.call("POST", "/v1/jobs", {**LEFT_OUT, "tenant": "default"}, authorization=ann)
    assert named.json["code"] == "M112", "what is named is what is meant"
    assert tenant_of(scene, scene.call("POST", "/v1/jobs", LEFT_OUT)) == "default"


def test_it_is_for_default_where_that_is_allowed(scene: Scene) -> None:
    assert tenant_of(scene, submit(scene)) == "default"
    both = scene.admit("ann", Grant(Role.USER, "lab"), Grant(Role.USER, "default"))
    assert tenant_of(scene, submit(scene, both)) == "default"


def test_whoever_has_several_is_told_which(scene: Scene) -> None:
    ann = scene.admit("ann", Grant(Role.USER, "vision"), Grant(Role.ADMIN, "lab"))
    refused = submit(scene, ann)
    assert (refused.status, refused.json["code"]) == (422, "M177")
    assert refused.json["detail"] == "no tenant is named, and you have 2: lab, vision"
    narrow = scene.admit("ann", Grant(Role.USER, "vision"), Grant(Role.ADMIN, "lab"), tenant="vision")
    assert tenant_of(scene, submit(scene, narrow)) == "vision", "a token for one of them is for that one"


def test_the_jobs_that_it_minds_are_of_the_same_tenant(scene: Scene) -> None:
    ann = scene.admit("ann", Grant(Role.USER, "lab"))
    reply = submit(scene, ann, needs={"apart": ["/web"], "beside": []})
    assert scene.follower.world.jobs[reply.json["job"]].spec.needs.apart == ("lab/web",)


def test_what_would_start_is_asked_for_the_same_tenant(scene: Scene) -> None:
    ann = scene.admit("ann", Grant(Role.VIEWER, "lab"))
    assert scene.call("GET", "/v1/avail", authorization=ann).status == 200
    several = scene.admit("bob", Grant(Role.VIEWER, "lab"), Grant(Role.VIEWER, "vision"))
    assert scene.call("GET", "/v1/avail", authorization=several).json["code"] == "M177"
