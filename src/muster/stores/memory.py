"""A journal in memory, for tests and for the simulator: it obeys every rule of a store except surviving the process.

It is its own reader, and closing it loses nothing, so that a simulated restart finds what was there. It must never
know a file, nor be chosen for work that somebody counts on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from muster.model.errors import StoreError
from muster.model.history import AMOUNTS, Chapter, Finished, Remembered, Used
from muster.model.reason import Code, Reason
from muster.ports.store import Change, Commit, Link, Version, Wanted, link_of
from muster.stores.rules import check_follows, check_snapshot, plan_bytes, plan_cut, plan_snapshots, plan_trim

K = TypeVar("K")
_NOTHING: Final = (0,) * len(AMOUNTS)


class MemoryStore:
    """A Store whose durable medium is a few lists."""

    def __init__(self) -> None:
        self._entries: dict[int, bytes] = {}
        self._last = 0
        self._inputs: dict[int, bytes] = {}
        self._snapshots: dict[int, bytes] = {}
        self._story: defaultdict[int, list[int]] = defaultdict(list)
        self._keys: dict[tuple[str, str], int] = {}
        self._records: dict[tuple[str, str], Version] = {}
        self._version = 0
        self._audit: list[Link] = []
        self._trimmed = 0
        self._owners: dict[int, str] = {}
        self._finished: dict[int, Finished] = {}
        self._amounts: dict[int, tuple[int, ...]] = {}
        self._uses: dict[tuple[str, str, str, int], tuple[int, ...]] = {}

    def last_seq(self) -> int:
        return self._last

    def trimmed_seq(self) -> int:
        return self._trimmed

    def find_snapshot(self, upto: int | None = None) -> tuple[int, bytes] | None:
        found = [seq for seq in self._snapshots if upto is None or seq <= upto]
        return (max(found), self._snapshots[max(found)]) if found else None

    def list_snapshots(self) -> list[int]:
        return sorted(self._snapshots)

    def read_entries(self, after: int, limit: int = 1000) -> list[bytes]:
        first = max(after, self._trimmed) + 1
        return [self._entries[seq] for seq in range(first, min(first + limit, self._last + 1))]

    def read_inputs(self, after: int) -> Iterator[bytes]:
        return iter([data for seq, data in self._inputs.items() if seq > after])

    def read_story(self, job: int) -> list[bytes]:
        return [self._entries[seq] for seq in self._story.get(job, ())]

    def find_jobs(self, keys: Sequence[tuple[str, str]]) -> list[int | None]:
        return [self._keys.get(key) for key in keys]

    def find_owner(self, job: int) -> str:
        return self._owners.get(job, "")

    def find_finished(self, job: int) -> Remembered | None:
        found = self._finished.get(job)
        return None if found is None else Remembered(found, self._owners.get(job, ""), self.find_amounts(job)[1])

    def read_finished(self, wanted: Wanted) -> list[Remembered]:
        first, last = wanted.span
        among = (job for job, each in self._finished.items() if first < job < last and _is_wanted(each, wanted))
        numbers = sorted(among, reverse=wanted.newest)
        return [found for job in numbers[: wanted.limit] if (found := self.find_finished(job)) is not None]

    def find_amounts(self, job: int) -> tuple[int, tuple[int, ...]]:
        return self.last_seq(), self._amounts.get(job, _NOTHING)

    def read_uses(self, first_hour: int, last_hour: int, *, hourly: bool = False) -> tuple[int, list[Used]]:
        found: dict[tuple[str, str, str, int], tuple[int, ...]] = {}
        for (tenant, user, flavor, hour), amounts in self._uses.items():
            if first_hour <= hour <= last_hour:
                _add(found, (tenant, user, flavor, hour if hourly else 0), amounts)
        rows = [Used(*key[:3], key[3] if hourly else None, found[key]) for key in sorted(found)]
        return self.last_seq(), rows

    def read_records(self, after: int, limit: int = 1000) -> list[Version]:
        found = sorted(version for version in self._records.values() if version.number > after)
        return found[:limit]

    def read_audit(self, after: int, limit: int = 1000) -> list[Link]:
        return self._audit[max(after, 0) : max(after, 0) + limit]

    def close(self) -> None:
        """Nothing to let go of."""

    def append(self, commits: Sequence[Commit]) -> None:
        check_follows(self.last_seq(), commits)
        self._keys |= self._check_keys(commits)
        for commit in commits:
            for job in dict.fromkeys(commit.jobs):
                self._story[job].append(commit.seq)
            self._inputs[commit.seq] = commit.inputs
            self._entries[commit.seq] = commit.entry
            self._last = commit.seq
            self._note(commit.audit)
            self._add_chapter(commit.chapter)

    def keep(self, changes: Sequence[Change]) -> None:
        for change in changes:
            for record in change.records:
                self._version += 1
                self._records[record.kind, record.name] = Version(self._version, record)
            self._note([change.audit])

    def save_snapshot(self, seq: int, data: bytes) -> None:
        check_snapshot(self.last_seq(), seq)
        self._snapshots[seq] = data
        self._thin_snapshots()

    def trim_inputs(self, keep: int, most_bytes: int | None = None) -> None:
        snapshot_seq = max(self._snapshots, default=None)
        if most_bytes is not None:
            sizes = ((seq, len(self._inputs[seq])) for seq in reversed(self._inputs))
            keep = min(keep, self.last_seq() - plan_bytes(sizes, most_bytes))
        newest = plan_trim(self.last_seq(), snapshot_seq, keep)
        self._inputs = {seq: data for seq, data in self._inputs.items() if seq > newest}

    def purge(self, before: int, most: int) -> int:
        old = sorted((each.ended_at, job) for job, each in self._finished.items() if each.ended_at < before)[:most]
        forgotten = max((self._story[job][-1] for _, job in old if job in self._story), default=0)
        for _, job in old:
            finished = self._finished.pop(job)
            self._keys.pop((finished.tenant, finished.key), None)
            for kept in (self._story, self._owners, self._amounts):
                kept.pop(job, None)
        cut = plan_cut(self._trimmed, forgotten, max(self._snapshots, default=None), self._last)
        if cut > self._trimmed:
            told = {seq for story in self._story.values() for seq in story}
            self._entries = {seq: data for seq, data in self._entries.items() if seq > cut or seq in told}
            self._trimmed = cut
            self._thin_snapshots()
        return len(old)

    def find_unfilled(self) -> int:
        return 0

    def fill(self, chapters: Iterable[Chapter]) -> None:
        for chapter in chapters:
            self._add_chapter(chapter)

    def _thin_snapshots(self) -> None:
        for seq in plan_snapshots([(seq, len(self._snapshots[seq])) for seq in sorted(self._snapshots)], self._trimmed):
            del self._snapshots[seq]

    def _add_chapter(self, chapter: Chapter) -> None:
        self._owners |= dict(chapter.owners)
        self._finished |= {each.job: each for each in chapter.finished}
        for use in chapter.uses:
            _add(self._amounts, use.job, use.amounts)
            _add(self._uses, (use.tenant, self._owners.get(use.job, ""), use.flavor, use.hour), use.amounts)

    def _note(self, lines: Sequence[bytes]) -> None:
        for data in lines:
            before = self._audit[-1].link if self._audit else b""
            number = len(self._audit) + 1
            self._audit.append(Link(number, data, link_of(before, number, data)))

    def _check_keys(self, commits: Sequence[Commit]) -> dict[tuple[str, str], int]:
        fresh: dict[tuple[str, str], int] = {}
        for commit in commits:
            for tenant, key, job in commit.keys:
                if (tenant, key) in fresh or (tenant, key) in self._keys:
                    raise StoreError(Reason(Code.STORE_REFUSED, "key", detail=f"{tenant}/{key} has its job already"))
                fresh[tenant, key] = job
        return fresh


def _add(sums: dict[K, tuple[int, ...]], key: K, amounts: tuple[int, ...]) -> None:
    sums[key] = tuple(map(int.__add__, sums.get(key, _NOTHING), amounts))


def _is_wanted(finished: Finished, wanted: Wanted) -> bool:
    return (
        wanted.since <= finished.ended_at < wanted.until
        and (wanted.tenants is None or finished.tenant in wanted.tenants)
        and (not wanted.phases or finished.phase in wanted.phases)
    )
