"""What the engine, its supervisor and the keepers say to each other: msgpack records, each behind its length.

All run the same version of this code (the engine starts the supervisor, which starts the keepers), and one that
outlives an upgrade is read by position, so fields may only be appended. Nothing here knows a socket.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeAlias, TypeVar

import msgspec

from muster.engines.local.layout import Key
from muster.engines.local.progress import Mark
from muster.engines.local.ranges import End
from muster.model.errors import EngineError
from muster.model.event import Exited, Held, Progressed, Started
from muster.model.instruction import Forget, Instruction, Stop
from muster.model.reason import Code, Reason
from muster.model.record import Record

FRAME_BYTES_MAX: Final = 64 * 1024 * 1024
EVENTS_PER_FRAME_MAX: Final = 4096
_LENGTH: Final = struct.Struct(">I")

TaskEvent: TypeAlias = Started | Progressed | Exited


class Hello(Record, frozen=True, tag="hello"):
    """The engine begins: it speaks for this node, and wants the inventory."""

    node: str


class Order(Record, frozen=True, tag="order"):
    """One instruction, numbered upwards so that it can be acknowledged."""

    number: int
    instruction: Instruction


class Shutdown(Record, frozen=True, tag="shutdown"):
    """The supervisor is to leave. What runs goes on running."""


class Inventory(Record, frozen=True, tag="inventory"):
    """Answer to Hello: everything that the supervisor still knows."""

    held: list[Held]


class Ack(Record, frozen=True, tag="ack"):
    """Every order up to this number is recorded; it always precedes the events that those orders caused."""

    number: int


class Happened(Record, frozen=True, tag="happened"):
    """Tasks started, came further, or ended."""

    events: list[TaskEvent]


class Meet(Record, frozen=True, tag="meet"):
    """The supervisor begins: a keeper is to say what it has."""


class Keep(Record, frozen=True, tag="keep"):
    """A keeper is to start tasks of the Start that is recorded as `name`."""

    name: str
    first: int
    count: int


class Leave(Record, frozen=True, tag="leave"):
    """A keeper may leave if it has nothing to keep."""


class Kept(Record, frozen=True, tag="kept"):
    """Answer to Meet: every run that a keeper has, whether it was begun, and how it ended."""

    runs: list[tuple[Key, bool, End | None]]
    marks: list[tuple[Key, Mark]] = []


class News(Record, frozen=True, tag="news"):
    """Runs of a keeper started, came further, or ended."""

    started: list[Key]
    ended: list[tuple[Key, End]]
    marks: list[tuple[Key, Mark]] = []


Asked: TypeAlias = Hello | Order | Shutdown
Told: TypeAlias = Inventory | Ack | Happened
KeeperAsked: TypeAlias = Meet | Keep | Stop | Forget | Leave
KeeperTold: TypeAlias = Kept | News
AnyFrame: TypeAlias = Asked | Told | KeeperAsked | KeeperTold
Frame = TypeVar("Frame")

_encoder: Final = msgspec.msgpack.Encoder()
_asked_decoder: Final[msgspec.msgpack.Decoder[Asked]] = msgspec.msgpack.Decoder(Asked)
_told_decoder: Final[msgspec.msgpack.Decoder[Told]] = msgspec.msgpack.Decoder(Told)
_keeper_asked_decoder: Final[msgspec.msgpack.Decoder[KeeperAsked]] = msgspec.msgpack.Decoder(KeeperAsked)
_keeper_told_decoder: Final[msgspec.msgpack.Decoder[KeeperTold]] = msgspec.msgpack.Decoder(KeeperTold)


def encode_frame(frame: AnyFrame) -> bytes:
    """The bytes of one frame, its length in front."""
    body = _encoder.encode(frame)
    _check_size(len(body))
    return _LENGTH.pack(len(body)) + body


class Inbox(Generic[Frame]):
    """Bytes in, frames out. What cannot be read raises EngineError: the connection is of no more use."""

    def __init__(self, decode: Callable[[bytes], Frame]) -> None:
        self._decode_body = decode
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Every frame that is complete with `data`."""
        self._buffer += data
        at = 0
        while (end := self._end_of_frame(at)) is not None:
            body = bytes(self._buffer[at + _LENGTH.size : end])
            at = end
            yield self._decode(body)
        del self._buffer[:at]

    def _end_of_frame(self, at: int) -> int | None:
        if len(self._buffer) - at < _LENGTH.size:
            return None
        (size,) = _LENGTH.unpack_from(self._buffer, at)
        _check_size(size)
        end: int = at + _LENGTH.size + size
        return end if end <= len(self._buffer) else None

    def _decode(self, body: bytes) -> Frame:
        try:
            return self._decode_body(body)
        except msgspec.MsgspecError as error:
            raise EngineError(Reason(Code.ENGINE_FAILED, "frame", detail=str(error)), transient=True) from error


def asked_inbox() -> Inbox[Asked]:
    """What a supervisor reads."""
    return Inbox(_asked_decoder.decode)


def told_inbox() -> Inbox[Told]:
    """What an engine reads."""
    return Inbox(_told_decoder.decode)


def keeper_asked_inbox() -> Inbox[KeeperAsked]:
    """What a keeper reads."""
    return Inbox(_keeper_asked_decoder.decode)


def keeper_told_inbox() -> Inbox[KeeperTold]:
    """What a supervisor reads from a keeper."""
    return Inbox(_keeper_told_decoder.decode)


def _check_size(size: int) -> None:
    if size > FRAME_BYTES_MAX:
        reason = Reason(Code.ENGINE_FAILED, "frame", needed=size, available=FRAME_BYTES_MAX)
        raise EngineError(reason, transient=True)
