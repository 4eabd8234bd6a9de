"""The roster: users and tokens as they stand, folded from the records that the store keeps.

The leader judges by it and a follower knows people by it; both fold the same records in the same order. It decides
nothing but whether a token is known.
"""

from __future__ import annotations

from typing import Final

from muster.access.rights import ParentOf, narrow
from muster.access.tokens import is_secret_of, split
from muster.model.access import Principal, Token, User
from muster.model.errors import InvariantError
from muster.model.reason import Code, Reason
from muster.ports import Journal, Kept
from muster.wire.records import TOKEN, USER, decode_token, decode_user

RECORDS_AT_ONCE: Final = 1000
_UNKNOWN: Final = Reason(Code.UNAUTHORISED)


class Roster:
    """Who there is."""

    def __init__(self) -> None:
        self.version = 0
        self.users: dict[str, User] = {}
        self.tokens: dict[str, Token] = {}
        self.versions: dict[str, int] = {}
        """The version that each user came with."""

    def catch_up(self, journal: Journal) -> None:
        """Fold every record that was kept since."""
        while found := journal.read_records(self.version, RECORDS_AT_ONCE):
            for number, record in found:
                self.fold(number, record)

    def fold(self, version: int, record: Kept) -> None:
        """Take one record in."""
        if version <= self.version:
            raise InvariantError("records come in order", f"{version} after {self.version}")
        self.version = version
        if record.kind == USER:
            self._fold_user(version, record)
        elif record.kind == TOKEN:
            self._fold_token(record)

    def tokens_of(self, user: str) -> list[str]:
        """The tokens of a user, by their numbers."""
        return sorted(number for number, token in self.tokens.items() if token.user == user)

    def identify(self, text: str, now: int, parent_of: ParentOf) -> Principal | Reason:
        """Who holds a token, or why it is not taken: nothing is told but to whoever has the secret."""
        parts = split(text)
        token = self.tokens.get(parts[0]) if parts else None
        if parts is None or token is None or not is_secret_of(parts[1], token.digest):
            return _UNKNOWN
        user = self.users.get(token.user)
        if user is None or user.is_disabled:
            return _UNKNOWN
        if token.until is not None and now >= token.until:
            return Reason(Code.TOKEN_EXPIRED, "token", needed=now, available=token.until, detail=parts[0])
        return Principal(token.user, narrow(user.grants, token, parent_of), parts[0], token.until)

    def _fold_user(self, version: int, record: Kept) -> None:
        if record.data is None:
            self.users.pop(record.name, None)
            self.versions.pop(record.name, None)
        else:
            self.users[record.name] = decode_user(record.name, record.data)
            self.versions[record.name] = version

    def _fold_token(self, record: Kept) -> None:
        if record.data is None:
            self.tokens.pop(record.name, None)
        else:
            self.tokens[record.name] = decode_token(record.name, record.data)
