"""Clock: where `now` comes from. The core never sees it; a body asks it once per batch."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Integer milliseconds since the epoch."""

    def now_ms(self) -> int:
        """The time; a body clamps it so that it never goes back."""
        ...
