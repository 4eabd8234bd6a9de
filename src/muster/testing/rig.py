"""A rig: one kernel, driven by hand and audited. It is for tests that feed events and look at facts; `Scene` is for
tests that tell stories.

It plays no engine: whoever drives it says what started and what exited.
"""

from __future__ import annotations

from typing import Any

from muster.kernel.kernel import Kernel, Outcome
from muster.lifecycle.gang import TABLE
from muster.model import event
from muster.model.job import Job
from muster.model.phase import ACTIVE, Run
from muster.model.reason import Done, Refused
from muster.model.spec import Spec
from muster.model.tenant import ROOT, Line, Tenant, limits
from muster.units import Resources
from muster.world.audit.auditor import Auditor
from muster.world.world import World


class Rig:
    """Feeds events one batch at a time; `facts` and `entries` keep all that was decided."""

    def __init__(self, nodes: int = 0, gpus: int = 8, cpu_milli: int = 64_000, memory_bytes: int = 2**38) -> None:
        self.kernel = Kernel(World())
        self.auditor = Auditor(TABLE)
        self.outcomes: list[Outcome] = []
        self.now = 0
        for number in range(nodes):
            self.feed(event.NodeSeen(f"node-{number}", Resources(gpus, cpu_milli, memory_bytes)))

    @property
    def world(self) -> World:
        """The world behind the door."""
        return self.kernel.world

    def feed(self, *events: event.Event, after_ms: int = 1) -> Outcome:
        """Handle one batch a moment later, audited."""
        self.now += after_ms
        outcome = self.kernel.handle(events, self.now)
        if outcome.facts:
            self.auditor.observe(self.world, outcome.facts)
        self.auditor.marks.check_starts(outcome.facts, outcome.instructions)
        self.outcomes.append(outcome)
        return outcome

    def answer(self, item: event.Event) -> Done | Refused:
        """Handle one event and give back its answer."""
        return self.feed(item).answers[0]

    def tenant(self, name: str, *lines: Line, parent: str = ROOT, weight: int = 1, **most: int) -> None:
        """Give a tenant a quota that is expected to be in order: lines, or plain limits by kind."""
        answer = self.answer(event.SetTenant(name, Tenant(parent, weight, (*lines, *limits(**most)))))
        assert isinstance(answer, Done), answer  # noqa: S101 - a test that begins wrong says so at once

    def submit(self, gpus: int = 1, **fields: Any) -> int:
        """Submit a job that is expected to be accepted, and give back its number."""
        answer = self.answer(event.Submit(spec(gpus, **fields)))
        assert isinstance(answer, Done), answer  # noqa: S101 - a test that begins wrong says so at once
        return answer.job

    def job(self, number: int) -> Job:
        """A job's record."""
        return self.world.jobs[number]

    def run(self, number: int) -> Run:
        """The run of a job that holds a place."""
        phase = self.world.jobs[number].phase
        assert isinstance(phase, ACTIVE), phase  # noqa: S101 - a test that begins wrong says so at once
        return phase.run

    def phase(self, number: int) -> str:
        """The name of a job's phase."""
        return type(self.world.jobs[number].phase).__name__

    def start(self, number: int, first: int = 0, count: int = 0) -> Outcome:
        """Its tasks are up."""
        return self.feed(event.Started(number, self._epoch(number, first), first, count or self.job(number).spec.tasks))

    def exit(self, number: int, code: int = 0, first: int = 0, count: int = 0) -> Outcome:
        """Its tasks exit."""
        tasks = count or self.job(number).spec.tasks
        return self.feed(event.Exited(number, self._epoch(number, first), code, first, tasks))

    def _epoch(self, number: int, first: int) -> int:
        """The epoch of a job's run, or of a task of an array."""
        tasks = self.world.arrays.get(number)
        return self.job(number).epoch if tasks is None else tasks.epoch[first]


def spec(gpus: int = 1, **fields: Any) -> Spec:
    """A spec that is in order, with `fields` changed."""
    ask = fields.pop("ask", Resources(gpus, 1000, 2**30))
    return Spec(command=fields.pop("command", ("true",)), ask=ask, **fields)
