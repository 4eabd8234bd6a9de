"""Where a job came from: the tree it was submitted from, so that a result can be traced to the code that made it.

What was run (the command) and with which variables (their names and values) is the spec's own; this is the rest. It is
the submitter's word: Muster keeps it and does not check it.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from muster.model.reason import Code, Reason

LOCKS_MAX: Final = 16
PATH_CHARS_MAX: Final = 4096
_HEX: Final = re.compile(r"[0-9a-f]{0,64}")
_FILE: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")


class Origin(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """`snapshot` is a digest of the `files` that were copied from `directory`, of `size_bytes` together; so many more
    were `left_out`. `commit` is what the tree was based on, and `diff` a digest of how it differed. `locks` are digests
    of the files that pin its dependencies."""

    directory: str
    snapshot: str = ""
    files: int = 0
    size_bytes: int = 0
    left_out: int = 0
    commit: str = ""
    diff: str = ""
    locks: dict[str, str] = {}


def find_origin_fault(origin: Origin) -> Reason | None:
    """The first thing that cannot be kept of it."""
    if len(origin.directory) > PATH_CHARS_MAX or "\0" in origin.directory:
        return Reason(Code.TOO_LARGE, "origin.directory", len(origin.directory), PATH_CHARS_MAX)
    if len(origin.locks) > LOCKS_MAX:
        return Reason(Code.TOO_LARGE, "origin.locks", len(origin.locks), LOCKS_MAX)
    if not all(map(_FILE.fullmatch, origin.locks)):
        return Reason(Code.BAD_NAME, "origin.locks", available=128, detail="a file's own name")
    digests = {"snapshot": origin.snapshot, "commit": origin.commit, "diff": origin.diff, **origin.locks}
    for field, text in digests.items():
        if not _HEX.fullmatch(text):
            return Reason(Code.BAD_SPEC, f"origin.{field}", detail="a digest of at most 64 hexadecimal digits")
    if min(origin.files, origin.size_bytes, origin.left_out) < 0:
        return Reason(Code.BAD_AMOUNT, "origin", detail="counts are not negative")
    return None
