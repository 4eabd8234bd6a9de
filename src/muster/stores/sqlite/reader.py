"""The reading side: one read-only connection that sees committed entries only, while the writer goes on writing.

Any thread may call it and any number of processes may hold one. Each call is one statement or one transaction, hence
one consistent sight; none stays open between calls, so a slow reader never keeps the write-ahead log from being folded
back. It must never know what a blob means.
"""

from __future__ import annotations

import itertools
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from muster.model.errors import StoreError
from muster.model.history import Remembered, Used
from muster.model.reason import Code, Reason
from muster.ports.store import Kept, Link, Version, Wanted
from muster.stores.sqlite import history
from muster.stores.sqlite.schema import (
    CUT_SINCE,
    FAULTS,
    blame,
    check_ends,
    check_identity,
    checksum,
    connect,
    find_version,
    is_current,
)

_PAGE: Final = 256
_Value: TypeAlias = int | str | None


class SqliteJournal:
    """A Journal on a file that a SqliteStore writes, in this process or in another."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = threading.Lock()
        self._reading = _open_reading(path)
        # What lies below the cut is told in stories only. A file of before there was history was never cut.
        bound = "?" if find_version(self._reading) < CUT_SINCE else f"max(?, ({history.TRIMMED_SEQ}))"
        self._entries_after = f"SELECT seq, data, crc FROM entries WHERE seq > {bound} ORDER BY seq LIMIT ?"  # noqa: S608 - our own words

    def last_seq(self) -> int:
        return int(self._read("SELECT coalesce(max(seq), 0) FROM entries")[0][0])

    def trimmed_seq(self) -> int:
        return int(self._read(history.MARK, history.TRIMMED)[0][0])

    def find_snapshot(self, upto: int | None = None) -> tuple[int, bytes] | None:
        asked = "SELECT seq, data, crc FROM snapshots WHERE seq <= coalesce(?, seq) ORDER BY seq DESC LIMIT 1"
        rows = self._read(asked, upto)
        return next(zip((row[0] for row in rows), self._intact("snapshot", rows), strict=True), None)

    def list_snapshots(self) -> list[int]:
        return [row[0] for row in self._read("SELECT seq FROM snapshots ORDER BY seq")]

    def read_entries(self, after: int, limit: int = 1000) -> list[bytes]:
        after = max(after, 0)
        rows = self._read(self._entries_after, after, limit)
        if rows and rows[0][0] > after + 1:  # asked for only now: an entry that is missing is rare, or was trimmed
            after = max(after, self.trimmed_seq())
        self._check_follow("entry", after, rows)
        return self._intact("entry", rows)

    def read_inputs(self, after: int) -> Iterator[bytes]:
        while rows := self._read("SELECT seq, data, crc FROM inputs WHERE seq > ? ORDER BY seq LIMIT ?", after, _PAGE):
            # From page to page the writer may have trimmed, so the first row may lie ahead. It never lies behind:
            # a damaged tree that leads back there would be read round and round.
            self._check_follow("inputs", max(after, rows[0][0] - 1), rows)
            yield from self._intact("inputs", rows)
            after = rows[-1][0]

    def read_story(self, job: int) -> list[bytes]:
        # The left join keeps a row whose entry is missing, so that it is found and not passed over.
        told = "SELECT seq, data, crc FROM story LEFT JOIN entries USING (seq) WHERE job = ? ORDER BY seq"
        return self._intact("entry", self._read(told, job))

    def find_jobs(self, keys: Sequence[tuple[str, str]]) -> list[int | None]:
        pages = [keys[first : first + _PAGE] for first in range(0, len(keys), _PAGE)]
        return [job for page in pages for job in self._find_page(page)]

    def _find_page(self, keys: Sequence[tuple[str, str]]) -> Sequence[int | None]:
        """In one statement, from which only what is found comes back, after a row that is there in any case."""
        rows = self._read(_ask_for_keys(len(keys)), *itertools.chain.from_iterable(keys))
        if rows:
            return list(map(dict(rows).get, range(len(keys))))
        # Something in a key cannot be expressed; that is none of the others' business.
        return [None] if len(keys) == 1 else [job for key in keys for job in self._find_page([key])]

    def find_owner(self, job: int) -> str:
        rows = self._read("SELECT user FROM owners WHERE job = ?", job)
        return rows[0][0].decode() if rows else ""

    def find_finished(self, job: int) -> Remembered | None:
        rows = self._read(f"{history.REMEMBERED} WHERE job = ?", job)
        return next(iter(self._remember(rows)), None)

    def read_finished(self, wanted: Wanted) -> list[Remembered]:
        statement, values = history.ask_for(wanted)
        return self._remember(self._read(statement, *values))

    def find_amounts(self, job: int) -> tuple[int, tuple[int, ...]]:
        [(seq, *amounts)] = self._read(history.AMOUNTS_OF, job)
        return int(seq), tuple(amounts)

    def read_uses(self, first_hour: int, last_hour: int, *, hourly: bool = False) -> tuple[int, list[Used]]:
        statement = history.USES_BY_HOUR if hourly else history.USES
        rows = self._read(statement, first_hour, last_hour)
        # The first row carries the number of the newest entry, so that one statement tells both.
        return int(rows[0][0]), [history.sum_up(row, hourly=hourly) for row in rows[1:]]

    def read_records(self, after: int, limit: int = 1000) -> list[Version]:
        asked = "SELECT version, kind, name, data, crc FROM records WHERE version > ? ORDER BY version LIMIT ?"
        rows = self._read(asked, after, limit)
        self._intact("record", [(row[0], row[3] if row[3] is not None else b"", row[4]) for row in rows])
        return [Version(row[0], Kept(row[1].decode(), row[2].decode(), row[3])) for row in rows]

    def read_audit(self, after: int, limit: int = 1000) -> list[Link]:
        rows = self._read("SELECT number, data, link FROM audit WHERE number > ? ORDER BY number LIMIT ?", after, limit)
        return [Link(*row) for row in rows]

    def is_current(self) -> bool:
        """Whether the file has the tables of this program; the writer lifts an older one when it opens it."""
        with self._turn:
            return is_current(self._reading)

    def close(self) -> None:
        with self._turn:
            self._reading.close()

    def _read(self, statement: str, *values: _Value) -> list[tuple[Any, ...]]:
        try:
            with self._turn:
                return self._find(statement, values)
        except FAULTS as fault:
            raise blame(self._path, fault) from fault

    def _find(self, statement: str, values: tuple[_Value, ...]) -> list[tuple[Any, ...]]:
        try:
            return self._reading.execute(statement, values).fetchall()
        except (OverflowError, UnicodeEncodeError):
            return []  # what SQLite cannot express was never stored

    def _intact(self, what: str, rows: Iterable[tuple[Any, ...]]) -> list[bytes]:
        for seq, data, crc in rows:
            if not isinstance(data, bytes) or checksum(seq, data) != crc:
                raise self._damage(f"{what} {seq}", "its checksum does not match")
        return [data for _, data, _ in rows]

    def _remember(self, rows: list[tuple[Any, ...]]) -> list[Remembered]:
        self._intact("job", [(row[0], row[5], row[6]) for row in rows])
        return [history.remember(row) for row in rows]

    def _check_follow(self, what: str, after: int, rows: Iterable[tuple[Any, ...]]) -> None:
        for due, (seq, _, _) in enumerate(rows, after + 1):
            if seq != due:
                raise self._damage(f"{what} {due}", "it is missing")

    def _damage(self, subject: str, detail: str) -> StoreError:
        return StoreError(Reason(Code.JOURNAL_DAMAGED, subject, detail=f"{detail} in {self._path}"))


@lru_cache(maxsize=_PAGE)
def _ask_for_keys(count: int) -> str:
    """A join with all of them: two thirds of what a column for each costs, which is half of one after the other."""
    asked = ", ".join(f"({place}, ?, ?)" for place in range(count))
    found = "SELECT place, job FROM asked CROSS JOIN keys USING (tenant, key)"
    return f"WITH asked (place, tenant, key) AS (VALUES {asked}) SELECT -1, 0 UNION ALL {found}"


def _open_reading(path: Path) -> sqlite3.Connection:
    with ExitStack() as undo:
        try:
            db = undo.enter_context(closing(connect(path, "ro")))
            check_identity(path, db)
            check_ends(path, db)
        except FAULTS as fault:
            raise blame(path, fault) from fault
        undo.pop_all()
        return db
