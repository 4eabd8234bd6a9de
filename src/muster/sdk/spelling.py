"""Spelling: how what a client sends stands in a request, for what is done and for what is only tried alike."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypedDict, Unpack

import msgspec

from muster.sdk.paths import job_path, quote
from muster.sdk.transport import Request

if TYPE_CHECKING:  # the caller brings these along; a listing needs none of them
    from muster.model.job import BarKind
    from muster.model.spec import Spec
    from muster.model.tenant import Tenant
    from muster.sdk.jobfile import JobFile
    from muster.wire.views import TierView


class Wishes(TypedDict, total=False):
    """What else may be said of a booking: how many GPUs each node is to have at least, of which flavor they are and
    within which level, whether it is for all tenants below, and how much later it may open."""

    gpus: int
    flavor: str
    within: str
    shared: bool
    flexible_ms: int


class BarWords(TypedDict, total=False):
    """What may be said of a bar: why, until which instant, and whether what runs there may finish."""

    reason: str
    until_ms: int | None
    lets_finish: bool


def spell_job(job: Spec | JobFile) -> bytes:
    """A job, read where this process is."""
    from muster.sdk.jobfile import read_job

    now_ms = int(time.time() * 1000)
    return msgspec.json.encode(read_job(job, here=os.getcwd(), now_ms=now_ms))  # noqa: PTH109 - see `whereabouts`


def spell_tier(tier: TierView) -> bytes:
    """A tier, without what the server says of it."""
    body = msgspec.structs.asdict(tier)
    for told in ("name", "promised", "behind"):
        del body[told]
    return msgspec.json.encode(body)


def spell_tenant(tenant: Tenant) -> bytes:
    """A tenant: all of it, as it shall be."""
    lines = [msgspec.structs.asdict(line) for line in tenant.lines]
    budgets = [msgspec.structs.asdict(budget) for budget in tenant.budgets]
    body = {"parent": tenant.parent, "weight": tenant.weight, "lines": lines, "budgets": budgets}
    return msgspec.json.encode(body)


def ask_scale(job: int, most: int, least: int) -> Request:
    """Other bounds for a job."""
    body = {"most": most, "least": least}
    return Request("POST", job_path(job, "/scale"), body=msgspec.json.encode(body))


def ask_migrate(job: int, to: Sequence[str], off: Sequence[str]) -> Request:
    """Other nodes for a job."""
    body = {"to": list(to), "off": list(off)}
    return Request("POST", job_path(job, "/migrate"), body=msgspec.json.encode(body))


def ask_reserve(
    name: str, tenant: str, nodes: int, windows: Iterable[tuple[int, int]], **wishes: Unpack[Wishes]
) -> Request:
    """A booking."""
    spans = [{"opens_at_ms": opens, "closes_at_ms": closes} for opens, closes in windows]
    body = {"tenant": tenant, "nodes": nodes, "windows": spans, **wishes}
    return Request("PUT", f"/v1/bookings/{quote(name)}", body=msgspec.json.encode(body))


def ask_bar(node: str, kind: BarKind, **words: Unpack[BarWords]) -> Request:
    """A bar of a node."""
    return Request("PUT", bar_path(node, kind), body=msgspec.json.encode(words))


def bar_path(node: str, kind: BarKind) -> str:
    """Where a bar is."""
    return f"/v1/nodes/{quote(node)}/bars/{kind.value}"
