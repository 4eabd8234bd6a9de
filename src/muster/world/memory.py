"""Memory: answers that are true while what they are about stays as it is. Forgetting one costs time and nothing else.

Kinds of asks are few as a rule, but nobody promises it: when too many are remembered, all are forgotten.
"""

from __future__ import annotations

from typing import Any


class Memory(dict[object, Any]):
    """A dict that starts over when it holds `most`. Whoever asks knows what kind of answer there is to its key."""

    def __init__(self, most: int, known: dict[object, Any] | None = None) -> None:
        super().__init__(known or {})
        self._most = most

    def __setitem__(self, key: object, value: Any) -> None:
        if len(self) >= self._most:
            self.clear()
        super().__setitem__(key, value)
