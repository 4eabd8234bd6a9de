"""Gathering: submits that come close together are looked up in the journal together, and passed on together.

A key whose job is in the journal makes no other, however long ago it ended; the leader knows the living alone. To ask
the file for each key would cost a submit more than anything else that is not HTTP; and each group that reaches the
leader is a batch, a commit, an entry to fold, and several wake-ups of four threads. Whoever comes alone is passed on at
once, so nobody waits on a server that has nothing to do. It decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, TypeAlias

from muster.control.line import Line
from muster.model.event import Submit
from muster.ports import Journal
from muster.wire.link import Answer

GATHER_S: Final = 0.001
"""How long after one group the next may leave: long against what a group costs, and short, since whoever is held up
here asks nothing else meanwhile. The loop counts in whole milliseconds."""

Gathered: TypeAlias = tuple[Submit, asyncio.Future[Answer | int]]


class Gathering:
    """Submits on their way from one follower to the leader."""

    def __init__(self, line: Line, journal: Journal) -> None:
        self._line = line
        self._journal = journal
        self._left_at = float("-inf")
        self._gathered: list[Gathered] = []

    def submit(self, request: Submit) -> asyncio.Future[Answer | int]:
        """The leader's answer, or the job that its key has made before."""
        loop = asyncio.get_running_loop()
        if not self._gathered:
            loop.call_at(max(loop.time(), self._left_at + GATHER_S), self._pass_on)
        waiting: asyncio.Future[Answer | int] = loop.create_future()
        self._gathered.append((request, waiting))
        return waiting

    def _pass_on(self) -> None:
        gathered = [each for each in self._gathered if not each[1].done()]
        self._gathered, self._left_at = [], asyncio.get_running_loop().time()
        try:
            known = self._find_known(gathered)
        except Exception as error:  # noqa: BLE001 - of whatever kind: whoever waits must hear of it
            for _, waiting in gathered:
                waiting.set_exception(error)
            return
        fresh = [each for each in gathered if not _give(each, known)] if known else gathered
        if fresh:
            self._line.post(fresh)

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
