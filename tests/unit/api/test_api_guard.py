"""Who may speak to the API at all, and how every error looks."""

from __future__ import annotations

from pathlib import Path

import pytest
from api_kit import Scene

from muster.api.guard import BODY_BYTES_MAX
from muster.api.problems import STATUS
from muster.model.event import Submit
from muster.model.reason import Code
from muster.model.spec import Spec


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_health_is_open_to_anybody_on_this_machine(scene: Scene) -> None:
    reply = scene.call("GET", "/v1/health", authorization="")
    assert (reply.status, reply.json["status"], reply.json["leader"], reply.json["seq"]) == (200, "ok", True, 1)
    scene.follower.led = False
    assert scene.call("GET", "/v1/health", authorization="").json["status"] == "no leader"


@pytest.mark.parametrize("token", ["", "Bearer", "Bearer a-toke", "bearer a-token", "Basic a-token", "a-token"])
@pytest.mark.parametrize("target", ["/v1/jobs", "/v1/health/", "/v1/nothing", "/"])
def test_without_the_token_nothing_is_told(scene: Scene, token: str, target: str) -> None:
    reply = scene.call("GET", target, authorization=token)
    assert (reply.status, reply.json["code"]) == (401, "M308")
    assert reply.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8080", "localhost:1", "LOCALHOST", "[::1]:80", "127.8.8.8"])
def test_names_of_this_machine_are_served(scene: Scene, host: str) -> None:
    assert scene.call("GET", "/v1/health", host=host).status == 200


def test_a_configured_name_is_served(scene: Scene) -> None:
    assert scene.call("GET", "/v1/health", host="muster.example:443").status == 200


@pytest.mark.parametrize("host", ["", "evil.example", "localhost.evil.example", "10.0.0.1", "127.0.0.1.evil.example"])
def test_a_rebound_name_is_not(scene: Scene, host: str) -> None:
    reply = scene.call("GET", "/v1/health", host=host)
    assert reply.status == 403
    assert reply.json["detail"].startswith("Host header")


@pytest.mark.parametrize("origin", ["http://127.0.0.1:80", "null", "https://evil.example"])
def test_web_pages_are_refused(scene: Scene, origin: str) -> None:
    assert scene.call("POST", "/v1/jobs", {"command": ["true"]}, origin=origin).status == 403
    assert not scene.follower.world.jobs


def test_a_large_body_is_refused_whether_it_says_so_or_not(scene: Scene) -> None:
    told = scene.call("POST", "/v1/jobs", b"{}", content_length=str(BODY_BYTES_MAX + 1))
    untold = scene.call("POST", "/v1/jobs", b" " * (BODY_BYTES_MAX + 1))
    for reply in (told, untold):
        assert (reply.status, reply.json["code"]) == (413, "M104")
    assert scene.call("POST", "/v1/jobs", b" " * BODY_BYTES_MAX).status == 400


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v1/jobs/", 404),
        ("GET", "/v2/jobs", 404),
        ("GET", "/v1/jobs/x", 404),
        ("GET", "/v1/jobs/-1", 404),
        ("GET", f"/v1/jobs/{'9' * 30}", 404),
        ("DELETE", "/v1/jobs/1", 405),
        ("POST", "/v1/nodes", 405),
    ],
)
def test_every_error_is_a_problem(scene: Scene, method: str, target: str, status: int) -> None:
    reply = scene.call(method, target)
    assert reply.status == status
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json["status"] == status
    assert reply.json["code"].startswith("M")
    assert ("allow" in reply.headers) == (status == 405)


def test_a_bug_of_ours_shows_no_trace(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    async def break_down(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(scene.follower, "submit", break_down)
    reply = scene.call("POST", "/v1/jobs", {"command": ["true"]})
    assert (reply.status, reply.json["code"]) == (500, "M900")
    assert b"secret" not in reply.body
    assert b"Traceback" not in reply.body


def test_the_table_of_statuses_names_client_faults_and_full_houses_only() -> None:
    assert all(400 <= status < 500 or status == 503 for status in STATUS.values())
    assert Code.INVARIANT not in STATUS


def test_an_overloaded_leader_says_when_to_come_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    from muster.model.reason import Reason, Refused
    from muster.wire.link import Answer

    def refuse(*_: object) -> Answer:
        return Answer(1, 7, Refused(Reason(Code.OVERLOADED, "changes on their way", needed=10_000)))

    monkeypatch.setattr(scene.follower, "decide", refuse)
    reply = scene.call("POST", "/v1/jobs", {"command": ["true"]})
    assert (reply.status, reply.headers["retry-after"], reply.headers["muster-seq"]) == (429, "1", "7")


def test_without_a_leader_writes_are_unavailable_and_reads_are_not(scene: Scene) -> None:
    scene.follower.happen(Submit(Spec(("true",))))
    scene.follower.led = False
    reply = scene.call("POST", "/v1/jobs", {"command": ["true"]})
    assert (reply.status, reply.json["code"], reply.headers["retry-after"]) == (503, "M307", "1")
    assert scene.call("GET", "/v1/jobs/1").status == 200
