"""Tokens as text: `mst_`, a number to find it by, and a secret of 256 bits. Only the secret's digest is ever kept.

A plain SHA-256 is enough: nobody can guess 256 random bits, so there is nothing that a slow hash would protect.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import Final, NamedTuple

SECRET_BYTES: Final = 32
ID_BYTES: Final = 8

_TEXT: Final = re.compile(r"mst_([0-9a-f]{16})_([0-9a-f]{64})", re.ASCII)


class FreshToken(NamedTuple):
    """A token that was just made: its text is shown once."""

    id: str
    text: str
    digest: bytes


def make_token() -> FreshToken:
    """A token that nobody has seen."""
    number, secret = secrets.token_hex(ID_BYTES), secrets.token_hex(SECRET_BYTES)
    return FreshToken(number, f"mst_{number}_{secret}", digest_of(secret))


def split(text: str) -> tuple[str, str] | None:
    """The number and the secret of a token; None if it is not one."""
    found = _TEXT.fullmatch(text)
    return (found[1], found[2]) if found else None


def digest_of(secret: str) -> bytes:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).digest()


def is_secret_of(secret: str, digest: bytes) -> bool:
    """Whether a secret is the one, in the same time whatever is wrong with it."""
    return hmac.compare_digest(digest_of(secret), digest)
