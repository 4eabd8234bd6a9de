"""Who hears that a request is tried again and again: nobody, unless the program is one that somebody looks at.

A program has one ear, whatever clients it has. It is small, and no part of the transport, so that the command line can
listen before it knows whether anything will be asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final


class Ear:
    """What is called with a sentence, once for each request that takes long."""

    def __init__(self) -> None:
        self.hear: Callable[[str], None] = _ignore


def _ignore(words: str) -> None:
    del words  # a library says nothing by itself


EAR: Final = Ear()
