"""Where a command was given: the directory that a job runs in unless it says another, and the files that it names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason

STANDARD_INPUT: Final = "-"


def get_here() -> Path:
    """The current directory; refused with words if somebody removed it."""
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        words = "the directory you are in was removed; go to one that is there"
        raise RejectedError(Reason(Code.BAD_SPEC, "workdir", detail=words)) from error


def read_file(name: str) -> str:
    """The text of a file, or of standard input; refused with the system's own words if it cannot be read."""
    try:
        return sys.stdin.read() if name == STANDARD_INPUT else Path(name).read_text("utf-8")
    except OSError as error:
        why = error.strerror or str(error)
        raise RejectedError(Reason(Code.BAD_FILE, name, needed=error.errno or 1, detail=why)) from error
    except UnicodeDecodeError as error:
        raise RejectedError(Reason(Code.BAD_FILE, name, detail="it is not text in UTF-8")) from error
