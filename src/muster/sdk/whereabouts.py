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


class Address(msgspec.Struct, frozen=True):
    """Where the follower listens; with `cert`, by TLS, and that file says whom to trust."""

    host: str
    port: int
    cert: str = ""


def default_root() -> str:
    """The home that is meant if none is named; nobody says that it exists."""
    return os.environ.get(VARIABLE) or os.path.expanduser("~/.muster")  # noqa: PTH111 - see above


def find_address(root: str) -> Address | None:
    """Where the follower of this home said it listens."""
    try:
        return msgspec.json.decode(_read(root, ADDRESS_FILE), type=Address)
    except (OSError, msgspec.MsgspecError):
        return None


def find_token(root: str) -> str:
    """The token that a client shows: MUSTER_TOKEN if that is set, else that of the home's owner."""
    return os.environ.get(TOKEN_VARIABLE) or read_token(root)


def read_token(root: str) -> str:
    """The token of the home's owner; empty if there is none."""
    try:
        return _read(root, TOKEN_FILE).decode().strip()
    except OSError:
        return ""


def _read(root: str, name: str) -> bytes:
    with open(f"{root}/{name}", "rb") as file:  # noqa: PTH123 - see above
        return file.read()
