"""Notices: what somebody outside is told of a job or of the fleet, as JSON. Fields may be added, never changed."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec


class Kind(StrEnum):
    """What a notice is about."""

    JOB_ENDED = "job_ended"
    JOB_FAILED = "job_failed"
    JOB_CANCELLED = "job_cancelled"
    JOB_PREEMPTED = "job_preempted"
    JOB_WAITING = "job_waiting"
    NODE_LOST = "node_lost"
    NODE_QUARANTINED = "node_quarantined"
    BUDGET_SPENT = "budget_spent"
    TRIAL = "trial"


OF_ITS_OWN: Final = (Kind.JOB_ENDED, Kind.JOB_FAILED, Kind.JOB_CANCELLED, Kind.JOB_PREEMPTED)
"""What a job that names a route itself has told there."""


class Notice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that happened. The same `id` may come twice, and means the same: it happened once. `seq` is the entry
    of the journal that says so; what time alone brought about has none."""

    id: str
    kind: Kind
    at_ms: int
    words: str
    seq: int = 0
    job: int = 0
    name: str = ""
    tenant: str = ""
    node: str = ""
    why: str = ""
    exit_code: int | None = None


def encode_notice(notice: Notice) -> bytes:
    """The body that is sent."""
    return msgspec.json.encode(notice)
