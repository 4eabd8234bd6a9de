"""`If-Match` and `Idempotency-Key` as RFC 9110 has them: whatever is there, one tag of several, and one key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from api_kit import Scene

from muster.model.event import Submit
from muster.model.spec import Spec

FAR = 1 << 40
BOOKING = {"tenant": "default", "nodes": 1, "windows": [{"opens_at_ms": FAR, "closes_at_ms": FAR + 1}]}
THINGS: dict[str, Any] = {
    "/v1/tenants/lab": {},
    "/v1/flavors/h100": {"price_micros": 7},
    "/v1/tiers/gold": {"rank": 1, "longest_wait_ms": 1},
    "/v1/overlays/row": {"resource": "power", "budget": 1, "nodes": ["node-1"]},
    "/v1/profiles/mine": {"weights": {}},
    "/v1/bookings/nightly": BOOKING,
    "/v1/users/ann": {"roles": []},
    "/v1/advice/distance": {"columns": {}, "expires_at_ms": FAR},
    "/v1/nodes/node-1/bars/cordon": {},
}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.parametrize("target", THINGS)
def test_what_is_not_there_is_not_changed(scene: Scene, target: str) -> None:
    for said in ("*", '"0123456789abcdef", "fedcba9876543210"', ""):
        reply = scene.call("PUT", target, THINGS[target], **{"if-match": said or '""'})
        assert (reply.status, reply.json["code"]) == (412, "M319"), said
    made = scene.call("PUT", target, THINGS[target])
    assert made.status == 200
    again = scene.call("PUT", target, THINGS[target], if_match="*")
    assert again.status == (409 if "bookings" in target else 200), "it is there now"


@pytest.mark.parametrize("target", [*THINGS][:7])
def test_one_of_several_tags_is_enough(scene: Scene, target: str) -> None:
    scene.call("PUT", target, THINGS[target])
    for in_one_line in (True, False):
        tag = scene.call("GET", target).headers["etag"]
        said = {"if-match": f'"999", {tag}'} if in_one_line else {"if-match": '"999"', "If-Match": tag}
        assert scene.call("PUT", target, THINGS[target], **said).status == (409 if "bookings" in target else 200)
    tag = scene.call("GET", target).headers["etag"]
    assert scene.call("PUT", target, THINGS[target], if_match='"999", "998"').status == 412
    assert scene.call("PUT", target, THINGS[target], if_match=f"W/{tag}").status == 412, "too weak to write by"


def test_what_is_by_default_is_there(scene: Scene) -> None:
    scene.follower.happen(Submit(Spec(("true",))))
    flavor = scene.call("GET", "/v1/flavors").json[0]["name"]
    for target in ("/v1/tenants/default", f"/v1/flavors/{flavor}"):
        assert scene.call("GET", target).status == 200
        assert scene.call("PUT", target, {}, if_match="*").status == 200


def test_more_tags_than_are_looked_at_are_refused(scene: Scene) -> None:
    reply = scene.call("PUT", "/v1/tenants/lab", {}, if_match=",".join(f'"{n}"' for n in range(17)))
    assert (reply.status, reply.json["code"]) == (422, "M101")


@pytest.mark.parametrize("target", ["/v1/jobs", "/v1/jobs/1/requeue"])
def test_two_keys_are_refused_and_one_said_twice_is_one(scene: Scene, target: str) -> None:
    scene.follower.happen(Submit(Spec(("true",), array=2)))
    body = {"command": ["true"]} if target == "/v1/jobs" else {"failed": True}
    reply = scene.call("POST", target, body, **{"idempotency-key": "a", "Idempotency-Key": "b"})
    assert (reply.status, reply.json["code"]) == (422, "M101")
    assert reply.json["detail"].startswith("Idempotency-Key")
    same = scene.call("POST", target, body, **{"idempotency-key": "a", "Idempotency-Key": "a"})
    assert same.status == (201 if target == "/v1/jobs" else 409)
