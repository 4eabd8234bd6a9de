"""Gathering: submits that come close together are looked up in the journal together, and passed on together.

A key whose job is in the journal makes no other, however long ago it ended; the leader knows the living alone. To ask
the file for each key would cost a submit more than anything else that is not HTTP; and each group that reaches the
leader is a batch, a commit, an entry to fold, and several wake-ups of four threads. So whoever comes waits until as
many have come as are under way, or until no more are: many clients part into two halves, of which one is heard here
while the other is decided and written. Whoever comes alone is passed on at once. It decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from muster.control.line import Line
from muster.model.event import Submit
from muster.ports import Journal
from muster.wire.link import Answer

Gathered: TypeAlias = tuple[Submit, asyncio.Future[Answer | int]]


class Gathering:
    """Submits on their way from one follower to the leader: so many are `_under_way`, and those that are `_gathered`
    leave next."""

    def __init__(self, line: Line, journal: Journal) -> None:
        self._line = line
        self._journal = journal
        self._under_way = 0
        self._gathered: list[Gathered] = []

    def submit(self, request: Submit) -> asyncio.Future[Answer | int]:
        """The leader's answer, or the job that its key has made before."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[Answer | int] = loop.create_future()
        self._gathered.append((request, waiting))
        if len(self._gathered) == max(1, self._under_way):
            loop.call_soon(self._pass_on)  # with whoever else comes in this turn
        return waiting

    def _pass_on(self) -> None:
        gathered = [each for each in self._gathered if not each[1].done()]
        self._gathered = []
        try:
            known = self._find_known(gathered)
        except Exception as error:  # noqa: BLE001 - of whatever kind: whoever waits must hear of it
            for _, waiting in gathered:
                waiting.set_exception(error)
            return
        fresh = [each for each in gathered if not _give(each, known)] if known else gathered
        if fresh:
            self._under_way += len(fresh)
            fresh[-1][1].add_done_callback(partial(self._note_back, len(fresh)))
            self._line.post(fresh)

    def _note_back(self, count: int, _: asyncio.Future[Answer | int]) -> None:
        """The last of a group of so many has its answer, or waits for none any more."""
        self._under_way -= count
        if len(self._gathered) >= max(1, self._under_way):
            self._pass_on()

    def _find_known(self, gathered: Sequence[Gathered]) -> dict[tuple[str, str], int]:
        keys = [(request.spec.tenant, request.key) for request, _ in gathered if request.key]
        found = zip(keys, self._journal.find_jobs(keys) if keys else (), strict=True)
        return {key: job for key, job in found if job is not None}


def _give(gathered: Gathered, known: dict[tuple[str, str], int]) -> bool:
    """Tell somebody of the job that there is already, if there is."""
    request, waiting = gathered
    number = known.get((request.spec.tenant, request.key))
    if number is not None:
        waiting.set_result(number)
    return number is not None
