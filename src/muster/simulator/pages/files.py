"""Reports as files: its name says whether one is the page or the figures. What could not be written is refused before
the run, which may take hours; nothing here knows what a run is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason

PAGE: Final = ".html"
FIGURES: Final = ".json"


def check_reports(paths: Iterable[Path]) -> None:
    """Raise RejectedError (M354) for a file that could not be written, or whose name does not say what it is."""
    for path in paths:
        if path.suffix not in (PAGE, FIGURES):
            raise refused(path, f"its name ends neither in {PAGE} nor in {FIGURES}")
        check_place(path)


def check_place(path: Path) -> None:
    """Raise RejectedError (M354) for a file that could not be written where it is asked for."""
    if not path.parent.is_dir():
        raise refused(path, "its folder is not there")
    if path.is_dir():
        raise refused(path, "it is a folder")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise refused(path, "it may not be written")


def write_reports(paths: Iterable[Path], page: Callable[[], str], figures: object) -> None:
    """Write the page, or the figures, to each."""
    for path in paths:
        data = page().encode() if path.suffix == PAGE else msgspec.json.encode(figures) + b"\n"
        try:
            path.write_bytes(data)
        except OSError as error:
            raise refused(path, error.strerror or str(error)) from error


def refused(path: Path, detail: str) -> RejectedError:
    """Why a file cannot be written, as an error to raise."""
    return RejectedError(Reason(Code.CANNOT_WRITE, str(path), detail=detail))
