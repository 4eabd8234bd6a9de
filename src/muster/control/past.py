"""The past: the world as it was at an instant, folded again from the journal, since the world is nothing but that fold.

It costs what lies between the snapshot, or the beginning, and the instant; so there is one such fold at a time, in a
thread of its own, with a limit, and the last one is kept for whoever reads page after page. It changes nothing that
anybody else holds. What is asked of a world from here may try things out on it, if it asks for one of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.ports import Journal
from muster.wire.codec import decode_entry
from muster.world.apply import apply_entry
from muster.world.snapshot import restore
from muster.world.world import World

ENTRIES_AT_ONCE: Final = 1000
ENTRIES_MAX: Final = 1_000_000

T = TypeVar("T")


class Past:
    """Worlds of other times, for questions."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._turn = asyncio.Lock()
        self._kept: tuple[int, World] | None = None

    async def ask(self, at_ms: int, question: Callable[[World], T]) -> T:
        """Put a question, which changes nothing, to the world as it was at an instant."""
        async with self._turn:
            return await asyncio.to_thread(self._answer, at_ms, question)

    async def ask_freely(self, at_ms: int, question: Callable[[World], T]) -> T:
        """Put a question to a world that nobody else will see: it may do with it what it likes."""
        async with self._turn:
            return await asyncio.to_thread(lambda: question(load_past(self._journal, at_ms)))

    def _answer(self, at_ms: int, question: Callable[[World], T]) -> T:
        if self._kept is None or self._kept[0] != at_ms:
            self._kept = (at_ms, load_past(self._journal, at_ms))
        return question(self._kept[1])


def load_past(journal: Journal, at_ms: int) -> World:
    """The world after the last entry that is not later than an instant."""
    world = _nearest(journal, at_ms)
    if journal.last_seq() - world.seq > ENTRIES_MAX and not _reaches(journal, world.seq + ENTRIES_MAX, at_ms):
        raise RejectedError(Reason(Code.NO_PAST, "entries", journal.last_seq() - world.seq, ENTRIES_MAX))
    while entries := journal.read_entries(world.seq, ENTRIES_AT_ONCE):
        for data in entries:
            entry = decode_entry(data)
            if entry.at > at_ms:
                return world
            apply_entry(world, entry.seq, entry.at, entry.facts)
    return world


def _nearest(journal: Journal, at_ms: int) -> World:
    """The newest snapshot that is not later than the instant; else nothing at all."""
    for seq in reversed(journal.list_snapshots()):
        found = None if _is_later(journal, seq, at_ms) else journal.find_snapshot(seq)
        if found is not None:
            world = restore(found[1])
            if world.now <= at_ms:
                return world
    trimmed = journal.trimmed_seq()
    if trimmed:
        raise RejectedError(Reason(Code.NO_PAST, "journal", needed=1, available=trimmed + 1))
    return World()


def _is_later(journal: Journal, seq: int, at_ms: int) -> bool:
    """Whether an entry, if it is still there, is later than the instant: its snapshot need not be read to see that."""
    for data in journal.read_entries(seq - 1, 1):
        entry = decode_entry(data)
        return entry.seq == seq and entry.at > at_ms
    return False


def _reaches(journal: Journal, seq: int, at_ms: int) -> bool:
    """Whether the entry of that number is later than the instant already."""
    data = journal.read_entries(seq - 1, 1)
    return not data or decode_entry(data[0]).at > at_ms
