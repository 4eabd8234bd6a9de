"""The Python client of the HTTP API: as light as the command line that is built on it.

`Client` is imported on first use, because whoever only wants to know where a home is needs no HTTP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muster.sdk.client import Client

__all__ = ["Client"]


def __getattr__(name: str) -> object:
    if name != "Client":
        raise AttributeError(name)
    from muster.sdk.client import Client

    return Client
