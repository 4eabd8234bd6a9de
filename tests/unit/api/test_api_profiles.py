"""Profiles over HTTP: listed, stored, used, refused with their code."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from api_kit import Scene

from muster.model.profile import DEFAULT

WEIGHTS = msgspec.structs.asdict(DEFAULT)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_profiles_are_listed_stored_and_used(scene: Scene) -> None:
    usual = {"name": "default", "version": 1, "is_used": True, "weights": WEIGHTS}
    assert scene.call("GET", "/v1/profiles").json == [usual]
    assert scene.call("PUT", "/v1/profiles/dense", {"weights": {"packing": 1200}, "of_version": 0}).status == 200
    assert scene.call("POST", "/v1/profiles/dense/use").status == 200
    dense = {"name": "dense", "version": 1, "is_used": True, "weights": {**WEIGHTS, "packing": 1200}}
    assert scene.call("GET", "/v1/profiles").json == [{**usual, "is_used": False}, dense]


@pytest.mark.parametrize(
    ("method", "path", "body", "answer"),
    [
        ("PUT", "/v1/profiles/x", {"weights": {"packing": -1}}, (422, "M101")),
        ("PUT", "/v1/profiles/x", {"weights": {"packing": 10**30}}, (422, "M101")),
        ("PUT", "/v1/profiles/x", {"weights": {"luck": 1}}, (422, "M101")),
        ("PUT", "/v1/profiles/..x", {"weights": {}}, (422, "M103")),
        ("PUT", "/v1/profiles/x", {"weights": {}, "of_version": 3}, (409, "M150")),
        ("POST", "/v1/profiles/nobody/use", None, (404, "M149")),
    ],
)
def test_what_is_wrong_is_refused(
    scene: Scene, method: str, path: str, body: dict[str, object] | None, answer: tuple[int, str]
) -> None:
    reply = scene.call(method, path, body)
    assert (reply.status, reply.json["code"]) == answer
    assert len(scene.call("GET", "/v1/profiles").json) == 1


def test_the_range_of_a_weight_and_the_names_of_terms_are_told(scene: Scene) -> None:
    assert "1000000" in scene.call("PUT", "/v1/profiles/x", {"weights": {"packing": 10**7}}).json["detail"]
    assert "packing, filling" in scene.call("PUT", "/v1/profiles/x", {"weights": {"luck": 1}}).json["detail"]


def test_a_profile_is_used_only_as_what_it_was_seen_to_be(scene: Scene) -> None:
    scene.call("PUT", "/v1/profiles/dense", {"weights": {"packing": 1200}})
    seen = scene.call("GET", "/v1/profiles/dense").headers["etag"]
    scene.call("PUT", "/v1/profiles/dense", {"weights": {"packing": 1300}})
    late = scene.call("POST", "/v1/profiles/dense/use", if_match=seen)
    assert (late.status, late.json["code"]) == (412, "M319")
    now = scene.call("GET", "/v1/profiles/dense").headers["etag"]
    assert scene.call("POST", "/v1/profiles/dense/use", if_match=now).status == 200


def test_advice_that_is_to_be_the_first_replaces_none(scene: Scene) -> None:
    advice = {"columns": {}, "expires_at_ms": 1 << 40}
    first, second = (scene.call("PUT", "/v1/advice/distance", advice, if_none_match="*") for _ in range(2))
    assert first.status == 200, first.json
    assert (second.status, second.json["code"]) == (412, "M319")
