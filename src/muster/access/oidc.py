"""Tokens of an identity provider (OpenID Connect): whether one is taken, who holds it, and what they may do here.

The signature comes first, by a key that the issuer published and by the one algorithm of that key; then issuer,
audience and time; then the claims become a name and roles. Nothing in a token says how it is to be verified. The keys
and the time are given to it, and it opens no socket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import jwt
import msgspec

from muster.access.jwks import Keys
from muster.access.roster import Roster
from muster.access.trust import Trust
from muster.model.access import OWNER, Principal
from muster.model.reason import Code, Reason
from muster.model.spec import is_name
from muster.units import SECOND_MS

TOKEN_CHARS_MAX: Final = 16_384
GROUPS_MAX: Final = 1000
TYPES: Final = ("", "jwt", "at+jwt", "application/at+jwt")


class _Header(msgspec.Struct, frozen=True):
    alg: str
    kid: str = ""
    typ: str = ""
    crit: msgspec.Raw = msgspec.Raw()


class _RefusedError(Exception):
    """Why a token is not taken."""


class Oidc:
    """Knows people by one issuer's tokens. `keys` gives its keys as they are known now, None if they are not; `missed`
    is called for a token whose key is not among them, which may be a new one."""

    def __init__(
        self, trust: Trust, roster: Roster, keys: Callable[[], Keys | None], missed: Callable[[], None]
    ) -> None:
        self._trust = trust
        self._roster = roster
        self._keys = keys
        self._missed = missed

    def identify(self, text: str, now: int) -> Principal | Reason:
        """Who holds a token, or why it is not taken."""
        keys = self._keys()
        if keys is None:
            return Reason(Code.KEYS_UNKNOWN, self._trust.issuer)
        try:
            claims = self._verify(text, keys)
            return self._welcome(claims, self._check(claims, now))
        except _RefusedError as error:
            return Reason(Code.IDENTITY_REFUSED, "token", detail=str(error))

    # The signature.

    def _verify(self, text: str, keys: Keys) -> dict[str, Any]:
        if len(text) > TOKEN_CHARS_MAX or not text.isascii():
            raise _RefusedError("it is too long, or not a token")
        header = _read_header(text)
        if header.crit or header.typ.lower() not in TYPES:
            raise _RefusedError("it is of a kind that is not taken here")
        key = keys.get(header.kid) if header.kid or len(keys) != 1 else next(iter(keys.values()))
        if key is None:
            self._missed()
            raise _RefusedError("no key of the issuer's is known by the id that it names")
        if header.alg not in key.algorithms:
            raise _RefusedError("its algorithm is not that of its key")
        try:
            payload = jwt.PyJWS().decode_complete(text, key.public, algorithms=[header.alg])["payload"]
            return msgspec.json.decode(payload, type=dict[str, Any])
        except (jwt.PyJWTError, msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
            raise _RefusedError("its signature is not the issuer's") from error

    # Whom it is from, whom it is for, and when.

    def _check(self, claims: dict[str, Any], now: int) -> int:
        """Until when it is valid, in milliseconds."""
        trust = self._trust
        if claims.get("iss") != trust.issuer:
            raise _RefusedError("it is of another issuer")
        audience = claims.get("aud")
        if trust.audience not in (audience if isinstance(audience, list) else [audience]):
            raise _RefusedError("it is for another audience")
        until = _read_time(claims, "exp")
        if until is None:
            raise _RefusedError("it has no end")
        if now >= until + trust.skew_ms:
            raise _RefusedError("it has expired: get a new one")
        for name in ("nbf", "iat"):
            if (_read_time(claims, name) or 0) > now + trust.skew_ms:
                raise _RefusedError("it is not valid yet")
        return until

    # Who that is here.

    def _welcome(self, claims: dict[str, Any], until: int) -> Principal:
        name = _find_claim(claims, self._trust.user_claim)
        if not isinstance(name, str) or not is_name(name) or name == OWNER:
            raise _RefusedError(f"its claim {self._trust.user_claim!r} is no name that a user may have here")
        if self._trust.user_claim == "email" and claims.get("email_verified") is False:
            raise _RefusedError("its address was never verified")
        known = self._roster.users.get(name)
        if known is not None and (known.is_disabled or known.is_service):
            raise _RefusedError("its user is disabled here, or is a program's")
        groups = set(_read_groups(_find_claim(claims, self._trust.groups_claim)))
        given = [each.grant for each in self._trust.roles if each.group in groups]
        grants = dict.fromkeys([*(known.grants if known is not None else ()), *given])
        return Principal(name, tuple(grants), f"oidc:{name}", until)


def _read_header(text: str) -> _Header:
    try:
        jwt.get_unverified_header(text)  # it is whole, and its parts are what they should be
        return msgspec.json.decode(jwt.utils.base64url_decode(text.partition(".")[0]), type=_Header)
    except (jwt.PyJWTError, msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
        raise _RefusedError("it is not a token") from error


def _read_time(claims: dict[str, Any], name: str) -> int | None:
    """A moment in milliseconds; a token may give it as a fraction of seconds."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53 / SECOND_MS:
        raise _RefusedError(f"its claim {name!r} is not a time")
    return int(value * SECOND_MS)


def _find_claim(claims: dict[str, Any], path: str) -> object:
    """A claim by its name or, if there is none, by a path through objects: `realm_access.roles`."""
    if path in claims:
        return claims[path]
    found: object = claims
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _read_groups(value: object) -> Iterator[str]:
    listed = [value] if isinstance(value, str) else value
    return (each for each in (listed[:GROUPS_MAX] if isinstance(listed, list) else ()) if isinstance(each, str))
