"""Who is told what: `notify.toml` in the home, the admin's, read by the follower whenever it has changed; and the file
of how far everybody is told. A file and no route of the API: a command is somebody's to run on this machine."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated

import msgspec

from muster.control.desk import Marks
from muster.control.herald import Mark, Route
from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.model.spec import is_name
from muster.outward.addresses import Network, read_ranges
from muster.outward.command import Command
from muster.outward.http import ForbiddenError, read_target
from muster.outward.webhook import Webhook
from muster.units import AmountError, parse_duration
from muster.wire.notices import Kind


class _Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a route is told. With no `on`, only what jobs ask for that name it."""

    on: list[Kind] = []
    tenants: list[str] = []
    waiting: str = "1h"


class _Webhook(_Wanted, frozen=True, forbid_unknown_fields=True, kw_only=True):
    url: str
    secret: str = ""


class _Command(_Wanted, frozen=True, forbid_unknown_fields=True, kw_only=True):
    argv: Annotated[list[str], msgspec.Meta(min_length=1)]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    allow: list[str] = []
    webhook: dict[str, _Webhook] = {}
    command: dict[str, _Command] = {}


def read_routes(path: Path) -> list[Route]:
    """The routes that the file says; none if there is none. RejectedError if it is not in order."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise _bad(path, str(error)) from error
    return parse_routes(path, text)


def parse_routes(path: Path, text: str) -> list[Route]:
    """The routes that such a file would say."""
    try:
        file = msgspec.convert(tomllib.loads(text), type=_File)
        allowed = read_ranges(file.allow)
        routes = [_webhook(name, each, allowed) for name, each in file.webhook.items()]
        routes += [_route(name, each, Command(each.argv), each.argv[0]) for name, each in file.command.items()]
    except (tomllib.TOMLDecodeError, msgspec.MsgspecError, ForbiddenError, AmountError, ValueError) as error:
        raise _bad(path, str(error)) from error
    names = [route.name for route in routes]
    for name in names:
        if not is_name(name) or names.count(name) > 1:
            raise _bad(path, f"{name[:40]!r} is no name, or that of two")
    return routes


def _webhook(name: str, each: _Webhook, allowed: tuple[Network, ...]) -> Route:
    """Of its URL only the host is shown: the rest is often as good as a password."""
    target = read_target(each.url)
    return _route(name, each, Webhook(each.url, each.secret, allowed), target.host)


def _route(name: str, wanted: _Wanted, notifier: Webhook | Command, target: str) -> Route:
    return Route(
        name=name,
        notifier=notifier,
        kinds=frozenset(wanted.on),
        tenants=frozenset(wanted.tenants),
        patience_ms=parse_duration(wanted.waiting),
        form="webhook" if isinstance(notifier, Webhook) else "command",
        target=target,
    )


def find_stamp(path: Path) -> tuple[int, ...] | None:
    """Another one whenever the file may have changed; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


class FileMarks(Marks):
    """How far everybody is told, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, Mark]:
        """What was written last."""
        return read_marks(self._path)

    def write(self, marks: dict[str, Mark]) -> None:
        """Keep these instead."""
        write_marks(self._path, marks)


def read_marks(path: Path) -> dict[str, Mark]:
    """How far each route is told; one that cannot be read is as none, and says so by telling from now on."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Mark])
    except (OSError, msgspec.MsgspecError):
        return {}


def write_marks(path: Path, marks: dict[str, Mark]) -> None:
    """Replace the file, durably."""
    fresh = path.with_suffix(".new")
    with fresh.open("wb") as file:
        file.write(msgspec.json.encode(marks))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _bad(path: Path, detail: str) -> RejectedError:
    return RejectedError(Reason(Code.BAD_SETTINGS, str(path), detail=detail))
