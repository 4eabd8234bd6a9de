"""What the server may ask of the outside, as its drivers see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Fetch: TypeAlias = Callable[[str], bytes]
"""The body of a document at a URL. It blocks for a stated time at most; OSError says why there is none."""
