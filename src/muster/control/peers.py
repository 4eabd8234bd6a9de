"""Peers: the followers that are connected to the leader's socket.

It speaks the frames of `muster.wire.link` and passes on what they ask. A peer that cannot be understood, or that does
not read what it is sent, loses its connection; nothing it does can stop the leader.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

import msgspec

from muster.control.frames import Splitter, short_path
from muster.model.errors import RejectedError
from muster.wire.link import Ask, asks_decoder

UNREAD_BYTES_MAX: Final = 64 * 1024 * 1024

_log = logging.getLogger(__name__)


class Peer(asyncio.Protocol):
    """One follower."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._splitter = Splitter()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A follower has come: tell it how far the journal is."""
        self._transport = cast("asyncio.Transport", transport)
        self._peers.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """A follower has left."""
        self._transport = None
        self._peers.remove(self)

    def data_received(self, data: bytes) -> None:
        """A follower asks."""
        try:
            for body in self._splitter.feed(data):
                self._peers.on_asks(self, asks_decoder.decode(body))
        except (RejectedError, msgspec.MsgspecError) as error:
            _log.warning("a follower is not understood and is cut off: %s", error)
            self.cut()

    def send(self, data: bytes) -> None:
        """Pass framed messages on; one who has left hears nothing, one who does not read is cut off."""
        if self._transport is None:
            return
        self._transport.write(data)
        if self._transport.get_write_buffer_size() > UNREAD_BYTES_MAX:
            _log.warning("a follower does not read and is cut off")
            self.cut()

    def cut(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def hush(self) -> None:
        """Hear no more from this follower."""
        if self._transport is not None:
            self._transport.pause_reading()

    def close(self) -> None:
        """End the connection once it has been sent everything."""
        if self._transport is not None:
            self._transport.close()


class Peers:
    """All connected followers, and the socket they come through."""

    def __init__(self, path: Path, on_asks: Callable[[Peer, list[Ask]], None], greet: Callable[[], bytes]) -> None:
        self.on_asks = on_asks
        self._path = path
        self._greet = greet
        self._peers: dict[int, Peer] = {}
        self._server: asyncio.Server | None = None

    async def listen(self) -> None:
        """Open the socket, to this user alone. The store has one writer: a socket that is there is a dead leader's."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with short_path(self._path) as path:
            with contextlib.suppress(FileNotFoundError):
                self._path.unlink()
            before = os.umask(0o177)
            try:
                listening.bind(path)
            finally:
                os.umask(before)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: Peer(self), sock=listening)

    def add(self, peer: Peer) -> None:
        """A follower has come."""
        self._peers[id(peer)] = peer
        peer.send(self._greet())

    def remove(self, peer: Peer) -> None:
        """A follower has left."""
        self._peers.pop(id(peer), None)

    def tell_all(self, data: bytes) -> None:
        """Pass framed messages to every follower."""
        for peer in self.everybody():
            peer.send(data)

    def everybody(self) -> list[Peer]:
        """Every follower that is there now."""
        return list(self._peers.values())

    def hush(self) -> None:
        """Let nobody new in and hear no more asks."""
        if self._server is not None:
            self._server.close()
        for peer in self._peers.values():
            peer.hush()

    def close(self) -> None:
        """Hang up on everybody, after they were sent everything."""
        self.hush()
        for peer in self.everybody():
            peer.close()
