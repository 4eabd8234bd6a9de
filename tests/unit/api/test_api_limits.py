"""Limits, each just below and just above: bodies, depth, encodings, rates, pages, and changes of what has changed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from api_kit import Scene

from muster.api.bulk import JOBS_MAX
from muster.api.guard import BODY_BYTES_MAX, BULK_BYTES_MAX
from muster.api.pages import PAGE_BYTES_MAX, ROWS_MAX
from muster.api.rates import BUCKETS_MAX, Rates
from muster.model.access import Grant, Role
from muster.model.event import NodeSeen, SetTenant
from muster.model.reason import Code
from muster.model.tenant import Line, Tenant
from muster.units import Resources

JOB = {"command": ["true"]}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate", "identity, gzip", "x"])
def test_nothing_is_unpacked(scene: Scene, coding: str) -> None:
    assert scene.call("POST", "/v1/jobs", JOB, content_encoding=coding).status == 415
    assert scene.call("POST", "/v1/jobs", JOB, content_encoding="identity").status == 201


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"command":[', b'{"needs":{"flavors":[', b'{"unknown":['])
@pytest.mark.parametrize("target", ["/v1/jobs", "/v1/jobs/bulk", "/v1/tokens"])
def test_deep_json_is_refused(scene: Scene, opening: bytes, target: str) -> None:
    for depth in (33, 20_000):
        reply = scene.call("POST", target, opening * depth)
        assert reply.status in (400, 422), reply


def test_a_body_for_many_may_be_larger_and_not_too_large(scene: Scene) -> None:
    padding = b" " * BODY_BYTES_MAX
    body = msgspec.json.encode({"jobs": [{"spec": JOB}]})
    assert scene.call("POST", "/v1/jobs/bulk", body + padding).status == 200
    reply = scene.call("POST", "/v1/jobs/bulk", b"{}", content_length=str(BULK_BYTES_MAX + 1))
    assert (reply.status, reply.json["available"]) == (413, BULK_BYTES_MAX)


@pytest.mark.parametrize(("count", "status"), [(0, 422), (1, 200), (JOBS_MAX, 200), (JOBS_MAX + 1, 422)])
def test_so_many_jobs_at_once(scene: Scene, count: int, status: int) -> None:
    assert scene.call("POST", "/v1/jobs/bulk", {"jobs": [{"spec": JOB}] * count}).status == status


def test_a_bucket_gives_what_it_holds_and_then_what_flows_in() -> None:
    rates = Rates(per_s=10, burst=3)
    assert [rates.find_excess("a", 0) is None for _ in range(4)] == [True, True, True, False]
    excess = rates.find_excess("a", 50)
    assert excess is not None
    assert excess.needed == 50
    assert rates.find_excess("b", 50) is None
    assert rates.find_excess("a", 100) is None
    assert rates.find_excess("a", 100) is not None
    assert rates.find_excess("a", 0) is not None, "time that goes back fills nothing"


def test_buckets_are_bounded() -> None:
    rates = Rates()
    for number in range(BUCKETS_MAX + 10):
        rates.find_excess(str(number), number)
    assert len(rates._buckets) == BUCKETS_MAX


def test_a_token_that_asks_too_often_is_told_when_to_come_again(scene: Scene) -> None:
    header = scene.admit("ann", Grant(Role.VIEWER, "lab"))
    replies = [scene.call("GET", "/v1/me", authorization=header) for _ in range(1001)]
    assert [reply.status for reply in replies[-2:]] == [200, 429]
    assert (replies[-1].json["code"], replies[-1].headers["retry-after"]) == ("M322", "1")
    assert scene.call("GET", "/v1/me").status == 200, "the owner is not counted"
    scene.follower.clock.at += 10
    assert scene.call("GET", "/v1/me", authorization=header).status == 200


def _walk(scene: Scene, target: str, limit: int) -> list[str]:
    """Every row of a listing, page by page."""
    found: list[str] = []
    after = ""
    while True:
        reply = scene.call("GET", f"{target}?limit={limit}{after}")
        assert reply.status == 200, reply
        assert len(reply.json) <= limit
        found += [row["name"] for row in reply.json]
        if "muster-next-after" not in reply.headers:
            return found
        after = f"&after={reply.headers['muster-next-after']}"


@pytest.mark.parametrize("target", ["/v1/nodes", "/v1/tenants", "/v1/flavors", "/v1/tiers", "/v1/profiles"])
def test_every_listing_comes_in_pages(scene: Scene, target: str) -> None:
    scene.follower.happen(*(NodeSeen(f"n{number}", Resources(gpus=1)) for number in range(3)))
    scene.follower.happen(SetTenant("a", Tenant()), SetTenant("b", Tenant(parent="a")), SetTenant("c", Tenant()))
    whole = [row["name"] for row in scene.call("GET", target).json]
    assert _walk(scene, target, 2) == whole
    assert _walk(scene, target, 1) == whole
    assert scene.call("GET", f"{target}?limit=0").status == 422
    assert scene.call("GET", f"{target}?limit={ROWS_MAX + 1}").status == 422


def test_a_page_is_cut_by_its_bytes_too(scene: Scene) -> None:
    lines = tuple(Line(f"family-{number:060d}", guaranteed=1) for number in range(60))
    for number in range(0, 240, 24):
        names = [f"tenant-{each:0100d}" for each in range(number, number + 24)]
        scene.follower.happen(*(SetTenant(name, Tenant(lines=lines)) for name in names))
    reply = scene.call("GET", "/v1/tenants")
    assert len(reply.body) < PAGE_BYTES_MAX + 1024
    assert "muster-next-after" in reply.headers
    assert len(_walk(scene, "/v1/tenants", 1000)) == 240


THINGS = [
    ("/v1/tenants/lab", {"weight": 2}, {"weight": 3}),
    ("/v1/tiers/gold", {"rank": 1, "longest_wait_ms": 1}, {"rank": 2, "longest_wait_ms": 1}),
    ("/v1/profiles/mine", {"weights": {"cost": 1}}, {"weights": {"cost": 2}}),
    ("/v1/flavors/h100", {"price_micros": 1}, {"price_micros": 2}),
    ("/v1/users/ann", {}, {"is_service": True}),
]


@pytest.mark.parametrize(("target", "first", "second"), THINGS)
def test_a_change_may_say_what_it_is_a_change_of(scene: Scene, target: str, first: object, second: object) -> None:
    assert scene.call("PUT", target, first, if_none_match="*").status == 200
    again = scene.call("PUT", target, first, if_none_match="*")
    assert (again.status, again.json["code"]) == (412, "M319")
    tag = scene.call("GET", target).headers["etag"]
    assert scene.call("PUT", target, second, if_match=tag).status == 200
    assert scene.call("PUT", target, first, if_match=tag).status == 412
    fresh = scene.call("GET", target).headers["etag"]
    assert fresh != tag
    assert scene.call("PUT", target, first, if_match="*").status == 200
    assert scene.call("PUT", target, first).status == 200


@pytest.mark.parametrize("target", [target for target, _, _ in THINGS])
def test_what_is_not_there_is_not_shown(scene: Scene, target: str) -> None:
    reply = scene.call("GET", f"{target}-not")
    assert reply.status == 404
    assert reply.json["code"] in {code.value for code in Code}


def test_a_story_comes_in_pages(scene: Scene) -> None:
    scene.call("POST", "/v1/jobs", JOB)
    for _ in range(4):
        scene.call("POST", "/v1/jobs/1/hold")
        scene.call("POST", "/v1/jobs/1/release")
    whole = scene.call("GET", "/v1/jobs/1/story").json["lines"]
    told: list[object] = []
    after: int | None = 0
    while after is not None:
        page = scene.call("GET", f"/v1/jobs/1/story?limit=2&after={after}").json
        told += page["lines"]
        after = page.get("next_after")
    assert told == whole
    assert len(whole) > 4


def test_ready_is_a_status(scene: Scene) -> None:
    assert scene.call("GET", "/v1/ready", authorization="").status == 200
    scene.follower.led = False
    assert scene.call("GET", "/v1/ready", authorization="").status == 503
