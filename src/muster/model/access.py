"""Who may do what: roles, users, tokens, and the requests that change them. Values only; who may change whom is judged
in `muster.access`.

These are not facts of the kernel: no decision of the scheduler depends on them. They are kept in the same store, each
change together with its line in the audit log.
"""

from __future__ import annotations

import enum
from typing import Final, TypeAlias

from muster.model.record import Record
from muster.units import DAY_MS, Limit

USERS_MAX: Final = 10_000
TOKENS_MAX: Final = 100_000
GRANTS_MAX: Final = 64
NOTE_CHARS_MAX: Final = 256
TOKEN_LIFE_MS: Final = 90 * DAY_MS
TOKEN_LIFE_MAX_MS: Final = 366 * DAY_MS

OWNER: Final = "owner"
"""Whoever can read the token in the server's home: admin of everything, in no list, and never locked out."""

OWNER_CAUSE: Final = "api"
"""How the owner signs in the journal."""
_SIGNED: Final = f"{OWNER_CAUSE}:"
"""And others, before their name."""


class Role(enum.StrEnum):
    """What one may do in a tenant and in all below it; each may do what those before it may."""

    VIEWER = "viewer"
    USER = "user"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        """Its place in the order."""
        return _RANKS[self]


_RANKS: Final = {role: rank for rank, role in enumerate(Role)}


class Grant(Record, frozen=True):
    """A role in a tenant and in all below it; at the root, everywhere."""

    role: Role
    tenant: str = ""


WHOLE: Final = Grant(Role.ADMIN)
"""The highest role above every tenant: who has it need not be looked for in the tree."""


class User(Record, frozen=True):
    """A person, or a service account, which is the same but for who looks after its tokens."""

    grants: tuple[Grant, ...] = ()
    is_service: bool = False
    is_disabled: bool = False


class Token(Record, frozen=True):
    """A token of a user: it allows what its user may do, and no more than `most` in `tenant` and below. `digest` is all
    that is kept of its secret."""

    user: str
    digest: bytes
    since: int
    until: Limit
    most: Role = Role.ADMIN
    tenant: str = ""
    note: str = ""


class Principal(Record, frozen=True):
    """Whoever asks, as a token says: a name and what it may do. `until` is when the token ends."""

    name: str
    grants: tuple[Grant, ...]
    token: str = ""
    until: Limit = None

    @property
    def cause(self) -> str:
        """How what it asks for is signed in the journal."""
        return OWNER_CAUSE if self.name == OWNER else sign(self.name)


def sign(user: str) -> str:
    """How what a user asks for is signed; an empty one is the owner of the home. The inverse of `submitter_of`."""
    return f"{_SIGNED}{user}" if user else OWNER_CAUSE


def submitter_of(cause: str) -> str:
    """Who signed so; empty if it was the owner of the home, or nobody who has a name."""
    return cause.removeprefix(_SIGNED) if cause.startswith(_SIGNED) else ""


HOME_OWNER: Final = Principal(OWNER, (WHOLE,))


class SetUser(Record, frozen=True, tag="set_user"):
    """A user shall be this, whole. With `of_version`, only if that is the version it has now (0: it is new)."""

    name: str
    user: User
    by: Principal
    of_version: Limit = None


class DropUser(Record, frozen=True, tag="drop_user"):
    """A user is to go, with all its tokens. `of_version` is as in SetUser."""

    name: str
    by: Principal
    of_version: Limit = None


class MakeToken(Record, frozen=True, tag="make_token"):
    """A token is to be known. Its secret stays with whoever made it."""

    id: str
    token: Token
    by: Principal


class DropToken(Record, frozen=True, tag="drop_token"):
    """A token is to be valid no more."""

    id: str
    by: Principal


OfAccess: TypeAlias = SetUser | DropUser | MakeToken | DropToken


class AuditLine(Record, frozen=True):
    """One privileged change: who did what to what, when, and as what it then stood."""

    at: int
    by: str
    action: str
    subject: str
    detail: str = ""
    token: str = ""
