"""Gathering: submits that come close together are looked up in the journal together, and passed on together.

A key whose job is in the journal makes no other, however long ago it ended; the leader knows the living alone. To ask
the file for each key would cost a submit more than anything else that is not HTTP; and each group that reaches the
leader is a batch, a commit, an entry to fold, and several wake-ups of four threads. So only so many groups are under
way, and whoever comes meanwhile leaves together when one of them is back: the more come, the larger groups are. Whoever
comes alone is passed on at once. It decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, TypeAlias

from muster.control.line import Line
from muster.model.event import Submit
from muster.ports import Journal
from muster.wire.link import Answer

UNDER_WAY_MAX: Final = 2
"""How many groups are with the leader: one is decided while another one is written."""

Gathered: TypeAlias = tuple[Submit, asyncio.Future[Answer | int]]


class Gathering:
    """Submits on their way from one follower to the leader: those that are `_gathered` leave next."""

    def __init__(self, line: Line, journal: Journal) -> None:
        self._line = line
        self._journal = journal
        self._under_way = 0
        self._gathered: list[Gathered] = []

    def submit(self, request: Submit) -> asyncio.Future[Answer | int]:
        """The leader's answer, or the job that its key has made before."""
        loop = asyncio.get_running_loop()
        if not self._gathered and self._under_way < UNDER_WAY_MAX:
            loop.call_soon(self._pass_on)
        waiting: asyncio.Future[Answer | int] = loop.create_future()
        self._gathered.append((request, waiting))
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
            self._under_way += 1
            fresh[-1][1].add_done_callback(self._note_back)
            self._line.post(fresh)

    def _note_back(self, _: asyncio.Future[Answer | int]) -> None:
        """The last of a group has its answer, or waits for none any more."""
        self._under_way -= 1
        if self._gathered:
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
