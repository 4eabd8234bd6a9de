"""Batches: what waits for the kernel, and what a batch becomes for the store.

The inbox takes whatever arrives, in order, and gives it out in batches of a stated size; marks of a gang that is not
all up wait beside it until it is. Nothing is decided here, and who asks is not known beyond how to tell them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Final, NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from muster.access.audit import write_line
from muster.kernel.kernel import Outcome
from muster.model.access import Principal
from muster.model.event import Event, Progressed
from muster.model.fact import Accepted, jobs_of
from muster.model.history import BLANK, Chapter
from muster.model.phase import Starting
from muster.model.reason import Done
from muster.ports import Commit
from muster.wire.codec import encode_entry, encode_inputs
from muster.world.world import World

BATCH_MAX: Final = 256
EARLY_MAX: Final = 8
"""How many marks of one gang wait until it is up; of more, the first are dropped."""


class Asker(Protocol):
    """Somebody who waits for answers."""

    def send(self, data: bytes) -> None:
        """Pass framed messages on; whoever has left hears nothing."""
        ...


class Item(Struct, frozen=True):
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

    def put_first(self, items: Sequence[Item]) -> None:
        """Stand at the head of the line."""
        self._items.extendleft(reversed(items))

    def put_back(self, items: Iterable[Item]) -> None:
        """Stand at the head of the line again, as suspects."""
        self.put_first([replace(item, is_suspect=True) for item in items])

    def take(self, most: int = BATCH_MAX) -> list[Item]:
        """The next batch: whatever is there, up to `most`. One with a tag is a batch alone, so that what the tag is of
        can be looked at just before; and so is a suspect, so that it harms nobody else."""
        items = list(islice(self._items, most))
        alone = next((place for place, item in enumerate(items) if item.match or item.is_suspect), len(items))
        del items[alone or 1 :]
        for _ in items:
            self._items.popleft()
        return items


class Early:
    """Marks of gangs that are not all up: only what runs progresses, so they wait until it does. Whoever tells them
    tells the last ones again when a new leader comes."""

    def __init__(self) -> None:
        self._held: dict[int, list[Item]] = {}

    def hold(self, world: World, items: list[Item]) -> list[Item]:
        """Keep those back, and pass all others on."""
        if not any(isinstance(item.event, Progressed) for item in items):
            return items
        passed: list[Item] = []
        for item in items:
            event = item.event
            if isinstance(event, Progressed) and item.asker is None and _is_starting(world, event.job):
                self._held[event.job] = [*self._held.get(event.job, ()), item][-EARLY_MAX:]
            else:
                passed.append(item)
        return passed

    def release(self, world: World) -> list[Item]:
        """Those whose gang is up by now, or will not be."""
        up = [job for job in self._held if not _is_starting(world, job)]
        return [item for job in up for item in self._held.pop(job)]


def _is_starting(world: World, number: int) -> bool:
    job = world.jobs.get(number)
    return job is not None and isinstance(job.phase, Starting)


def make_batch(items: list[Item], outcome: Outcome, chapter: Chapter = BLANK) -> Batch:
    """Encode an outcome for the store, with what it adds to history."""
    facts = outcome.facts
    if not facts:
        return Batch(items, outcome, None)
    commit = Commit(
        outcome.seq,
        encode_entry(outcome.seq, outcome.at, facts),
        encode_inputs(outcome.seq, outcome.at, [item.event for item in items]),
        tuple(dict.fromkeys(chain.from_iterable(map(jobs_of, facts)))),
        tuple((fact.spec.tenant, fact.key, fact.job) for fact in facts if isinstance(fact, Accepted) and fact.key),
        tuple(
            write_line(item.event, item.by, outcome.at)
            for item, reply in zip(items, outcome.answers, strict=True)
            if item.by is not None and isinstance(reply, Done)
        ),
        chapter,
    )
    return Batch(items, outcome, commit)
