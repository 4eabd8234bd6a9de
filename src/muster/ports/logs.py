"""Logs: where a task's output can be read. The surface streams it and never learns how an engine lays out its files."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class Logs(Protocol):
    """Finds the output of one try of one task."""

    def find_log(self, job: int, task: int, epoch: int) -> Path | None:
        """The file, or None if nothing was ever written."""
        ...
