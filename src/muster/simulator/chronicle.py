"""The chronicle: what became of every job, told from facts alone. It folds entries of a journal, live or simulated, and
keeps of each job when it came, when it held its places and how it ended.

It holds no world and decides nothing: what it tells must follow from the facts by itself. An array, and an elastic
gang, is one life whose width changes: how many of its tasks hold places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from muster.model import fact
from muster.model.phase import TaskPhase, Why
from muster.model.spec import Spec
from muster.simulator.traces.record import Reading, Record, in_order
from muster.units import Resources
from muster.world.apply import unroll


class Life:
    """One job. `spans` are when any of it held places; `area_ms` is task-milliseconds in all, `most` tasks at once. Of
    what is `held` so much is for spares."""

    __slots__ = (
        *("area_ms", "cause", "ended", "held", "most", "number", "phase", "since", "spans", "spares", "spec"),
        "submit",
    )

    def __init__(self, number: int, spec: Spec, cause: str, submit: int) -> None:
        self.number, self.spec, self.cause, self.submit = number, spec, cause, submit
        self.spans: list[tuple[int, int]] = []
        self.area_ms = self.held = self.most = self.spares = 0
        self.since = self.ended = -1
        self.phase = ""

    @property
    def ask(self) -> Resources:
        """What each task of it asks for; of several groups, all that they ask for, as if it were one task."""
        return self.spec.whole[0]

    @property
    def gpus(self) -> int:
        """Whole devices that it held at once, at most."""
        return self.ask.gpus * self.most

    @property
    def held_ms(self) -> int:
        """How long any of it held places."""
        return sum(end - begin for begin, end in self.spans)

    @property
    def wait_ms(self) -> int:
        """How long nothing of it held places, of the time that it was there."""
        return self.ended - self.submit - self.held_ms

    def widen(self, at: int, tasks: int) -> None:
        """So many tasks more hold places from now on, or less."""
        if self.held == 0 and tasks > 0:
            self.spans.append((at, at))
        if self.held:
            self.area_ms += self.held * (at - self.since)
            self.spans[-1] = (self.spans[-1][0], at)
        self.held, self.since = self.held + tasks, at
        self.most = max(self.most, self.held)


class Chronicle:
    """All jobs of a journal, by number, as far as it was told, and how many whole devices they hold by now."""

    def __init__(self) -> None:
        self.lives: dict[int, Life] = {}
        self.gpus_held = 0

    def take(self, at: int, facts: Iterable[fact.Fact]) -> None:
        """Go on with the facts of the next entry."""
        for item in facts:
            if isinstance(item, fact.Accepted):
                self.lives[item.job] = Life(item.job, item.spec, item.cause, at)
            elif isinstance(item, fact.Placed):
                self._place(item, at)
            elif isinstance(item, (fact.TasksPlaced, fact.Grown)):
                self._widen(item.job, at, sum(item.counts if isinstance(item, fact.TasksPlaced) else item.tasks))
            elif isinstance(item, fact.Shrunk):
                self._widen(item.job, at, item.width + self._spares_of(item.job) - self._held_by(item.job))
            elif isinstance(item, (fact.SparesGiven, fact.SparesUsed, fact.SparesDropped)):
                self._spare(item, at)
            elif isinstance(item, fact.RanksLost):
                self._widen(item.job, at, -item.count)
            elif isinstance(item, fact.TasksEnded) and item.why is not Why.DEPENDENCY:  # those had no places yet
                self._widen(item.job, at, -item.total)
            elif isinstance(item, (fact.Requeued, fact.Ended)):
                self._leave(item, at)

    def _place(self, item: fact.Placed, at: int) -> None:
        for number, run in unroll(item, at):
            life = self.lives.get(number)
            is_whole = life is not None and bool(life.spec.needs.groups)
            tasks = 1 if is_whole else sum(lease.tasks for lease in run.leases)
            self._widen(number, at, tasks)
            if life is not None:
                life.spares = min(life.spec.spares, max(0, tasks - life.spec.gang))

    def _spare(self, item: fact.SparesGiven | fact.SparesUsed | fact.SparesDropped, at: int) -> None:
        life, is_used = self.lives.get(item.job), isinstance(item, fact.SparesUsed)
        tasks = item.tasks if isinstance(item, fact.SparesUsed) else sum(item.tasks)
        change = tasks if isinstance(item, fact.SparesGiven) else -tasks
        if life is not None:
            life.spares += change
        if not is_used:
            self._widen(item.job, at, change)

    def _leave(self, item: fact.Requeued | fact.Ended, at: int) -> None:
        if self._held_by(item.job):
            self._widen(item.job, at, -self._held_by(item.job))
        life = self.lives.get(item.job)
        if life is not None and isinstance(item, fact.Ended):
            life.ended, life.phase = at, TaskPhase(item.phase).name.lower()

    def _spares_of(self, number: int) -> int:
        life = self.lives.get(number)
        return 0 if life is None else life.spares

    def _held_by(self, number: int) -> int:
        life = self.lives.get(number)
        return 0 if life is None else life.held

    def _widen(self, number: int, at: int, tasks: int) -> None:
        """Somebody holds more, or less. Who came before the first entry that is still there is not known here."""
        life = self.lives.get(number)
        if life is not None:
            life.widen(at, tasks)
            self.gpus_held += tasks * life.ask.gpus


def read_history(chronicle: Chronicle, users: Mapping[int, str]) -> Reading:
    """The jobs that are over as records of a trace, the first submit at 0; who is not over is counted, and so is who is
    not among those whom history remembers, with their users. The run time is how long a job held places, with every
    try; an array is one record, as wide as it ever was."""
    over = [life for life in chronicle.lives.values() if life.ended >= 0]
    kept = [life for life in over if life.number in users]
    first = min((life.submit for life in kept), default=0)
    left = {"is not over": len(chronicle.lives) - len(over), "is forgotten": len(over) - len(kept)}
    records = (_record(life, first, users[life.number]) for life in kept)
    return in_order(records, {reason: count for reason, count in left.items() if count}, {})


def _record(life: Life, first: int, user: str) -> Record:
    spec, tasks = life.spec, max(1, life.most)
    return Record(
        id=f"{life.number:08}",
        submit_ms=life.submit - first,
        duration_ms=life.held_ms,
        gpus=life.ask.gpus * tasks,
        gpu_milli=life.ask.gpu_milli * tasks,
        cpu_milli=life.ask.cpu_milli * tasks,
        memory_bytes=life.ask.memory_bytes * tasks,
        tenant=spec.tenant,
        user=user,
        name=spec.name,
        priority=spec.priority,
        tier=spec.tier,
        deadline_ms=None if spec.due_at is None else max(0, spec.due_at - first),
        limit_ms=spec.limit_ms,
        models=spec.needs.flavors,
        status=life.phase,
        wait_ms=life.wait_ms,
    )
