"""The one wording of reasons, where it depends on a number."""

from __future__ import annotations

import pytest

from muster.model.reason import Code, Reason
from muster.wire.words import put_in_words


@pytest.mark.parametrize(
    ("code", "needed", "said"),
    [
        (Code.NEVER_FITS, 1, "never fits: 1 task must run at once, the whole fleet could hold 0"),
        (Code.NEVER_FITS, 33, "never fits: 33 tasks must run at once, the whole fleet could hold 0"),
        (Code.BOOKING_FULL, 1, "waiting for room in booking night: 1 task must start, 0 would fit now"),
        (Code.BOOKING_FULL, 2, "waiting for room in booking night: 2 tasks must start together, 0 would fit now"),
    ],
)
def test_one_task_is_a_task(code: Code, needed: int, said: str) -> None:
    assert put_in_words(Reason(code, "night", needed=needed)).what == said
