"""History in the journal's file: the statements that add to its tables, ask them, and forget.

It adds amounts up and finds rows; what is kept of a job besides is bytes to it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from muster.model.history import AMOUNTS, Chapter, Finished, Remembered, Used
from muster.ports.store import Wanted
from muster.stores.rules import plan_cut
from muster.stores.sqlite.schema import checksum

TRIMMED: Final = "trimmed"
UNFILLED: Final = "unfilled"
MARK: Final = "SELECT coalesce((SELECT value FROM marks WHERE name = ?), 0)"
NOTHING: Final = (0,) * len(AMOUNTS)

_COLUMNS: Final = ", ".join(AMOUNTS)
_HOLES: Final = ", ".join("?" * len(AMOUNTS))
_MORE: Final = ", ".join(f"{name} = {name} + excluded.{name}" for name in AMOUNTS)
_SUMS: Final = ", ".join(f"sum({name})" for name in AMOUNTS)
_OWNER: Final = "coalesce((SELECT user FROM owners WHERE job = ?), '')"

_ADD_AMOUNTS: Final = f"INSERT INTO amounts VALUES (?, {_HOLES}) ON CONFLICT DO UPDATE SET {_MORE}"  # noqa: S608 - our own column names
_ADD_USE: Final = f"INSERT INTO uses VALUES (?, ?, {_OWNER}, ?, {_HOLES}) ON CONFLICT DO UPDATE SET {_MORE}"  # noqa: S608 - our own column names
_OLD: Final = "SELECT job, tenant, key FROM finished WHERE ended_at < ? ORDER BY ended_at, job LIMIT ?"
_LAST_TOLD: Final = "SELECT max(seq) FROM story WHERE job = ?"
_OLDEST_TOLD: Final = "SELECT min(seq) FROM story WHERE job = (SELECT min(job) FROM story)"

AMOUNTS_OF: Final = f"SELECT {_COLUMNS} FROM amounts WHERE job = ?"  # noqa: S608 - our own column names
REMEMBERED: Final = (
    "SELECT job, tenant, phase, ended_at, key, data, crc, coalesce(user, ''),"  # noqa: S608 - our own column names
    f" {', '.join(f'coalesce({name}, 0)' for name in AMOUNTS)}"
    " FROM finished LEFT JOIN owners USING (job) LEFT JOIN amounts USING (job)"
)
_BLANKS: Final = ", ".join(["''"] * 3 + ["0"] * (1 + len(AMOUNTS)))
_HEAD: Final = f"SELECT * FROM (SELECT coalesce(max(seq), 0) AS head, {_BLANKS} FROM entries) UNION ALL SELECT * FROM "  # noqa: S608 - our own column names
_IN_HOURS: Final = "FROM uses WHERE hour BETWEEN ? AND ? GROUP BY tenant, user, flavor"
USES: Final = f"{_HEAD} (SELECT 0, tenant, user, flavor, 0, {_SUMS} {_IN_HOURS} ORDER BY 2, 3, 4)"
USES_BY_HOUR: Final = f"{_HEAD} (SELECT 0, tenant, user, flavor, hour, {_SUMS} {_IN_HOURS}, hour ORDER BY 2, 3, 4, 5)"


def write(db: sqlite3.Connection, chapters: Sequence[Chapter]) -> None:
    """Add chapters to history; whoever submitted a job is known before anything is written under their name."""
    owners = [owner for chapter in chapters for owner in chapter.owners]
    if owners:
        db.executemany("INSERT INTO owners VALUES (?, ?)", owners)
    finished = [_finished_row(each) for chapter in chapters for each in chapter.finished]
    if finished:
        db.executemany("INSERT INTO finished VALUES (?, ?, ?, ?, ?, ?, ?)", finished)
    uses = [use for chapter in chapters for use in chapter.uses]
    if uses:
        db.executemany(_ADD_AMOUNTS, [(use.job, *use.amounts) for use in uses])
        db.executemany(_ADD_USE, [(use.hour, use.tenant, use.job, use.flavor, *use.amounts) for use in uses])


def ask_for(wanted: Wanted) -> tuple[str, list[int | str]]:
    """The statement that finds jobs of history, and its values."""
    clauses = ["job > ?", "ended_at >= ?", "ended_at < ?"]
    values: list[int | str] = [wanted.after, wanted.since, wanted.until]
    for column, among in (("tenant", wanted.tenants), ("phase", wanted.phases or None)):
        if among is not None:
            clauses.append(f"{column} IN ({', '.join('?' * len(among))})")
            values += among
    return f"{REMEMBERED} WHERE {' AND '.join(clauses)} ORDER BY job LIMIT ?", [*values, wanted.limit]


def remember(row: tuple[Any, ...]) -> Remembered:
    """A row of REMEMBERED."""
    job, tenant, phase, ended_at, key, data, _, user, *amounts = row
    return Remembered(
        Finished(job, tenant.decode(), phase, ended_at, key.decode(), data), user.decode(), tuple(amounts)
    )


def sum_up(row: tuple[Any, ...], *, hourly: bool) -> Used:
    """A row of USES, but for the first."""
    _, tenant, user, flavor, hour, *amounts = row
    return Used(tenant.decode(), user.decode(), flavor.decode(), hour if hourly else None, tuple(amounts))


def purge(db: sqlite3.Connection, before: int, most: int) -> int:
    """Forget jobs that ended before an instant, and the entries that nobody who is left is told of."""
    old = db.execute(_OLD, (before, most)).fetchall()
    forgotten = max((db.execute(_LAST_TOLD, row[:1]).fetchone()[0] or 0 for row in old), default=0)
    keys = [(tenant.decode(), key.decode()) for _, tenant, key in old if key]
    db.executemany("DELETE FROM keys WHERE tenant = ? AND key = ?", keys)
    for table in ("finished", "story", "owners", "amounts"):
        db.executemany(f"DELETE FROM {table} WHERE job = ?", [(row[0],) for row in old])  # noqa: S608 - our own names
    [(snapshot_seq,)] = db.execute("SELECT max(seq) FROM snapshots")
    [(oldest_told,)] = db.execute(_OLDEST_TOLD)
    [(trimmed,)] = db.execute(MARK, (TRIMMED,))
    cut = plan_cut(trimmed, forgotten, oldest_told, snapshot_seq)
    if cut > trimmed:
        db.execute("DELETE FROM entries WHERE seq <= ?", (cut,))
        db.execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (TRIMMED, cut))
    return len(old)


def _finished_row(each: Finished) -> tuple[int, str, int, int, str, bytes, int]:
    return each.job, each.tenant, each.phase, each.ended_at, each.key, each.data, checksum(each.job, each.data)
