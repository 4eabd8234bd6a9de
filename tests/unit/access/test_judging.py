"""Nobody gives, takes or mints a right that they do not hold themselves; and what a token is worth.

root ── lab ── team
     └─ other
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.access.judge import judge
from muster.access.rights import find_role, has_role, narrow
from muster.access.roster import Roster
from muster.access.tokens import digest_of, make_token, split
from muster.model.access import (
    HOME_OWNER,
    TOKEN_LIFE_MAX_MS,
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

PARENTS = {"lab": "", "team": "lab", "other": ""}
ADMIN, OPERATOR, USER, VIEWER = Role.ADMIN, Role.OPERATOR, Role.USER, Role.VIEWER


def parent_of(name: str) -> str:
    return PARENTS.get(name, "")


class Office:
    """A roster, and what happens to it."""

    def __init__(self) -> None:
        self.roster = Roster()

    def ask(self, request: OfAccess, now: int = 0) -> Code | None:
        """The code of a refusal; None if the request was taken."""
        verdict = judge(self.roster, request, now, parent_of)
        if isinstance(verdict, Reason):
            return verdict.code
        for record in verdict:
            self.roster.fold(self.roster.version + 1, record)
        return None

    def add(self, name: str, *grants: Grant, **fields: Any) -> Code | None:
        return self.ask(SetUser(name, User(grants, **fields), HOME_OWNER))

    def admit(self, name: str, *grants: Grant, **fields: Any) -> tuple[str, Principal]:
        """A user with a token; its text and who it stands for."""
        assert self.add(name, *grants) is None
        return self.mint(name, HOME_OWNER, **fields)

    def mint(self, name: str, by: Principal, **fields: Any) -> tuple[str, Principal]:
        fresh = make_token()
        token = Token(name, fresh.digest, 0, fields.pop("until", 1000), **fields)
        assert self.ask(MakeToken(fresh.id, token, by)) is None
        found = self.roster.identify(fresh.text, 0, parent_of)
        assert isinstance(found, Principal)
        return fresh.text, found


def test_a_role_holds_in_all_below_it() -> None:
    grants = (Grant(USER, "lab"), Grant(VIEWER, "other"), Grant(OPERATOR, "team"))
    assert [find_role(grants, name, parent_of) for name in ("lab", "team", "other", "")] == [
        USER,
        OPERATOR,
        VIEWER,
        None,
    ]
    assert not has_role(grants, ADMIN, "team", parent_of)
    assert find_role((Grant(VIEWER),), "never-named", parent_of) is VIEWER


def test_a_tree_that_turns_in_a_circle_ends() -> None:
    assert find_role((Grant(ADMIN, "x"),), "a", lambda _: "a") is None


@pytest.mark.parametrize(
    ("request_of", "code"),
    [
        (lambda by: SetUser("new", User((Grant(ADMIN, "lab"),)), by), None),
        (lambda by: SetUser("new", User((Grant(VIEWER, "team"),)), by), None),
        (lambda by: SetUser("new", User((Grant(VIEWER, "other"),)), by), Code.NOT_ALLOWED),
        (lambda by: SetUser("new", User((Grant(VIEWER),)), by), Code.NOT_ALLOWED),
        (lambda by: SetUser("new", User(), by), None),
        (lambda by: SetUser("chief", User((Grant(ADMIN), Grant(USER, "lab"))), by), None),
        (lambda by: SetUser("chief", User(()), by), Code.NOT_ALLOWED),
        (lambda by: SetUser("chief", User((Grant(ADMIN),), is_disabled=True), by), Code.NOT_ALLOWED),
        (lambda by: DropUser("chief", by), Code.NOT_ALLOWED),
        (lambda by: DropUser("hand", by), None),
        (lambda by: DropUser("nobody", by), Code.UNKNOWN_USER),
        (lambda by: MakeToken("t", Token("chief", b"", 0, 10), by), Code.NOT_ALLOWED),
        (lambda by: MakeToken("t", Token("chief", b"", 0, 10, VIEWER, "lab"), by), Code.NOT_ALLOWED),
        (lambda by: MakeToken("t", Token("hand", b"", 0, 10), by), None),
        (lambda by: MakeToken("t", Token("nobody", b"", 0, 10), by), Code.UNKNOWN_USER),
    ],
)
def test_an_admin_of_one_tenant_reaches_no_further(request_of: Any, code: Code | None) -> None:
    office = Office()
    office.add("chief", Grant(ADMIN))
    office.add("hand", Grant(USER, "team"))
    _, by = office.admit("ann", Grant(ADMIN, "lab"))
    assert office.ask(request_of(by)) is code


@pytest.mark.parametrize("role", [VIEWER, USER, OPERATOR])
def test_those_who_are_no_admins_change_nobody(role: Role) -> None:
    office = Office()
    _, by = office.admit("ann", Grant(role))
    for request in (SetUser("ann", User((Grant(ADMIN),)), by), SetUser("x", User(), by), DropUser("ann", by)):
        assert office.ask(request) is Code.NOT_ALLOWED
    assert office.ask(MakeToken("t", Token("ann", b"", 0, 10), by)) is None


def test_a_narrowed_token_makes_no_wider_and_no_longer_one() -> None:
    office = Office()
    _, by = office.admit("ann", Grant(ADMIN, "lab"), Grant(USER, "other"), most=USER, tenant="team", until=500)
    assert by.grants == (Grant(USER, "team"),)
    assert office.ask(MakeToken("t", Token("ann", b"", 0, 500), by)) is Code.NOT_ALLOWED
    assert office.ask(MakeToken("t", Token("ann", b"", 0, 501, USER, "team"), by)) is Code.BAD_AMOUNT
    assert office.ask(MakeToken("t", Token("ann", b"", 0, 500, USER, "team"), by)) is None
    assert office.ask(SetUser("x", User((Grant(VIEWER, "team"),)), by)) is Code.NOT_ALLOWED


@settings(derandomize=True, deadline=None)
@given(
    st.lists(st.builds(Grant, st.sampled_from(Role), st.sampled_from(["", "lab", "team", "other"])), max_size=4),
    st.sampled_from(Role),
    st.sampled_from(["", "lab", "team", "other"]),
)
def test_a_token_allows_nothing_that_its_user_may_not(grants: list[Grant], most: Role, tenant: str) -> None:
    left = narrow(grants, Token("ann", b"", 0, 1, most, tenant), parent_of)
    for grant in left:
        assert has_role(grants, grant.role, grant.tenant, parent_of)
        assert grant.role.rank <= most.rank
    for place in ("", "lab", "team", "other"):
        if not has_role((Grant(ADMIN, tenant),), ADMIN, place, parent_of):
            assert find_role(left, place, parent_of) is None


@pytest.mark.parametrize(
    ("name", "user", "code"),
    [
        ("", User(), Code.BAD_NAME),
        ("owner", User(), Code.BAD_SPEC),
        ("a b", User(), Code.BAD_NAME),
        ("../x", User(), Code.BAD_NAME),
        ("x\u202e", User(), Code.BAD_NAME),
        ("x", User((Grant(USER, "no name"),)), Code.BAD_NAME),
        ("x", User((Grant(USER, "lab"), Grant(ADMIN, "lab"))), Code.BAD_SPEC),
        ("x", User(tuple(Grant(USER, f"t{n}") for n in range(65))), Code.TOO_LARGE),
    ],
)
def test_a_user_that_cannot_be_is_refused(name: str, user: User, code: Code) -> None:
    assert Office().ask(SetUser(name, user, HOME_OWNER)) is code


def test_a_change_of_what_has_changed_is_refused() -> None:
    office = Office()
    assert office.ask(SetUser("ann", User(), HOME_OWNER, of_version=1)) is Code.CHANGED_MEANWHILE
    assert office.ask(SetUser("ann", User(), HOME_OWNER, of_version=0)) is None
    assert office.ask(SetUser("ann", User((Grant(USER),)), HOME_OWNER, of_version=1)) is None
    assert office.ask(SetUser("ann", User(), HOME_OWNER, of_version=1)) is Code.CHANGED_MEANWHILE
    assert office.ask(DropUser("ann", HOME_OWNER, of_version=1)) is Code.CHANGED_MEANWHILE
    assert office.ask(DropUser("ann", HOME_OWNER, of_version=office.roster.versions["ann"])) is None


@pytest.mark.parametrize("until", [None, 0, TOKEN_LIFE_MAX_MS + 1])
def test_every_token_ends(until: int | None) -> None:
    office = Office()
    office.add("ann")
    assert office.ask(MakeToken("t", Token("ann", b"", 0, until), HOME_OWNER)) is Code.BAD_AMOUNT


def test_a_token_is_good_until_its_end_its_drop_or_the_end_of_its_user() -> None:
    office = Office()
    text, by = office.admit("ann", Grant(USER, "lab"), until=100)
    assert by == Principal("ann", (Grant(USER, "lab"),), by.token, 100)
    roster = office.roster
    assert roster.identify(text, 99, parent_of) == by
    expired = roster.identify(text, 100, parent_of)
    assert isinstance(expired, Reason)
    assert expired.code is Code.TOKEN_EXPIRED
    office.add("ann", Grant(USER, "lab"), is_disabled=True)
    assert roster.identify(text, 0, parent_of) == Reason(Code.UNAUTHORISED)
    office.add("ann")
    assert roster.identify(text, 0, parent_of) == Principal("ann", (), by.token, 100)
    assert office.ask(DropUser("ann", HOME_OWNER)) is None
    assert roster.identify(text, 0, parent_of) == Reason(Code.UNAUTHORISED)
    assert not roster.tokens


def test_one_drops_ones_own_tokens_and_no_others() -> None:
    office = Office()
    _, ann = office.admit("ann", Grant(USER, "lab"))
    _, bob = office.admit("bob", Grant(USER, "lab"))
    assert office.ask(DropToken(bob.token, ann)) is Code.UNKNOWN_TOKEN
    assert office.ask(DropToken("nothing", ann)) is Code.UNKNOWN_TOKEN
    assert office.ask(DropToken(ann.token, ann)) is None
    assert office.ask(DropToken(bob.token, HOME_OWNER)) is None


GOOD = "mst_" + "a" * 16 + "_" + "b" * 64


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mst_",
        GOOD[:-1],
        GOOD + "b",
        GOOD + "\n",
        GOOD.upper(),
        GOOD.replace("a", "g"),
        GOOD.replace("_", "-"),
        " " + GOOD,
        GOOD.replace("a" * 16, "../../../etc/pas"),
        GOOD.replace("b" * 64, "b" * 63 + "٣"),
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiJvd25lciJ9.",
        "a" * 100_000,
        "\0" * 85,
    ],
)
def test_what_is_no_token_is_refused(text: str) -> None:
    assert split(text) is None
    assert Roster().identify(text, 0, parent_of) == Reason(Code.UNAUTHORISED)


def test_a_secret_is_never_kept() -> None:
    fresh = make_token()
    parts = split(fresh.text)
    assert parts is not None
    assert digest_of(parts[1]) == fresh.digest
    assert len(parts[1]) == 64
    office = Office()
    text, by = office.admit("ann")
    wrong = text[:-1] + ("0" if text[-1] != "0" else "1")
    assert office.roster.identify(wrong, 0, parent_of) == Reason(Code.UNAUTHORISED)
    assert text.rpartition("_")[2].encode() not in repr(office.roster.tokens[by.token]).encode()
