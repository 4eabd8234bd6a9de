"""Limits, each just below and just above: bodies, depth, encodings, rates, pages, and changes of what has changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from api_kit import Reply, Scene

from muster.api import pages
from muster.api.bulk import JOBS_MAX
from muster.api.guard import BODY_BYTES_MAX, BULK_BYTES_MAX
from muster.api.pages import PAGE_BYTES_MAX, ROWS_MAX
from muster.api.rates import BUCKETS_MAX, Rates
from muster.control import bookings
from muster.control.views import PLACES_BYTES_MAX, PLACES_SHOWN, cut_places
from muster.model.access import HOME_OWNER, Grant, Role, SetUser, User
from muster.model.booking import Booking, Window
from muster.model.event import NodeSeen, Reserve, SetTenant, Submit
from muster.model.node import Place as NodePlace
from muster.model.node import Traits
from muster.model.spec import Spec
from muster.model.tenant import Line, Tenant
from muster.units import HOUR_MS, Resources
from muster.wire.views import Place

JOB = {"command": ["true"]}
FAR = 4_000_000_000_000
"""An instant to come."""


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
    node = Resources(gpus=1, cpu_milli=1000)
    scene.follower.happen(*(NodeSeen(f"n{number}", node) for number in range(3)))
    scene.follower.happen(SetTenant("a", Tenant()), SetTenant("b", Tenant(parent="a")), SetTenant("c", Tenant()))
    whole = [row["name"] for row in scene.call("GET", target).json]
    assert len(whole) > {"/v1/nodes": 2, "/v1/tenants": 2}.get(target, 0)
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


def test_a_page_of_jobs_is_cut_by_its_bytes_and_goes_on_with_the_next(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PAGE_BYTES_MAX", 40_000)
    spec = Spec(("true",), name="j" * 128, tenant="t" * 128)
    scene.follower.happen(*(Submit(spec) for _ in range(200)))
    for target in ("/v1/jobs", f"/v1/past/{scene.follower.at}/jobs"):
        replies = list(_turn(scene, f"{target}?limit=1000", "&after="))
        assert all(len(reply.body) < 40_000 + 1024 for reply in replies)
        assert [job["id"] for reply in replies for job in reply.json["jobs"]] == list(range(200, 0, -1))
        assert len(replies) > 1


def _turn(scene: Scene, target: str, word: str) -> Iterator[Reply]:
    """All pages of what says in its answer where it goes on."""
    after = ""
    while True:
        reply = scene.call("GET", target + (f"{word}{after}" if after else ""))
        yield reply
        after = reply.json.get("next_after")
        if after is None:
            return


def test_pages_of_users_and_of_the_audit_log_are_cut_by_their_bytes_too(scene: Scene) -> None:
    roles = tuple(Grant(Role.VIEWER, f"{number:0128d}") for number in range(64))
    for number in range(120):
        scene.follower.register(SetUser(f"{number:0128d}", User(roles), HOME_OWNER))
    replies = list(_turn(scene, "/v1/users?limit=1000", "&after="))
    assert all(len(reply.body) < PAGE_BYTES_MAX + 1024 for reply in replies)
    assert sum(len(reply.json["users"]) for reply in replies) == 120
    assert len(replies) > 1


def test_a_page_of_the_audit_log_is_cut_too(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PAGE_BYTES_MAX", 10_000)
    for number in range(60):
        scene.follower.register(SetUser(f"{number:0128d}", User(), HOME_OWNER))
    replies = list(_turn(scene, "/v1/audit?limit=200", "&after="))
    assert [line["number"] for reply in replies for line in reply.json["lines"]] == list(range(1, 61))
    assert len(replies) > 1


def test_a_job_on_a_thousand_nodes_with_long_names_is_no_larger_than_an_answer_may_be(scene: Scene) -> None:
    def stand(number: int, region: str) -> NodeSeen:
        traits = Traits("x", NodePlace(region * 128, "c" * 128))
        return NodeSeen(f"{number:0>128}", Resources(2, 4000, 1 << 32), traits=traits)

    for region in "ab":  # a node is called by its whole address where others have its name
        scene.follower.happen(*(stand(number, region) for number in range(1100)))
    scene.follower.happen(Submit(Spec(("x" * 1000,), gang=1000, spares=100, ask=Resources(gpus=2))))
    reply = scene.call("GET", "/v1/jobs/1")
    assert len(reply.body) < 1024 * 1024
    view = reply.json
    assert (view["phase"], view["places_total"], view["spares_total"]) == ("starting", 1000, 100)
    assert 0 < len(view["places"]) < 1000


def test_places_are_cut_at_what_they_weigh() -> None:
    light, heavy = Place("n", 1), Place("n" * 645, 1, list(range(64)))
    assert len(cut_places([light] * 1200)) == PLACES_SHOWN
    cut = cut_places([heavy] * 1000)
    assert 0 < len(cut) < 1000
    assert len(msgspec.json.encode(cut)) <= PLACES_BYTES_MAX


def test_a_booking_of_very_many_nodes_is_told_without_all_of_their_names(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bookings, "NAMES_BYTES_MAX", 2 * 10 * len('"n10",'))
    scene.follower.happen(*(NodeSeen(f"n{number}", Resources(cpu_milli=1000)) for number in range(10, 40)))
    windows = tuple(Window(FAR + place * HOUR_MS, FAR + (place + 1) * HOUR_MS) for place in (0, 2))
    scene.follower.happen(Reserve(Booking("big", "default", 30, windows)))
    [view] = scene.call("GET", "/v1/bookings").json
    assert [(len(window["nodes"]), window.get("short", 0)) for window in view["windows"]] == [(10, 0), (10, 0)]
