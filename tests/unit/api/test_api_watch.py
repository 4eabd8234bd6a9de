"""Watching: nothing is missed, nothing comes twice, nobody sees what is not theirs; and the numbers for curves."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from api_kit import DEADLINE_S, Scene, stream

from muster.api import watch as watch_module
from muster.control import follower as follower_module
from muster.control import metrics as metrics_module
from muster.control.metrics import Family, write_text
from muster.model.access import Grant, Role
from muster.model.event import Cancel, Exited, Started, Submit
from muster.model.spec import Spec
from muster.units import MINUTE_MS, Resources

OPS = Path(__file__).parents[3] / "docs/ops"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def _watch(scene: Scene, target: str, act: Callable[[], None], count: int, **headers: str) -> list[dict[str, Any]]:
    """The first events of a stream, while something happens."""

    async def listen() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        async with asyncio.timeout(DEADLINE_S):
            async for text in stream(scene, target, **headers):
                fields = dict(line.split(": ", 1) for line in text.splitlines() if not line.startswith(":"))
                if not fields:
                    continue
                found.append({"kind": fields["event"], "id": fields["id"], **msgspec.json.decode(fields["data"])})
                if len(found) == 1:
                    act()
                if len(found) == count:
                    return found
        return found

    return asyncio.run(listen())


def _live(scene: Scene) -> None:
    """A job of its own comes, and ends; another tenant's comes too."""
    happen = scene.follower.happen
    happen(Submit(Spec(("true",), tenant="other")))
    happen(Submit(Spec(("true",), tenant="lab")))
    happen(Started(2, 1, 0, 1))
    happen(Exited(2, 1, 0, 0, 1))


def test_what_happens_is_told_as_it_becomes_durable(scene: Scene) -> None:
    told = _watch(scene, "/v1/watch?job=2", lambda: _live(scene), 5)
    assert [item["kind"] for item in told] == ["begin", "accepted", "placed", "began", "ended"]
    assert [item.get("phase", "") for item in told] == ["", "", "starting", "", "succeeded"]
    assert {item["tenant"] for item in told[1:]} == {"lab"}


@pytest.mark.parametrize("kept", [256, 1])
def test_whoever_was_cut_off_goes_on_where_it_was(scene: Scene, kept: int) -> None:
    _live(scene)
    while len(scene.follower._recent) > kept:
        scene.follower._recent.popleft()  # the rest is read from the journal
    whole = _watch(scene, "/v1/watch?after=0", lambda: None, 7)[1:]
    for place, item in enumerate(whole[:-1]):
        again = _watch(scene, "/v1/watch", lambda: None, len(whole) - place, last_event_id=item["id"])
        assert again[1:] == whole[place + 1 :], "also of the entry in which it was cut off"
    assert [item["id"] for item in whole[:2]] == [f"{whole[0]['seq'] - 1}.1", str(whole[0]["seq"])]
    assert scene.call("GET", "/v1/watch?after=1.x").status == 422


def test_an_entry_that_there_is_not_is_not_waited_for_in_silence(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower_module, "REACH_PATIENCE_S", 0.01)
    reply = scene.call("GET", "/v1/watch?after=999999")
    assert (reply.status, reply.json["code"], reply.json["needed"]) == (503, "M314", 999999)


def test_nobody_watches_others(scene: Scene) -> None:
    header = scene.admit("ann", Grant(Role.VIEWER, "lab"))
    told = _watch(scene, "/v1/watch?after=0", lambda: _live(scene), 5, authorization=header)
    assert {item["tenant"] for item in told[1:]} == {"lab"}


def test_watchers_are_bounded_and_counted_down(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "WATCHERS_EACH_MAX", 0)
    reply = scene.call("GET", "/v1/watch")
    assert (reply.status, reply.json["code"]) == (429, "M310")
    assert reply.json["detail"] == "the server has 0 streams of yours, and that is the most"
    monkeypatch.setattr(watch_module, "WATCHERS_EACH_MAX", 9)
    monkeypatch.setattr(watch_module, "WATCHERS_MAX", 0)
    assert scene.call("GET", "/v1/watch").json["detail"] == "the server has 0 streams, and that is the most"
    monkeypatch.undo()
    monkeypatch.setattr(watch_module, "WATCHERS_EACH_MAX", 1)
    for _ in range(3):
        assert len(_watch(scene, "/v1/watch", lambda: None, 1)) == 1


def test_a_quiet_stream_says_that_it_lives(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "PULSE_S", 0.01)

    async def listen() -> str:
        async for text in stream(scene, "/v1/watch"):
            if text.startswith(":"):
                return text
        return ""

    assert asyncio.run(asyncio.wait_for(listen(), DEADLINE_S)) == ": alive"


def test_a_log_is_followed_to_its_end(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "LOG_LOOK_S", 0.001)
    scene.follower.happen(Submit(Spec(("true",))))
    path = scene.logs.path(1, 0, 1)
    path.write_bytes(b"one\n\xff\xfe")

    def go_on() -> None:
        path.write_bytes(b"one\n\xff\xfetwo\n")
        scene.follower.happen(Cancel(1))
        scene.follower.happen(Exited(1, 1, 143))

    told = _watch(scene, "/v1/jobs/1/logs/follow", go_on, 3)
    assert [item["kind"] for item in told] == ["piece", "piece", "end"]
    assert [item["id"] for item in told] == ["6", "10", "10"]
    assert told[1]["text"] == "two\n"
    again = _watch(scene, "/v1/jobs/1/logs/follow", lambda: None, 2, last_event_id="6")
    assert again[0]["text"] == "two\n"
    assert scene.call("GET", "/v1/jobs/1/logs/follow?task=7").status == 404


def test_a_character_that_is_cut_comes_with_the_next_piece(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "LOG_LOOK_S", 0.001)
    scene.follower.happen(Submit(Spec(("true",))))
    path, text = scene.logs.path(1, 0, 1), "naïve €\n".encode()
    path.write_bytes(text[:9])

    def go_on() -> None:
        path.write_bytes(text)
        scene.follower.happen(Cancel(1))
        scene.follower.happen(Exited(1, 1, 143))

    told = _watch(scene, "/v1/jobs/1/logs/follow", go_on, 3)
    assert [(item["id"], item.get("text")) for item in told] == [("7", "naïve "), ("11", "€\n"), ("11", None)]
    again = _watch(scene, "/v1/jobs/1/logs/follow", lambda: None, 2, last_event_id="7")
    assert again[0]["text"] == "€\n"


def test_a_character_that_stays_cut_is_told_at_the_end(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "LOG_LOOK_S", 0.001)
    scene.follower.happen(Submit(Spec(("true",))))
    scene.logs.path(1, 0, 1).write_bytes("a€".encode()[:3])
    scene.follower.happen(Cancel(1))
    scene.follower.happen(Exited(1, 1, 143))
    told = _watch(scene, "/v1/jobs/1/logs/follow", lambda: None, 3)
    assert [(item["kind"], item.get("text")) for item in told] == [("piece", "a"), ("piece", "\ufffd"), ("end", None)]


def test_metrics_are_text_with_bounded_labels(scene: Scene) -> None:
    _live(scene)
    scene.call("GET", "/v1/jobs")
    scene.call("BREW", "/v1/jobs")
    reply = scene.call("GET", "/v1/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = reply.body.decode()
    assert 'muster_jobs{phase="starting"} 1' in text
    assert 'muster_nodes{phase="up"} 1' in text
    assert 'muster_requests_total{method="GET",status="2xx"} 1' in text
    assert 'muster_requests_total{method="other",status="4xx"} 1' in text
    for line in text.splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) .+|[a-z_]+(\{([a-z]+="[^"]*",?)+\})? [-+0-9.e]+', line), line


def test_what_was_slow_once_is_not_slow_for_ever(scene: Scene) -> None:
    follower = scene.follower
    follower.clock.at = follower.at + 9000
    follower.happen(Submit(Spec(("x",))))
    assert follower.lag_p99_ms() > 8000
    follower.clock.at += 6 * MINUTE_MS
    assert follower.lag_p99_ms() == 0, "nothing happened lately, so nothing is late"


def test_what_is_counted_has_all_of_its_digits() -> None:
    values: tuple[float, ...] = (12_345_678.0, 68_719_476_736, 1234567.125, True)
    text = write_text([Family("m_total", "counter", "w", [({}, value) for value in values])])
    assert [line.split()[1] for line in text.splitlines()[2:]] == ["12345678", "68719476736", "1234567.125", "1"]


def test_a_histogram_is_one(scene: Scene) -> None:
    text = scene.call("GET", "/v1/metrics").body.decode()
    assert "# TYPE muster_request_seconds histogram" in text
    assert text.count("TYPE muster_request_seconds") == 1


def test_of_very_many_tenants_the_largest_are_counted(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_module, "TENANTS_MAX", 1)
    scene.follower.happen(Submit(Spec(("x",), tenant="aaa")), Submit(Spec(("x",), tenant="zzz", ask=Resources(gpus=4))))
    text = scene.call("GET", "/v1/metrics").body.decode()
    assert re.findall(r"^muster_tenant_held(.*) ", text, re.MULTILINE) == ['{tenant="zzz",family="gpu"}']


def test_a_label_is_escaped() -> None:
    text = write_text([Family("m", "gauge", "w", [({"a": 'x"\\\n'}, 1)])])
    assert text.splitlines()[-1] == 'm{a="x\\"\\\\\\n"} 1'


@pytest.mark.parametrize("page", ["alerts.yml", "grafana.json"])
def test_alerts_and_boards_ask_for_metrics_that_exist(scene: Scene, page: str) -> None:
    _live(scene)
    scene.call("GET", "/v1/jobs")
    there = set(re.findall(r"^(?:# TYPE )?(\w+)", scene.call("GET", "/v1/metrics").body.decode(), re.MULTILINE))
    text = (OPS / page).read_text()
    asked = set(re.findall(r"\bmuster_\w+", text))
    assert asked
    assert asked <= there


def test_every_alert_is_explained() -> None:
    alerts = re.findall(r"alert: (\w+)", (OPS / "alerts.yml").read_text())
    words = (OPS / "operations.md").read_text()
    assert alerts
    assert [name for name in alerts if f"**{name}**" not in words] == []
