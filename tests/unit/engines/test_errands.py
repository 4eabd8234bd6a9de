"""An errand that fails is sent again, as long as it is wanted and not for ever."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from muster.engines.local.errands import AGAIN_S, TRIES_MAX, Errand, Errands


class Sent(Errands):
    """Errands that are only noted: their processes are numbers from 1 on."""

    def __init__(self) -> None:
        super().__init__({})
        self.words: list[list[str]] = []

    def spawn(self, words: list[str]) -> int:
        """Note it."""
        self.words.append(words)
        return len(self.words)


def always() -> bool:
    return True


def test_what_fails_is_sent_again_after_a_while_and_not_for_ever() -> None:
    errands, now = Sent(), 10.0
    errands.send(Errand(["rm"], always))
    for pid in range(1, TRIES_MAX):
        assert pid in errands
        errands.end(pid, 256, now)
        assert (errands.look_at, pid in errands) == (now + AGAIN_S, False)
        errands.look(now + AGAIN_S / 2)
        assert len(errands.words) == pid, "it is not time yet"
        now += AGAIN_S
        errands.look(now)
    errands.end(TRIES_MAX, 256, now)
    assert (errands.look_at, len(errands.words)) == (None, TRIES_MAX)


def test_what_succeeds_or_is_wanted_no_more_is_not_sent_again() -> None:
    errands = Sent()
    is_wanted = [True]
    errands.send(Errand(["rm"], always))
    errands.send(Errand(["kill"], partial(is_wanted.__getitem__, 0)))
    errands.end(1, 0, 0.0)
    errands.end(2, 256, 0.0)
    is_wanted[0] = False
    errands.look(AGAIN_S)
    assert (errands.words, errands.look_at) == ([["rm"], ["kill"]], None)
    errands.end(os.getpid(), 256, 0.0)  # somebody else's end is none of its business
    assert errands.look_at is None


def test_what_cannot_be_begun_harms_nobody(tmp_path: Path) -> None:
    errands = Errands({})
    errands.send(Errand([str(tmp_path / "podman"), "rm"], always))
    assert errands.look_at is None
