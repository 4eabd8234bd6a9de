"""What would start now, over HTTP: from the follower's own world, which stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from api_kit import Scene

from muster.model.event import SetTenant, Submit
from muster.model.spec import Spec
from muster.model.tenant import Tenant, limits
from muster.units import Resources
from muster.wire.views import AvailView
from muster.world.snapshot import digest


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_why_carries_the_options_with_their_words_and_flags(scene: Scene) -> None:
    scene.follower.happen(Submit(Spec(("train",), ask=Resources(gpus=5), evictable=False)))
    scene.follower.happen(Submit(Spec(("train",), ask=Resources(gpus=4))))
    before = digest(scene.follower.world)
    why = scene.call("GET", "/v1/jobs/2/why").json
    words = "GPUs per task: 3 instead of 4"
    assert why["options"] == [{"field": "gpus", "asked": 4, "to": 3, "flag": "--gpus 3", "words": words}]
    assert why["offer"] == "starts now if: --gpus 3 (asked 4)"
    assert digest(scene.follower.world) == before == digest(scene.follower.kernel.world)


def test_avail_is_answered_without_a_leader_and_after_what_was_written(scene: Scene) -> None:
    scene.follower.happen(SetTenant("lab", Tenant(lines=limits(gpus=2))))
    scene.follower.led = False
    reply = scene.call("GET", "/v1/avail?tenant=lab", muster_at_least="2")
    assert (reply.status, reply.headers["muster-seq"]) == (200, "2")
    assert [(it["ask"].get("gpus", 0), it["tasks"], it["limited_by"]) for it in reply.json["openings"]] == [
        (0, 8, "room"),
        (1, 2, "quota"),
        (2, 1, "quota"),
        (4, 0, "quota"),
        (8, 0, "quota"),
    ]


def test_avail_is_about_the_default_tenant_unless_it_is_told(scene: Scene) -> None:
    assert scene.call("GET", "/v1/avail").json["tenant"] == AvailView("default", []).tenant
    assert scene.call("GET", "/v1/avail?tenant=nobody").json["openings"][-1]["gang"] == 1


@pytest.mark.parametrize("tenant", ["", "no%20spaces", "x" * 129])
def test_what_cannot_name_a_tenant_is_refused(scene: Scene, tenant: str) -> None:
    reply = scene.call("GET", f"/v1/avail?tenant={tenant}")
    assert (reply.status, reply.json["code"]) == (422, "M103")
