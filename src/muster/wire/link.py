"""What a follower and the leader say to each other over their socket: length-prefixed msgpack frames, each with all the
messages that leave together.

A follower asks with an event and a number of its own; the leader answers with that number once the outcome is durable.
The leader also says how far the journal is committed; the follower then reads the entries from the store itself, so
that the journal stays the only truth.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from muster.model.access import OfAccess, Principal
from muster.model.event import (
    Advise,
    BarNode,
    Cancel,
    CancelBooking,
    DropOverlay,
    DropTenant,
    HoldJob,
    MigrateJob,
    Progressed,
    ReleaseJob,
    RequeueJob,
    Reserve,
    ScaleJob,
    SetFlavor,
    SetOverlay,
    SetProfile,
    SetTenant,
    SetTier,
    Submit,
    UnbarNode,
    UseProfile,
)
from muster.model.reason import Done, Refused
from muster.model.record import Record

FRAME_MAX: Final = 32 * 1024 * 1024
HEADER_BYTES: Final = 4

OfJob: TypeAlias = Cancel | HoldJob | ReleaseJob | RequeueJob | ScaleJob | MigrateJob | Progressed
OfAdmin: TypeAlias = (
    SetTenant | DropTenant | SetFlavor | SetTier | SetOverlay | DropOverlay | SetProfile | UseProfile | Advise
)
OfNode: TypeAlias = BarNode | UnbarNode
OfBooking: TypeAlias = Reserve | CancelBooking
Request: TypeAlias = Submit | OfJob | OfAdmin | OfNode | OfBooking


class Ask(Record, frozen=True, tag="ask"):
    """A follower passes a request on; a privileged one says by whom, for the audit log, and may say the tag of what it
    is a change of."""

    number: int
    request: Request | OfAccess
    by: Principal | None = None
    match: str = ""


class Answer(Record, frozen=True, tag="answer"):
    """The leader's answer, with the number of the newest entry that it rests on."""

    number: int
    seq: int
    reply: Done | Refused


class Committed(Record, frozen=True, tag="committed"):
    """The journal is durable up to this entry."""

    seq: int


class Registered(Record, frozen=True, tag="registered"):
    """The records of users and tokens are durable up to this version."""

    version: int


ToFollower: TypeAlias = Answer | Committed | Registered

_encoder: Final = msgspec.msgpack.Encoder()
asks_decoder: Final = msgspec.msgpack.Decoder(list[Ask])
replies_decoder: Final = msgspec.msgpack.Decoder(list[Answer | Committed | Registered])


def frame(*messages: Ask | ToFollower) -> bytes:
    """Messages that leave together, with the length of all of them in front; what is too long for one frame is cut."""
    body = _encoder.encode(messages)
    if len(body) > FRAME_MAX and len(messages) > 1:
        middle = len(messages) // 2
        return frame(*messages[:middle]) + frame(*messages[middle:])
    return len(body).to_bytes(HEADER_BYTES, "big") + body
