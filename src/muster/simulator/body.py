"""The body: it drives a kernel in virtual time, as `muster.control` does in real time. The kernel cannot tell which.

Events gather in an inbox; all that arrive at one instant are one batch. The facts are encoded, inspected and, if asked
for, recorded; only then are instructions carried out. Randomness and faults live elsewhere: nothing here is left to
chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from muster.kernel.kernel import Kernel, Outcome
from muster.model.errors import InvariantError
from muster.model.event import Event
from muster.simulator.agenda import Agenda
from muster.simulator.engine import SimulatedEngine
from muster.simulator.inspector import Inspector
from muster.wire.bundle import Bundle, chain_of
from muster.wire.codec import encode_entry, encode_inputs
from muster.world.snapshot import digest
from muster.world.world import World

Observer: TypeAlias = Callable[[Outcome, Sequence[Event]], None]


class Body:
    """One kernel, one agenda, one engine; `inspect_every` is how many entries lie between two full inspections."""

    def __init__(
        self, agenda: Agenda, engine: SimulatedEngine, *, inspect_every: int = 1000, record: bool = False
    ) -> None:
        self.agenda = agenda
        self.engine = engine
        self.world = World()
        self.kernel = Kernel(self.world)
        self.inspector = Inspector(self.kernel, engine, inspect_every)
        self.observers: list[Observer] = []
        self.batches = 0
        self.events = 0
        self._record = record
        self._inputs: list[bytes] = []
        self._entries: list[bytes] = []
        self._inbox: list[Event] = []
        self._wake_at: int | None = None
        engine.open(self._inbox.extend)

    def take(self, event: Event) -> None:
        """An event from outside the engine: a submit, a cancel, a quota."""
        self._inbox.append(event)

    def ask(self, event: Event) -> Outcome:
        """Handle one event now, with whatever else is waiting, and give back what came of it; its answer is last."""
        self._inbox.append(event)
        return self._turn(self.agenda.now)

    def run_until(self, horizon: int) -> None:
        """Go on until `horizon`, instant by instant."""
        while (instant := self._find_next()) is not None and instant <= horizon:
            self.agenda.jump(instant)
            if self._inbox or (self._wake_at is not None and self._wake_at <= instant):
                self._turn(instant)
        self.agenda.jump(horizon)

    def bundle(self) -> Bundle:
        """The recorded run."""
        return Bundle(b"", self._inputs, self._entries, chain_of(self._entries), digest(self.world))

    def _find_next(self) -> int | None:
        if self._inbox:
            return self.agenda.now
        instants = [at for at in (self.agenda.find_next(), self._wake_at) if at is not None]
        return max(min(instants), self.agenda.now) if instants else None

    def _turn(self, now: int) -> Outcome:
        batch = self._inbox.copy()
        self._inbox.clear()
        outcome = self.inspector.handle(batch, now)
        self.batches += 1
        self.events += len(batch)
        if outcome.facts:
            self._keep(outcome, batch)
        elif outcome.wake_at is not None and outcome.wake_at <= now:
            raise InvariantError("every wake-up brings something about", f"at {now}, after entry {outcome.seq}")
        self._wake_at = outcome.wake_at
        for observer in self.observers:
            observer(outcome, batch)
        self.engine.carry_out(outcome.instructions)
        return outcome

    def _keep(self, outcome: Outcome, batch: list[Event]) -> None:
        data = encode_entry(outcome.seq, outcome.at, outcome.facts)
        self.inspector.observe(outcome, data)
        if self._record:
            self._entries.append(data)
            self._inputs.append(encode_inputs(outcome.seq, outcome.at, batch))
