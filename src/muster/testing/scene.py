"""A scene: a small cluster in virtual time, told like a story, with every law watched from the first event on.

    Scene().cluster(nodes=2, gpus=8).tenant("lab", gpus=8) \
        .job("train", tenant="lab", gpus=8, minutes=30).job("next", tenant="lab", gpus=8).run() \
        .expect(running="train", waiting="next", reason={"next": Code.OVER_QUOTA})

Names stand for numbers: jobs, tenants and nodes are called by name. An expectation that fails shows all that happened.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muster.kernel.kernel import Outcome
from muster.model.event import (
    BarNode,
    Cancel,
    Event,
    HoldJob,
    MigrateJob,
    ReleaseJob,
    RequeueJob,
    SetTenant,
    Submit,
    UnbarNode,
)
from muster.model.fact import Ended
from muster.model.instruction import Start
from muster.model.job import BarKind, Job
from muster.model.node import Place, Traits
from muster.model.phase import Spread, TaskPhase
from muster.model.reason import Code, Refused
from muster.model.spec import Spec
from muster.model.tenant import GPU, GPU_ONE, ROOT, Line, Tenant, gpu_amount, limits
from muster.scheduler.reasons import explain
from muster.simulator.agenda import Agenda
from muster.simulator.body import Body
from muster.simulator.engine import Fate, Network, SimulatedEngine
from muster.units import HOUR_MS, MINUTE_MS, SECOND_MS, Limit, Resources, show_duration

_WORDS = ("waiting", "starting", "running", "stopping", "succeeded", "failed", "cancelled", "blocked")
_WORD_OF = {"Queued": "waiting"}
OPERATOR = "operator"


class Scene:
    """A story in virtual time. Every step returns the scene, so that steps can be chained."""

    def __init__(self, seed: int = 0, network: Network | None = None, inspect_every: int = 1) -> None:
        dice = random.Random(f"{seed}/scene")  # noqa: S311 - a story wants seeded dice
        self._agenda = Agenda()
        self._engine = SimulatedEngine(self._agenda, self._fate, dice, network)
        self._plans: dict[str, tuple[int, Sequence[int], Limit]] = {}
        self._numbers: dict[str, int] = {}
        self._refused: dict[str, Code] = {}
        self._ends: dict[int, str] = {}
        self._story: list[str] = []
        self.body = Body(self._agenda, self._engine, inspect_every=inspect_every)
        self.body.observers.append(self._tell)

    # -- what there is -------------------------------------------------------------------------------------------

    def cluster(
        self, nodes: int = 1, gpus: int = 8, cpus: int = 64, memory_gib: int = 512, name: str = "", ids: bool = False
    ) -> Scene:
        """Nodes `node-0`, `node-1` and so on join, after those of that cluster; with `ids` they name their devices
        `node-0.gpu-0` and so on."""
        traits, fleet = Traits(place=Place(cluster=name)), self.body.world.fleet
        have = sum(each.place.cluster == name for each in fleet.traits)
        for number in range(have, have + nodes):
            node, capacity = f"node-{number}", Resources(gpus, cpus * 1000, memory_gib * 2**30)
            devices = tuple(f"{node}.gpu-{device}" for device in range(gpus)) if ids else ()
            self._engine.add_node(node, capacity, traits, devices)
        return self.advance(seconds=1)

    def node(self, name: str, capacity: Resources, traits: Traits, devices: tuple[str, ...] = ()) -> str:
        """A machine of its own kind joins; gives back its address."""
        return self._engine.add_node(name, capacity, traits, devices)

    def tenant(self, name: str, gpus: int | None = None, cpus: int | None = None) -> Scene:
        """A tenant may hold this much."""
        lines = limits(gpus, None if cpus is None else cpus * 1000)
        self.body.ask(SetTenant(name, Tenant(lines=lines), cause="admin"))
        return self

    def share(
        self, name: str, gpus: int, *, parent: str = ROOT, limit: int | None = None, lend: int | None = None
    ) -> Scene:
        """A tenant owns so many GPUs, may hold so many at most, and lends so many of those it does not use."""
        most, lent = (None if number is None else gpu_amount(number) for number in (limit, lend))
        line = Line(GPU, guaranteed=gpu_amount(gpus), limit=most, lend=lent)
        self.body.ask(SetTenant(name, Tenant(parent, lines=(line,)), cause="admin"))
        return self

    def job(self, name: str, gpus: int = 1, minutes: int = 60, codes: Sequence[int] = (0,), **fields: Any) -> Scene:
        """Submit a job that runs for `minutes`; its tries exit with `codes`, the last one for ever after. With
        `stop_ms` it takes so long to stop, if its grace is not over before."""
        key = fields.pop("key", "")
        ask = fields.pop("ask", Resources(gpus, 1000 * max(1, gpus), 2**30 * max(1, gpus)))
        self._plans[name] = (minutes * MINUTE_MS, codes, fields.pop("stop_ms", None))
        answer = self.body.ask(Submit(Spec(("work",), name, ask=ask, **fields), key, cause=name)).answers[-1]
        if isinstance(answer, Refused):
            self._refused[name] = answer.reason.code
        else:
            self._numbers[name] = answer.job
        return self

    def cancel(self, name: str) -> Scene:
        """The owner gives up."""
        self.body.ask(Cancel(self.number(name), cause="its owner"))
        return self

    def hold(self, name: str) -> Scene:
        """The owner keeps a job from starting."""
        self.body.ask(HoldJob(self.number(name), cause="its owner"))
        return self

    def release(self, name: str) -> Scene:
        """The owner lets it start again."""
        self.body.ask(ReleaseJob(self.number(name), cause="its owner"))
        return self

    def requeue(self, name: str) -> Scene:
        """The owner sends a job back to the queue."""
        self.body.ask(RequeueJob(self.number(name), cause="its owner"))
        return self

    def migrate(self, name: str, *off: str) -> Scene:
        """The owner wants a job off some nodes, or off those that it has."""
        self.body.ask(MigrateJob(self.number(name), off=off, cause="its owner"))
        return self

    def cordon(self, node: str, minutes: int = 0) -> Scene:
        """The operator keeps new work off a node: for so long, or until it is uncordoned."""
        until = self._agenda.now + minutes * MINUTE_MS if minutes else None
        self.body.ask(BarNode(node, BarKind.CORDON, OPERATOR, until=until, cause=OPERATOR))
        return self

    def drain(self, node: str, *, now: bool = False) -> Scene:
        """The operator empties a node: what runs there finishes, or is stopped now and waits again."""
        self.body.ask(BarNode(node, BarKind.DRAIN, OPERATOR, lets_finish=not now, cause=OPERATOR))
        return self

    def uncordon(self, node: str) -> Scene:
        """The operator lifts its bars."""
        for kind in BarKind:
            self.body.ask(UnbarNode(node, kind, OPERATOR, cause=OPERATOR))
        return self

    def send(self, event: Event) -> Scene:
        """Say something to the kernel that no engine would say."""
        self.body.ask(event)
        return self

    # -- what goes wrong -----------------------------------------------------------------------------------------

    def fail(self, node: str) -> Scene:
        """A node dies, and everything on it; nobody knows until it is silent for too long."""
        self._engine.crash(node)
        return self

    def cut_off(self, node: str) -> Scene:
        """A node cannot be reached; what runs there goes on."""
        self._engine.cut_off(node)
        return self

    def fence(self, node: str) -> Scene:
        """Its authority vouches that nothing runs there any more."""
        self._engine.fence(node)
        return self

    def bring_back(self, node: str) -> Scene:
        """A node is back and says what it still holds."""
        self._engine.bring_back(node)
        return self

    def lose_device(self, node: str, device: int) -> Scene:
        """A device falls off the bus; its node says so, and what runs on the others goes on."""
        self._engine.lose_device(node, device)
        return self

    def rename_device(self, node: str, device: int, alias: str) -> Scene:
        """A node calls a device by another id."""
        self._engine.rename_device(node, device, alias)
        return self

    def mend_devices(self, node: str, *ids: str) -> Scene:
        """All devices of a node are there again, under these ids."""
        self._engine.mend_devices(node, ids)
        return self

    # -- time ----------------------------------------------------------------------------------------------------

    def run(self) -> Scene:
        """Long enough for what can start to be up, and for what was told to stop to be over."""
        return self.advance(seconds=10)

    def advance(self, hours: int = 0, minutes: int = 0, seconds: int = 0) -> Scene:
        """Let time pass."""
        span = hours * HOUR_MS + minutes * MINUTE_MS + seconds * SECOND_MS
        self.body.run_until(self._agenda.now + span)
        return self

    # -- what is expected ----------------------------------------------------------------------------------------

    def expect(
        self,
        *,
        reason: Mapping[str, Code] | None = None,
        refused: Mapping[str, Code] | None = None,
        on: Mapping[str, str | Iterable[str]] | None = None,
        held: Mapping[str, int] | None = None,
        tasks: Mapping[str, Mapping[str, int]] | None = None,
        **phases: str | Iterable[str],
    ) -> Scene:
        """Compare: jobs by phase (`running="a"`), reasons for waiting, refusals, nodes, GPUs held, an array's tasks."""
        for word, names in phases.items():
            if word not in _WORDS:
                raise TypeError(f"no phase is called {word!r}; there are {', '.join(_WORDS)}")
            self._require(f"{word}", sorted(_names(names)), sorted(self._jobs_in(word)))
        for name, code in (reason or {}).items():
            self._require(f"reason of {name}", code, self._reason(name))
        for name, code in (refused or {}).items():
            self._require(f"refusal of {name}", code, self._refused.get(name))
        for name, nodes in (on or {}).items():
            self._require(f"nodes of {name}", sorted(_names(nodes)), self.nodes_of(name))
        for tenant, gpus in (held or {}).items():
            self._require(f"GPUs held by {tenant}", gpus, self.body.world.ledger.held(tenant, GPU) // GPU_ONE)
        for name, counts in (tasks or {}).items():
            self._require(f"tasks of {name}", dict(counts), self._tasks(name))
        return self

    def number(self, name: str) -> int:
        """The number of a job."""
        return self._numbers[name]

    def find_job(self, name: str) -> Job | None:
        """The record of a job, while it is in the world."""
        return self.body.world.jobs.get(self._numbers[name])

    def nodes_of(self, name: str) -> list[str]:
        """The nodes that a job holds part of."""
        fleet, number = self.body.world.fleet, self._numbers[name]
        return [node for slot, node in enumerate(fleet.shown()) if number in fleet.holders.get(slot, {})]

    def story(self) -> str:
        """All that happened, one line per fact."""
        return "\n".join(self._story)

    # -- behind the scene ----------------------------------------------------------------------------------------

    def _fate(self, start: Start, first: int) -> Fate:  # noqa: ARG002 - every cohort of a try has the same fate
        run_ms, codes, stop_ms = self._plans[start.spec.name]
        return Fate(SECOND_MS, run_ms, codes[min(start.epoch, len(codes)) - 1], stop_ms)

    def _jobs_in(self, word: str) -> list[str]:
        return [name for name in self._numbers if self._word(name) == word]

    def _word(self, name: str) -> str:
        job = self.find_job(name)
        if job is None:
            return self._ends[self._numbers[name]]
        if isinstance(job.phase, Spread):
            counts = self.body.world.arrays[job.id].counts
            first = next(phase for phase in reversed(TaskPhase) if counts[phase] and phase <= TaskPhase.STOPPING)
            return "waiting" if first == TaskPhase.QUEUED else first.name.lower()
        word = type(job.phase).__name__
        return _WORD_OF.get(word, word.lower())

    def _reason(self, name: str) -> Code | None:
        job = self.find_job(name)
        found = None if job is None else explain(self.body.world, job)
        return None if found is None else found.reason.code

    def _tasks(self, name: str) -> dict[str, int]:
        counts = self.body.world.arrays[self._numbers[name]].counts
        return {word: count for word, count in zip(_WORDS, counts, strict=True) if count}

    def _require(self, what: str, wanted: object, found: object) -> None:
        if wanted != found:
            now = show_duration(self._agenda.now)
            raise AssertionError(f"{what}: expected {wanted}, found {found} at {now}\nthe story:\n{self.story()}")

    def _tell(self, outcome: Outcome, batch: Sequence[Event]) -> None:
        at = show_duration(outcome.at)
        self._ends |= {item.job: item.phase.name.lower() for item in outcome.facts if isinstance(item, Ended)}
        self._story += [f"{at:>10}  > {item}"[:200] for item in batch]
        self._story += [f"{at:>10}  {item}"[:200] for item in outcome.facts]


def _names(names: str | Iterable[str]) -> list[str]:
    if isinstance(names, str):
        return [names] if names else []
    return list(names)
