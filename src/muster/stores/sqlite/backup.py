"""Backup and restore of the journal's file. A backup is a journal like any other: whole, checked, and made while the
writer goes on writing.

It copies pages and compares ends; it never knows what a blob means. Nothing that exists is ever overwritten: a backup
goes to a new name, and a restore keeps what was there before beside it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from muster.model.errors import ConflictError, StoreError
from muster.model.reason import Code, Reason
from muster.stores.sqlite.reader import SqliteJournal
from muster.stores.sqlite.schema import FAULTS, blame, connect, make_private
from muster.stores.sqlite.writer import take_lock

PAGES_AT_ONCE: Final = 4096
LOG_SUFFIXES: Final = ("-wal", "-shm")


def back_up(journal: Path, target: Path) -> int:
    """Copy a journal, which may be in use, to a new file; gives the number of its last entry."""
    if not journal.exists():
        raise StoreError(Reason(Code.HOME_UNUSABLE, str(journal.parent), detail="there is no journal"))
    if target.exists():
        raise ConflictError(Reason(Code.CANNOT_WRITE, str(target), detail="the file is there already"))
    if not os.access(target.parent, os.W_OK):
        raise StoreError(Reason(Code.CANNOT_WRITE, str(target), detail=_why_not(target.parent)))
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        make_private(draft)
        with closing(connect(journal, "ro")) as source, closing(sqlite3.connect(draft)) as copy:
            source.backup(copy, pages=PAGES_AT_ONCE)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, with nothing left in a log beside it
        last = _check(draft)
        os.link(draft, target)  # unlike a rename, this never overwrites what somebody put there meanwhile
    except FAULTS as fault:
        raise blame(journal, fault) from fault
    except OSError as error:
        raise StoreError(Reason(Code.CANNOT_WRITE, str(target), detail=error.strerror or str(error))) from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
    return last


def restore(backup: Path, journal: Path) -> int:
    """Put a backup in a journal's place, which nobody may be using; what was there is kept under another name."""
    if not backup.is_file():
        raise StoreError(Reason(Code.NO_BACKUP, str(backup), detail="there is no such file"))
    last = _check_backup(backup)
    with take_lock(journal):
        draft = journal.with_name(f"{journal.name}.restored")
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
        back_up(backup, draft)
        if journal.exists():
            _fold_log(journal)
            journal.rename(journal.with_name(f"{journal.name}.before-{time.time_ns() // 1_000_000}"))
            for suffix in LOG_SUFFIXES:
                with contextlib.suppress(FileNotFoundError):
                    journal.with_name(journal.name + suffix).unlink()
        draft.rename(journal)
    return last


def _why_not(directory: Path) -> str:
    return "you may not write there" if directory.is_dir() else f"there is no directory {directory}"


def _check_backup(path: Path) -> int:
    """The same of what is to be restored: if it is not whole, nothing is wrong with the journal that is here."""
    try:
        return _check(path)
    except StoreError as error:
        if error.reason.code is not Code.JOURNAL_DAMAGED:
            raise
        raise StoreError(Reason(Code.NO_BACKUP, str(path), detail=error.reason.detail)) from error


def _check(path: Path) -> int:
    """Read every entry of a file once; gives the number of the last."""
    with closing(SqliteJournal(path)) as journal:
        after = journal.trimmed_seq()
        while entries := journal.read_entries(after):
            after += len(entries)
        journal.find_snapshot()
        return after


def _fold_log(path: Path) -> None:
    """Have what is in the log beside a file in the file itself."""
    with closing(connect(path, "rw")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
