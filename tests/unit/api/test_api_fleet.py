"""Nodes and flavors over HTTP: shown, narrowed, set; what is wrong is refused with its code."""

from __future__ import annotations

from pathlib import Path

import pytest
from api_kit import Scene

from muster.model.event import NodeSeen, Submit
from muster.model.node import Place, Traits
from muster.model.spec import Needs, Spec
from muster.units import Resources

H100 = Traits("h100", Place("eu", "alpha", "", "r1"))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path)
    made.follower.happen(NodeSeen("fast", Resources(8, 8000), traits=H100, devices=tuple("abcdefgh")))
    return made


def test_nodes_are_listed_and_narrowed(scene: Scene) -> None:
    assert [node["name"] for node in scene.call("GET", "/v1/nodes").json] == ["node-1", "fast"]
    assert [node["name"] for node in scene.call("GET", "/v1/nodes?flavor=h100&rack=r1").json] == ["fast"]
    assert scene.call("GET", "/v1/nodes?rack=r9").json == []


@pytest.mark.parametrize("name", ["fast", "alpha/fast", "eu/alpha/fast"])
def test_a_node_is_shown_by_its_address_or_the_end_of_it(scene: Scene, name: str) -> None:
    reply = scene.call("GET", f"/v1/nodes/{name}")
    assert (reply.status, reply.json["address"]) == (200, "eu/alpha/fast")
    assert [device["id"] for device in reply.json["devices"]] == list("abcdefgh")


def test_a_flavor_is_set_and_shown(scene: Scene) -> None:
    body = {"family": "gpu", "units": 900, "price_micros": 2_500_000}
    assert scene.call("PUT", "/v1/flavors/h100", body).status == 200
    found = {flavor["name"]: flavor for flavor in scene.call("GET", "/v1/flavors").json}
    assert found["h100"] == {"name": "h100", **body, "nodes": 1, "devices": 8, "free": 8}
    assert scene.call("PUT", "/v1/flavors/a100@spot", {"units": 450}).status == 200
    assert scene.follower.world.flavors["a100@spot"].family == "a100@spot", "a family of its own"


def test_a_flavor_that_is_cut_and_what_lies_there_are_shown(scene: Scene) -> None:
    body = {"family": "gpu", "units": 1000, "slots": 8, "partitions": ["1g.10gb=1@0-6", "3g.40gb=4@0,4"]}
    assert scene.call("PUT", "/v1/flavors/h100", body).status == 200
    found = {flavor["name"]: flavor for flavor in scene.call("GET", "/v1/flavors").json}
    assert found["h100"] == {"name": "h100", **body, "nodes": 1, "devices": 8, "free": 8}
    for name in ("1g.10gb", "3g.40gb"):
        spec = Spec(("x",), ask=Resources(1, 100), needs=Needs(partition=name))
        scene.follower.happen(Submit(spec))
    node = scene.call("GET", "/v1/nodes/fast").json
    assert (node["slots"], node["slots_free"]) == (64, 59)
    assert node["devices"][0]["partitions"] == ["1g.10gb@0", "3g.40gb@4"]
    job = scene.call("GET", "/v1/jobs/2").json
    assert job["places"] == [{"node": "fast", "tasks": 1, "devices": [0], "partition": "3g.40gb@4"}]


def test_what_a_flavor_counts_as_cannot_change_under_work(scene: Scene) -> None:
    scene.follower.happen(Submit(Spec(("x",), ask=Resources(1, 100))))
    flavor = next(slot for slot in scene.follower.world.fleet.holders)
    name = scene.follower.world.fleet.flavor(flavor)
    reply = scene.call("PUT", f"/v1/flavors/{name}", {"family": "other"})
    assert (reply.status, reply.json["code"]) == (409, "M113")
    assert reply.json["detail"] == f"{name} has work on 1 of its nodes: what it counts as cannot change under it"
    assert f"muster nodes --flavor {name}" in reply.json["fix"]


@pytest.mark.parametrize(
    ("method", "target", "body", "status", "code"),
    [
        ("GET", "/v1/nodes/nobody", b"", 404, "M124"),
        ("GET", "/v1/nodes?colour=red", b"", 422, "M101"),
        ("PUT", "/v1/flavors/h100", {"units": 0}, 422, "M102"),
        ("PUT", "/v1/flavors/h100", {"units": -1}, 422, "M101"),
        ("PUT", "/v1/flavors/h100", {"price": 1}, 422, "M101"),
        ("PUT", "/v1/flavors/h100", {"family": "no good"}, 422, "M103"),
        ("PUT", "/v1/flavors/no%20good", {}, 422, "M103"),
        ("PUT", "/v1/flavors/h100", b"{", 400, "M101"),
        ("PUT", "/v1/flavors/h100", {"slots": 8, "partitions": ["3g"]}, 422, "M135"),
        ("PUT", "/v1/flavors/h100", {"slots": 8, "partitions": ["3g=4@0,6"]}, 422, "M135"),
        ("PUT", "/v1/flavors/h100", {"slots": 99, "partitions": ["3g=4@0"]}, 422, "M101"),
        ("DELETE", "/v1/flavors/h100", b"", 405, "M336"),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused(scene: Scene, method: str, target: str, body: object, status: int, code: str) -> None:
    reply = scene.call(method, target, body)
    assert (reply.status, reply.json["code"]) == (status, code)
    assert not scene.follower.world.flavors


def test_a_name_that_means_two_nodes_is_refused_with_their_addresses(scene: Scene) -> None:
    scene.follower.happen(NodeSeen("fast", Resources(8, 8000), traits=Traits(place=Place("us", "west"))))
    for method, target in (("GET", "/v1/nodes/fast"), ("PUT", "/v1/nodes/fast/bars/cordon")):
        reply = scene.call(method, target, {} if method == "PUT" else b"")
        assert (reply.status, reply.json["code"]) == (409, "M125")
        assert reply.json["detail"] == "2 nodes are called 'fast': eu/alpha/fast, us/west/fast"
