"""Backups: whole while the writer writes, refused when damaged, and never over something that exists."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from muster.app.__main__ import main as app
from muster.app.keeping import main
from muster.model.errors import ConflictError, StoreError
from muster.model.reason import Code
from muster.ports.store import Change, Commit, Kept
from muster.sdk.home import Home
from muster.sdk.whereabouts import Address, Login
from muster.stores.sqlite import SqliteJournal, SqliteStore
from muster.stores.sqlite.backup import back_up, restore
from muster.testing.store_conformance import check_holds, commit_with_history, commits_of


def _write(path: Path, last: int) -> None:
    with closing(SqliteStore(path)) as store:
        store.append(commits_of(range(store.last_seq() + 1, last + 1)))


def test_a_backup_is_whole_while_the_writer_goes_on(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "journal.db")) as store:
        store.append(commits_of(range(1, 51)))
        store.keep([Change((Kept("user", "ann", b"1"),), b"line")])
        assert back_up(tmp_path / "journal.db", tmp_path / "copy.db") == 50
        store.append(commits_of(range(51, 61)))
    with closing(SqliteJournal(tmp_path / "copy.db")) as copy:
        check_holds(copy, 50)
        assert len(copy.read_records(0)) == len(copy.read_audit(0)) == 1
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("copy")) == ["copy.db"]


def test_nobody_else_reads_a_journal_or_its_copy(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        _write(tmp_path / "journal.db", 3)
        back_up(tmp_path / "journal.db", tmp_path / "copy.db")
        restore(tmp_path / "copy.db", tmp_path / "other.db")
    finally:
        os.umask(before)
    found = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("*.db")}
    assert found == dict.fromkeys(("journal.db", "copy.db", "other.db"), 0o600)


def test_what_exists_is_not_overwritten(tmp_path: Path) -> None:
    _write(tmp_path / "journal.db", 3)
    (tmp_path / "copy.db").write_bytes(b"precious")
    with pytest.raises(ConflictError) as caught:
        back_up(tmp_path / "journal.db", tmp_path / "copy.db")
    assert caught.value.reason.code is Code.CANNOT_WRITE, "the home is not to blame"
    assert (tmp_path / "copy.db").read_bytes() == b"precious"


def test_a_restore_keeps_what_was_there(tmp_path: Path) -> None:
    journal, copy = tmp_path / "journal.db", tmp_path / "copy.db"
    _write(journal, 5)
    back_up(journal, copy)
    _write(journal, 9)
    assert restore(copy, journal) == 5
    with closing(SqliteStore(journal)) as store:
        check_holds(store, 5)
        store.append(commits_of([6]))
    [before] = tmp_path.glob("journal.db.before-*")
    with closing(SqliteJournal(before)) as old:
        check_holds(old, 9)
    with closing(SqliteJournal(copy)) as kept:
        check_holds(kept, 5)


def test_a_journal_in_use_is_not_replaced(tmp_path: Path) -> None:
    journal, copy = tmp_path / "journal.db", tmp_path / "copy.db"
    _write(journal, 2)
    back_up(journal, copy)
    with closing(SqliteStore(journal)), pytest.raises(ConflictError) as caught:
        restore(copy, journal)
    assert caught.value.reason.code is Code.ALREADY_SERVED


@pytest.mark.parametrize("damage", ["absent", "empty", "text", "row"])
def test_a_damaged_backup_is_refused_and_changes_nothing(tmp_path: Path, damage: str) -> None:
    journal, copy = tmp_path / "journal.db", tmp_path / "copy.db"
    _write(journal, 4)
    if damage == "row":
        back_up(journal, copy)
        with closing(sqlite3.connect(copy)) as db:
            db.execute("UPDATE entries SET data = x'00' WHERE seq = 2")
            db.commit()
    elif damage != "absent":
        copy.write_bytes(b"" if damage == "empty" else b"no journal" * 100)
    with pytest.raises(StoreError) as caught:
        restore(copy, journal)
    assert caught.value.reason.code is Code.NO_BACKUP, "the journal that is here is not to blame"
    with closing(SqliteJournal(journal)) as kept:
        check_holds(kept, 4)


def test_the_two_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(tmp_path / "journal.db", 7)
    assert main(["backup", str(tmp_path / "b.db"), "--home", str(tmp_path)]) == 0
    assert main(["restore", str(tmp_path / "b.db"), "--home", str(tmp_path / "other")]) == 0
    assert capsys.readouterr().out.count("up to entry 7") == 2
    with closing(SqliteJournal(tmp_path / "other" / "journal.db")) as restored:
        check_holds(restored, 7)


def test_a_journal_that_was_cut_is_backed_up_and_restored_by_its_numbers(tmp_path: Path) -> None:
    journal, copy = tmp_path / "journal.db", tmp_path / "copy.db"
    with closing(SqliteStore(journal)) as store:
        store.append([Commit(1, b"1", b"", jobs=(1,)), *(commit_with_history(seq) for seq in range(2, 31))])
        store.save_snapshot(30, b"thirty")
        store.purge(before=21_000, most=100)
    assert back_up(journal, copy) == restore(copy, journal) == 30
    with closing(SqliteJournal(journal)) as restored:
        assert (restored.trimmed_seq(), len(restored.read_entries(0)), restored.read_story(1)) == (20, 10, [b"1"])
    with closing(sqlite3.connect(journal)) as db:
        assert db.execute("SELECT count(*) FROM entries").fetchone() == (11,), "what nobody is told of was kept"


def test_a_place_that_is_not_there_is_named_with_its_own_fix(tmp_path: Path) -> None:
    _write(tmp_path / "journal.db", 3)
    with pytest.raises(StoreError) as refused:
        back_up(tmp_path / "journal.db", tmp_path / "none" / "copy.db")
    assert refused.value.reason.code is Code.CANNOT_WRITE
    assert refused.value.reason.detail == f"there is no directory {tmp_path / 'none'}"
    with pytest.raises(StoreError) as missing:
        restore(tmp_path / "none.db", tmp_path / "journal.db")
    assert missing.value.reason.code is Code.NO_BACKUP


def test_a_home_without_a_journal_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app(["backup", str(tmp_path / "b.db"), "--home", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"error[M305]: cannot use {tmp_path}: there is no journal\n")


@pytest.mark.parametrize(
    "words", [["backup", "b.db"], ["restore", "b.db"], ["bundle", "b"], ["replay", "--from", "1h"]]
)
def test_the_home_of_a_client_has_no_journal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    Home(tmp_path).write_login(Login(Address("127.0.0.1", 1), "secret"))
    assert app([*words, "--home", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error[M327]: this home is logged in to http://127.0.0.1:1,")
