"""The registrar: the leader's roster of users and tokens. It has requests judged in the order in which they come, and
writes the audit line of each that is taken.

As with the kernel, the roster is ahead of the store until the writer has kept the change: nothing is answered before.
"""

from __future__ import annotations

from typing import NamedTuple

from muster.access.audit import write_line
from muster.access.judge import judge
from muster.access.rights import ParentOf
from muster.access.roster import Roster
from muster.control.batches import Asker
from muster.model.access import OfAccess
from muster.model.reason import Reason
from muster.ports import Change, Journal


class Errand(NamedTuple):
    """A change on its way to the store, the version it brings about, and who waits for it."""

    change: Change
    version: int
    asker: Asker
    number: int


class Registrar:
    """Keeps one roster in step with what it hands to the writer."""

    def __init__(self, journal: Journal, parent_of: ParentOf) -> None:
        self._roster = Roster()
        self._roster.catch_up(journal)
        self._parent_of = parent_of

    @property
    def version(self) -> int:
        """The version of the newest record."""
        return self._roster.version

    def take(self, request: OfAccess, now: int, asker: Asker, number: int) -> Errand | Reason:
        """What is to be kept for a request, or why nothing is."""
        records = judge(self._roster, request, now, self._parent_of)
        if isinstance(records, Reason):
            return records
        for record in records:
            self._roster.fold(self._roster.version + 1, record)
        return Errand(Change(records, write_line(request, request.by, now)), self.version, asker, number)
