"""Frames survive every way that a stream may cut them."""

from __future__ import annotations

import pytest

from muster.control.frames import Splitter
from muster.model.errors import RejectedError
from muster.wire import link
from muster.wire.link import FRAME_MAX, Committed, frame, replies_decoder

MESSAGES = [Committed(seq) for seq in (1, 2, 2**40)]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 1000])
def test_any_cut_gives_the_same_messages(size: int) -> None:
    stream = b"".join(map(frame, MESSAGES))
    splitter = Splitter()
    heard = [body for begin in range(0, len(stream), size) for body in splitter.feed(stream[begin : begin + size])]
    assert [replies_decoder.decode(body) for body in heard] == [[message] for message in MESSAGES]


def test_what_leaves_together_is_one_frame_and_is_cut_only_if_it_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    [together] = Splitter().feed(frame(*MESSAGES))
    assert replies_decoder.decode(together) == MESSAGES
    monkeypatch.setattr(link, "FRAME_MAX", len(together) - 1)
    cut = [replies_decoder.decode(body) for body in Splitter().feed(frame(*MESSAGES))]
    assert len(cut) > 1
    assert [message for messages in cut for message in messages] == MESSAGES


def test_a_length_above_the_limit_is_refused_before_it_is_kept() -> None:
    with pytest.raises(RejectedError, match="M104"):
        list(Splitter().feed((FRAME_MAX + 1).to_bytes(4, "big")))
