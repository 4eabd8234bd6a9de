"""`muster undo`: the caller's last change of a quota or a tier is put back as the past says it was."""

from __future__ import annotations

import msgspec
import pytest
from served import Serve, Told

from muster.wire.access_views import AuditEntry, AuditPage, AuditVerdict, Me
from muster.wire.forecast_views import TrialView
from muster.wire.views import LineView, TenantView, TierView

BEFORE = TenantView("lab", weight=2, lines=[LineView("gpu", guaranteed=1_000_000, limit=2_000_000, used=5)])
SET_LAB = AuditEntry(1, 5000, "ann", "set_tenant", "lab")


def audited(*lines: AuditEntry, **more: object) -> dict[str, object]:
    return {
        "GET /v1/me": Me("ann", []),
        "GET /v1/audit/verify": AuditVerdict(True, 300, "", 0),
        "GET /v1/audit?after=100&limit=200": AuditPage(list(lines)),
        "GET /v1/tenants": (TenantView("lab"),),
        "PUT": b"{}",
        "DELETE": b"{}",
        **more,
    }


def test_a_quota_is_put_back_as_it_was(serve: Serve, told: Told) -> None:
    other = AuditEntry(2, 6000, "bob", "set_tenant", "vision")
    seen = serve(audited(SET_LAB, other, **{"GET /v1/past/4999/tenants": (BEFORE,)}))
    assert told("undo") == "tenant lab may hold gpu: at most 2 GPUs, 1 GPU guaranteed, as before\n"
    [put] = [request for request in seen if request.method == "PUT"]
    body = msgspec.json.decode(put.body)
    assert put.path == "/v1/tenants/lab"
    assert (body["weight"], body["lines"][0]["limit"], body["lines"][0]["guaranteed"]) == (2, 2_000_000, 1_000_000)


def test_a_dry_run_says_what_it_would_be_and_changes_nothing(serve: Serve, told: Told) -> None:
    answers = audited(SET_LAB, **{"GET /v1/past/4999/tenants": (BEFORE,), "PUT /v1/trials/tenants/lab": TrialView(1)})
    seen = serve(answers)
    assert "lines: may hold gpu: at most 2 GPUs" in told("undo", "--dry-run")
    assert all(request.method == "GET" or "/trials/" in request.path for request in seen)


def test_a_tenant_that_was_new_goes(serve: Serve, told: Told) -> None:
    seen = serve(audited(SET_LAB, **{"GET /v1/past/4999/tenants": ()}))
    assert told("undo") == "tenant lab has no place in the tree, as before\n"
    assert [request.path for request in seen if request.method == "DELETE"] == ["/v1/tenants/lab"]


def test_a_tier_is_put_back(serve: Serve, told: Told) -> None:
    line = AuditEntry(1, 5000, "ann", "set_tier", "batch")
    seen = serve(audited(line, **{"GET /v1/past/4999/tiers": (TierView("batch", 400, 1000),)}))
    assert told("undo") == "tier batch has rank 400 and all else as before\n"
    assert [request.path for request in seen if request.method == "PUT"] == ["/v1/tiers/batch"]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([SET_LAB, AuditEntry(2, 6000, "bob", "set_tenant", "lab")], "bob changed lab after you did"),
        ([AuditEntry(2, 6000, "bob", "set_tenant", "lab")], "none of the last 200 changes is yours"),
        ([AuditEntry(2, 6000, "ann", "set_tier", "batch")], "tier batch was new"),
    ],
)
def test_what_cannot_be_taken_back_is_said(serve: Serve, told: Told, lines: list[AuditEntry], words: str) -> None:
    seen = serve(audited(*lines, **{"GET /v1/past/5999/tiers": ()}))
    assert words in told("undo", code=2)
    assert {request.method for request in seen} == {"GET"}
