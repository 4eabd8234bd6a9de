"""One command over many items: an array whose tasks each find their own item, and whose output is read in order.

Items are JSON and travel in the job's environment, so there are as many as fit there; no function is shipped and
nothing is unpickled. A task calls `muster.item()`. What it prints is its result.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.sdk.jobfile import JobFile

ITEMS: Final = "MUSTER_MAP_ITEMS"
ITEMS_BYTES_MAX: Final = 60 * 1024
"""The environment has room for 64 KiB; the rest is for variables of one's own."""


def make_map(command: list[str] | str, items: Iterable[Any], fields: dict[str, Any]) -> JobFile:
    """The array that runs a command once for each item; RejectedError if there is none, or too much of them."""
    listed = list(items)
    text = msgspec.json.encode(listed).decode()
    if not listed:
        raise RejectedError(Reason(Code.BAD_SPEC, "items", detail="there is none to run for"))
    if len(text) > ITEMS_BYTES_MAX:
        raise RejectedError(Reason(Code.TOO_LARGE, "items", needed=len(text), available=ITEMS_BYTES_MAX))
    env = {**fields.pop("env", {}), ITEMS: text}
    return JobFile(command, array=len(listed), env=env, **fields)


def item() -> Any:
    """In a task of a map: the item that it is for."""
    try:
        return msgspec.json.decode(os.environ[ITEMS])[int(os.environ["MUSTER_TASK"])]
    except KeyError as error:
        raise LookupError(f"this is no task of a map: {error.args[0]} is not set") from None
