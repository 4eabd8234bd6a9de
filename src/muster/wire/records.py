"""The codec of what is kept beside the journal: users, tokens and audit lines, as msgpack arrays by position.

Fields may only be appended, each with a default. What cannot be read raises StoreError and says which record it was.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from muster.model.access import AuditLine, OfAccess, Token, User
from muster.model.booking import Booking
from muster.model.errors import StoreError
from muster.model.event import Event
from muster.model.reason import Code, Reason

USER: Final = "user"
TOKEN: Final = "token"  # noqa: S105 - the name of a kind
DETAIL_CHARS_MAX: Final = 4096

T = TypeVar("T")
_encoder: Final = msgspec.msgpack.Encoder()
_users: Final = msgspec.msgpack.Decoder(User)
_tokens: Final = msgspec.msgpack.Decoder(Token)
_lines: Final = msgspec.msgpack.Decoder(AuditLine)


def encode_record(record: User | Token | AuditLine) -> bytes:
    """The bytes of a record."""
    return _encoder.encode(record)


def decode_user(name: str, data: bytes) -> User:
    """A user, as it was kept."""
    return _decode(_users, f"user {name}", data)


def decode_token(name: str, data: bytes) -> Token:
    """A token, as it was kept."""
    return _decode(_tokens, f"token {name}", data)


def decode_line(number: int, data: bytes) -> AuditLine:
    """A line of the audit log."""
    return _decode(_lines, f"audit line {number}", data)


def describe(request: Event | OfAccess) -> tuple[str, str, str]:
    """What an audit line says of a request: its kind, what it is about, and the rest of it as JSON. What is kept of a
    secret is not repeated here."""
    fields = msgspec.structs.asdict(request)
    fields.pop("by", None)
    fields.pop("cause", None)
    subject = str(fields.pop("name", "") or fields.pop("id", "") or fields.get("kind", "") or fields.get("node", ""))
    if isinstance(fields.get("booking"), Booking):
        subject = fields["booking"].name
    if isinstance(fields.get("token"), Token):
        fields["token"] = msgspec.structs.replace(fields["token"], digest=b"")
    named = {name: _by_name(value) for name, value in fields.items()}
    detail = msgspec.json.encode(named).decode()
    return str(request.__struct_config__.tag), subject, detail[:DETAIL_CHARS_MAX]


def _by_name(value: object) -> object:
    """A record with its fields by name: people read this."""
    if isinstance(value, msgspec.Struct):
        return {name: _by_name(part) for name, part in msgspec.structs.asdict(value).items()}
    if isinstance(value, tuple | list):
        return [_by_name(part) for part in value]
    return value


def _decode(decoder: msgspec.msgpack.Decoder[T], what: str, data: bytes) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreError(Reason(Code.JOURNAL_DAMAGED, what, detail=str(error))) from error
