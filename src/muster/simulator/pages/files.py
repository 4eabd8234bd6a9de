"""Reports as files: its name says whether one is the page or the figures. A bad name is refused before the run."""

from __future__ import annotations

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
            raise _refused(path, f"its name ends neither in {PAGE} nor in {FIGURES}")
        if not path.parent.is_dir():
            raise _refused(path, "its folder is not there")


def write_reports(paths: Iterable[Path], page: Callable[[], str], figures: object) -> None:
    """Write the page, or the figures, to each."""
    for path in paths:
        data = page().encode() if path.suffix == PAGE else msgspec.json.encode(figures) + b"\n"
        try:
            path.write_bytes(data)
        except OSError as error:
            raise _refused(path, error.strerror or str(error)) from error


def _refused(path: Path, detail: str) -> RejectedError:
    return RejectedError(Reason(Code.CANNOT_WRITE, str(path), detail=detail))
