"""Changes: the server's word that something happened to a job, for those who show the same thing again and again.

It listens to the server's event stream; whoever waits goes on at the next event, or after a while without one. When
there is no stream to be had, waiting is all that it does. What happened is not told: whoever wants to know asks.
"""

from __future__ import annotations

import select
import time
from typing import Final

from muster.sdk.exchange import Connection
from muster.sdk.whereabouts import default_root, find_server, find_token

CONNECT_S: Final = 5.0
GATHER_S: Final = 0.2
"""What happens in quick succession is one change."""
HEAD_BYTES_MAX: Final = 65536


class Changes:
    """A stream of events of the server of a home; it is opened when somebody waits."""

    def __init__(self, root: str = "") -> None:
        self._root = root or default_root()
        self._connection: Connection | None = None

    def __enter__(self) -> Changes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Listen no more."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def wait(self, at_most_s: float) -> bool:
        """Wait for a change; False if none came in time."""
        give_up_at = time.monotonic() + at_most_s
        try:
            link = self._listen()
            while link is not None and (left_s := give_up_at - time.monotonic()) > 0:
                if not select.select([link], [], [], left_s)[0]:
                    return False
                if b"data:" in link.take():
                    time.sleep(GATHER_S)
                    return True
        except OSError:
            self.close()
        time.sleep(max(0.0, give_up_at - time.monotonic()))
        return False

    def _listen(self) -> Connection | None:
        if self._connection is None:
            address = find_server(self._root)
            if address is None:
                return None
            self._connection = Connection(address, CONNECT_S)
            self._connection.ask("GET", "/v1/watch", {"Authorization": f"Bearer {find_token(self._root)}"})
            self._skip_beginning(self._connection)
        return self._connection

    def _skip_beginning(self, link: Connection) -> None:
        """The headers, and the event that says where the stream begins."""
        seen = b""
        while b"event: begin" not in seen:
            seen += link.take()
            if len(seen) > HEAD_BYTES_MAX or not seen.startswith(b"HTTP/1.1 200 "):
                raise ConnectionError("no event stream")
