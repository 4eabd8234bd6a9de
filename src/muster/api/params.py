"""Parameters: what a request says in its path, query, headers and body, decoded and bounded, or refused with a code."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

from muster.api.problems import RefusedError, bad_field
from muster.control.follower import Follower
from muster.control.tags import ABSENT, ANY, NEVER
from muster.model.reason import Code, Reason
from muster.world.world import World

DIGITS_MAX: Final = 18
KNOWN_MAX: Final = 16
NO_VERSION: Final = -1
"""A version that nothing has."""
HEADERS: Final = "muster.headers"
"""Where the guard leaves what the headers say, by name: it has looked at each of them."""
Body = TypeVar("Body")


def read_number(text: str | None, what: str, *, default: int, least: int = 0, most: int = 10**DIGITS_MAX) -> int:
    """A whole number within bounds; what was left out has its default."""
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX):
        raise bad_field(what, f"{text[:40]!r} is not a whole number")
    number = int(text)
    if not least <= number <= most:
        detail = f"between {least} and {most}"
        raise RefusedError(Reason(Code.BAD_AMOUNT, what, needed=number, available=most, detail=detail), 422)
    return number


def read_choice(text: str | None, what: str, choices: tuple[str, ...], *, default: str) -> str:
    """One of a few words."""
    if text is None:
        return default
    if text not in choices:
        raise bad_field(what, f"{text[:40]!r} is not one of {', '.join(choices)}")
    return text


def read_job(request: Request) -> int:
    """The job that the path names; what is no number names nothing."""
    text = request.path_params["job"]
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX):
        raise RefusedError(Reason(Code.NOT_FOUND, f"job {text[:40]!r}"), 404)
    return int(text)


def find_header(request: Request, name: bytes) -> str | None:
    """What the first header of that name says, as far as there is one; names are in small letters."""
    said = request.scope[HEADERS].get(name)
    return None if said is None else said[0].decode("latin-1")


async def read_world(request: Request, follower: Follower) -> World:
    """The follower's world, once it holds the entry that the request wants to see."""
    wanted = read_number(find_header(request, b"muster-at-least"), "Muster-At-Least", default=0)
    await follower.reach(wanted)
    return follower.world


async def read_body(
    request: Request, decoder: msgspec.json.Decoder[Body], what: str, if_empty: Body | None = None
) -> Body:
    """The body as what it should be: 400 if it is not JSON, 422 with the field's path if it is not that."""
    body = await _read_whole(request.receive)
    if if_empty is not None and not body:
        return if_empty
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise bad_field(what, str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_field(what, f"not JSON: {error}", 400) from error


async def _read_whole(receive: Receive) -> bytes:
    """All that is sent, as far as the guard lets it come: mostly in one piece, so without a generator around it."""
    pieces, has_more = list[bytes](), True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        pieces.append(message.get("body", b""))
        has_more = message.get("more_body", False)
    return b"".join(pieces)


def read_match(request: Request) -> str:
    """The tags of what a change is a change of, with commas between: `If-Match: "tag"`, or several of which one is it,
    or `*` for whatever is there; or `If-None-Match: *` for what shall be new. Empty if nothing is said."""
    if find_header(request, b"if-none-match") == "*":
        return ABSENT
    said = request.scope[HEADERS].get(b"if-match")
    if said is None:
        return ""
    tags = [tag for each in b",".join(said).decode("latin-1").split(",") if (tag := each.strip())]
    if len(tags) > KNOWN_MAX:
        raise bad_field("If-Match", f"it names {len(tags)} tags, and at most {KNOWN_MAX} are looked at")
    return ",".join(tag.removeprefix('"').removesuffix('"')[:DIGITS_MAX] or NEVER for tag in tags) or NEVER


def read_known(request: Request) -> list[str]:
    """The tags of what a reader has already: `If-None-Match: "tag"`, or several. A weak one is as good for a read."""
    found = (find_header(request, b"if-none-match") or "").split(",")[:KNOWN_MAX]
    return [each.strip().removeprefix("W/").strip('"') for each in found]


def read_version(request: Request, known: int | None) -> int | None:
    """The same of what has a numbered version: the one that must be it, 0 of what shall be new; None if nothing is said
    that is not so. `known` is the version that it has, as far as one knows here: where several would do, one is asked
    for, and where none is a number, none will do."""
    match = read_match(request)
    if match == ABSENT:
        return 0
    if not match or (match == ANY and known is not None):
        return None
    tags = match.split(",")
    if str(known) in tags:
        return known
    return max((int(tag) for tag in tags if tag.isascii() and tag.isdigit()), default=NO_VERSION)


def read_key(request: Request) -> str:
    """The key under which a repeat makes nothing new; empty if there is none. Of two keys nobody could say which."""
    said = request.scope[HEADERS].get(b"idempotency-key", [b""])
    if len(set(said)) > 1:
        raise bad_field("Idempotency-Key", "two different ones are said, and nobody could tell which is meant")
    return said[0].decode("latin-1")  # type: ignore[no-any-return]  # what the guard left there are headers
