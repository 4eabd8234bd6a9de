"""When the disk refuses, nothing of the group is kept, what was acknowledged stays, and room lets the store go on."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from muster.model.errors import StoreError
from muster.ports.store import Commit
from muster.stores.sqlite import SqliteJournal, SqliteStore, writer
from muster.testing.store_conformance import check_holds, commit_of, commits_of

Mount = Callable[[str], Path]


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Mount small file systems in memory; a test that is not permitted to is skipped."""
    mounted: list[Path] = []

    def mount_tmpfs(options: str) -> Path:
        place = tmp_path / f"disk{len(mounted)}"
        place.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True)
        if done.returncode:
            pytest.skip(f"mounting a tmpfs is not permitted here: {done.stderr.decode().strip()}")
        mounted.append(place)
        return place

    try:
        yield mount_tmpfs
    finally:
        for place in mounted:
            subprocess.run(["umount", str(place)], check=True)


@contextmanager
def file_size_limit(limit_bytes: int) -> Iterator[None]:
    """Make every write of this process beyond that offset of a file fail, as a failing disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def append_until_refused(store: SqliteStore) -> int:
    """Append groups of three until the store refuses one; return the last number it took."""
    with pytest.raises(StoreError, match=r"M306.*full"):  # noqa: PT012 - which append it is depends on the disk
        while True:
            last = store.last_seq()
            store.append(commits_of(range(last + 1, last + 4)))
    return last


def open_and_append(path: Path) -> str:
    """Open the journal, append the one entry that is due, close; return `taken` or the refusal's code."""
    try:
        with closing(SqliteStore(path)) as store:
            store.append(commits_of([store.last_seq() + 1]))
            check_holds(store, store.last_seq())
    except StoreError as error:
        return error.reason.code
    return "taken"


def test_a_full_file_keeps_what_it_acknowledged_and_goes_on_with_room(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "journal.db")
    store._writing.execute("PRAGMA max_page_count = 60")
    last = append_until_refused(store)
    assert last > 0
    check_holds(store, last)
    store._writing.execute("PRAGMA max_page_count = 1000")
    store.append(commits_of(range(last + 1, last + 4)))
    check_holds(store, last + 3)
    store.close()


def test_a_full_disk_keeps_what_it_acknowledged_and_goes_on_with_room(mount: Mount) -> None:
    disk = mount("size=512k")
    store = SqliteStore(disk / "journal.db")
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(128 * 1024))
    last = append_until_refused(store)
    assert last > 0
    check_holds(store, last)
    reader = SqliteJournal(disk / "journal.db")
    check_holds(reader, last)
    reader.close()
    ballast.unlink()
    store.append(commits_of(range(last + 1, last + 4)))
    check_holds(store, last + 3)
    store.close()
    store = SqliteStore(disk / "journal.db")
    check_holds(store, last + 3)
    store.close()


def test_a_journal_that_a_full_disk_kept_from_being_made_is_made_with_room(mount: Mount) -> None:
    disk = mount("size=256k")
    outcomes = set()
    for free_kib in range(0, 160, 4):
        home, ballast = disk / f"home{free_kib}", disk / "ballast"
        home.mkdir()
        ballast.write_bytes(bytes(1024 * (256 - free_kib)))
        outcomes.add(open_and_append(home / "journal.db"))
        ballast.unlink()
        assert open_and_append(home / "journal.db") == "taken"
        shutil.rmtree(home)
    assert outcomes == {"taken", "M306"}


def test_a_read_only_disk_is_an_unusable_home(mount: Mount) -> None:
    disk = mount("ro")
    with pytest.raises(StoreError, match="M305"):
        SqliteStore(disk / "journal.db")


def test_a_failing_disk_keeps_nothing_of_the_group(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "journal.db")
    store.append(commits_of([1, 2]))
    log = tmp_path / "journal.db-wal"
    with file_size_limit(log.stat().st_size + 10_000), pytest.raises(StoreError, match="M306"):
        store.append([commit_of(3), Commit(4, bytes(100_000), b"")])
    check_holds(store, 2)
    store.append(commits_of([3]))
    store.close()
    store = SqliteStore(tmp_path / "journal.db")
    check_holds(store, 3)
    store.close()


@pytest.mark.parametrize(
    "odd",
    [
        Commit(2, b"", b"", jobs=(2**70,)),
        Commit(2, b"", b"", keys=(("\ud800", "k", 1),)),
        Commit(2, b"", b"", keys=(("lab", "k1", 2),)),
    ],
    ids=["a job beyond 64 bits", "a tenant that is no text", "a key that has its job"],
)
def test_what_the_tables_cannot_hold_is_refused_whole(tmp_path: Path, odd: Commit) -> None:
    store = SqliteStore(tmp_path / "journal.db")
    store.append(commits_of([1]))
    with pytest.raises(StoreError, match="M306"):
        store.append([odd, commit_of(3)])
    check_holds(store, 1)
    store.append(commits_of([2]))
    check_holds(store, 2)
    store.close()


def test_before_commit_nobody_sees_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path / "journal.db")
    reader = SqliteJournal(tmp_path / "journal.db")
    seen: list[int] = []

    def look(name: str) -> None:
        assert name == "store.in_commit"
        seen.extend((reader.last_seq(), store.last_seq()))

    monkeypatch.setattr(writer, "failpoint", look)
    store.append(commits_of([1, 2]))
    assert seen == [0, 0]
    assert reader.last_seq() == 2
    reader.close()
    store.close()


def test_an_interrupt_keeps_nothing_of_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path / "journal.db")

    def interrupt(name: str) -> None:
        raise KeyboardInterrupt(name)

    monkeypatch.setattr(writer, "failpoint", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.append(commits_of([1, 2]))
    monkeypatch.undo()
    assert store.last_seq() == 0
    store.append(commits_of([1]))
    check_holds(store, 1)
    store.close()


def test_the_lock_is_not_inherited_by_a_process_it_starts(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "journal.db")
    assert not os.get_inheritable(store._lock.fileno())
    store.close()
