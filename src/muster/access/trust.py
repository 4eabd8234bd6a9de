"""Trust: which identity provider is believed, and what its words mean here. Values only; nothing is verified here."""

from __future__ import annotations

from typing import Final

from muster.model.access import Grant
from muster.model.record import Record
from muster.units import SECOND_MS

SKEW_MS: Final = 60 * SECOND_MS


class GroupRole(Record, frozen=True):
    """What the members of a group may do."""

    group: str
    grant: Grant


class Trust(Record, frozen=True):
    """Which issuer is believed, of whom, and what its groups mean here."""

    issuer: str
    audience: str
    user_claim: str = "sub"
    groups_claim: str = "groups"
    roles: tuple[GroupRole, ...] = ()
    skew_ms: int = SKEW_MS
