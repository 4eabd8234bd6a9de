"""`tiers` and `tier set`: what they send and what they say. No server and no socket."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from served import Serve, Told

from muster.model.sharing import Sharing
from muster.model.tier import Promise
from muster.sdk.transport import Request
from muster.units import DAY_MS, MINUTE_MS
from muster.wire.views import Changed, TierView

TIERS = (TierView("critical", 100, DAY_MS), TierView("batch", 400, 7 * DAY_MS))


@pytest.fixture
def seen(serve: Serve) -> list[Request]:
    """What a server with two tiers is asked."""
    return serve({"GET /v1/tiers": TIERS, "PUT": Changed(5)})


def test_tiers_are_listed(seen: list[Request], told: Told) -> None:
    lines = told("tiers").splitlines()
    assert [line.split()[:2] for line in lines] == [["TIER", "RANK"], ["critical", "100"], ["batch", "400"]]
    assert told("tiers", "-o", "name") == "critical\nbatch\n"
    assert msgspec.json.decode(told("tiers", "-o", "json"))[1]["rank"] == 400
    assert {request.path for request in seen} == {"/v1/tiers"}


def test_a_tier_is_set(seen: list[Request], told: Told) -> None:
    words = told("tiers", "set", "batch", "--rank", "400", "--due-after", "7d")
    assert words == "tier batch has rank 400; a job is due after 7d\n"
    assert (seen[1].method, seen[1].path) == ("PUT", "/v1/tiers/batch")
    plain = {"shadows": 1, "min_run_ms": 0, "evictions_max": None, "emergency": False, "sharing": None, "promise": None}
    plain |= {"moves_max": 0}
    assert msgspec.json.decode(seen[1].body) == {"rank": 400, "longest_wait_ms": 7 * DAY_MS, **plain}


def test_a_tier_is_set_with_protections(seen: list[Request], told: Told) -> None:
    protections = ("--min-run", "30m", "--evictions", "3", "--emergency")
    told("tiers", "set", "alarm", "--rank", "1", "--due-after", "1h", *protections)
    body = msgspec.json.decode(seen[1].body)
    assert (body["min_run_ms"], body["evictions_max"], body["emergency"]) == (30 * MINUTE_MS, 3, True)


def test_a_tier_promises_and_is_shared(seen: list[Request], told: Told) -> None:
    sharing = ("--shared-by", "attained", "--quantum", "30m", "--owed-after", "6h")
    told("tiers", "set", "steady", "--rank", "1", "--due-after", "1h", "--promise", "80%/7d", *sharing)
    body = msgspec.json.decode(seen[1].body)
    assert msgspec.convert(body["promise"], Promise) == Promise(800, 7 * DAY_MS)
    assert msgspec.convert(body["sharing"], Sharing) == Sharing("attained", 30 * MINUTE_MS, owed_after_ms=DAY_MS // 4)


def test_a_promise_and_who_is_behind_are_listed(serve: Serve, told: Told) -> None:
    steady = TierView("steady", 1, DAY_MS, promise=Promise(805, 7 * DAY_MS), promised=800, behind=2)
    serve({"GET /v1/tiers": (steady,)})
    assert "80.5% of 7d, 2 behind" in told("tiers")


@pytest.mark.parametrize("words", [("--promise", "80/7d"), ("--promise", "80%"), ("--quantum", "30m")])
def test_what_makes_no_sense_of_a_tier_is_not_sent(seen: list[Request], told: Told, words: tuple[str, ...]) -> None:
    told("tiers", "set", "steady", "--rank", "1", "--due-after", "1h", *words, code=2)
    assert all(request.method == "GET" for request in seen)


RICH = TierView(
    *("rich", 7, DAY_MS, 2, 30 * MINUTE_MS, 3),
    emergency=True,
    sharing=Sharing("attained", 30 * MINUTE_MS),
    promise=Promise(800, 7 * DAY_MS),
    moves_max=2,
)


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (("--rank", "9"), {"rank": 9}),
        (("--due-after", "1h"), {"longest_wait_ms": DAY_MS // 24}),
        (("--min-run", "none", "--evictions", "any"), {"min_run_ms": 0, "evictions_max": None}),
        (("--promise", "none", "--no-emergency"), {"promise": None, "emergency": False}),
        (("--shared-by", "none"), {"sharing": None}),
        (("--quantum", "1h"), {"sharing": Sharing("attained", 60 * MINUTE_MS)}),
    ],
)
def test_what_is_not_named_of_a_tier_stays(
    serve: Serve, told: Told, words: tuple[str, ...], changed: dict[str, Any]
) -> None:
    seen = serve({"GET /v1/tiers": (RICH,), "PUT": Changed(5)})
    told("tiers", "set", "rich", *words)
    sent = msgspec.json.decode(next(request for request in seen if request.method == "PUT").body)
    assert msgspec.convert({"name": "rich", **sent}, TierView) == msgspec.structs.replace(RICH, **changed)


@pytest.mark.parametrize("words", [("gold", "--rank", "5"), ("batch",)])
def test_too_little_is_said_of_a_tier(seen: list[Request], told: Told, words: tuple[str, ...]) -> None:
    assert "say" in told("tiers", "set", *words, code=2)
    assert all(request.method == "GET" for request in seen)


def test_run_hands_on_tier_and_priority() -> None:
    from muster.cli.run import run

    options = {option.name: option.default for option in run.params}
    assert (options["tier"], options["priority"]) == ("standard", 0)
