"""The journal in one SQLite file: a writer for the leader, readers for anybody else on the machine."""

from muster.stores.sqlite.reader import SqliteJournal
from muster.stores.sqlite.writer import SqliteStore

__all__ = ["SqliteJournal", "SqliteStore"]
