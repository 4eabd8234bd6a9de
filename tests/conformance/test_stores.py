"""Every store through the one suite; the durable ones also through deaths of real processes."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from muster.ports.failpoint import VARIABLE
from muster.stores.memory import MemoryStore
from muster.stores.sqlite import SqliteJournal, SqliteStore
from muster.testing.store_conformance import CHECKS, DURABLE_CHECKS, DurablePlace, Place, check_kill

APPENDER = """
import sys
from pathlib import Path
from muster.stores.sqlite import SqliteStore
from muster.testing.store_conformance import append_until_killed
append_until_killed(SqliteStore(Path(sys.argv[1])))
"""


class MemoryPlace:
    """The store is the place, and its own reader."""

    def __init__(self, _: Path) -> None:
        self._store = MemoryStore()

    def open_writer(self) -> MemoryStore:
        return self._store

    def open_reader(self) -> MemoryStore:
        return self._store


class SqlitePlace:
    """A file in a directory of the test's own."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "journal.db"

    def open_writer(self) -> SqliteStore:
        return SqliteStore(self._path)

    def open_reader(self) -> SqliteJournal:
        return SqliteJournal(self._path)

    def start_appender(self, failpoint: str = "") -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", APPENDER, str(self._path)]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env={**os.environ, VARIABLE: failpoint})


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", [MemoryPlace, SqlitePlace], ids=["memory", "sqlite"])
def test_store_conforms(kind: Callable[[Path], Place], check: Callable[[Place], None], tmp_path: Path) -> None:
    check(kind(tmp_path))


@pytest.mark.parametrize("check", DURABLE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", [SqlitePlace], ids=["sqlite"])
def test_durable_store_conforms(
    kind: Callable[[Path], DurablePlace], check: Callable[[DurablePlace], None], tmp_path: Path
) -> None:
    check(kind(tmp_path))


@pytest.mark.parametrize("kills", [20, pytest.param(300, marks=pytest.mark.soak)])
@pytest.mark.parametrize("kind", [SqlitePlace], ids=["sqlite"])
def test_what_was_acknowledged_survives_kills(kind: Callable[[Path], DurablePlace], kills: int, tmp_path: Path) -> None:
    place = kind(tmp_path)
    dice = random.Random(kills)
    last = 0
    for _ in range(kills):
        groups = dice.randint(0, 9)
        # With no group to wait for, the longer pause aims at the moments in which the journal is opened.
        last = check_kill(place, last, groups, pause_s=dice.uniform(0, 0.005 if groups else 0.2))
