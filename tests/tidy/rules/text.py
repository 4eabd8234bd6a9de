"""The tree speaks of itself alone: not of the machine it was written on, nor of work that is still to be done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rules.tree import Violation

# Each pattern is written so that it does not match its own source.
_MACHINE_PATH: Final = re.compile(r"(?<![\w.~\-/:}\])])/(?:work|root|home|opt)(?=[/\s\"'`)]|$)")
_REGISTRY: Final = re.compile(
    r"pypi\.(?:org|python)|pythonhosted\.org|npmjs\.(?:org|com)|crates\.io|docker\.io|ghcr\.io|quay\.io|anaconda\.org"
)
_UNFINISHED: Final = re.compile(r"\b(?:TO[D]O|FIX[M]E|XX[X])\b")

_PATTERNS: Final = (
    (_MACHINE_PATH, "a path of one machine"),
    (_REGISTRY, "a package registry's host"),
    (_UNFINISHED, "a note of unfinished work"),
)


def check_text(path: str, source: str) -> Iterator[Violation]:
    """No machine paths, no registry hosts, no notes to self, in any text file."""
    for number, line in enumerate(source.splitlines(), start=1):
        for pattern, what in _PATTERNS:
            match = pattern.search(line)
            if match is not None:
                yield Violation(path, number, f"{what}: {match.group()}")
