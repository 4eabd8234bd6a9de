"""Judging requests about users and tokens: nobody gives, takes or mints a right that they do not hold themselves.

One function per kind of request, in one table: each gives the records that change, or the reason why nothing does. The
door of the API has let the asker in already; here it is about how far their own grants reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from muster.access.rights import ParentOf, has_role, has_role_somewhere, narrow
from muster.access.roster import Roster
from muster.model.access import (
    GRANTS_MAX,
    NOTE_CHARS_MAX,
    OWNER,
    TOKEN_LIFE_MAX_MS,
    TOKENS_MAX,
    USERS_MAX,
    DropToken,
    DropUser,
    Grant,
    MakeToken,
    OfAccess,
    Principal,
    Role,
    SetUser,
    Token,
    User,
)
from muster.model.reason import Code, Reason
from muster.model.spec import is_name
from muster.ports import Kept
from muster.wire.records import TOKEN, USER, encode_record

Verdict: TypeAlias = tuple[Kept, ...] | Reason

_NOBODY: Final = User()


def judge(roster: Roster, request: OfAccess, now: int, parent_of: ParentOf) -> Verdict:
    """The records that a request changes, or why it changes nothing."""
    verdict: Verdict = _JUDGES[type(request)](roster, request, now, parent_of)
    return verdict


def _set_user(roster: Roster, request: SetUser, now: int, parent_of: ParentOf) -> Verdict:  # noqa: ARG001 - see judge
    name, user, by = request.name, request.user, request.by
    fault = _find_user_fault(name, user) or _find_staleness(roster, request)
    if fault is not None:
        return fault
    if name not in roster.users and len(roster.users) >= USERS_MAX:
        return Reason(Code.TOO_LARGE, "users", needed=len(roster.users) + 1, available=USERS_MAX)
    before = roster.users.get(name, _NOBODY)
    touched = [grant for grant in (*before.grants, *user.grants) if (grant in before.grants) != (grant in user.grants)]
    if (before.is_disabled, before.is_service) != (user.is_disabled, user.is_service):
        touched += before.grants
    fault = _find_overreach(by, touched, parent_of)
    if fault is None and not touched and not has_role_somewhere(by.grants, Role.ADMIN):
        fault = _too_broad(by, Role.ADMIN, "")
    return fault or (Kept(USER, name, encode_record(user)),)


def _drop_user(roster: Roster, request: DropUser, now: int, parent_of: ParentOf) -> Verdict:  # noqa: ARG001 - see judge
    user = roster.users.get(request.name)
    if user is None:
        return _unknown_user(request.name)
    fault = _find_overreach(request.by, list(user.grants), parent_of) or _find_staleness(roster, request)
    tokens = (Kept(TOKEN, number, None) for number in roster.tokens_of(request.name))
    return fault or (Kept(USER, request.name, None), *tokens)


def _make_token(roster: Roster, request: MakeToken, now: int, parent_of: ParentOf) -> Verdict:
    token, by = request.token, request.by
    user = roster.users.get(token.user)
    if user is None:
        return _unknown_user(token.user)
    fault = _find_token_fault(roster, token, by, now)
    if fault is not None:
        return fault
    given = narrow(user.grants, token, parent_of)
    if token.user != by.name:
        fault = _find_overreach(by, [*user.grants, *given], parent_of)
    else:
        beyond = (grant for grant in given if not has_role(by.grants, grant.role, grant.tenant, parent_of))
        fault = next((_too_broad(by, grant.role, grant.tenant) for grant in beyond), None)
    return fault or (Kept(TOKEN, request.id, encode_record(token)),)


def _drop_token(roster: Roster, request: DropToken, now: int, parent_of: ParentOf) -> Verdict:  # noqa: ARG001 - see judge
    token = roster.tokens.get(request.id)
    if token is None:
        return Reason(Code.UNKNOWN_TOKEN, "token", detail=request.id)
    user = roster.users.get(token.user, _NOBODY)
    if token.user != request.by.name and _find_overreach(request.by, list(user.grants), parent_of) is not None:
        return Reason(Code.UNKNOWN_TOKEN, "token", detail=request.id)
    return (Kept(TOKEN, request.id, None),)


def _find_user_fault(name: str, user: User) -> Reason | None:
    if name == OWNER:
        return Reason(Code.BAD_SPEC, "user", detail=f"{OWNER} is whoever has the token of the home, and nobody else")
    if not is_name(name):
        return Reason(Code.BAD_NAME, "user", needed=len(name), available=128, detail=name[:40])
    if len(user.grants) > GRANTS_MAX:
        return Reason(Code.TOO_LARGE, "roles", needed=len(user.grants), available=GRANTS_MAX)
    tenants = [grant.tenant for grant in user.grants]
    for tenant in tenants:
        if tenant and not is_name(tenant):
            return Reason(Code.BAD_NAME, "tenant", needed=len(tenant), available=128, detail=tenant[:40])
        if tenants.count(tenant) > 1:
            return Reason(Code.BAD_SPEC, "roles", detail=f"two roles in {tenant or 'the root'}")
    return None


def _find_staleness(roster: Roster, request: SetUser | DropUser) -> Reason | None:
    found = roster.versions.get(request.name, 0)
    if request.of_version is None or request.of_version == found:
        return None
    return Reason(Code.CHANGED_MEANWHILE, f"user {request.name}", needed=request.of_version, available=found)


def _find_token_fault(roster: Roster, token: Token, by: Principal, now: int) -> Reason | None:
    if len(roster.tokens) >= TOKENS_MAX:
        return Reason(Code.TOO_LARGE, "tokens", needed=len(roster.tokens) + 1, available=TOKENS_MAX)
    if len(token.note) > NOTE_CHARS_MAX:
        return Reason(Code.TOO_LARGE, "note", needed=len(token.note), available=NOTE_CHARS_MAX)
    latest = now + TOKEN_LIFE_MAX_MS if by.until is None else by.until
    if token.until is None or not now < token.until <= latest:
        detail = "a token ends, within 366 days and not after the one that makes it"
        return Reason(Code.BAD_AMOUNT, "until_ms", needed=token.until or 0, available=latest, detail=detail)
    return None


def _find_overreach(by: Principal, grants: list[Grant], parent_of: ParentOf) -> Reason | None:
    """The first grant that is not the asker's to give or take."""
    beyond = (grant for grant in grants if not has_role(by.grants, Role.ADMIN, grant.tenant, parent_of))
    return next((_too_broad(by, Role.ADMIN, grant.tenant) for grant in beyond), None)


def _too_broad(by: Principal, role: Role, tenant: str) -> Reason:
    return Reason(Code.NOT_ALLOWED, role.value, detail=_place(tenant), needed=len(by.grants))


def _place(tenant: str) -> str:
    return f"tenant {tenant}" if tenant else "the whole fleet"


def _unknown_user(name: str) -> Reason:
    return Reason(Code.UNKNOWN_USER, "user", detail=name)


_JUDGES: Final[dict[type, Callable[[Roster, Any, int, ParentOf], Verdict]]] = {
    SetUser: _set_user,
    DropUser: _drop_user,
    MakeToken: _make_token,
    DropToken: _drop_token,
}
