"""Many jobs in one request: each is judged by itself, and those that are right become durable together."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.api.gate import cause_of
from muster.api.jobs import check_submit
from muster.api.params import read_body
from muster.api.problems import JsonResponse, describe_problem
from muster.control.follower import Follower
from muster.model.errors import MusterError
from muster.model.reason import Reason, Refused
from muster.model.spec import Spec
from muster.wire.views import BulkAnswer, BulkPart

JOBS_MAX: Final = 1000


class BulkJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of many jobs, and the key that makes a repeat harmless."""

    spec: Spec
    key: str = ""


class BulkBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Many jobs."""

    jobs: Annotated[tuple[BulkJob, ...], msgspec.Meta(min_length=1, max_length=JOBS_MAX)]


_decoder: Final = msgspec.json.Decoder(BulkBody)


class Bulk:
    """The route /v1/jobs/bulk."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.routes = [Route("/v1/jobs/bulk", self.submit, methods=["POST"])]

    async def submit(self, request: Request) -> Response:
        """An answer for each job, in their order: its number, or why there is none."""
        body = await read_body(request, _decoder, "jobs")
        answers = await asyncio.gather(*(self._submit(request, job) for job in body.jobs))
        parts = [part for part, _ in answers]
        seq = max(seq for _, seq in answers)
        return JsonResponse(BulkAnswer(parts, seq), headers={"Muster-Seq": str(seq)})

    async def _submit(self, request: Request, job: BulkJob) -> tuple[BulkPart, int]:
        try:
            spec = await check_submit(request, job.spec)
            answer = await self._follower.submit(spec, job.key, cause_of(request))
        except MusterError as error:
            return _refuse(error.reason), 0
        if isinstance(answer.reply, Refused):
            return _refuse(answer.reply.reason), answer.seq
        return BulkPart(job=answer.reply.job), answer.seq


def _refuse(reason: Reason) -> BulkPart:
    return BulkPart(problem=describe_problem(reason))
