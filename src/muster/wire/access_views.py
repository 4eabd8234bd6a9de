"""The API's JSON of access: users, what they may do, their tokens and the audit log. No secret but once, in the answer
that makes it."""

from __future__ import annotations

from muster.wire.views import View


class GrantView(View, frozen=True):
    """A role in a tenant and in all below it; without a tenant, everywhere."""

    role: str
    tenant: str = ""


class Me(View, frozen=True):
    """Whoever asks, and what the token that they ask with allows."""

    name: str
    roles: list[GrantView]
    token: str = ""
    until_ms: int | None = None


class UserView(View, frozen=True):
    """A user or a service account; `version` is what a change of it is a change of."""

    name: str
    roles: list[GrantView] = []
    is_service: bool = False
    is_disabled: bool = False
    version: int = 0


class TokenView(View, frozen=True):
    """A token, without its secret: whose it is, until when, and the most that it allows."""

    id: str
    user: str
    since_ms: int
    until_ms: int | None = None
    most: str = "admin"
    tenant: str = ""
    note: str = ""


class FreshTokenView(View, frozen=True):
    """A token that was just made. This is the only time that it is told."""

    id: str
    token: str
    until_ms: int


class UserPage(View, frozen=True):
    """One page of users, by name; `next_after` continues the listing, if there is more."""

    users: list[UserView]
    next_after: str | None = None


class TokenPage(View, frozen=True):
    """One page of tokens, by number; `next_after` continues the listing, if there is more."""

    tokens: list[TokenView]
    next_after: str | None = None


class AuditEntry(View, frozen=True):
    """One privileged change: who did what to what. `link` is the hash of this line and of all before it."""

    number: int
    at_ms: int
    by: str
    action: str
    subject: str
    detail: str = ""
    token: str = ""
    link: str = ""


class AuditPage(View, frozen=True):
    """One page of the audit log, oldest first; `next_after` continues it, if there is more."""

    lines: list[AuditEntry]
    next_after: int | None = None


class AuditVerdict(View, frozen=True):
    """Whether the chain of the audit log holds: so many sound lines, the link of the last, and the first broken one."""

    is_sound: bool
    lines: int
    head: str = ""
    broken_at: int = 0
