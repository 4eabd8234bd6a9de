"""The writing side: groups of commits become durable, each group in one transaction with one sync.

There is one writer per file, by a lock of the operating system on `<file>.lock`, which ends with the process however
it ends. (Not on the file itself: closing any descriptor of it would drop SQLite's own locks.) `append`,
`save_snapshot` and `trim_inputs` may be called from any thread but by one at a time; the reading calls go through the
read-only connection and may be called at any moment. It must never know what a blob means.
"""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from muster.model.errors import ConflictError, StoreError
from muster.model.history import Chapter
from muster.model.reason import Code, Reason
from muster.ports.failpoint import failpoint
from muster.ports.store import Change, Commit, link_of
from muster.stores.rules import check_follows, check_snapshot, plan_bytes, plan_trim
from muster.stores.sqlite import history
from muster.stores.sqlite.reader import SqliteJournal
from muster.stores.sqlite.schema import FAULTS, blame, checksum, connect, create_file, migrate


class SqliteStore(SqliteJournal):
    """The Store of a leader: a SqliteJournal that may also write. Makes the file if there is none."""

    def __init__(self, path: Path) -> None:
        with ExitStack() as undo:
            self._lock = undo.enter_context(take_lock(path))
            try:
                if not path.exists():
                    create_file(path)
                super().__init__(path)
                undo.callback(super().close)
                self._writing = connect(path, "rw")
                undo.callback(self._writing.close)
                self._writing.execute("PRAGMA journal_mode = WAL")  # a restored copy may have left it
                self._writing.execute("PRAGMA synchronous = FULL")
                migrate(self._writing)
            except FAULTS as fault:
                raise blame(path, fault) from fault
            except OSError as error:
                raise _unusable(path, error) from error
            undo.pop_all()

    def append(self, commits: Sequence[Commit]) -> None:
        if not commits:
            return
        with self._transaction() as db:
            check_follows(_last_seq(db), commits)
            db.executemany("INSERT INTO entries VALUES (?, ?, ?)", [_row(c.seq, c.entry) for c in commits])
            db.executemany("INSERT INTO inputs VALUES (?, ?, ?)", [_row(c.seq, c.inputs) for c in commits])
            told = [(job, commit.seq) for commit in commits for job in commit.jobs]
            db.executemany("INSERT OR IGNORE INTO story VALUES (?, ?)", told)
            db.executemany("INSERT INTO keys VALUES (?, ?, ?)", [key for commit in commits for key in commit.keys])
            _note(db, [line for commit in commits for line in commit.audit])
            history.write(db, [commit.chapter for commit in commits])

    def keep(self, changes: Sequence[Change]) -> None:
        with self._transaction() as db:
            [(version,)] = db.execute("SELECT coalesce(max(version), 0) FROM records")
            for record in [record for change in changes for record in change.records]:
                version += 1
                row = (version, record.kind, record.name, record.data, checksum(version, record.data or b""))
                db.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?)", row)
            _note(db, [change.audit for change in changes])

    def save_snapshot(self, seq: int, data: bytes) -> None:
        with self._transaction() as db:
            check_snapshot(_last_seq(db), seq)
            db.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", _row(seq, data))
            history.thin_snapshots(db)

    def trim_inputs(self, keep: int, most_bytes: int | None = None) -> None:
        with self._transaction() as db:
            [(snapshot_seq,)] = db.execute("SELECT max(seq) FROM snapshots")
            if most_bytes is not None and _size(db) > most_bytes:  # else there is no need to look at each
                sizes = db.execute("SELECT seq, length(data) FROM inputs ORDER BY seq DESC")
                keep = min(keep, _last_seq(db) - plan_bytes(sizes, most_bytes))
            db.execute("DELETE FROM inputs WHERE seq <= ?", (plan_trim(_last_seq(db), snapshot_seq, keep),))

    def purge(self, before: int, most: int) -> int:
        with self._transaction() as db:
            return history.purge(db, before, most)

    def find_unfilled(self) -> int:
        return int(self._read(history.MARK, history.UNFILLED)[0][0])

    def fill(self, chapters: Iterable[Chapter]) -> None:
        with self._transaction() as db:
            for chapter in chapters:
                history.write(db, [chapter])
            db.execute("DELETE FROM marks WHERE name = ?", (history.UNFILLED,))

    def close(self) -> None:
        super().close()  # first: only the last connection to leave folds the log back, and it must be able to write
        self._writing.close()
        self._lock.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All of the block or, if anything at all is raised, nothing of it.

        One case is beyond any store: a disk that fails the sync itself may yet hold the group after a crash. Nobody
        was told of it, so it is then a commit whose answer was lost.
        """
        db = self._writing
        try:
            db.execute("BEGIN IMMEDIATE")
            yield db
            failpoint("store.in_commit")
            db.execute("COMMIT")
        except (*FAULTS, OverflowError, UnicodeEncodeError) as error:
            raise StoreError(Reason(Code.STORE_REFUSED, str(self._path), detail=str(error))) from error
        finally:
            with suppress(sqlite3.Error):  # on some errors SQLite has rolled back by itself
                db.rollback()  # nothing, after COMMIT


def take_lock(path: Path) -> IO[bytes]:
    """Be the one who may write a journal, until the file is closed."""
    lock_path = path.with_name(f"{path.name}.lock")
    try:
        lock = lock_path.open("ab")
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise ConflictError(Reason(Code.ALREADY_SERVED, str(path), detail="another writer holds it")) from error
    return lock


def _unusable(path: Path, error: OSError) -> StoreError:
    return StoreError(Reason(Code.HOME_UNUSABLE, str(path.parent), detail=error.strerror or str(error)))


def _note(db: sqlite3.Connection, lines: Sequence[bytes]) -> None:
    """Add lines to the audit log, each linked to the one before it."""
    if not lines:
        return
    number, link = db.execute("SELECT number, link FROM audit ORDER BY number DESC LIMIT 1").fetchone() or (0, b"")
    for data in lines:
        number += 1
        link = link_of(link, number, data)
        db.execute("INSERT INTO audit VALUES (?, ?, ?)", (number, data, link))


def _row(seq: int, data: bytes) -> tuple[int, bytes, int]:
    return seq, data, checksum(seq, data)


def _size(db: sqlite3.Connection) -> int:
    [(pages,)], [(page_bytes,)] = db.execute("PRAGMA page_count"), db.execute("PRAGMA page_size")
    return int(pages * page_bytes)


def _last_seq(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT coalesce(max(seq), 0) FROM entries").fetchone()[0])
