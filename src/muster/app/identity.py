"""The identity provider of a server: `oidc.toml` in its home, written by the admin, read when the follower starts."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Final

import msgspec

from muster.access.trust import GroupRole, Trust
from muster.model.access import Grant, Role
from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.model.spec import is_name
from muster.outward.http import ForbiddenError, read_target
from muster.units import AmountError, parse_duration

SKEW_MAX_MS: Final = 600_000


class _RoleRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    group: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
    role: Role
    tenant: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    issuer: str
    audience: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
    jwks: str = ""
    user: str = "sub"
    groups: str = "groups"
    clock_skew: str = "60s"
    role: list[_RoleRow] = []


class Provider(msgspec.Struct, frozen=True):
    """Who is believed, and where its keys are if it is not to be asked."""

    trust: Trust
    jwks: str


def find_provider(path: Path) -> Provider | None:
    """What the file says; None if there is none. RejectedError if it is not in order."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _bad(path, str(error)) from error
    try:
        file = msgspec.convert(tomllib.loads(text), type=_File)
        for url in filter(None, (file.issuer, file.jwks)):
            read_target(url)
        skew_ms = parse_duration(file.clock_skew)
    except (tomllib.TOMLDecodeError, msgspec.MsgspecError, ForbiddenError, AmountError) as error:
        raise _bad(path, str(error)) from error
    if not 0 <= skew_ms <= SKEW_MAX_MS:
        raise _bad(path, "clock_skew is at most ten minutes")
    return Provider(_trust(path, file, skew_ms), file.jwks)


def _trust(path: Path, file: _File, skew_ms: int) -> Trust:
    for row in file.role:
        if row.tenant and not is_name(row.tenant):
            raise _bad(path, f"{row.tenant[:40]!r} is no name of a tenant")
    roles = tuple(GroupRole(row.group, Grant(row.role, row.tenant)) for row in file.role)
    return Trust(file.issuer, file.audience, file.user, file.groups, roles, skew_ms)


def _bad(path: Path, detail: str) -> RejectedError:
    return RejectedError(Reason(Code.BAD_SETTINGS, str(path), detail=detail))
