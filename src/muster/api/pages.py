"""Pages: a listing is cut at so many rows and so many bytes, and says in a header where it goes on.

Rows are made one by one as they are needed, so that a page costs what it shows. No answer is above 1 MB.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from muster.api.params import read_number
from muster.api.problems import bad_field
from muster.wire.views import JobPage, View
from muster.world.world import World

ROWS_MAX: Final = 1000
PAGE_BYTES_MAX: Final = 960 * 1024
"""What rows may take of an answer; the rest is for what stands around them."""
UNWEIGHED_MAX: Final = 50
"""So many rows fit for sure: a user with 64 roles, the largest there is, has about 12 KiB."""

V = TypeVar("V", bound=View)
_encoder: Final = msgspec.json.Encoder()


def read_limit(request: Request, default: int = ROWS_MAX) -> int:
    """How many rows a page may have."""
    return read_number(request.query_params.get("limit"), "limit", default=default, least=1, most=ROWS_MAX)


def go_on(rows: Iterable[V], request: Request) -> Iterator[V]:
    """The rows after the one that `after` names; a row is named by its name."""
    after, walk = request.query_params.get("after"), iter(rows)
    if after is not None and not any(getattr(row, "name", None) == after for row in walk):
        raise bad_field("after", f"{after[:40]!r} is not in the listing")
    return walk


def page_response(world: World, request: Request, rows: Iterable[V]) -> Response:
    """As many rows as a page may have, after the one that the request names."""
    return array_response(world, ((row.name, row) for row in go_on(rows, request)), read_limit(request))  # type: ignore[attr-defined]  # as go_on says


def array_response(world: World, rows: Iterable[tuple[str, View]], limit: int) -> Response:
    """Rows with their cursors, as an array that is cut where it must be."""
    parts: list[bytes] = []
    size, last, more = 0, "", ""
    for cursor, row in rows:
        data = _encoder.encode(row)
        if len(parts) == limit or (parts and size + len(data) > PAGE_BYTES_MAX):
            more = last
            break
        parts.append(data)
        size, last = size + len(data) + 1, cursor
    headers = {"Muster-Seq": str(world.seq), **({"Muster-Next-After": more} if more else {})}
    return Response(b"[" + b",".join(parts) + b"]", headers=headers, media_type="application/json")


def fit(rows: Sequence[V]) -> Sequence[V]:
    """As many of the first rows as one answer may have, at least one; those of a small page are not weighed."""
    size = 0
    for number, row in enumerate(rows if len(rows) > UNWEIGHED_MAX else ()):
        size += len(_encoder.encode(row)) + 1
        if number and size > PAGE_BYTES_MAX:
            return rows[:number]
    return rows


def fit_jobs(page: JobPage) -> JobPage:
    """The same of a page of jobs, which goes on with the first that did not fit."""
    rows = list(fit(page.jobs))
    return page if len(rows) == len(page.jobs) else JobPage(rows, rows[-1].id, page.seq)
