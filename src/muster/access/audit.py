"""The audit log: one line for each privileged change, each linked to all before it by a hash.

Whoever changes, drops or moves a line breaks the chain from there on. What a chain cannot show is a tail that was cut
off as a whole: note its last number and link elsewhere from time to time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from muster.model.access import AuditLine, OfAccess, Principal
from muster.model.event import Event
from muster.ports import Journal
from muster.ports.store import Link, link_of
from muster.wire.records import describe, encode_record

LINES_AT_ONCE: Final = 1000


class Chain(NamedTuple):
    """How far the audit log holds: the last sound line and its link, and the first broken one, or 0."""

    lines: int
    head: bytes
    broken_at: int


def write_line(request: Event | OfAccess, by: Principal, now: int) -> bytes:
    """The audit line of a request."""
    action, subject, detail = describe(request)
    return encode_record(AuditLine(now, by.name, action, subject, detail, by.token))


def verify(journal: Journal) -> Chain:
    """Follow the chain from its first line."""
    number, head = 0, b""
    for found in _walk(journal):
        if found.number != number + 1 or link_of(head, found.number, found.data) != found.link:
            return Chain(number, head, number + 1)
        number, head = found.number, found.link
    return Chain(number, head, 0)


def _walk(journal: Journal) -> Iterator[Link]:
    after = 0
    while found := journal.read_audit(after, LINES_AT_ONCE):
        yield from found
        after = found[-1].number
