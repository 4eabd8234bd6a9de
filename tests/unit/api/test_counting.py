"""Whoever answers a request says so to whoever counts: the router, also when a handler breaks, and the guard."""

from __future__ import annotations

import asyncio

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message

from muster.api.counting import Counting
from muster.api.guard import Guard
from muster.api.router import Router
from muster.model.reason import Code, Reason

OURS = "a-token"


async def _fine(_: Request) -> Response:
    return Response()


async def _broken(_: Request) -> Response:
    raise ZeroDivisionError


def _ask(counting: Counting, method: str, path: str, bearer: str = OURS) -> None:
    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(_: Message) -> None:
        pass

    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {bearer}".encode())]
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers}
    asyncio.run(counting(scope, receive, send))  # type: ignore[arg-type]  # it is a coroutine


def test_every_answer_is_counted_once_whoever_gives_it() -> None:
    routes = [Route("/fine", _fine, methods=["GET"]), Route("/broken", _broken, methods=["GET"])]
    counting = Counting(Guard(Router(routes), OURS, lambda _: Reason(Code.UNAUTHORISED)))
    _ask(counting, "GET", "/fine")
    _ask(counting, "GET", "/nowhere")
    _ask(counting, "GET", "/fine", bearer="another")
    with pytest.raises(ZeroDivisionError):
        _ask(counting, "GET", "/broken")
    answers, _, _, total = counting.measure()
    counted = {labels["status"]: count for labels, count in answers.samples}
    assert counted == {"2xx": 1, "4xx": 2, "5xx": 1}
    assert [count for _, count in total.samples] == [4]
