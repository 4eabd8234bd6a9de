"""Batches: what waits for the kernel, and what a batch becomes for the store.

The inbox takes whatever arrives, in order, and gives it out in batches of a stated size. It decides nothing, and it
never knows who asks beyond how to tell them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from muster.access.audit import write_line
from muster.kernel.kernel import Outcome
from muster.model.access import Principal
from muster.model.event import Event
from muster.model.fact import Accepted, jobs_of
from muster.model.history import BLANK, Chapter
from muster.model.reason import Done
from muster.ports import Commit
from muster.wire.codec import encode_entry, encode_inputs

BATCH_MAX: Final = 256


class Asker(Protocol):
    """Somebody who waits for answers."""

    def send(self, data: bytes) -> None:
        """Pass framed messages on; whoever has left hears nothing."""
        ...


class Item(NamedTuple):
    """An event, and who asked it under which number; an engine's report has no asker. A privileged one says by whom,
    and may say the tag of what it is a change of. A suspect was in a batch that broke the kernel."""

    event: Event
    asker: Asker | None = None
    number: int = 0
    by: Principal | None = None
    match: str = ""
    is_suspect: bool = False


class Batch(NamedTuple):
    """A batch that the kernel has handled. Without facts there is nothing to commit, but it keeps its place in line."""

    items: list[Item]
    outcome: Outcome
    commit: Commit | None


class Inbox:
    """What has arrived and was not yet handled. Asks are bounded by the leader, reports by what their engine runs."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, items: Iterable[Item]) -> None:
        """Join the line."""
        self._items.extend(items)

    def put_back(self, items: Iterable[Item]) -> None:
        """Stand at the head of the line again, as suspects."""
        self._items.extendleft(item._replace(is_suspect=True) for item in reversed(list(items)))

    def take(self, most: int = BATCH_MAX) -> list[Item]:
        """The next batch: whatever is there, up to `most`. One with a tag is a batch alone, so that what the tag is of
        can be looked at just before; and so is a suspect, so that it harms nobody else."""
        items: list[Item] = []
        while self._items and len(items) < most:
            if self._items[0].match or self._items[0].is_suspect:
                return items or [self._items.popleft()]
            items.append(self._items.popleft())
        return items


def make_batch(items: list[Item], outcome: Outcome, chapter: Chapter = BLANK) -> Batch:
    """Encode an outcome for the store, with what it adds to history."""
    facts = outcome.facts
    if not facts:
        return Batch(items, outcome, None)
    commit = Commit(
        outcome.seq,
        encode_entry(outcome.seq, outcome.at, facts),
        encode_inputs(outcome.seq, outcome.at, [item.event for item in items]),
        tuple(dict.fromkeys(job for fact in facts for job in jobs_of(fact))),
        tuple((fact.spec.tenant, fact.key, fact.job) for fact in facts if isinstance(fact, Accepted) and fact.key),
        tuple(
            write_line(item.event, item.by, outcome.at)
            for item, reply in zip(items, outcome.answers, strict=True)
            if item.by is not None and isinstance(reply, Done)
        ),
        chapter,
    )
    return Batch(items, outcome, commit)
