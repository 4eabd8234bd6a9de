"""Problems: every error as an RFC 9457 document with a stable code and one fix; never a stack trace.

The one table from codes to statuses. What a reason says is worded in `muster.wire.words` and nowhere here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from starlette.responses import Response

from muster.model.errors import MusterError, RejectedError
from muster.model.reason import Code, Reason
from muster.units import SECOND_MS
from muster.wire.views import Problem
from muster.wire.words import put_in_words

RETRY_AFTER_S: Final = 1

STATUS: Final[dict[Code, int]] = {
    Code.BAD_SPEC: 422,
    Code.BAD_AMOUNT: 422,
    Code.BAD_NAME: 422,
    Code.TOO_LARGE: 422,
    Code.ASKS_NOTHING: 422,
    Code.NEVER_FITS: 422,
    Code.NEVER_WITHIN_QUOTA: 422,
    Code.UNKNOWN_TENANT: 422,
    Code.WHICH_TENANT: 422,
    Code.FLAVOR_IN_USE: 409,
    Code.LABEL_TOO_FINE: 422,
    Code.TENANT_LOOP: 422,
    Code.OVERPROMISED: 422,
    Code.TENANT_IN_USE: 409,
    Code.BAD_QUOTA: 422,
    Code.BAD_BUDGET: 422,
    Code.NEVER_INSIDE: 422,
    Code.UNKNOWN_TIER: 422,
    Code.PROMISES_FULL: 409,
    Code.BAD_PARTITION: 422,
    Code.UNKNOWN_PARTITION: 422,
    Code.BAD_TABLE: 422,
    Code.PARTITION_IN_USE: 409,
    Code.BAD_GROUP: 422,
    Code.NODE_TAKEN: 409,
    Code.DEVICE_TAKEN: 409,
    Code.UNKNOWN_PREDECESSOR: 422,
    Code.PREDECESSOR_RETIRED: 422,
    Code.NEVER_AFTER: 422,
    Code.UNLIKE: 422,
    Code.DUE_ALREADY: 422,
    Code.NO_NODES_TO_BOOK: 409,
    Code.TOO_FEW_NODES: 422,
    Code.BAD_WINDOW: 422,
    Code.UNKNOWN_BOOKING: 404,
    Code.BOOKING_TAKEN: 409,
    Code.NOT_ITS_BOOKING: 422,
    Code.BAD_WIDTH: 422,
    Code.MOST_BELOW_WIDTH: 409,
    Code.BELOW_LEAST: 422,
    Code.NO_WIDTH: 422,
    Code.IS_STOPPING: 409,
    Code.NO_SPARES: 422,
    Code.TURNS_NOT_MOVED: 422,
    Code.NOT_MOVABLE: 409,
    Code.NO_PLACE_ELSEWHERE: 409,
    Code.EMPTY_OVERLAY: 422,
    Code.UNKNOWN_RESOURCE: 422,
    Code.OVERLAY_TAKEN: 409,
    Code.UNKNOWN_OVERLAY: 404,
    Code.NEVER_WITHIN_OVERLAY: 422,
    Code.UNKNOWN_PROFILE: 404,
    Code.PROFILE_CHANGED: 409,
    Code.BAD_FILE: 422,
    Code.UNKNOWN_FIELD: 422,
    Code.BAD_SBATCH: 422,
    Code.UNMAPPED: 422,
    Code.NO_PAST: 422,
    Code.NOT_THEN: 404,
    Code.UNKNOWN_ROUTE: 422,
    Code.UNKNOWN_JOB: 404,
    Code.UNKNOWN_NODE: 404,
    Code.AMBIGUOUS_NODE: 409,
    Code.NOT_FOUND: 404,
    Code.NOT_ITS_METHOD: 405,
    Code.ALREADY_OVER: 409,
    Code.NOTHING_FAILED: 409,
    Code.KEY_REUSED: 409,
    Code.STALE_EPOCH: 409,
    Code.UNEXPECTED: 409,
    Code.UNAUTHORISED: 401,
    Code.FORBIDDEN: 403,
    Code.NOT_ALLOWED: 403,
    Code.UNKNOWN_USER: 404,
    Code.UNKNOWN_TOKEN: 404,
    Code.TOKEN_EXPIRED: 401,
    Code.IDENTITY_REFUSED: 401,
    Code.KEYS_UNKNOWN: 503,
    Code.CHANGED_MEANWHILE: 412,
    Code.SLOW_CLIENT: 408,
    Code.OVERLOADED: 429,
    Code.RATE_LIMITED: 429,
    Code.NO_LEADER: 503,
    Code.STORE_REFUSED: 503,
    Code.BEHIND: 503,
}
"""What is not listed is a fault of the server: 500."""


class RefusedError(MusterError):
    """A refusal on its way out, with the status that its place gives it instead of the table's."""

    def __init__(self, reason: Reason, status: int) -> None:
        super().__init__(reason)
        self.status = status


class JsonResponse(Response):
    """A view as JSON."""

    media_type = "application/json"

    def __init__(self, view: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(_encoder.encode(view), status, headers)


class ProblemResponse(JsonResponse):
    """A reason as a problem document."""

    media_type = "application/problem+json"

    def __init__(self, reason: Reason, status: int | None = None, headers: Mapping[str, str] | None = None) -> None:
        problem = describe_problem(reason, status)
        super().__init__(problem, problem.status, {**_standing_headers(problem.status, reason), **(headers or {})})


_encoder: Final = msgspec.json.Encoder()


def describe_problem(reason: Reason, status: int | None = None) -> Problem:
    """A reason as a document."""
    words = put_in_words(reason)
    return Problem(
        type=f"urn:muster:problem:{reason.code.value}",
        title=reason.code.name.lower().replace("_", " "),
        status=status or STATUS.get(reason.code, 500),
        code=reason.code.value,
        detail=words.what,
        fix=words.fix,
        needed=reason.needed,
        available=reason.available,
    )


def bad_field(subject: str, detail: str, status: int = 422) -> RefusedError:
    """Something in the request is not what it should be."""
    return RefusedError(Reason(Code.BAD_SPEC, subject, detail=detail), status)


def forbidden(subject: str, detail: str) -> RefusedError:
    """The request came in a way that is not served."""
    return RefusedError(Reason(Code.FORBIDDEN, subject, detail=detail), STATUS[Code.FORBIDDEN])


def unknown_job(job: int) -> RejectedError:
    """There is no such job, nor was there ever."""
    return RejectedError(Reason(Code.UNKNOWN_JOB, "job", needed=job))


def _standing_headers(status: int, reason: Reason) -> dict[str, str]:
    if status == 401:
        return {"WWW-Authenticate": "Bearer"}
    if reason.code is Code.RATE_LIMITED:
        return {"Retry-After": str(-(-reason.needed // SECOND_MS))}
    return {"Retry-After": str(RETRY_AFTER_S)} if status in (429, 503) else {}
