"""The auditor's books of idle time: why devices were idle, asked of each line that waits, and added up entry by entry.

It takes from the world who waits in which line, how a line stands and how much is idle, each of which is a law of its
own, and states the rule of what that means a second time. It shares nothing with the account that it is compared with.
"""

from __future__ import annotations

from typing import Final

from muster.model.spec import Spec, has_devices
from muster.world.goodput import IDLE
from muster.world.laws.law import require
from muster.world.line import Line
from muster.world.quota import Standing
from muster.world.world import World

_LAW: Final = "devices are idle for want of quota or of room, if somebody waits who could use them"
BLOCKED, FRAGMENTED = range(2)


class IdleBooks:
    """By flavor, for how long somebody waited who was over its quota, and somebody within it."""

    def __init__(self) -> None:
        self._at = 0
        self._wants: dict[str, tuple[int, int]] = {}
        self._times: dict[str, list[int]] = {}

    def look(self, world: World, now: int) -> None:
        """Whom devices are idle for, before an entry changes it; whether there is one is not known yet."""
        world.budgets.now = now
        waiting = [line for shape in world.queue.shapes.values() for line in shape.lines.values()]
        specs = [(line, world.jobs[line.head()].spec) for line in waiting]
        self._wants, known = {}, dict[Line, bool]()
        for flavor, stock in world.goodput.stocks.items():
            lines = [line for line, spec in specs if _could_use(world, spec, flavor)]
            if lines and stock.levels[IDLE]:
                is_over = all(_is_over(world, line, known) for line in lines)
                self._wants[flavor] = (BLOCKED if is_over else FRAGMENTED, stock.levels[IDLE])

    def observe(self, world: World) -> None:
        """An entry was made: all was as it looked until then. Compare with the account."""
        for flavor, (why, level) in self._wants.items():
            self._times.setdefault(flavor, [0, 0])[why] += level * (world.now - self._at)
        self._at = world.now
        for flavor, stock in world.goodput.stocks.items():
            kept, booked = [stock.blocked, stock.fragmented], self._times.get(flavor, [0, 0])
            require(kept == booked, _LAW, f"{flavor}: kept {kept}, booked {booked}")


def _is_over(world: World, line: Line, known: dict[Line, bool]) -> bool:
    """Whether a line is over its quota, asked once for all flavors."""
    found = known.get(line)
    if found is None:
        found = known[line] = world.standing_of(line) is Standing.OVER
    return found


def _could_use(world: World, spec: Spec, flavor: str) -> bool:
    """Whether a job could use devices of a flavor that are idle, and so in no booking."""
    suits = not spec.needs.flavors or flavor in spec.needs.flavors
    return suits and has_devices(spec) and spec.needs.booking not in world.bookings
