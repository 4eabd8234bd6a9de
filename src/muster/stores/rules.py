"""The rules that every store obeys, as pure functions: what may be appended, saved and trimmed.

They know numbers only, never blobs, files or tables; so that no two stores can disagree about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from muster.model.errors import StoreError
from muster.model.reason import Code, Reason
from muster.ports.store import Commit

CUT_MAX: Final = 100_000


def check_follows(last_seq: int, commits: Sequence[Commit]) -> None:
    """Raise unless the commits' numbers follow `last_seq`, and each other, without a gap."""
    for due, commit in enumerate(commits, last_seq + 1):
        if commit.seq != due:
            detail = f"a commit has number {commit.seq}, due is {due}"
            raise StoreError(Reason(Code.STORE_REFUSED, "seq", needed=due, available=commit.seq, detail=detail))


def check_snapshot(last_seq: int, seq: int) -> None:
    """Raise if a snapshot would hold what the journal does not: it would survive a crash that its facts did not."""
    if not 0 <= seq <= last_seq:
        detail = f"a snapshot of entry {seq}, the journal ends at {last_seq}"
        raise StoreError(Reason(Code.STORE_REFUSED, "seq", needed=seq, available=last_seq, detail=detail))


def plan_trim(last_seq: int, snapshot_seq: int | None, keep: int) -> int:
    """The newest batch of the recorder that may go, and all before it; a replay from the snapshot needs the rest."""
    newest = last_seq - keep
    return newest if snapshot_seq is None else min(newest, snapshot_seq)


def plan_bytes(sizes: Iterable[tuple[int, int]], most_bytes: int) -> int:
    """The newest batch of the recorder that is too much, of batches with their sizes, newest first; 0 if none is."""
    total = 0
    for seq, size in sizes:
        total += size
        if total > most_bytes:
            return seq
    return 0


def plan_cut(trimmed: int, forgotten: int, oldest_told: int | None, snapshot_seq: int | None) -> int:
    """The newest entry that may go now, and all before it: it is no younger than the last of those who are forgotten,
    nobody who is remembered begins there, a snapshot has it, and it is not too many at once."""
    bounds = [forgotten, snapshot_seq or 0, trimmed + CUT_MAX]
    return min(bounds if oldest_told is None else [*bounds, oldest_told - 1])
