"""The desk: which routes for notices there are now, and a trial of one.

The admin's file is the only place that says them; whenever it has changed, it is read again and a new herald takes over
from where the last one had told. A file that is not in order changes nothing. It knows no file by name.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from muster.control.follower import Follower
from muster.control.herald import Herald, Mark, Route
from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.ports.notifier import NotDeliveredError
from muster.wire.notices import Kind, Notice, encode_notice
from muster.wire.words import put_in_words

LOOK_S: Final = 2.0

_log = logging.getLogger(__name__)


class Marks:
    """Where it is kept how far each route is told; here: nowhere."""

    def read(self) -> dict[str, Mark]:
        """What was written last."""
        return {}

    def write(self, marks: dict[str, Mark]) -> None:
        """Keep these instead."""


class Desk:
    """The routes of one follower: these, until `stamp` is another than at first. Then `read` gives them, or refuses."""

    def __init__(
        self,
        follower: Follower,
        routes: Sequence[Route] = (),
        read: Callable[[], Sequence[Route]] = tuple,
        stamp: Callable[[], object] = lambda: None,
        marks: Marks | None = None,
        look_s: float = LOOK_S,
    ) -> None:
        self._follower = follower
        self._read = read
        self._stamp = stamp
        self._marks = marks or Marks()
        self._look_s = look_s
        self._seen: object = None
        self.routes = routes

    async def run(self) -> None:
        """Tell, for ever, by the routes that there are."""
        while True:
            self.refresh()
            routes = self.routes
            herald = Herald(self._follower, routes, self._marks.read(), self._marks.write)
            telling = asyncio.ensure_future(herald.run() if routes else asyncio.Event().wait())
            try:
                while self.routes is routes:
                    await asyncio.wait([telling], timeout=self._look_s)
                    if telling.done():
                        telling.result()  # a herald ends by breaking alone
                    self.refresh()
            finally:
                telling.cancel()
                await asyncio.gather(telling, return_exceptions=True)

    def refresh(self) -> None:
        """Read the routes again, if they may have changed."""
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            self.routes = self._read()
        except RejectedError as error:
            _log.warning("the routes for notices stay as they were: %s", put_in_words(error.reason).what)

    def get(self, name: str) -> Route:
        """The route of this name; RejectedError if there is none."""
        for _ in range(2):
            for route in self.routes:
                if route.name == name:
                    return route
            self.refresh()
        known = ", ".join(sorted(route.name for route in self.routes))
        raise RejectedError(Reason(Code.UNKNOWN_ROUTE, name[:128], detail=known or "none"))

    async def attempt(self, name: str) -> tuple[Notice, str]:
        """Send a trial notice by one route, once: the notice, and why it did not arrive; empty if it did."""
        route, now = self.get(name), self._follower.now_ms()
        notice = Notice(f"trial-{name}-{now}", Kind.TRIAL, now, f"a trial of the route {name}: all is well")
        try:
            await asyncio.to_thread(route.notifier.deliver, notice.id, encode_notice(notice))
        except NotDeliveredError as error:
            return notice, str(error)
        return notice, ""
