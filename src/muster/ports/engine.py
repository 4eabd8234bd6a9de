"""Engine: it observes nodes and tasks, and carries out instructions. It decides nothing.

The contract, checked for every engine by `muster.testing.engine_conformance`:

- After `open` it reports a `NodeSeen` for each of its nodes with all that the node still holds, and again after every
  reconnect. A body may call `carry_out` before that; nothing is lost.
- `carry_out` returns at once. Every instruction is idempotent: the same `Start` twice starts once, also across a
  restart of the engine or of the body.
- Each started task is reported by `Started` and each ended one by `Exited`, at least once, until `Forget`. After
  `Forget` nothing is said of those tasks again. One event may be of many tasks of a run, in a row or scattered; whoever
  knows of several at once says them in one.
- `Stop` is answered by `Exited`, also for tasks that had already ended. A `Stop` for tasks never seen fences them: a
  late `Start` of that epoch starts nothing and is answered by `Exited`.
- A command that cannot be started is an `Exited` with code 127 (not found) or 126, and a `note` that says why.
- What is reported of one node arrives in the order in which it happened: a `NodeSeen` never overtakes what was said of
  that node before. Reports may be lost, late or doubled, but not out of line.
- `report` may be called from any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from muster.model.event import Event
from muster.model.instruction import Instruction

Report: TypeAlias = Callable[[Sequence[Event]], None]


class Engine(Protocol):
    """One way of running tasks."""

    def open(self, report: Report) -> None:
        """Begin to observe; events go to `report`."""
        ...

    def carry_out(self, instructions: Sequence[Instruction]) -> None:
        """Take instructions, in order, without waiting for their effect."""
        ...

    def close(self) -> None:
        """Stop observing. What runs goes on running."""
        ...
