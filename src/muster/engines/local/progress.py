"""Reading what runs say of their progress: lines of a step, and perhaps `checkpoint` or `checkpointing`, appended by
anybody in the run. Who says nothing has no file, and is not looked at.

A task could put anything in that place, so nothing but a plain file is opened, nothing is waited for, and what is not
such a line counts as nothing. Steps never go back: a line below what was said already is passed over.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from muster.engines.local.layout import PROGRESS, Key, find_key, progress_path

READ_BYTES_MAX: Final = 256 * 1024
FILE_BYTES_MAX: Final = 1024 * 1024
STEP_MAX: Final = 2**62
_LINE: Final = re.compile(rb"\s*(\d{1,19})(?:\s+(checkpoint|checkpointing))?\s*")


class Mark(NamedTuple):
    """A step, and whether all up to it is safe, or is being made so."""

    step: int
    checkpointed: bool
    checkpointing: bool = False


class Watch:
    """The progress file of one run. `last` are the marks to repeat for somebody who may have missed them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_there = True
        self._at = 0
        self._rest = b""
        self._step = -1
        self.last: list[Mark] = []

    def take(self) -> list[Mark]:
        """What is new: the last checkpoint, and the last word after it."""
        data = self._rest + self._read()
        *lines, rest = data.split(b"\n")
        self._rest = rest[:64]  # no line is longer than that
        new: list[Mark] = []
        for line in lines:
            mark = _find_mark(line)
            if mark is not None and self._step + (not any(mark[1:])) <= mark.step <= STEP_MAX:
                self._step = mark.step
                new = [mark] if mark.checkpointed else [*(each for each in new if each.checkpointed), mark]
        if new:
            self.last = new if new[0].checkpointed else [*(each for each in self.last if each.checkpointed), *new]
        return new

    def close(self) -> None:
        """The run is over; so is its file, if it has one."""
        if self._is_there:
            with contextlib.suppress(OSError):
                self._path.unlink()

    def _read(self) -> bytes:
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            self._is_there = not isinstance(error, FileNotFoundError)
            return b""
        self._is_there = True
        try:
            state = os.fstat(handle)
            if not stat.S_ISREG(state.st_mode) or state.st_size < self._at:
                self._at = 0
                return b""
            data = os.pread(handle, READ_BYTES_MAX, self._at)
            self._at += len(data)
            if self._at >= FILE_BYTES_MAX:  # it is all read, or nearly: writers append
                os.ftruncate(handle, 0)
                self._at = 0
            return data
        except OSError:
            return b""
        finally:
            os.close(handle)


class Watches:
    """The progress files below one root, of those runs that a keeper has: a watch for each that said something."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[Key, Watch] = {}

    def last(self) -> list[tuple[Key, Mark]]:
        """The marks to repeat, of all."""
        return [(key, mark) for key, watch in self._known.items() for mark in watch.last]

    def look(self, runs: Container[Key]) -> Iterator[tuple[Key, Mark]]:
        """What is new of these runs."""
        try:
            with os.scandir(self._root / PROGRESS) as found:
                names = [each.name for each in found]
        except OSError:
            return
        for key in sorted(key for key in map(find_key, names) if key is not None and key in runs):
            yield from ((key, mark) for mark in self._watch(key).take())

    def end(self, key: Key) -> Iterator[tuple[Key, Mark]]:
        """A run is over: its last word."""
        watch = self._watch(key)
        del self._known[key]
        yield from ((key, mark) for mark in watch.take())
        watch.close()

    def _watch(self, key: Key) -> Watch:
        watch = self._known.get(key)
        if watch is None:
            watch = self._known[key] = Watch(progress_path(self._root, key))
        return watch


def _find_mark(line: bytes) -> Mark | None:
    found = _LINE.fullmatch(line)
    return None if found is None else Mark(int(found[1]), found[2] == b"checkpoint", found[2] == b"checkpointing")
