"""Bars over HTTP: set, shown, replaced, lifted; what is wrong is refused with its code."""

from __future__ import annotations

from pathlib import Path

import pytest
from api_kit import Scene

from muster.model.event import BarNode, NodeSeen
from muster.model.job import BarKind
from muster.units import Resources

CORDON = "/v1/nodes/node-1/bars/cordon"
DRAIN = "/v1/nodes/node-1/bars/drain"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def bars_of(scene: Scene) -> list[dict[str, object]]:
    found: list[dict[str, object]] = scene.call("GET", "/v1/nodes").json[0].get("bars", [])
    return found


def test_a_bar_is_set_shown_replaced_and_lifted(scene: Scene) -> None:
    reply = scene.call("PUT", CORDON, {"reason": "disk", "until_ms": 9000})
    assert (reply.status, reply.json, reply.headers["muster-seq"]) == (200, {"seq": 2}, "2")
    bar = {"kind": "cordon", "owner": "operator", "since_ms": 1002, "reason": "disk", "until_ms": 9000}
    assert bars_of(scene) == [bar]
    scene.call("PUT", CORDON, {})
    assert bars_of(scene) == [{"kind": "cordon", "owner": "operator", "since_ms": 1003}]
    assert [scene.call("DELETE", CORDON).status for _ in range(2)] == [200, 200]
    assert bars_of(scene) == []


def test_a_job_waits_while_the_only_node_is_barred_and_a_drain_moves_what_runs(scene: Scene) -> None:
    scene.call("POST", "/v1/jobs", {"command": ["x"]})
    assert scene.call("PUT", DRAIN, {"lets_finish": False}).status == 200
    assert bars_of(scene)[0]["lets_finish"] is False
    job = scene.call("GET", "/v1/jobs/1").json
    assert (job["phase"], job["why"]) == ("stopping", "drain")
    scene.call("POST", "/v1/jobs", {"command": ["y"]})
    assert scene.call("GET", "/v1/jobs/2/why").json["code"] == "M201"


def test_only_the_operator_s_own_bar_is_lifted(scene: Scene) -> None:
    scene.follower.happen(BarNode("node-1", BarKind.CORDON, "somebody"))
    assert scene.call("DELETE", CORDON).status == 200
    assert [bar["owner"] for bar in bars_of(scene)] == ["somebody"]


def test_a_node_s_name_may_hold_a_slash(scene: Scene) -> None:
    scene.follower.happen(NodeSeen("rack-1/node-2", Resources(8, 8000)))
    assert scene.call("PUT", "/v1/nodes/rack-1/node-2/bars/drain", {}).status == 200
    assert list(scene.follower.world.fleet.bars) == [1]


@pytest.mark.parametrize(
    ("method", "target", "body", "status", "code"),
    [
        ("PUT", "/v1/nodes/nobody/bars/cordon", {}, 404, "M124"),
        ("DELETE", "/v1/nodes/nobody/bars/cordon", b"", 404, "M124"),
        ("PUT", "/v1/nodes/node-1/bars/quarrel", {}, 422, "M101"),
        ("DELETE", "/v1/nodes/node-1/bars/quarrel", b"", 422, "M101"),
        ("PUT", CORDON, b"{", 400, "M101"),
        ("PUT", CORDON, {"reasons": ""}, 422, "M101"),
        ("PUT", CORDON, {"reason": "x" * 257}, 422, "M104"),
        ("PUT", CORDON, {"until_ms": 5}, 422, "M102"),
        ("PUT", CORDON, {"until_ms": -5}, 422, "M101"),
        ("PUT", CORDON, {"until_ms": 10**30}, 422, "M101"),
        ("PUT", CORDON, {"lets_finish": False}, 422, "M101"),
        ("POST", CORDON, {}, 405, "M336"),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused(scene: Scene, method: str, target: str, body: object, status: int, code: str) -> None:
    data = b'{"until_ms": 1000000000000000000000000000000}' if body == {"until_ms": 10**30} else body
    reply = scene.call(method, target, data)
    assert (reply.status, reply.json["code"]) == (status, code)
    assert not scene.follower.world.fleet.bars


def test_a_bar_may_say_which_bars_it_was_meant_beside(scene: Scene) -> None:
    node = "/v1/nodes/node-1"
    free = scene.call("GET", node).headers["etag"]
    assert scene.call("PUT", CORDON, {"reason": "disk"}, if_match=free).status == 200
    late = scene.call("PUT", DRAIN, {}, if_match=free)
    assert (late.status, late.json["code"]) == (412, "M319")
    assert late.json["detail"].startswith("node-1 is not what it was")
    assert scene.call("PUT", DRAIN, {}, if_none_match="*").status == 412, "it is to be the first"
    seen = scene.call("GET", node).headers["etag"]
    scene.follower.happen(BarNode("node-1", BarKind.QUARANTINE, "health"))
    assert scene.call("DELETE", CORDON, if_match=seen).status == 412
    assert scene.call("DELETE", CORDON, if_match=scene.call("GET", node).headers["etag"]).status == 200
