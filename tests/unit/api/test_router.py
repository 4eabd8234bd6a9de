"""The router: whoever serves a path is found, with what the path says; what nobody serves is refused as a problem."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Scope

from muster.api.router import Router


async def tell(request: Request) -> Response:
    return PlainTextResponse(f"{request.method} {request.path_params}")


async def leave(request: Request) -> Response:
    raise RuntimeError("secret")


ROUTER = Router(
    [
        Route("/things/{name:path}", tell, methods=["GET"]),
        Route("/things/all", leave, methods=["PUT"]),
        Route("/things/{name:path}", tell, methods=["DELETE"]),
    ],
    {"GET /things/{name:path}": ("color", "size"), "DELETE /things/{name:path}": ()},
)


def call(method: str, path: str, sent: list[Message] | None = None) -> tuple[int, dict[bytes, bytes], bytes]:
    sent = [] if sent is None else sent
    path, _, query = path.partition("?")

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [],
        "root_path": "",
        "query_string": query.encode(),
    }
    asyncio.run(ROUTER(scope, receive, send))
    start, body = sent
    return start["status"], dict(start["headers"]), body["body"]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_path_says_what_it_is_about(method: str) -> None:
    assert call(method, "/things/a/b")[2] == f"{method} {{'name': 'a/b'}}".encode()


def test_a_head_is_what_a_get_would_answer() -> None:
    assert call("HEAD", "/things/a")[0] == 200


def test_a_method_that_nobody_serves_is_told_all_that_are() -> None:
    status, headers, body = call("POST", "/things/all")
    problem: dict[str, Any] = msgspec.json.decode(body)
    assert (status, headers[b"allow"], problem["code"]) == (405, b"DELETE, GET, HEAD, PUT", "M336")


def test_a_path_that_nobody_serves_is_not_there() -> None:
    status, headers, body = call("GET", "/others")
    problem: dict[str, Any] = msgspec.json.decode(body)
    assert (status, problem["code"], problem["status"]) == (404, "M311", 404)
    assert b"allow" not in headers


@pytest.mark.parametrize(
    ("method", "query", "said"),
    [
        ("GET", "colour=red", "query: 'colour' is not one of color, size"),
        ("HEAD", "size=1&siz=2", "query: 'siz' is not one of color, size"),
        ("GET", "size=1&color=red&size=2", "query: 'size' is said twice"),
        ("DELETE", "dry_run=1", "query: 'dry_run' is not a word that this takes: it takes none"),
        ("GET", "color=red&size=", ""),
    ],
)
def test_a_query_says_only_what_is_looked_at(method: str, query: str, said: str) -> None:
    status, _, body = call(method, f"/things/a?{query}")
    assert status == (422 if said else 200)
    assert not said or msgspec.json.decode(body)["detail"] == said


def test_a_bug_is_answered_and_then_raised_for_the_log() -> None:
    sent: list[Message] = []
    with pytest.raises(RuntimeError, match="secret"):
        call("PUT", "/things/all", sent)
    assert (sent[0]["status"], msgspec.json.decode(sent[1]["body"])["code"]) == (500, "M900")
    assert b"secret" not in sent[1]["body"]
