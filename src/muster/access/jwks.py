"""The keys of an issuer: what is read of its key set (JWKS), and what is not.

A key can do one thing: its kind says the one algorithm it verifies, whatever a token or the set itself says. Secrets,
private parts, weak keys and keys for anything but signatures are left out; addresses of other keys are never followed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.exceptions import PyJWTError

KEYS_MAX: Final = 64
KID_CHARS_MAX: Final = 256
MODULUS_BITS: Final = range(2048, 8193)


class Key(NamedTuple):
    """A public key, and the names of the one algorithm that it verifies."""

    public: Any
    algorithms: tuple[str, ...]


Keys: TypeAlias = dict[str, Key]


class _Jwk(msgspec.Struct, frozen=True):
    """The members that are read; all others are passed over."""

    kty: str
    kid: str = ""
    use: str = "sig"
    alg: str = ""
    crv: str = ""
    n: str = ""
    e: str = ""
    x: str = ""
    y: str = ""


class _Set(msgspec.Struct, frozen=True):
    keys: list[msgspec.Raw]


def read_keys(data: bytes) -> Keys:
    """The usable keys of a set by their ids; of two with one id the first. ValueError if it is no set."""
    try:
        found = msgspec.json.decode(data, type=_Set).keys
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"not a key set: {error}") from error
    keys: Keys = {}
    for raw in found[:KEYS_MAX]:
        pair = _find_key(raw)
        if pair is not None:
            keys.setdefault(*pair)
    return keys


def _find_key(raw: msgspec.Raw) -> tuple[str, Key] | None:
    try:
        jwk = msgspec.json.decode(raw, type=_Jwk)
        kind = _KINDS.get((jwk.kty, jwk.crv))
        if kind is None or jwk.use != "sig" or len(jwk.kid) > KID_CHARS_MAX:
            return None
        read, algorithms = kind
        public = read(jwk)
    except (PyJWTError, ValueError, TypeError, RecursionError):  # one bad key must not take the others along
        return None
    return None if jwk.alg and jwk.alg not in algorithms else (jwk.kid, Key(public, algorithms))


def _read_rsa(jwk: _Jwk) -> Any:
    key: Any = RSAAlgorithm.from_jwk({"kty": "RSA", "n": jwk.n, "e": jwk.e})
    if key.key_size not in MODULUS_BITS:
        raise ValueError("a key of that size is not taken")
    return key


def _read_ec(jwk: _Jwk) -> Any:
    return ECAlgorithm.from_jwk({"kty": "EC", "crv": jwk.crv, "x": jwk.x, "y": jwk.y})


def _read_okp(jwk: _Jwk) -> Any:
    return OKPAlgorithm.from_jwk({"kty": "OKP", "crv": jwk.crv, "x": jwk.x})


_KINDS: Final[dict[tuple[str, str], tuple[Callable[[_Jwk], Any], tuple[str, ...]]]] = {
    ("RSA", ""): (_read_rsa, ("RS256",)),
    ("EC", "P-256"): (_read_ec, ("ES256",)),
    ("OKP", "Ed25519"): (_read_okp, ("EdDSA",)),
}
