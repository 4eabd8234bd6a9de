"""Notifier: whoever carries a notice to somebody outside."""

from __future__ import annotations

from typing import Protocol


class NotDeliveredError(Exception):
    """A notice did not arrive. With `is_final` it is of no use to try again."""

    def __init__(self, words: str, *, is_final: bool = False) -> None:
        super().__init__(words)
        self.is_final = is_final


class Notifier(Protocol):
    """Carries notices. It may block, for a stated time at most; its caller has a thread for it."""

    def deliver(self, number: str, body: bytes) -> None:
        """Hand over a notice, which has this id; NotDeliveredError if it did not arrive."""
        ...
