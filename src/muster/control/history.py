"""History: what a batch adds to it, and history as a whole made again from the journal.

It is a fold of the facts like the world, and says nothing that the journal does not say; whoever loses it folds again.
It decides nothing and knows no store by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from muster.model.access import submitter_of
from muster.model.fact import Accepted, Fact
from muster.model.history import AMOUNTS, BLANK, Chapter, Ending, Finished, Use
from muster.model.phase import ACTIVE, Running, TaskPhase
from muster.ports import Journal, Store
from muster.wire.codec import Entry, decode_entry
from muster.wire.history import encode_ending
from muster.world.accounting import keep_diary
from muster.world.apply import apply_entry
from muster.world.diary import Diary, End
from muster.world.world import World

ENTRIES_AT_ONCE: Final = 1000


def write_chapter(diary: Diary, facts: Iterable[Fact]) -> Chapter:
    """What facts that were just applied add to history."""
    owners = tuple(
        (item.job, user) for item in facts if isinstance(item, Accepted) and (user := submitter_of(item.cause))
    )
    uses, ends = diary.take()
    if not (owners or uses or ends):
        return BLANK
    used = [Use(*key, tuple(row[: len(AMOUNTS)])) for key, row in sorted(uses.items()) if any(row)]
    return Chapter(owners, tuple(map(_finish, ends)), tuple(used))


def fold_history(journal: Journal, up_to: int) -> Iterator[tuple[int, Chapter]]:
    """History once more, from the first entry on: the chapters of entries, with their numbers."""
    world = World()
    diary = keep_diary(world)
    for entry in _read(journal, up_to):
        apply_entry(world, entry.seq, entry.at, entry.facts)
        yield entry.seq, write_chapter(diary, entry.facts)


def fill_history(store: Store) -> int:
    """Write the history of a journal that is older than its history; how many entries were told again."""
    up_to = store.find_unfilled()
    if up_to:
        store.fill(chapter for _, chapter in fold_history(store, up_to))
    return up_to


def _read(journal: Journal, up_to: int) -> Iterator[Entry]:
    after = 0
    while after < up_to:
        for data in journal.read_entries(after, min(ENTRIES_AT_ONCE, up_to - after)):
            entry = decode_entry(data)
            after = entry.seq
            yield entry


def _finish(end: End) -> Finished:
    job, item = end.job, end.item
    spec, phase = job.spec, job.phase
    up_ms = end.at - phase.since if isinstance(phase, Running) else 0
    ending = Ending(
        name=spec.name,
        tier=spec.tier,
        tasks=spec.tasks,
        ask=spec.whole[0],
        accepted_at=job.accepted_at,
        started_at=phase.run.since if isinstance(phase, ACTIVE) else 0,
        why=item.why,
        code=item.code,
        epoch=job.epoch,
        failures=job.failures,
        served_ms=job.served_ms + up_ms,
        cpu_ms=end.meter.cpu_ms,
        rss_bytes=end.meter.rss_bytes,
        counts=_final_counts(end.counts),
        limit_ms=spec.limit_ms,
    )
    return Finished(job.id, spec.tenant, int(item.phase), end.at, job.key, encode_ending(ending))


def _final_counts(counts: tuple[int, ...]) -> tuple[int, ...]:
    """Of an array: how many of its tasks succeeded, failed and were cancelled."""
    over = (TaskPhase.SUCCEEDED, TaskPhase.FAILED, TaskPhase.CANCELLED)
    return tuple(counts[phase] for phase in over) if counts else ()
