"""The book of a keeper: which runs it began and how they ended, in one file that is only ever appended to.

+ JOB.TASK.EPOCH                                   begun: written before anything of the run's can execute
- JOB.TASK.EPOCH CODE CPU_MS RSS_BYTES NOTE        ended; terminal
x JOB.TASK.EPOCH                                   forgotten

A line counts only whole. One write may carry many lines, and the file is rewritten when most of it is forgotten.
Nothing is fsynced: a crash of the machine ends every run anyway, and the first line says in which life of it the book
was kept. It knows no process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from muster.engines.local.layout import Key, find_key
from muster.engines.local.ranges import End

LINES_SPARE: Final = 4096
_FIELDS: Final = 4


class Book:
    """`runs` has what is begun and not forgotten, with its end if it has one. One process writes a book at a time."""

    def __init__(self, path: Path, boot: str) -> None:
        self.runs: dict[Key, End | None] = {}
        self._path = path
        self._boot = boot
        self._is_torn = False
        self._lines = 0
        self.boot_before = self._read()
        self._handle = self._open_fresh()

    def begin(self, keys: Iterable[Key]) -> None:
        """Runs are about to begin; OSError if that cannot be written, and then they must not."""
        keys = list(keys)
        self._append(f"+ {key.name}\n" for key in keys)
        self.runs.update(dict.fromkeys(keys))

    def end(self, ends: Iterable[tuple[Key, End]]) -> None:
        """Runs ended. OSError if that cannot be written: it is known to the living all the same."""
        ends = list(ends)
        self.runs.update(ends)
        self._append(_show_end(key, end) for key, end in ends)

    def forget(self, keys: Iterable[Key]) -> None:
        """Nobody will ask for these again."""
        known = [key for key in keys if key in self.runs]
        for key in known:
            del self.runs[key]
        if known:
            self._append(f"x {key.name}\n" for key in known)
        if self._lines > LINES_SPARE + 4 * len(self.runs):
            self._rewrite()

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._handle)

    def _append(self, lines: Iterable[str]) -> None:
        lines = list(lines)
        data = ("\n" if self._is_torn else "").encode() + "".join(lines).encode()
        self._is_torn = True  # until all of it is there
        if os.write(self._handle, data) == len(data):
            self._is_torn = False
        self._lines += len(lines)

    def _read(self) -> str:
        """Take over what is written; the life of the machine in which it was."""
        try:
            first, *lines = self._path.read_text(errors="replace").split("\n")[:-1] or [""]
        except FileNotFoundError:
            return self._boot
        for line in lines:
            mark, _, rest = line.partition(" ")
            key = find_key(rest.partition(" ")[0])
            if key is None:
                continue
            if mark == "+":
                self.runs.setdefault(key)
            elif mark == "x":
                self.runs.pop(key, None)
            elif mark == "-" and (end := _find_end(rest)) is not None:
                self.runs[key] = end
        return first

    def _rewrite(self) -> None:
        old, self._handle = self._handle, self._open_fresh()
        os.close(old)

    def _open_fresh(self) -> int:
        """A file with what is known and nothing else, in place of the old one."""
        begun = [f"+ {key.name}\n" for key, end in self.runs.items() if end is None]
        ended = [_show_end(key, end) for key, end in self.runs.items() if end is not None]
        data = "".join([f"{self._boot}\n", *begun, *ended]).encode()
        fresh = self._path.with_suffix(".new")
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_APPEND, 0o600)
        self._is_torn = os.write(handle, data) != len(data)
        self._lines = 1 + len(self.runs)
        fresh.rename(self._path)
        return handle


def _show_end(key: Key, end: End) -> str:
    note = end.note.replace("\n", " ")
    return f"- {key.name} {end.code} {end.cpu_ms} {end.rss_bytes} {note}\n"


def _find_end(text: str) -> End | None:
    _, *fields = text.split(" ", _FIELDS)
    if len(fields) < _FIELDS or not all(field.isdecimal() for field in fields[:3]):
        return None
    code, cpu_ms, rss_bytes = (int(field) for field in fields[:3])
    return End(code, fields[3], cpu_ms, rss_bytes)
