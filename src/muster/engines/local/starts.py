"""Recorded Starts: what makes a start exactly as durable as its record, whoever dies before the task is up.

A record is written whole or not at all, before the start is acknowledged, and stays until all its tasks are forgotten.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from muster.engines.local.launch import keys_on
from muster.engines.local.layout import STARTS, Key, find_key, width_path
from muster.model.instruction import Start
from muster.model.record import Record

CACHED: Final = 64


class Recorded(Record, frozen=True):
    """A Start as a node got it, and in which life of the machine."""

    node: str
    boot: str
    start: Start

    def tasks_here(self) -> list[Key]:
        """Its tasks on that node."""
        return keys_on(self.start, self.node)


_decoder: Final = msgspec.msgpack.Decoder(Recorded)


def record_start(root: Path, name: str, recorded: Recorded) -> None:
    """Write it down; OSError if that cannot be done."""
    path = root / STARTS / name
    fresh = path.with_suffix(".new")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(msgspec.msgpack.encode(recorded))
    fresh.rename(path)


def record_width(root: Path, job: int, epoch: int, width: int) -> None:
    """Let the tasks of a run read how many they are: whoever looks sees the old number or the new one."""
    path = width_path(root, job, epoch)
    fresh = path.with_suffix(".new")
    with contextlib.suppress(OSError):  # a full disk must not end the supervisor, which holds everybody's work
        fresh.write_text(f"{width}\n", encoding="utf-8")
        fresh.rename(path)


def find_start(root: Path, name: str) -> Recorded | None:
    """What was recorded under this name, if it can be read."""
    path = root / STARTS / name
    try:
        state = path.stat()
        return _read(path, state.st_ino, state.st_mtime_ns)
    except (OSError, ValueError, msgspec.MsgspecError):
        return None


@lru_cache(maxsize=CACHED)
def _read(path: Path, inode: int, written_ns: int) -> Recorded:  # noqa: ARG001 - a name may be given a second time
    return _decoder.decode(path.read_bytes())


def drop_start(root: Path, name: str) -> None:
    """Nobody will ask for it again."""
    (root / STARTS / name).unlink(missing_ok=True)
    key = find_key(name)
    if key is not None and key.task == 0:
        width_path(root, key.job, key.epoch).unlink(missing_ok=True)


def list_starts(root: Path) -> Iterator[str]:
    """The names of what is recorded, in order."""
    return (path.name for path in sorted((root / STARTS).iterdir()) if find_key(path.name) is not None)


def clear_halves(root: Path) -> None:
    """Clear away what a crash left half written. Only for who writes records: a half may be somebody's next whole."""
    for path in (root / STARTS).glob("*.new"):
        path.unlink(missing_ok=True)
