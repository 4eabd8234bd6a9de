"""Power: nobody is told of what is not on the disk, and whatever a disk may hold after a loss of power opens clean.

Both are shown from the system calls themselves. Where nothing may be traced, these tests say so and do not run.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from live import LiveHome, await_true
from syscalls import Call, Disk, find_strace, read_trace, strace

from muster.model.job import BarKind
from muster.model.spec import Spec
from muster.model.tenant import Tenant
from muster.sdk import Client
from muster.stores.sqlite import SqliteStore
from muster.testing.store_conformance import check_holds, group_after

GROUPS: Final = 60
IMAGES: Final = 150
SOAK_IMAGES: Final = 10_000
APPENDER: Final = """
import sys
from pathlib import Path
from muster.stores.sqlite import SqliteStore
from muster.testing.store_conformance import group_after

store = SqliteStore(Path(sys.argv[1]))
store._writing.execute("PRAGMA wal_autocheckpoint = 40")  # so that the log is folded back and begun again on the way
last = store.last_seq()
for _ in range(int(sys.argv[2])):
    group = group_after(last)
    store.append(group)
    last = group[-1].seq
    sys.stdout.write(f"{last}\\n")
    sys.stdout.flush()
store.save_snapshot(last, bytes(9000))
import os
os._exit(0)
"""

needs_strace = pytest.mark.skipif(find_strace() is None, reason="strace is not here, or may not trace")


def _trace_appender(place: Path) -> tuple[Disk, list[Call]]:
    """A journal that is there, and all that was asked of the kernel while groups were appended to it."""
    journal = place / "home" / "journal.db"
    journal.parent.mkdir()
    with closing(SqliteStore(journal)) as store:
        store.append(group_after(0))
    disk, out = Disk(journal.parent), place / "trace"
    program = [sys.executable, "-c", APPENDER, str(journal), str(GROUPS)]
    subprocess.run([*strace(out), *program], check=True, stdout=subprocess.PIPE)
    return disk, read_trace(out)


@needs_strace
def test_a_group_is_synced_before_anybody_hears_of_it(tmp_path: Path) -> None:
    _, calls = _trace_appender(tmp_path)
    log = str(tmp_path / "home" / "journal.db-wal")
    unsynced = said = 0
    for call in calls:
        if call.file == log:
            unsynced = 0 if call.name == "fdatasync" else unsynced + (call.name == "pwrite64")
        elif call.name == "write" and call.data[:-1].isdigit():
            assert not unsynced, f"group {call.data!r} was told with {unsynced} writes not synced"
            said += 1
    assert said == GROUPS


@needs_strace
def test_what_a_loss_of_power_leaves_opens_clean(tmp_path: Path) -> None:
    assert _open_images(tmp_path, IMAGES, random.Random(1)) > IMAGES


@needs_strace
@pytest.mark.soak
def test_ten_thousand_losses_of_power_open_clean(tmp_path: Path) -> None:
    at_stake = _open_images(tmp_path, SOAK_IMAGES, random.Random(2))
    print(f"\n{SOAK_IMAGES} images, {at_stake} unsynced writes at stake: every acknowledged group was there")


def _open_images(place: Path, images: int, dice: random.Random) -> int:
    """Stop at random calls, make what the disk may hold, open it: all that was acknowledged is there, and whole."""
    disk, calls = _trace_appender(place)
    stops = sorted(dice.randrange(len(calls)) for _ in range(images))
    acknowledged, at_stake, done = len(group_after(0)), 0, 0
    for stop in stops:
        for call in calls[done:stop]:
            disk.take(call)
            if call.name == "write" and call.data[:-1].isdigit():
                acknowledged = int(call.data)
        done = max(done, stop)
        image = place / "image"
        image.mkdir()
        at_stake += disk.write_image(image, dice)
        with closing(SqliteStore(image / "journal.db")) as store:
            last = store.last_seq()
            assert last in (acknowledged, group_after(acknowledged)[-1].seq), (stop, last, acknowledged)
            check_holds(store, last)
        shutil.rmtree(image)
    return at_stake


CHANGES: Final[dict[str, Callable[[Client, str], object]]] = {
    "a job": lambda client, word: client.submit(Spec(("true",), name=word, held=True), word),
    "a tenant": lambda client, word: client.set_tenant(word, Tenant()),
    "a bar": lambda client, word: client.bar(client.nodes()[0].name, BarKind.CORDON, reason=word),
    "a user": lambda client, word: client.set_user(word, []),
}


@needs_strace
@pytest.mark.slow
def test_a_server_answers_what_is_synced(tmp_path: Path) -> None:
    """For each kind of change: heard by the leader, written to the log, the log synced, and only then answered."""
    live = LiveHome(tmp_path / "home")
    live.home.prepare()
    out = tmp_path / "trace"
    program = [sys.executable, "-P", "-m", "muster.app", "leader", "--home", str(live.root)]
    traced = [*strace(out, "recvfrom,sendto,pwrite64,fdatasync"), *program]
    leader = subprocess.Popen(traced, env=live.env, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        await_true(lambda: live.find_pid("leader") is not None, "the traced leader is there")
        live.muster("up")
        with live.client() as client:
            for number, change in enumerate(CHANGES.values()):
                change(client, f"synced{number}x")
    finally:
        live.end_all()
        leader.wait(60)
    calls = read_trace(out)
    for number, name in enumerate(CHANGES):
        _check_order(calls, f"synced{number}x".encode(), str(live.root), name)


def _check_order(calls: list[Call], word: bytes, root: str, name: str) -> None:
    heard = next(call for call in calls if call.name == "recvfrom" and word in call.data)
    written = next(
        call for call in calls if call.name == "pwrite64" and call.file.endswith("-wal") and word in call.data
    )
    synced = next(
        call for call in calls if call.name == "fdatasync" and call.file == written.file and call.begun > written.done
    )
    answered = next(
        call for call in calls if call.name == "sendto" and call.file == heard.file and call.begun > heard.done
    )
    assert heard.done < written.begun < synced.done < answered.begun, (name, heard, synced, answered)
    assert written.file.startswith(root)
