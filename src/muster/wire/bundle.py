"""The bundle: one recorded run in one file, so that a decision made elsewhere can be replayed at home.

It holds where the run began (a snapshot, or nothing for an empty world), its inputs, the entries they led to with their
hash chain, and the digest of the world after the last one. The digest comes from the caller: shapes know no worlds.
A bundle that is damaged, cut short or of a newer format raises StoreError (M312) and says which.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, NoReturn

import msgspec

from muster.model.errors import StoreError
from muster.model.reason import Code, Reason
from muster.model.record import Record

FORMAT: Final = 1
MAGIC: Final = b"muster-bundle\n"
_HASH_BYTES: Final = 16


class Bundle(Record, frozen=True):
    """A recorded run. `inputs[i]` led to `entries[i]`, and `chain[i]` is the hash of the entries up to there."""

    start: bytes
    inputs: list[bytes]
    entries: list[bytes]
    chain: list[bytes]
    digest: str
    note: str = ""


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(Bundle)


def encode_bundle(bundle: Bundle) -> bytes:
    """The bytes of a bundle: a magic line, the format, the hash of the rest, and the rest."""
    body = _encoder.encode(bundle)
    return MAGIC + bytes([FORMAT]) + _hash(body) + body


def decode_bundle(data: bytes) -> Bundle:
    """Read a bundle, or raise StoreError (M312)."""
    if not data.startswith(MAGIC):
        _refuse("this is not a recorded run")
    head = len(MAGIC)
    version = data[head] if len(data) > head else 0
    if version != FORMAT:
        _refuse(f"its format is {version}", version)
    seal, body = data[head + 1 : head + 1 + _HASH_BYTES], data[head + 1 + _HASH_BYTES :]
    if _hash(body) != seal:
        _refuse("it is damaged or cut short")
    return _open(body)


def chain_of(entries: Iterable[bytes]) -> list[bytes]:
    """The hash chain of entries: each link covers every entry before it."""
    links: list[bytes] = []
    link = b""
    for data in entries:
        link = _hash(link + data)
        links.append(link)
    return links


def _open(body: bytes) -> Bundle:
    try:
        bundle = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreError(Reason(Code.BAD_BUNDLE, "bundle", detail=str(error))) from error
    if not len(bundle.inputs) == len(bundle.entries) == len(bundle.chain):
        _refuse("its inputs and entries are not of one number")
    for index, (link, wanted) in enumerate(zip(bundle.chain, chain_of(bundle.entries), strict=True)):
        if link != wanted:
            _refuse(f"the hash chain breaks at its entry {index + 1}")
    return bundle


def _hash(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_HASH_BYTES).digest()


def _refuse(detail: str, needed: int = 0) -> NoReturn:
    raise StoreError(Reason(Code.BAD_BUNDLE, "bundle", needed=needed, available=FORMAT if needed else 0, detail=detail))
