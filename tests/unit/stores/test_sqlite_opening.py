"""What opening a journal refuses, and that it then leaves the file as it was."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from muster.model.errors import StoreError
from muster.stores.sqlite import SqliteJournal, SqliteStore
from muster.stores.sqlite.schema import VERSION
from muster.testing.store_conformance import check_holds, commits_of
from muster.wire.words import put_in_words

OPENERS = pytest.mark.parametrize("opener", [SqliteStore, SqliteJournal], ids=["writer", "reader"])
NOBODY = 65534
Opener = Callable[[Path], SqliteJournal]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of 200 entries, closed."""
    return make_journal(tmp_path / "journal.db")


@pytest.fixture
def humble() -> Iterator[Path]:
    """A directory of a user who may not write whatever the mode says: root is nobody for the while."""
    user = NOBODY if os.geteuid() == 0 else os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        os.chown(name, user, -1)
        os.seteuid(user)
        try:
            yield Path(name)
        finally:
            os.seteuid(os.getuid())


def make_journal(path: Path) -> Path:
    store = SqliteStore(path)
    store.append(commits_of(range(1, 201)))
    store.close()
    return path


def execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(statement)


def check_refused_untouched(path: Path, opener: Opener, code: str) -> None:
    before = path.read_bytes()
    with pytest.raises(StoreError, match=code):
        opener(path)
    assert path.read_bytes() == before


@OPENERS
def test_a_newer_journal_is_refused_untouched(path: Path, opener: Opener) -> None:
    execute(path, f"PRAGMA user_version = {VERSION + 1}")
    check_refused_untouched(path, opener, "M301")


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (VERSION + 1, f"was written by a newer Muster (its version is {VERSION + 1}, this one reads up to {VERSION})"),
        (0, "is damaged: the file is not a journal"),
    ],
)
def test_a_refusal_says_which_journal_and_what_is_wrong_with_it(path: Path, version: int, said: str) -> None:
    execute(path, f"PRAGMA user_version = {version}")
    with pytest.raises(StoreError) as caught:
        SqliteJournal(path)
    assert put_in_words(caught.value.reason).what == f"the journal {path} {said}"


@OPENERS
def test_a_newer_journal_is_refused_with_its_unfolded_log_untouched(path: Path, opener: Opener) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db, closing(sqlite3.connect(path)) as other:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
        log = path.with_name(f"{path.name}-wal")
        before = log.read_bytes()
        assert before
        check_refused_untouched(path, opener, "M301")
        assert log.read_bytes() == before
        assert other.execute("PRAGMA user_version").fetchone() == (VERSION + 1,)


@OPENERS
@pytest.mark.parametrize(
    "statement",
    [
        "PRAGMA application_id = 7",
        "PRAGMA user_version = 0",
        "PRAGMA user_version = -1",
        "DROP TABLE keys",
        "ALTER TABLE entries RENAME COLUMN crc TO crb",
    ],
)
def test_a_database_that_is_no_journal_is_refused_untouched(path: Path, opener: Opener, statement: str) -> None:
    execute(path, statement)
    check_refused_untouched(path, opener, "M302")


@OPENERS
@pytest.mark.parametrize("size", [0, 1, 99, 100, 4095, 4096, 8192, -4096])
def test_a_truncated_journal_is_refused_untouched(path: Path, opener: Opener, size: int) -> None:
    os.truncate(path, size if size >= 0 else path.stat().st_size + size)
    check_refused_untouched(path, opener, "M302")


@OPENERS
@pytest.mark.parametrize("garbage", [b"\0", b"\xff", b"not a journal\n"], ids=["zeros", "ones", "words"])
def test_garbage_is_refused_untouched(path: Path, opener: Opener, garbage: bytes) -> None:
    path.write_bytes(garbage * (path.stat().st_size // len(garbage)))
    check_refused_untouched(path, opener, "M302")


@OPENERS
def test_a_missing_directory_is_an_unusable_home(tmp_path: Path, opener: Opener) -> None:
    with pytest.raises(StoreError, match="M305"):
        opener(tmp_path / "nowhere" / "journal.db")
    assert list(tmp_path.iterdir()) == []


@OPENERS
def test_a_file_in_place_of_the_directory_is_an_unusable_home(path: Path, opener: Opener) -> None:
    with pytest.raises(StoreError, match="M305"):
        opener(path / "journal.db")


def test_a_directory_without_write_permission_is_an_unusable_home(humble: Path) -> None:
    home = humble / "home"
    home.mkdir(mode=0o555)
    with pytest.raises(StoreError, match="M305"):
        SqliteStore(home / "journal.db")


def test_a_journal_without_write_permission_is_an_unusable_home(humble: Path) -> None:
    path = make_journal(humble / "journal.db")
    path.chmod(0o444)
    with pytest.raises(StoreError, match="M305"):
        SqliteStore(path)
    reader = SqliteJournal(path)
    check_holds(reader, 200)
    reader.close()


def test_a_reader_needs_a_journal_and_makes_none(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="M305"):
        SqliteJournal(tmp_path / "journal.db")
    assert list(tmp_path.iterdir()) == []


def test_a_death_while_the_file_was_made_is_no_obstacle(tmp_path: Path) -> None:
    for name in ("journal.db.new", "journal.db.new-journal", "journal.db.new-wal", "journal.db.new-shm"):
        (tmp_path / name).write_bytes(b"half a journal")
    store = SqliteStore(tmp_path / "journal.db")
    store.append(commits_of([1]))
    check_holds(store, 1)
    store.close()
    assert {found.name for found in tmp_path.iterdir()} == {"journal.db", "journal.db.lock"}


def test_a_refused_opening_gives_its_lock_back(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(b"garbage")
    with pytest.raises(StoreError, match="M302"):
        SqliteStore(path)
    path.write_bytes(whole)
    SqliteStore(path).close()


def test_any_name_will_do(tmp_path: Path) -> None:
    path = tmp_path / "a ?mode=memory&x=#%41é.db"
    store = SqliteStore(path)
    store.append(commits_of([1]))
    store.close()
    assert path.exists()
    reader = SqliteJournal(path)
    check_holds(reader, 1)
    reader.close()


def test_an_index_of_somebody_else_is_no_damage(path: Path) -> None:
    execute(path, "CREATE INDEX theirs ON keys (job)")
    reader = SqliteJournal(path)
    check_holds(reader, 200)
    reader.close()


def test_every_commit_is_synced_and_the_log_is_kept_aside(path: Path) -> None:
    execute(path, "PRAGMA journal_mode = DELETE")  # as a copy made by VACUUM INTO has it
    store = SqliteStore(path)
    assert store._writing.execute("PRAGMA journal_mode").fetchone() == (b"wal",)
    assert store._writing.execute("PRAGMA synchronous").fetchone() == (2,)
    store.close()
