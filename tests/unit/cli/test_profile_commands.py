"""`muster profiles`: what it sends and what it says. No server and no socket."""

from __future__ import annotations

import msgspec
import pytest
from served import Serve, Told

from muster.model.profile import DEFAULT
from muster.sdk.transport import Request
from muster.wire.views import Changed, ProfileView

USUAL = msgspec.structs.asdict(DEFAULT)
PROFILES = (
    ProfileView("default", 1, is_used=True, weights=USUAL),
    ProfileView("dense", 3, is_used=False, weights={**USUAL, "packing": 1200, "cost": 0}),
)


@pytest.fixture
def seen(serve: Serve) -> list[Request]:
    """What a server with two profiles is asked."""
    return serve({"GET /v1/profiles": PROFILES, "PUT": Changed(5), "POST": Changed(5)})


def test_profiles_are_listed(seen: list[Request], told: Told) -> None:
    heads, usual, dense = (line.split() for line in told("profiles").splitlines())
    assert heads[:5] == ["PROFILE", "VERSION", "IN", "USE", "PACKING"]
    assert usual[:4] == ["default", "1", "yes", "1000"]
    assert dense[:3] == ["dense", "3", "1200"]
    assert told("profiles", "-o", "name") == "default\ndense\n"
    assert {request.path for request in seen} == {"/v1/profiles"}


@pytest.mark.usefixtures("seen")
def test_one_is_shown_and_two_are_compared(told: Told) -> None:
    lines = told("profiles", "show", "dense").splitlines()
    assert [line.split() for line in lines[:2]] == [["profile:", "dense"], ["version:", "3"]]
    assert ["packing", "1200"] in [line.split() for line in lines]
    assert msgspec.json.decode(told("profiles", "show", "dense", "-o", "json"))["version"] == 3
    rows = [line.split() for line in told("profiles", "diff", "default", "dense").splitlines()]
    assert rows == [["TERM", "default", "dense"], ["packing", "1000", "1200"], ["cost", "50", "0"]]
    assert told("profiles", "diff", "dense", "dense") == "dense and dense weigh alike\n"
    assert "there is no profile 'none'" in told("profiles", "show", "none", code=2)


def test_one_is_set_term_by_term_on_top_of_the_version_that_was_seen(seen: list[Request], told: Told) -> None:
    words = told("profiles", "set", "dense", "packing=900", "cost=7")
    expected = "profile dense, version 4: packing 1200 → 900, cost 0 → 7; use it with `muster profiles use dense`\n"
    assert words == expected
    assert (seen[1].method, seen[1].path) == ("PUT", "/v1/profiles/dense")
    sent = {"weights": {**USUAL, "packing": 900, "cost": 7}, "of_version": 3}
    assert msgspec.json.decode(seen[1].body) == sent
    assert told("profiles", "set", "default", "filling=5") == "profile default, version 2: filling 100 → 5\n"
    assert "version 1: cost 50 → 0" in told("profiles", "set", "new", "cost=0")
    assert told("profiles", "set", "dense", "cost=0") == "profile dense is so already, in version 3\n"


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize("word", ["luck=1", "packing", "=1", "packing=many", "packing=-1"])
def test_what_is_no_weight_is_told(word: str, told: Told) -> None:
    assert "packing" in told("profiles", "set", "dense", word, code=2)


def test_one_is_used(seen: list[Request], told: Told) -> None:
    assert "dense is in use" in told("profiles", "use", "dense")
    assert (seen[0].method, seen[0].path) == ("POST", "/v1/profiles/dense/use")
