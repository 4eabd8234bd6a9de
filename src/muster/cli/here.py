"""Where a command was given: the directory that a job runs in unless it says another."""

from __future__ import annotations

from pathlib import Path

from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason


def get_here() -> Path:
    """The current directory; refused with words if somebody removed it."""
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        words = "the directory you are in was removed; go to one that is there"
        raise RejectedError(Reason(Code.BAD_SPEC, "workdir", detail=words)) from error
