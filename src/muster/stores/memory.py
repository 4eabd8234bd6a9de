"""A journal in memory, for tests and for the simulator: it obeys every rule of a store except surviving the process.

It is its own reader, and closing it loses nothing, so that a simulated restart finds what was there. It must never
know a file, nor be chosen for work that somebody counts on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from muster.model.errors import StoreError
from muster.model.reason import Code, Reason
from muster.ports.store import Change, Commit, Link, Version, link_of
from muster.stores.rules import check_follows, check_snapshot, plan_trim


class MemoryStore:
    """A Store whose durable medium is a few lists."""

    def __init__(self) -> None:
        self._entries: list[bytes] = []
        self._inputs: dict[int, bytes] = {}
        self._snapshot: tuple[int, bytes] | None = None
        self._story: defaultdict[int, list[int]] = defaultdict(list)
        self._keys: dict[tuple[str, str], int] = {}
        self._records: dict[tuple[str, str], Version] = {}
        self._version = 0
        self._audit: list[Link] = []

    def last_seq(self) -> int:
        return len(self._entries)

    def find_snapshot(self) -> tuple[int, bytes] | None:
        return self._snapshot

    def read_entries(self, after: int, limit: int = 1000) -> list[bytes]:
        start = max(after, 0)
        return self._entries[start : start + limit]

    def read_inputs(self, after: int) -> Iterator[bytes]:
        return iter([data for seq, data in self._inputs.items() if seq > after])

    def read_story(self, job: int) -> list[bytes]:
        return [self._entries[seq - 1] for seq in self._story.get(job, ())]

    def find_job(self, tenant: str, key: str) -> int | None:
        return self._keys.get((tenant, key))

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
            self._entries.append(commit.entry)
            self._note(commit.audit)

    def keep(self, changes: Sequence[Change]) -> None:
        for change in changes:
            for record in change.records:
                self._version += 1
                self._records[record.kind, record.name] = Version(self._version, record)
            self._note([change.audit])

    def save_snapshot(self, seq: int, data: bytes) -> None:
        check_snapshot(self.last_seq(), seq)
        if self._snapshot is None or seq >= self._snapshot[0]:
            self._snapshot = (seq, data)

    def trim_inputs(self, keep: int) -> None:
        newest = plan_trim(self.last_seq(), None if self._snapshot is None else self._snapshot[0], keep)
        self._inputs = {seq: data for seq, data in self._inputs.items() if seq > newest}

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
