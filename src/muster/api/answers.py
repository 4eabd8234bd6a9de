"""Answers: what a reader gets of the world, and what becomes of a change. Each says which entry it rests on."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from muster.api.gate import principal_of
from muster.api.params import read_known, read_match
from muster.api.problems import JsonResponse, ProblemResponse
from muster.control.follower import Follower
from muster.control.tags import tag_of
from muster.model.reason import Refused
from muster.wire.link import Answer, OfAdmin, OfBooking, OfNode
from muster.wire.views import Changed, Submitted
from muster.world.world import World


def read_response(world: World, view: object) -> Response:
    """A view, and the entry that it rests on."""
    return JsonResponse(view, headers={"Muster-Seq": str(world.seq)})


def tagged_response(world: World, view: object, thing: object) -> Response:
    """A view of one thing, with the tag that a change of it may name."""
    return JsonResponse(view, headers={"Muster-Seq": str(world.seq), "ETag": f'"{tag_of(thing)}"'})


def fresh_response(request: Request, world: World, view: object, tag: str) -> Response:
    """The same for a thing of which all that its reader sees is in the tag, but for what grows with time alone: one who
    has it already (`If-None-Match`) is told just that."""
    headers = {"Muster-Seq": str(world.seq), "ETag": f'"{tag}"'}
    is_known = not {tag, "*"}.isdisjoint(read_known(request))
    return Response(None, 304, headers) if is_known else JsonResponse(view, headers=headers)


async def ask_change(request: Request, follower: Follower, event: OfAdmin | OfNode | OfBooking) -> Answer:
    """Ask for a privileged change: signed, and only of what the request says it is a change of."""
    return await follower.ask(event, principal_of(request), read_match(request))


def changed_response(answer: Answer) -> Response:
    """What became of a change that makes no job."""
    if isinstance(answer.reply, Refused):
        return answer_response(answer, 200)
    return JsonResponse(Changed(answer.seq), headers={"Muster-Seq": str(answer.seq)})


def answer_response(answer: Answer, status: int) -> Response:
    """The leader's answer, and the entry that it rests on."""
    headers = {"Muster-Seq": str(answer.seq)}
    if isinstance(answer.reply, Refused):
        return ProblemResponse(answer.reply.reason, headers=headers)
    return JsonResponse(Submitted(answer.reply.job, answer.seq), status, headers)
