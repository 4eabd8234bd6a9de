"""The log of a process of the server or of the engine: standard error, which whoever starts it leads into a file of the
home, and how large that file gets. What stood in it before is kept once, beside it. Several may write to one file: who
finds that another has begun it anew follows. Where standard error is no file of ours (a terminal, a pipe, a service
manager's own) nothing is bounded: whoever reads there sees to that.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Final, TextIO

BYTES_MAX: Final = 16 * 1024 * 1024
LOOK_EVERY: Final = 64
FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def start_log(path: Path, level: int) -> None:
    """Log to stderr; whoever starts the process says where that goes, mostly to the file at `path`."""
    logging.basicConfig(level=level, handlers=[LogFile(sys.stderr, path)])


class LogFile(logging.StreamHandler[TextIO]):
    """Writes lines, and turns to a new file under the same name when there are too many."""

    def __init__(self, stream: TextIO, path: Path, bytes_max: int = BYTES_MAX) -> None:
        super().__init__(stream)
        self.setFormatter(logging.Formatter(FORMAT))
        self._path = path
        self._bytes_max = bytes_max
        self._lines = 0
        self._is_ours = self._is_here()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line; a full or broken disk harms nobody but the log."""
        super().emit(record)
        self._lines += 1
        if self._is_ours and self._lines % LOOK_EVERY == 0:
            try:
                self._turn()
            except OSError:
                self.handleError(record)

    def _turn(self) -> None:
        """Under the same descriptor: what writes past us, a traceback at the very end, goes to the new file too."""
        handle = self.stream.fileno()
        if self._is_here():
            if os.fstat(handle).st_size <= self._bytes_max:
                return
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))
        fresh = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.dup2(fresh, handle, inheritable=os.get_inheritable(handle))
        os.close(fresh)

    def _is_here(self) -> bool:
        """Whether what is written goes to the file of that name."""
        try:
            return os.path.samestat(os.fstat(self.stream.fileno()), self._path.stat())
        except (OSError, ValueError):  # no such file, or a stream that is none
            return False
