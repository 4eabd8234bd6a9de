"""The codec of what history keeps of a job besides what it is found by. Fields may only be appended, with defaults."""

from __future__ import annotations

from typing import Final

import msgspec

from muster.model.errors import StoreError
from muster.model.history import Ending
from muster.model.reason import Code, Reason

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(Ending)


def encode_ending(ending: Ending) -> bytes:
    """The bytes of a job's ending."""
    return _encoder.encode(ending)


def decode_ending(data: bytes) -> Ending:
    """Read a job's ending; what cannot be read raises StoreError."""
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreError(Reason(Code.JOURNAL_DAMAGED, "history", detail=str(error))) from error
