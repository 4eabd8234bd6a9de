"""The keyring: an issuer's keys, as they were last fetched. Requests only look at it; fetching happens beside them.

It is fetched again from time to time, and soon after a token named a key that is not here, but never more often than
every half minute, whoever sends what. Keys that could not be fetched for a day are believed no more.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

import msgspec

from muster.access.jwks import Keys, read_keys
from muster.ports import Clock, Fetch
from muster.units import DAY_MS

REFRESH_S: Final = 600.0
LEAST_S: Final = 30.0
AGE_MAX_MS: Final = DAY_MS
DISCOVERY: Final = "/.well-known/openid-configuration"

_log = logging.getLogger(__name__)


class _Discovery(msgspec.Struct, frozen=True):
    issuer: str
    jwks_uri: str


class Keyring:
    """The keys of one issuer. `jwks` is where they are; if it is empty, the issuer is asked."""

    def __init__(self, issuer: str, jwks: str, fetch: Fetch, clock: Clock, least_s: float = LEAST_S) -> None:
        self._issuer = issuer
        self._jwks = jwks
        self._fetch = fetch
        self._clock = clock
        self._least_s = least_s
        self._known: Keys | None = None
        self._known_at = 0
        self._missed = asyncio.Event()

    def find_keys(self) -> Keys | None:
        """The keys; None if they are not known, or not any more."""
        is_old = self._clock.now_ms() - self._known_at > AGE_MAX_MS
        return None if is_old else self._known

    def miss(self) -> None:
        """Somebody named a key that is not here: look for it soon."""
        self._missed.set()

    async def run(self) -> None:
        """Keep the keys fresh, for ever."""
        while True:
            await self.refresh()
            await asyncio.sleep(self._least_s)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._missed.wait(), REFRESH_S if self._known else self._least_s)

    async def refresh(self) -> None:
        """Fetch the keys; what was known stays if that fails."""
        self._missed.clear()
        try:
            keys = await asyncio.to_thread(self._read)
        except (OSError, ValueError) as error:
            _log.warning("the keys of %s could not be fetched: %s", self._issuer, error)
            return
        self._known, self._known_at = keys, self._clock.now_ms()

    def _read(self) -> Keys:
        keys = read_keys(self._fetch(self._jwks or self._discover()))
        if not keys:
            raise ValueError("there is no key among them that can be used here")
        return keys

    def _discover(self) -> str:
        url = self._issuer.rstrip("/") + DISCOVERY
        try:
            found = msgspec.json.decode(self._fetch(url), type=_Discovery)
        except msgspec.MsgspecError as error:
            raise ValueError(f"{url}: {error}") from error
        if found.issuer != self._issuer:
            raise ValueError(f"{url} is of another issuer: {found.issuer[:200]!r}")
        return found.jwks_uri
