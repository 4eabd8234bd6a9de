"""Parameters: what a request says in its path, query, headers and body, decoded and bounded, or refused with a code."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec
from starlette.requests import Request

from muster.api.problems import RefusedError, bad_field
from muster.model.reason import Code, Reason

DIGITS_MAX: Final = 18
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


async def read_body(request: Request, decoder: msgspec.json.Decoder[Body], what: str) -> Body:
    """The body as what it should be: 400 if it is not JSON, 422 with the field's path if it is not that."""
    body = await request.body()
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise bad_field(what, str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_field(what, f"not JSON: {error}", 400) from error


def read_version(request: Request) -> int | None:
    """The version that a change is a change of, as `If-Match` says it: `"7"`; None if it does not say."""
    text = request.headers.get("if-match")
    if text is None or text == "*":
        return None
    return read_number(text.removeprefix('"').removesuffix('"'), "If-Match", default=0)
