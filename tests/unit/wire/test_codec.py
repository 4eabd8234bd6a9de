"""The codec reads what it wrote, refuses what is newer, and calls damage damage."""

from __future__ import annotations

import contextlib

import msgspec
import pytest

from muster.model import event, fact
from muster.model.errors import StoreError
from muster.model.reason import Code
from muster.testing.rig import spec
from muster.wire import codec
from muster.wire.upcast import KNOWN, UPCASTERS


def code_of(data: bytes) -> Code:
    with pytest.raises(StoreError) as caught:
        codec.decode_entry(data)
    return caught.value.reason.code


def raw_entry(*facts: object, version: int = codec.FORMAT) -> bytes:
    return msgspec.msgpack.encode([version, 1, 2, list(facts)])


def test_an_entry_comes_back_as_it_was() -> None:
    facts: list[fact.Fact] = [fact.Accepted(7, spec(2, name="train"), "key", "me"), fact.Retired([1, 2])]
    entry = codec.decode_entry(codec.encode_entry(3, 99, facts))
    assert (entry.seq, entry.at, entry.facts) == (3, 99, facts)


def test_inputs_come_back_as_they_were() -> None:
    events: list[event.Event] = [event.Submit(spec()), event.Exited(1, 1, 0)]
    inputs = codec.decode_inputs(codec.encode_inputs(3, 99, events))
    assert (inputs.seq, inputs.at, inputs.events) == (3, 99, events)


def test_an_unknown_kind_is_a_newer_journal() -> None:
    assert code_of(raw_entry(["teleported.1", 1])) == Code.JOURNAL_NEWER
    assert code_of(raw_entry(["accepted.2", 1])) == Code.JOURNAL_NEWER


@pytest.mark.parametrize("facts", [(), (["retired.1", [1], ""],), (["teleported.1"],)])
def test_a_newer_format_is_refused_even_if_it_could_be_read(facts: tuple[object, ...]) -> None:
    assert code_of(raw_entry(*facts, version=codec.FORMAT + 1)) == Code.JOURNAL_NEWER


def test_newer_inputs_are_refused() -> None:
    with pytest.raises(StoreError) as caught:
        codec.decode_inputs(msgspec.msgpack.encode([codec.FORMAT + 1, 1, 2, []]))
    assert caught.value.reason.code == Code.JOURNAL_NEWER
    assert caught.value.reason.detail == f"its format is {codec.FORMAT + 1}, this one reads up to {codec.FORMAT}"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x00",
        b"\x90",
        b"\xa3abc",
        b"\x80",
        b"\xdd\xff\xff\xff\xff",
        b"\x91" * 100_000,
        msgspec.msgpack.encode([1, 2]),
        msgspec.msgpack.encode([1, 1, 2, "facts"]),
        msgspec.msgpack.encode([1, 1, 2, [7]]),
        msgspec.msgpack.encode([1, 1, 2, [[]]]),
        msgspec.msgpack.encode(["one", 1, 2, []]),
        msgspec.msgpack.encode([1, 1, 2, [["retired.1", "not a list"]]]),
        msgspec.msgpack.encode([1, 1, 2, [["retired.1"]]]),
        b"\x94\x01\x01\x02\x91\x92\xa9retired.1\xa2\xff\xfe",
    ],
    ids=lambda data: data[:12].hex() or "empty",
)
def test_damage_is_called_damage(data: bytes) -> None:
    assert code_of(data) == Code.JOURNAL_DAMAGED


def test_every_cut_of_an_entry_is_damage() -> None:
    data = codec.encode_entry(1, 1, [fact.Accepted(1, spec(), "k"), fact.Retired([4])])
    for size in range(len(data)):
        assert code_of(data[:size]) == Code.JOURNAL_DAMAGED


def test_every_flipped_byte_is_read_or_refused_and_nothing_else() -> None:
    data = codec.encode_entry(1, 1, [fact.Accepted(1, spec(), "k"), fact.Placed([1], [1], [1], [0], [1], [3])])
    for place in range(len(data)):
        for bit in range(8):
            hurt = bytearray(data)
            hurt[place] ^= 1 << bit
            with contextlib.suppress(StoreError):
                codec.decode_entry(bytes(hurt))


def test_an_upcaster_lifts_an_older_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(UPCASTERS, "retired.0", lambda raw: ["retired.1", [raw[1]], "lifted"])
    assert codec.decode_entry(raw_entry(["retired.0", 5])).facts == [fact.Retired([5], "lifted")]


def test_every_kind_is_known_by_its_tag() -> None:
    assert len(KNOWN) == len(fact.Fact.__args__)
