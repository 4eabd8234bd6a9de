"""The file itself: its tables, its identity, how it comes to be, and what its errors mean.

A journal appears under its name complete, by a rename; so a file that is there and is not a whole journal, down to an
empty one, is damage and never "new". Its tables-version and its application id are looked at through a
read-only connection, so that a file which is not ours to write is left as it was.

Opening never checks the whole file (`PRAGMA quick_check`): that costs what the journal holds, and it would be paid by
every restart after a crash, when people wait. SQLite itself finds a bad header and a truncated file on the first read
and vouches for its write-ahead log by checksums; that the tables are the right ones and end together costs a few pages.
The rest is found when it is read: each row has a checksum that covers its number, and entries must follow each other.
A start reads all that it depends on.

To change the tables: append a migration, never edit one.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Final

from muster.model.errors import StoreError
from muster.model.reason import Code, Reason

APPLICATION_ID: Final = 0x4D535452  # "MSTR"

# Migration N is item N - 1: its statements lift a file from tables-version N - 1 to N, in one transaction.
MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        f"PRAGMA application_id = {APPLICATION_ID}",
        "CREATE TABLE entries (seq INTEGER PRIMARY KEY, data BLOB NOT NULL, crc INTEGER NOT NULL)",
        "CREATE TABLE inputs (seq INTEGER PRIMARY KEY, data BLOB NOT NULL, crc INTEGER NOT NULL)",
        "CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, data BLOB NOT NULL, crc INTEGER NOT NULL)",
        "CREATE TABLE story (job INTEGER, seq INTEGER, PRIMARY KEY (job, seq)) WITHOUT ROWID",
        "CREATE TABLE keys (tenant TEXT, key TEXT, job INTEGER NOT NULL, PRIMARY KEY (tenant, key)) WITHOUT ROWID",
    ),
    (
        "CREATE TABLE records (version INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, data BLOB,"
        " crc INTEGER NOT NULL, UNIQUE (kind, name))",
        "CREATE TABLE audit (number INTEGER PRIMARY KEY, data BLOB NOT NULL, link BLOB NOT NULL)",
    ),
    (
        "CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE TABLE owners (job INTEGER PRIMARY KEY, user TEXT NOT NULL)",
        "CREATE TABLE finished (job INTEGER PRIMARY KEY, tenant TEXT NOT NULL, phase INTEGER NOT NULL,"
        " ended_at INTEGER NOT NULL, key TEXT NOT NULL, data BLOB NOT NULL, crc INTEGER NOT NULL)",
        "CREATE INDEX finished_by_end ON finished (ended_at)",
        "CREATE INDEX finished_by_tenant ON finished (tenant, job)",
        "CREATE TABLE amounts (job INTEGER PRIMARY KEY, useful INTEGER NOT NULL, lost INTEGER NOT NULL,"
        " starting INTEGER NOT NULL, restarting INTEGER NOT NULL, stopping INTEGER NOT NULL, cpu_ms INTEGER NOT NULL,"
        " cost_micros INTEGER NOT NULL, cost_rest INTEGER NOT NULL, jobs INTEGER NOT NULL)",
        "CREATE TABLE uses (hour INTEGER, tenant TEXT, user TEXT, flavor TEXT, useful INTEGER NOT NULL,"
        " lost INTEGER NOT NULL, starting INTEGER NOT NULL, restarting INTEGER NOT NULL, stopping INTEGER NOT NULL,"
        " cpu_ms INTEGER NOT NULL, cost_micros INTEGER NOT NULL, cost_rest INTEGER NOT NULL, jobs INTEGER NOT NULL,"
        " PRIMARY KEY (hour, tenant, user, flavor)) WITHOUT ROWID",
        "INSERT INTO marks SELECT 'unfilled', max(seq) FROM entries HAVING max(seq) > 0",
    ),
    tuple(f"ALTER TABLE {table} ADD COLUMN spare INTEGER NOT NULL DEFAULT 0" for table in ("amounts", "uses")),
    tuple(f"ALTER TABLE {table} ADD COLUMN checkpointing INTEGER NOT NULL DEFAULT 0" for table in ("amounts", "uses")),
)
VERSION: Final = len(MIGRATIONS)
CUT_SINCE: Final = 3
"""The tables-version since which a journal may be cut at its beginning."""

# What is wrong with the place or the disk; whatever else an error of SQLite says is wrong with the file.
_BLAME: Final = {
    sqlite3.SQLITE_CANTOPEN: Code.HOME_UNUSABLE,
    sqlite3.SQLITE_PERM: Code.HOME_UNUSABLE,
    sqlite3.SQLITE_READONLY: Code.HOME_UNUSABLE,
    sqlite3.SQLITE_FULL: Code.STORE_REFUSED,
    sqlite3.SQLITE_IOERR: Code.STORE_REFUSED,
    sqlite3.SQLITE_BUSY: Code.STORE_REFUSED,
    sqlite3.SQLITE_LOCKED: Code.STORE_REFUSED,
    sqlite3.SQLITE_NOMEM: Code.STORE_REFUSED,
    sqlite3.SQLITE_MISUSE: Code.STORE_REFUSED,
}

# The second kind: SQLite quotes a damaged name in its message, and Python fails to decode the message.
FAULTS: Final = (sqlite3.Error, UnicodeDecodeError)


def checksum(seq: int, data: bytes) -> int:
    """A row's checksum: it covers the number too, so that a sound blob in the wrong row is found."""
    return zlib.crc32(data, seq & 0xFFFF_FFFF)


def blame(path: Path, fault: sqlite3.Error | UnicodeDecodeError) -> StoreError:
    """What a fault on open or on read means: the place, the disk, or the file."""
    unnamed = sqlite3.SQLITE_MISUSE if isinstance(fault, sqlite3.ProgrammingError) else sqlite3.SQLITE_CORRUPT
    primary = getattr(fault, "sqlite_errorcode", unnamed) & 0xFF
    code = _BLAME.get(primary)
    return _damaged(path, str(fault)) if code is None else StoreError(Reason(code, str(path), detail=str(fault)))


def _damaged(path: Path, detail: str) -> StoreError:
    return StoreError(Reason(Code.JOURNAL_DAMAGED, f"journal {path}", detail=detail))


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """A connection that any thread may use, one at a time; `mode` is SQLite's: ro, rw or rwc."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    db.text_factory = bytes  # a damaged type must reach the checksum and not a decoder
    db.execute("PRAGMA cell_size_check = ON")  # a damaged page is refused when it is loaded, not followed
    return db


def make_private(path: Path) -> None:
    """A new and empty file that nobody else can read, whatever the umask: a journal has what jobs were given as their
    environment."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def create_file(path: Path) -> None:
    """Make an empty journal appear under its name, complete and durable. Only the one writer may call this."""
    draft = path.with_name(f"{path.name}.new")
    for stale in path.parent.glob(f"{draft.name}*"):
        stale.unlink()
    make_private(draft)
    with closing(connect(draft, "rw")) as db:
        migrate(db)
        db.execute("PRAGMA journal_mode = WAL")  # second: nothing may be left in a log that the rename leaves behind
    draft.rename(path)
    _sync_directory(path.parent)


def check_identity(path: Path, db: sqlite3.Connection) -> None:
    """Raise unless the file is a journal of ours that this program can read. Changes nothing."""
    version = _pragma(db, "user_version")
    if _pragma(db, "application_id") != APPLICATION_ID or version < 1:
        raise _damaged(path, "the file is not a journal")
    if version > VERSION:
        detail = f"its version is {version}, this one reads up to {VERSION}"
        raise StoreError(Reason(Code.JOURNAL_NEWER, f"journal {path}", version, VERSION, detail))
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        model.text_factory = bytes
        migrate(model, version)
        if not _tables(model) <= _tables(db):
            raise _damaged(path, "the tables are not a journal's")


def check_ends(path: Path, db: sqlite3.Connection) -> None:
    """Raise if the tables end apart. They grow together, so that a lost tail of one shows against the others."""
    ends = "SELECT (SELECT max(seq) FROM entries), (SELECT max(seq) FROM inputs), (SELECT max(seq) FROM snapshots)"
    entries, inputs, snapshot = db.execute(ends).fetchone()
    if inputs not in (None, entries) or (snapshot or 0) > (entries or 0):
        detail = f"entries end at {entries}, inputs at {inputs}, the snapshot at {snapshot}"
        raise _damaged(path, detail)


def find_version(db: sqlite3.Connection) -> int:
    """The version of the tables."""
    return _pragma(db, "user_version")


def is_current(db: sqlite3.Connection) -> bool:
    """Whether the tables are those of this program; the writer lifts older ones when it opens the file."""
    return find_version(db) == VERSION


def migrate(db: sqlite3.Connection, version: int = VERSION) -> None:
    """Lift the tables to a version. With nothing to lift it writes the version again, to prove that it can write."""
    db.execute("BEGIN IMMEDIATE")
    for number in range(_pragma(db, "user_version") + 1, version + 1):
        for statement in MIGRATIONS[number - 1]:
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {version}")
    db.execute("COMMIT")


def _tables(db: sqlite3.Connection) -> set[tuple[bytes, ...]]:
    return set(db.execute("SELECT type, name, sql FROM sqlite_master"))


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


def _sync_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
