"""The writer belongs to a thread that did not open it; readings may come from any thread while it writes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from muster.stores.sqlite import SqliteJournal, SqliteStore
from muster.testing.store_conformance import check_holds, commits_of

LAST = 200
ENTRIES = [commit.entry for commit in commits_of(range(1, LAST + 1))]


def write_all(store: SqliteStore) -> None:
    for seq in range(1, LAST, 5):
        store.append(commits_of(range(seq, seq + 5)))
        store.save_snapshot(seq + 4, b"%d" % (seq + 4))


def read_until_all_is_there(journal: SqliteJournal) -> int:
    """Read over and over; return how many whole groups were never seen in part."""
    sights = 0
    while True:
        entries = journal.read_entries(0)
        assert len(entries) % 5 == 0
        assert entries == ENTRIES[: len(entries)]
        snapshot = journal.find_snapshot()
        assert snapshot is None or snapshot[1] == b"%d" % snapshot[0]
        sights += 1
        if len(entries) == LAST:
            return sights


@pytest.mark.parametrize("shared", [True, False], ids=["one connection", "a connection each"])
def test_threads_read_while_another_writes(tmp_path: Path, shared: bool) -> None:
    store = SqliteStore(tmp_path / "journal.db")
    readers: list[SqliteJournal] = [store, store, store]
    if not shared:
        readers = [SqliteJournal(tmp_path / "journal.db") for _ in range(3)]
    with ThreadPoolExecutor(4) as threads:
        reading = [threads.submit(read_until_all_is_there, reader) for reader in readers]
        threads.submit(write_all, store).result()
        assert all(sights.result() for sights in reading)
    check_holds(store, LAST)
    for reader in readers:
        reader.close()
    store.close()
