"""`users`, `tokens`, `audit` and `whoami`: what they send and what they say. No server and no socket."""

from __future__ import annotations

import msgspec
import pytest
from served import Serve, Told

from muster.cli.main import run_command
from muster.wire.access_views import (
    AuditEntry,
    AuditPage,
    AuditVerdict,
    FreshTokenView,
    GrantView,
    Me,
    TokenPage,
    TokenView,
    UserPage,
    UserView,
)
from muster.wire.views import Changed

ANN = UserView("ann", [GrantView("admin"), GrantView("user", "vision")])
BOT = UserView("bot", [], is_service=True, is_disabled=True)


def test_users_are_listed_page_after_page(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    serve({"GET /v1/users": UserPage([ANN], "ann"), "GET /v1/users?after=ann": UserPage([BOT])})
    assert run_command(["users"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [
        ["ann", "person", "admin", "everywhere,", "user", "in", "vision", "active"],
        ["bot", "service", "disabled"],
    ]
    assert run_command(["users", "show", "ann"]) == 0
    assert "roles: admin everywhere, user in vision" in capsys.readouterr().out
    assert run_command(["users", "show", "anna"]) == 2
    assert "did you mean ann?" in capsys.readouterr().err


def test_a_user_is_set_and_dropped(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    seen = serve({"GET /v1/users": UserPage([]), "PUT /v1/users/ann": Changed(1), "DELETE /v1/users/ann": Changed(2)})
    assert run_command(["users", "set", "ann", "--role", "user:vision", "--role", "viewer"]) == 0
    roles = [{"role": "user", "tenant": "vision"}, {"role": "viewer"}]
    assert msgspec.json.decode(seen[1].body) == {"roles": roles, "is_service": False, "is_disabled": False}
    assert capsys.readouterr().out.startswith(
        "user ann: user in vision, viewer everywhere; `muster tokens make --user ann`"
    )
    assert run_command(["users", "drop", "ann"]) == 0
    assert seen[-1].method == "DELETE"
    assert run_command(["users", "set", "ann", "--role", "king"]) == 2


def test_whoever_is_locked_out_keeps_its_roles(serve: Serve, told: Told) -> None:
    seen = serve({"GET /v1/users": UserPage([ANN, BOT]), "PUT": Changed(1)})
    assert told("users", "set", "ann", "--disabled") == (
        "user ann: admin everywhere, user in vision, disabled: its tokens are refused\n"
    )
    told("users", "set", "bot", "--role", "viewer:lab")
    assert told("users", "set", "bot", "--enabled").endswith("lets it in\n")
    assert told("users", "set", "ann", "--role", "none").startswith("user ann: no role;")
    sent = [msgspec.json.decode(request.body) for request in seen if request.method == "PUT"]
    assert sent == [
        {"roles": [{"role": "admin"}, {"role": "user", "tenant": "vision"}], "is_service": False, "is_disabled": True},
        {"roles": [{"role": "viewer", "tenant": "lab"}], "is_service": True, "is_disabled": True},
        {"roles": [], "is_service": True, "is_disabled": False},
        {"roles": [], "is_service": False, "is_disabled": False},
    ]


def test_a_token_is_told_once_alone_on_its_line(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    seen = serve(
        {
            "POST /v1/tokens": FreshTokenView("a1", "mst_a1_secret", 1000),
            "GET /v1/tokens": TokenPage([TokenView("a1", "ann", 1, 1000, note="laptop")]),
            "DELETE /v1/tokens/a1": Changed(3),
        }
    )
    assert run_command(["tokens", "make", "--user", "ann", "--for", "1d", "--at-most", "user"]) == 0
    assert capsys.readouterr().out == "mst_a1_secret\n"
    assert msgspec.json.decode(seen[0].body)["life_ms"] == 86_400_000
    assert run_command(["tokens", "-o", "name"]) == 0
    assert capsys.readouterr().out == "a1\n"
    assert run_command(["tokens", "drop", "a1"]) == 0


def test_the_log_is_listed_and_verified(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    page = AuditPage([AuditEntry(1, 1, "owner", "set_tier", "gold")], 1)
    answers = {"GET /v1/audit": page, "GET /v1/audit/verify": AuditVerdict(True, 1, "ab")}
    serve(answers)
    assert run_command(["audit"]) == 0
    told = capsys.readouterr()
    assert ("owner  set_tier" in told.out, told.err) == (True, "more: add --after 1\n")
    assert run_command(["audit", "verify"]) == 0
    serve({**answers, "GET /v1/audit/verify": AuditVerdict(False, 3, "", 2)})
    assert run_command(["audit", "verify"]) == 1
    assert capsys.readouterr().out.endswith("broken at line 2 of 3\n")


def test_whoami(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    serve({"GET /v1/me": Me("ann", [GrantView("user", "vision")], "a1", 1000)})
    assert run_command(["whoami"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["user:  ann", "roles: user in vision"]
