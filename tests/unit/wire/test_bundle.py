"""A bundle is read whole or refused with M312."""

from __future__ import annotations

import msgspec
import pytest

from muster.model.errors import StoreError
from muster.model.reason import Code
from muster.wire.bundle import MAGIC, Bundle, chain_of, decode_bundle, encode_bundle

ENTRIES = [b"one", b"two", b"three"]
BUNDLE = Bundle(b"", [b"a", b"b", b"c"], ENTRIES, chain_of(ENTRIES), "digest")


def refusal(data: bytes) -> str:
    with pytest.raises(StoreError) as caught:
        decode_bundle(data)
    assert caught.value.reason.code == Code.BAD_BUNDLE
    return caught.value.reason.detail


def test_a_bundle_comes_back_as_it_was() -> None:
    assert decode_bundle(encode_bundle(BUNDLE)) == BUNDLE


def test_what_is_no_bundle_says_so() -> None:
    assert "not a recorded run" in refusal(b"")
    assert "not a recorded run" in refusal(b"PK\x03\x04")


def test_a_newer_bundle_names_its_format() -> None:
    assert "format is 9" in refusal(MAGIC + b"\x09" + encode_bundle(BUNDLE)[len(MAGIC) + 1 :])


def test_every_cut_and_every_flipped_byte_is_refused() -> None:
    data = encode_bundle(BUNDLE)
    for place in range(len(data)):
        refusal(data[:place])
        hurt = bytearray(data)
        hurt[place] ^= 0x10
        refusal(bytes(hurt))


def test_a_chain_that_does_not_belong_to_its_entries_is_refused() -> None:
    other = msgspec.structs.replace(BUNDLE, entries=[b"one", b"two", b"other"])
    assert "chain breaks at its entry 3" in refusal(encode_bundle(other))
    short = msgspec.structs.replace(BUNDLE, inputs=[b"a"])
    assert "not of one number" in refusal(encode_bundle(short))


def test_each_link_covers_all_before_it() -> None:
    assert chain_of([b"x", b"three"])[1] != chain_of([b"y", b"three"])[1]
    assert chain_of(ENTRIES)[:2] == chain_of(ENTRIES[:2])
