"""The counsel: advisers over one follower. They learn from every entry as it is folded, and what they have to say goes
to the leader like any other request; it is journaled, and the kernel works without it.

An adviser that breaks is told of and heard no longer: nobody else is harmed, and what it said last is over in time.
Whoever is here when the counsel begins is met as if it had just come: what an adviser knows is not kept, for it is soon
learned again, or from history. The counsel decides nothing, and knows no adviser by name.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import Final

from muster.control.follower import Follower
from muster.model import fact
from muster.model.access import sign
from muster.model.errors import MusterError
from muster.model.event import Advise
from muster.model.phase import TERMINAL, Running
from muster.model.reason import Refused
from muster.ports import Adviser
from muster.world.world import World

LOOK_S: Final = 10.0
"""How often advisers are asked at most: what they say is journaled."""

_log = logging.getLogger(__name__)


class Counsel:
    """Lets advisers hear what a follower folds, and asks them from time to time."""

    def __init__(self, follower: Follower, advisers: Sequence[Adviser], look_s: float = LOOK_S) -> None:
        self._follower = follower
        self._advisers = list(advisers)
        self._look_s = look_s
        for facts in _those_who_are_here(follower):
            self._hear(follower.world, facts)
        follower.hearers.append(self._hear)

    async def run(self) -> None:
        """Advise, for ever."""
        while True:
            await asyncio.sleep(self._look_s)
            await self.look()

    async def look(self) -> None:
        """Ask every adviser, and pass on what it says; without a leader nobody is asked."""
        follower = self._follower
        for adviser in list(self._advisers) if follower.is_led else ():
            for word in self._ask(adviser, max(follower.world.now, follower.now_ms())):
                await self._pass_on(word)

    def _ask(self, adviser: Adviser, now: int) -> Sequence[Advise]:
        try:
            return adviser.advise(self._follower.world, now)
        except Exception:  # noqa: BLE001 - of whatever kind: people are served all the same
            self._dismiss(adviser)
            return ()

    async def _pass_on(self, word: Advise) -> None:
        try:
            answer = await self._follower.ask(word)
        except MusterError as error:  # whether it was taken is not known; the next word is newer
            _log.warning("advice on %s did not get through: %s", word.kind, error)
            return
        if isinstance(answer.reply, Refused):
            _log.warning("advice on %s was not taken: %s", word.kind, answer.reply.reason)

    def _hear(self, world: World, facts: Sequence[fact.Fact]) -> None:
        for adviser in list(self._advisers):
            try:
                adviser.observe(world, facts)
            except Exception:  # noqa: BLE001 - of whatever kind: entries are folded all the same
                self._dismiss(adviser)

    def _dismiss(self, adviser: Adviser) -> None:
        self._advisers.remove(adviser)
        _log.critical("%s broke and is heard no longer", type(adviser).__name__, exc_info=True)


def _those_who_are_here(follower: Follower) -> Iterator[list[fact.Fact]]:
    """Facts that bring an adviser to where the world is, as far as jobs go that are not over: each as if it had come in
    an entry of its own, signed by its owner if it runs."""
    for job in follower.world.jobs.values():
        if isinstance(job.phase, Running):
            cause = sign(follower.find_owner(job.id))
            yield [fact.Accepted(job.id, job.spec, cause=cause), fact.Began(job.id, 0, job.spec.tasks)]
        elif not isinstance(job.phase, TERMINAL):
            yield [fact.Accepted(job.id, job.spec)]
