"""Damage inside the file is found when it is read and named by its number; it is never passed on or passed over."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from muster.model.errors import StoreError
from muster.stores.sqlite import SqliteJournal, SqliteStore
from muster.testing.store_conformance import check_holds, commit_of, commits_of, group_after


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of 50 entries with a snapshot, closed."""
    path = tmp_path / "journal.db"
    store = SqliteStore(path)
    store.append(commits_of(range(1, 51)))
    store.save_snapshot(50, b"the world")
    store.close()
    return path


def execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET data = x'00' WHERE seq = 17",
        "UPDATE entries SET data = CAST('text' AS TEXT) WHERE seq = 17",
        "UPDATE entries SET crc = crc + 1 WHERE seq = 17",
        "UPDATE entries SET (data, crc) = (SELECT data, crc FROM entries WHERE seq = 18) WHERE seq = 17",
        "DELETE FROM entries WHERE seq = 17",
    ],
)
def test_a_damaged_entry_is_named(path: Path, statement: str) -> None:
    execute(path, statement)
    reader = SqliteJournal(path)
    with pytest.raises(StoreError, match=r"M302.*entry 17"):
        reader.read_entries(0)
    with pytest.raises(StoreError, match=r"M302.*entry 17"):
        reader.read_story(117)
    assert reader.read_entries(17) == [commit_of(seq).entry for seq in range(18, 51)]
    reader.close()


@pytest.mark.parametrize(
    "statement", ["UPDATE inputs SET data = x'' WHERE seq = 9", "DELETE FROM inputs WHERE seq = 9"]
)
def test_damaged_inputs_are_named(path: Path, statement: str) -> None:
    execute(path, statement)
    reader = SqliteJournal(path)
    with pytest.raises(StoreError, match=r"M302.*inputs 9"):
        list(reader.read_inputs(0))
    reader.close()


def test_a_damaged_snapshot_is_named(path: Path) -> None:
    execute(path, "UPDATE snapshots SET data = x'00'")
    reader = SqliteJournal(path)
    with pytest.raises(StoreError, match=r"M302.*snapshot 50"):
        reader.find_snapshot()
    reader.close()


def test_a_tree_that_leads_back_is_not_read_round_and_round(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = SqliteJournal(path)
    page = reader._read("SELECT seq, data, crc FROM inputs")
    monkeypatch.setattr(reader, "_read", lambda *_: page)
    with pytest.raises(StoreError, match=r"M302.*inputs 51"):
        list(reader.read_inputs(0))
    reader.close()


@pytest.mark.parametrize("table", ["entries", "inputs"])
def test_a_lost_tail_is_found_on_open(path: Path, table: str) -> None:
    execute(path, f"DELETE FROM {table} WHERE seq > 45")  # noqa: S608 - the names stand above
    for opener in (SqliteJournal, SqliteStore):
        with pytest.raises(StoreError, match="M302"):
            opener(path)


def read_all(path: Path) -> tuple[list[bytes], list[bytes]]:
    """Open, read the journal and the recorder, close."""
    with closing(SqliteJournal(path)) as reader:
        reader.find_snapshot()
        return reader.read_entries(0), list(reader.read_inputs(0))


@pytest.mark.parametrize("seed", range(60))
def test_one_changed_byte_gives_the_truth_or_a_refusal(path: Path, seed: int) -> None:
    truth = read_all(path)
    dice = random.Random(seed)
    data = bytearray(path.read_bytes())
    data[dice.randrange(len(data))] ^= dice.randint(1, 255)
    path.write_bytes(data)
    with suppress(StoreError):
        assert read_all(path) == truth


@pytest.mark.parametrize("lost_bytes", [1, 10, 100, 1000])
def test_a_torn_last_page_gives_the_truth_or_a_refusal(path: Path, lost_bytes: int) -> None:
    truth = read_all(path)
    path.write_bytes(path.read_bytes()[:-lost_bytes])
    with suppress(StoreError):
        assert read_all(path) == truth


@pytest.mark.parametrize("seed", range(15))
def test_a_torn_log_gives_whole_groups_up_to_the_tear(tmp_path: Path, seed: int) -> None:
    path, copy = tmp_path / "journal.db", tmp_path / "copy.db"
    store = SqliteStore(path)
    ends = [0]
    while ends[-1] < 40:
        store.append(group_after(ends[-1]))
        ends.append(ends[-1] + len(group_after(ends[-1])))
    # A second name for the same bytes: what a power cut leaves of a log whose last pages never reached the disk.
    copy.write_bytes(path.read_bytes())
    log = path.with_name(f"{path.name}-wal").read_bytes()
    copy.with_name(f"{copy.name}-wal").write_bytes(log[: random.Random(seed).randrange(len(log))])
    store.close()
    store = SqliteStore(copy)
    assert store.last_seq() in ends
    check_holds(store, store.last_seq())
    store.append(group_after(store.last_seq()))
    store.close()


def test_a_closed_journal_is_not_called_damaged(path: Path) -> None:
    store = SqliteStore(path)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="M306"):
        store.last_seq()
    with pytest.raises(StoreError, match="M306"):
        store.append(commits_of([51]))
