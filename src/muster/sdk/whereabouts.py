"""Where the server of a home is, and the token it wants: all that a client must know to reach it.

Paths are plain text here. `pathlib` would bring `urllib` and `ipaddress` along, and they would be a fifteenth of what a
short command costs to start; `Home` is for those who lay out, start and stop a server.
"""

from __future__ import annotations

import os
from typing import Final

import msgspec

VARIABLE: Final = "MUSTER_HOME"
TOKEN_VARIABLE: Final = "MUSTER_TOKEN"  # noqa: S105 - the name of a variable
TOKEN_FILE: Final = "token"  # noqa: S105 - the name of a file
ADDRESS_FILE: Final = "address.json"
LOGIN_FILE: Final = "login.json"


class Address(msgspec.Struct, frozen=True):
    """Where the follower listens; with `cert`, by TLS, and that file says whom to trust. With `is_tls` alone, those
    whom this machine trusts."""

    host: str
    port: int
    cert: str = ""
    is_tls: bool = False

    @property
    def url(self) -> str:
        """As people write it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.cert or self.is_tls else 'http'}://{host}:{self.port}"


class Login(msgspec.Struct, frozen=True):
    """Which server somebody logged in to, and with which token: then a home is that of a client."""

    address: Address
    token: str


def default_root() -> str:
    """The home that is meant if none is named; nobody says that it exists."""
    return os.environ.get(VARIABLE) or os.path.expanduser("~/.muster")  # noqa: PTH111 - see above


def find_address(root: str) -> Address | None:
    """Where the follower of this home said it listens."""
    try:
        return msgspec.json.decode(_read(root, ADDRESS_FILE), type=Address)
    except (OSError, msgspec.MsgspecError):
        return None


def find_login(root: str) -> Login | None:
    """What was said by `muster login`, if anything."""
    try:
        return msgspec.json.decode(_read(root, LOGIN_FILE), type=Login)
    except (OSError, msgspec.MsgspecError):
        return None


def find_server(root: str) -> Address | None:
    """Where a client of this home asks: where it is logged in, else at the home's own server."""
    login = find_login(root)
    return find_address(root) if login is None else login.address


def find_token(root: str) -> str:
    """The token that a client shows: MUSTER_TOKEN if that is set, else that of its login, else that of the home's
    owner."""
    said = os.environ.get(TOKEN_VARIABLE)
    if said:
        return said
    login = find_login(root)
    return read_token(root) if login is None else login.token


def read_token(root: str) -> str:
    """The token of the home's owner; empty if there is none."""
    try:
        return _read(root, TOKEN_FILE).decode().strip()
    except OSError:
        return ""


def _read(root: str, name: str) -> bytes:
    with open(f"{root}/{name}", "rb") as file:  # noqa: PTH123 - see above
        return file.read()
