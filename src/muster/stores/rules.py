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
SNAPSHOTS_MAX: Final = 12
SNAPSHOTS_BYTES_MAX: Final = 256 * 1024 * 1024
"""How many snapshots are kept, and how large all of them may be: the newest, and older ones for reading the past."""


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


def plan_cut(trimmed: int, forgotten: int, snapshot_seq: int | None, last_seq: int) -> int:
    """The newest entry that may go now, and all before it that nobody is told of: it is no younger than the last of
    those who are forgotten, a snapshot has it, and it is not too many at once. The very last stays: the next follows
    it."""
    return min(forgotten, snapshot_seq or 0, trimmed + CUT_MAX, last_seq - 1)


def plan_snapshots(kept: Sequence[tuple[int, int]], trimmed: int) -> list[int]:
    """Which snapshots go, of those that there are with their sizes, oldest first.

    Those go from which no fold leads on, for entries after them are gone. Then, while there are too many or they are
    too large together, the one whose going leaves the least gap for its age: so they are close to each other near the
    end, and ever farther apart before. The newest stays.
    """
    gone = [seq for seq, _ in kept[:-1] if seq < trimmed]
    left = [each for each in kept if each[0] not in gone]
    while len(left) > 1 and (len(left) > SNAPSHOTS_MAX or sum(size for _, size in left) > SNAPSHOTS_BYTES_MAX):
        gone.append(left.pop(_find_least_missed([seq for seq, _ in left]))[0])
    return gone


def _find_least_missed(seqs: Sequence[int]) -> int:
    """The index of the snapshot, older than the newest, without which the past is least farther away."""
    ages = [seqs[-1] - seq for seq in seqs]
    if len(seqs) == 2:
        return 0  # nothing lies between two
    return min(range(1, len(seqs) - 1), key=lambda i: ((ages[i - 1] - ages[i + 1]) * 1000 // ages[i - 1], i))
