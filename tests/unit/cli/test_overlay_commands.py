"""`overlays`: what it sends and what it says. No server and no socket."""

from __future__ import annotations

import msgspec
import pytest
from served import Serve, Told

from muster.sdk.transport import Request
from muster.wire.views import Changed, OverlayView

ROW = OverlayView("row-a", "power", "W", 12_000, 2_800, 9_200, 0, ["n0", "n1"], [], ["feed=a"])
UPLINK = OverlayView("spine", "network", "Mbit/s", 1_000, 1_500, 0, 500, ["n0"], ["n0"], [])


@pytest.fixture
def seen(serve: Serve) -> list[Request]:
    """What a server with a feed and an uplink is asked."""
    return serve({"GET /v1/overlays": (ROW, UPLINK), "PUT": Changed(5), "DELETE": Changed(6)})


def test_overlays_are_listed_with_what_is_left(seen: list[Request], told: Told) -> None:
    heads, row, uplink = told("overlays").splitlines()
    assert heads.split() == ["OVERLAY", "OF", "BUDGET", "TAKEN", "LEFT", "NODES", "MEMBERS"]
    assert row.split() == ["row-a", "power", "12,000", "W", "2,800", "W", "9,200", "W", "2", "feed=a"]
    assert "over by 500 Mbit/s" in uplink
    assert told("overlays", "-o", "name") == "row-a\nspine\n"
    assert {request.path for request in seen} == {"/v1/overlays"}


@pytest.mark.usefixtures("seen")
def test_one_is_shown_with_its_nodes(told: Told) -> None:
    words = told("overlays", "show", "row-a")
    assert "n0 n1" in words
    assert "did you mean spine" in told("overlays", "show", "spin", code=2)


def test_one_is_set_and_what_is_not_named_stays(seen: list[Request], told: Told) -> None:
    words = told("overlays", "set", "row-b", "--power", "120000", "--label", "feed=b", "--node", "n7")
    assert words == "overlay row-b has a budget of 120,000 W\n"
    put = next(request for request in seen if request.method == "PUT")
    assert put.path == "/v1/overlays/row-b"
    assert msgspec.json.decode(put.body) == {
        "resource": "power", "budget": 120_000, "nodes": ["n7"], "labels": ["feed=b"],
    }  # fmt: skip
    told("overlays", "set", "row-a", "--power", "9000")
    body = msgspec.json.decode([request for request in seen if request.method == "PUT"][-1].body)
    assert (body["budget"], body["labels"]) == (9000, ["feed=a"])


def test_one_is_removed(seen: list[Request], told: Told) -> None:
    assert told("overlays", "remove", "row-a") == "overlay row-a is removed\n"
    assert (seen[0].method, seen[0].path) == ("DELETE", "/v1/overlays/row-a")


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize(
    "arguments", [["set", "x"], ["set", "x", "--power", "1", "--network", "1"], ["set", "x", "--power", "much"]]
)
def test_what_cannot_be_read_is_refused(told: Told, arguments: list[str]) -> None:
    assert told("overlays", *arguments, code=2).startswith("error")
