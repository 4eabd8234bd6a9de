"""The one codec of the journal and the recorder.

An entry is one batch: its sequence number, its time and its facts, as a msgpack array that begins with the format's
number. An unknown kind or a newer format refuses to load and touches nothing; an older kind is lifted by `upcast`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from muster.model.errors import StoreError
from muster.model.event import Event
from muster.model.fact import Fact
from muster.model.reason import Code, Reason
from muster.model.record import Record
from muster.wire.upcast import lift_entry

FORMAT: Final = 1


class Entry(Record, frozen=True):
    """One batch of facts, as the journal holds it."""

    format: int
    seq: int
    at: int
    facts: list[Fact]


class Inputs(Record, frozen=True):
    """One batch of events, as the recorder holds it: handled at `at`, it gave the entry with the same number."""

    format: int
    seq: int
    at: int
    events: list[Event]


_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_encoder: Final = msgspec.msgpack.Encoder()
_entry_decoder: Final = msgspec.msgpack.Decoder(Entry)
_inputs_decoder: Final = msgspec.msgpack.Decoder(Inputs)


def encode_entry(seq: int, at: int, facts: list[Fact]) -> bytes:
    """The journal's bytes of one batch: those of an `Entry`."""
    return _encoder.encode((FORMAT, seq, at, facts))


def decode_entry(data: bytes) -> Entry:
    """Read one batch of facts, lifting older kinds; what cannot be read raises StoreError."""
    try:
        entry = _entry_decoder.decode(data)
    except _UNREADABLE:
        return _decode_older_entry(data)
    _check_format("journal", entry.format)
    return entry


def encode_inputs(seq: int, at: int, events: list[Event]) -> bytes:
    """The recorder's bytes of one batch."""
    return _encoder.encode(Inputs(FORMAT, seq, at, events))


def decode_inputs(data: bytes) -> Inputs:
    """Read one batch of events; what cannot be read raises StoreError."""
    try:
        inputs = _inputs_decoder.decode(data)
    except _UNREADABLE as error:
        raise StoreError(Reason(Code.JOURNAL_DAMAGED, "recorder", detail=str(error))) from error
    _check_format("recorder", inputs.format)
    return inputs


def _decode_older_entry(data: bytes) -> Entry:
    try:
        raw = msgspec.msgpack.decode(data)
        if isinstance(raw[0], int):
            _check_format("journal", raw[0])
        return msgspec.convert(lift_entry(raw), Entry)
    except (*_UNREADABLE, TypeError, LookupError) as error:
        raise StoreError(Reason(Code.JOURNAL_DAMAGED, "journal", detail=str(error))) from error


def _check_format(subject: str, found: int) -> None:
    """Fields past those we know are skipped by a decoder, so a newer format must be refused by its number."""
    if found > FORMAT:
        detail = f"its format is {found}, this one reads up to {FORMAT}"
        raise StoreError(Reason(Code.JOURNAL_NEWER, subject, found, FORMAT, detail))
