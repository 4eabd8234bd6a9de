"""History in the journal's file: the statements that add to its tables, ask them, and forget.

It adds amounts up and finds rows; what is kept of a job besides is bytes to it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from muster.model.history import AMOUNTS, Chapter, Finished, Remembered, Used
from muster.ports.store import Wanted
from muster.stores.rules import plan_cut, plan_snapshots
from muster.stores.sqlite.schema import checksum

TRIMMED: Final = "trimmed"
UNFILLED: Final = "unfilled"
MARK: Final = "SELECT coalesce((SELECT value FROM marks WHERE name = ?), 0)"
TRIMMED_SEQ: Final = f"SELECT coalesce((SELECT value FROM marks WHERE name = '{TRIMMED}'), 0)"  # noqa: S608 - our own name

_COLUMNS: Final = ", ".join(f"coalesce({name}, 0)" for name in AMOUNTS)
_HOLES: Final = ", ".join("?" * len(AMOUNTS))
_MORE: Final = ", ".join(f"{name} = {name} + excluded.{name}" for name in AMOUNTS)
_SUMS: Final = ", ".join(f"sum({name})" for name in AMOUNTS)
_OWNER: Final = "coalesce((SELECT user FROM owners WHERE job = ?), '')"

_ADD_AMOUNTS: Final = f"INSERT INTO amounts VALUES (?, {_HOLES}) ON CONFLICT DO UPDATE SET {_MORE}"  # noqa: S608 - our own column names
_ADD_USE: Final = f"INSERT INTO uses VALUES (?, ?, {_OWNER}, ?, {_HOLES}) ON CONFLICT DO UPDATE SET {_MORE}"  # noqa: S608 - our own column names
_OLD: Final = "SELECT job, tenant, key FROM finished WHERE ended_at < ? ORDER BY ended_at, job LIMIT ?"
_LAST_TOLD: Final = "SELECT max(seq) FROM story WHERE job = ?"
_TOLD_BEFORE: Final = "SELECT seq FROM story WHERE job = ? AND seq <= ?"

AMOUNTS_OF: Final = (
    f"SELECT head, {_COLUMNS}"  # noqa: S608 - our own column names
    " FROM (SELECT coalesce(max(seq), 0) AS head FROM entries) LEFT JOIN amounts ON job = ?"
)
REMEMBERED: Final = (
    "SELECT job, tenant, phase, ended_at, key, data, crc, coalesce(user, ''),"  # noqa: S608 - our own column names
    f" {_COLUMNS}"
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
    clauses = ["job > ?", "job < ?", "ended_at >= ?", "ended_at < ?"]
    values: list[int | str] = [*wanted.span, wanted.since, wanted.until]
    for column, among in (("tenant", wanted.tenants), ("phase", wanted.phases or None)):
        if among is not None:
            clauses.append(f"{column} IN ({', '.join('?' * len(among))})")
            values += among
    order = "job DESC" if wanted.newest else "job"
    return f"{REMEMBERED} WHERE {' AND '.join(clauses)} ORDER BY {order} LIMIT ?", [*values, wanted.limit]


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
    [(trimmed,)] = db.execute(MARK, (TRIMMED,))
    old = db.execute(_OLD, (before, most)).fetchall()
    forgotten = max((db.execute(_LAST_TOLD, row[:1]).fetchone()[0] or 0 for row in old), default=0)
    loose = {seq for row in old for (seq,) in db.execute(_TOLD_BEFORE, (row[0], trimmed))}
    keys = [(tenant.decode(), key.decode()) for _, tenant, key in old if key]
    db.executemany("DELETE FROM keys WHERE tenant = ? AND key = ?", keys)
    for table in ("finished", "story", "owners", "amounts"):
        db.executemany(f"DELETE FROM {table} WHERE job = ?", [(row[0],) for row in old])  # noqa: S608 - our own names
    [ends] = db.execute("SELECT (SELECT max(seq) FROM snapshots), (SELECT coalesce(max(seq), 0) FROM entries)")
    _cut(db, trimmed, plan_cut(trimmed, forgotten, *ends), loose)
    return len(old)


def _cut(db: sqlite3.Connection, trimmed: int, cut: int, loose: set[int]) -> None:
    """Let go of the entries up to `cut`, and of those before the last cut on which only the forgotten had a hold."""
    cut = max(cut, trimmed)
    told = _told_upto(db, cut)
    ends = [trimmed, *sorted(seq for seq in told if seq > trimmed), cut + 1]
    db.executemany("DELETE FROM entries WHERE seq > ? AND seq < ?", pairwise(ends))
    db.executemany("DELETE FROM entries WHERE seq = ?", [(seq,) for seq in sorted(loose - told)])
    if cut > trimmed:
        db.execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (TRIMMED, cut))
        thin_snapshots(db)


def _told_upto(db: sqlite3.Connection, cut: int) -> set[int]:
    """Entries up to `cut` that somebody who is remembered is told of. Jobs are numbered as they were accepted, so the
    first whose story begins later is followed by none who is meant."""
    told: set[int] = set()
    last = -1
    for job, seq in db.execute("SELECT job, seq FROM story ORDER BY job, seq"):
        if job != last and seq > cut:
            break
        last = job
        if seq <= cut:
            told.add(seq)
    return told


def thin_snapshots(db: sqlite3.Connection) -> None:
    """Let go of those older snapshots that are too many."""
    [(trimmed,)] = db.execute(MARK, (TRIMMED,))
    kept = db.execute("SELECT seq, length(data) FROM snapshots ORDER BY seq").fetchall()
    db.executemany("DELETE FROM snapshots WHERE seq = ?", [(seq,) for seq in plan_snapshots(kept, trimmed)])


def _finished_row(each: Finished) -> tuple[int, str, int, int, str, bytes, int]:
    return each.job, each.tenant, each.phase, each.ended_at, each.key, each.data, checksum(each.job, each.data)
