"""Work that a restored journal does not know: it is ended and forgotten, or said to be left."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from muster.app.rewinding import LOOKS_MAX, end_unknown
from muster.model.event import Exited, Held, NodeSeen
from muster.model.instruction import Forget, Instruction, Stop
from muster.ports.engine import Report
from muster.units import Resources
from muster.world.world import World


class Holding:
    """An engine that holds something. A `stubborn` one tells of no end, a `forgetful` one hears no `Forget`."""

    def __init__(self, *held: Held, stubborn: bool = False, forgetful: bool = False) -> None:
        self.held = {(each.job, each.epoch, each.first + task) for each in held for task in range(each.count)}
        self.stubborn, self.forgetful, self.looks = stubborn, forgetful, 0

    def open(self, report: Report) -> None:
        self.looks += 1
        self._report = report
        held = tuple(Held(job, epoch, task, 1) for job, epoch, task in sorted(self.held))
        report([NodeSeen("here", Resources(0, 1000), held)])

    def carry_out(self, instructions: Sequence[Instruction]) -> None:
        for item in instructions:
            if isinstance(item, Stop) and not self.stubborn:
                assert item.grace_ms == 0
                self._report([Exited(item.job, item.epoch, 137, item.first, item.count)])
            elif isinstance(item, Forget) and not self.forgetful:
                self.held.discard((item.job, item.epoch, item.first))

    def close(self) -> None:
        pass


def test_what_nobody_wants_is_ended_and_forgotten_and_looked_for_again() -> None:
    engine = Holding(Held(7, 1, 0, 3), Held(9, 2, 0, 1))
    assert end_unknown(World(), engine) == (4, True)
    assert (engine.held, engine.looks) == (set(), 2)


@pytest.mark.parametrize(("fault", "looks"), [("stubborn", 1), ("forgetful", LOOKS_MAX)])
def test_what_does_not_go_is_said_to_be_left(fault: str, looks: int) -> None:
    engine = Holding(Held(7, 1, 0, 3), **{fault: True})
    assert end_unknown(World(), engine, patience_s=0) == (3, False)
    assert engine.looks == looks


def test_an_engine_without_work_is_looked_at_once() -> None:
    engine = Holding()
    assert end_unknown(World(), engine) == (0, True)
    assert engine.looks == 1
