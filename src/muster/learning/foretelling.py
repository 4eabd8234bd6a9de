"""The adviser on run times: for how long what runs will run, from what jobs like it did, as the advice `runtime`.

It follows jobs from when they are up until they are over, and says of those whose owners did not say it themselves when
half of their like would be over, given how far they got. Of whom nobody like it has ended it says nothing: then limits
stand, as they would without it. It goes by entries that were written, and never sees an end before it happened.

It is cheap by its limits. So many jobs are met in one entry, so many are followed at once, so many classes are
remembered, the oldest go first. It speaks at most every ten seconds, the later the more it has to say, and only if a
figure changed enough. If somebody else advises on run times, it is silent. Whoever restarts it hands it what history
remembers. Arrays are not for it: the ends of their tasks are in no calendar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from muster.learning.runtimes import QUANTILES, RunTimes, Traits, hour_of
from muster.model import fact
from muster.model.access import submitter_of
from muster.model.advice import RUNTIME, Advice
from muster.model.event import Advise
from muster.model.history import Remembered
from muster.model.job import Job
from muster.model.phase import Running, Starting, TaskPhase, Why
from muster.model.spec import Spec
from muster.units import HOUR_MS, MINUTE_MS, SECOND_MS
from muster.wire.evidence import KINS
from muster.wire.history import decode_ending
from muster.world.world import World

LEAST_LIKES: Final = 3
"""Fewer of an owner's jobs than this say nothing of the next one."""
CHANGE: Final = 0.2
"""What part of a figure is not worth a word."""
PAUSE_MS: Final = 10 * SECOND_MS
"""How long it says nothing after it spoke."""
ROW_PAUSE_MS: Final = 10
"""How much longer for each job that it spoke of: a hundred of them in a second are the most."""
REFRESH_MS: Final = 30 * MINUTE_MS
"""How often everybody's figure is computed anew, since classes learn all the time."""
STANDS_MS: Final = HOUR_MS
"""For how long a word stands, if none comes after it; it is said again in good time."""
RECKONED_MAX: Final = 500
"""How many figures are computed at one look: the others wait for the next one."""
MET_MAX: Final = 16
"""How many jobs of one entry are met: of thousands that begin at once, these speak for all."""
FOLLOWED_MAX: Final = 10_000
CLASSES_MAX: Final = 50_000
"""More than the jobs that are followed can be of."""
USERS_MAX: Final = 100_000
REMEMBERED_MAX: Final = 2000
"""How many jobs of history are learned from at the beginning."""
_OWN: Final = KINS.index("owner")
_MIDDLE: Final = QUANTILES.index(0.5)


class _Row(NamedTuple):
    """What is said of a job: its figure, the range that should hold four times in five, and from what they come."""

    run_ms: int
    least_ms: int
    most_ms: int
    likes: int
    kin: int


class _Up(NamedTuple):
    """Since when a job is up, if it is, and for how long it was before."""

    since: int | None
    before_ms: int

    def ran_ms(self, now: int) -> int:
        """For how long it was up by now, all in all."""
        return self.before_ms + (0 if self.since is None else now - self.since)


class RuntimeAdviser:
    """An Adviser: says for how long jobs run that are up. `words` and `rows` count what it sent."""

    def __init__(self, remembered: Iterable[Remembered] = ()) -> None:
        self.learned = RunTimes(CLASSES_MAX)
        self.words = self.rows = 0
        self._users: dict[int, str] = {}
        self._followed: dict[int, _Up] = {}
        self._found: dict[int, _Row] = {}
        self._said: dict[int, _Row] = {}
        self._met = self._speaks_at = self._renews_at = self._refreshed_at = 0
        for each in sorted(remembered, key=lambda each: (each.finished.ended_at, each.finished.job)):
            self._recall(each)

    def observe(self, world: World, facts: Sequence[fact.Fact]) -> None:
        """Learn from an entry that the world holds already."""
        self._met = 0
        for item in facts:
            hear = _HEARS.get(type(item))
            if hear is not None:
                hear(self, world, item)

    def advise(self, world: World, now: int) -> Sequence[Advise]:
        """For how long those run who are up, if it is news, and if nobody else says so."""
        known = world.advice.get(RUNTIME)
        is_ours = known is None or "kin" in known.columns
        self.learned.settle(now)
        self._reckon(world, now)
        if not is_ours or now < self._speaks_at or not self._is_news(now):
            return ()
        self._said = dict(self._found)
        self._speaks_at, self._renews_at = now + PAUSE_MS + ROW_PAUSE_MS * len(self._said), now + STANDS_MS // 2
        self.words, self.rows = self.words + 1, self.rows + len(self._said)
        version = 1 if known is None else known.version + 1
        return (Advise(RUNTIME, Advice(version, now + STANDS_MS, _columns(self._said)), cause="adviser on run times"),)

    # -- learning

    def _accepted(self, world: World, item: fact.Accepted) -> None:  # noqa: ARG002 - one signature for the table
        user = submitter_of(item.cause)
        if user and not item.spec.array and len(self._users) < USERS_MAX:
            self._users[item.job] = user

    def _began(self, world: World, item: fact.Began) -> None:
        """It is up, or was within this entry; a gang that still lacks ranks is not."""
        job = world.jobs.get(item.job)
        if job is None or isinstance(job.phase, Starting):
            return
        since = job.phase.since if isinstance(job.phase, Running) else world.now
        if job.id not in self._followed:
            if self._met >= MET_MAX or len(self._followed) >= FOLLOWED_MAX:
                return
            self._met += 1
            self.learned.accept(job.id, _traits(job.spec, self._users.get(job.id, ""), since), since)
        self._followed[job.id] = _Up(since, job.served_ms)
        self.learned.begin(job.id, since, job.served_ms)

    def _stopped(self, world: World, item: fact.StopAsked | fact.Requeued) -> None:
        up = self._followed.get(item.job)
        if up is not None and up.since is not None:
            self._followed[item.job] = _Up(None, up.ran_ms(world.now))
            self.learned.pause(item.job, world.now)
            self._found.pop(item.job, None)

    def _ended(self, world: World, item: fact.Ended) -> None:
        self._users.pop(item.job, None)
        up = self._followed.pop(item.job, None)
        if up is not None:
            self._found.pop(item.job, None)
            self._learn(item.job, up.ran_ms(world.now), world.now, is_cut=_is_cut(item.phase, item.why))

    def _recall(self, each: Remembered) -> None:
        """Learn from a job that was over before anybody listened."""
        finished, ending = each.finished, decode_ending(each.finished.data)
        is_cut = _is_cut(TaskPhase(finished.phase), ending.why)
        if ending.counts or not ending.started_at or (is_cut and not ending.served_ms):
            return
        began = finished.ended_at - ending.served_ms
        devices = ending.ask.gpus * ending.tasks
        traits = Traits(finished.tenant, each.user, ending.name, devices, ending.limit_ms, hour_of(began))
        self.learned.accept(finished.job, traits, began)
        self.learned.begin(finished.job, began)
        self._learn(finished.job, ending.served_ms, finished.ended_at, is_cut=is_cut)

    def _learn(self, job: int, ran_ms: int, at: int, *, is_cut: bool) -> None:
        if is_cut:
            self.learned.cut(job, at)
        else:
            self.learned.end(job, ran_ms, at)

    # -- speaking

    def _reckon(self, world: World, now: int) -> None:
        """Compute the figures that are out of date, a part of them if they are many."""
        stirred = self.learned.hazards.stirred
        if now >= self._refreshed_at + REFRESH_MS:
            self._refreshed_at = now
            stirred |= dict.fromkeys(self._followed)
        for number in list(islice(stirred, RECKONED_MAX)):
            del stirred[number]
            job = world.jobs.get(number)
            if job is not None and job.spec.expect_ms is None and isinstance(job.phase, Running):
                self._foretell(job, job.phase)

    def _foretell(self, job: Job, phase: Running) -> None:
        likes, kin = self.learned.weigh(job.id, LEAST_LIKES)
        if kin < _OWN:
            return
        said = self.learned.predict(job.id)
        before = phase.since - phase.run.since - job.served_ms
        figure, least, most = (max(1, before + round(each)) for each in (said.quantiles[_MIDDLE], said.low, said.high))
        known = self._found.get(job.id)
        if known is None or abs(figure - known.run_ms) > CHANGE * known.run_ms:
            self._found[job.id] = _Row(figure, least, most, likes, kin)

    def _is_news(self, now: int) -> bool:
        """Whether a figure is new; that somebody is over is none, for then nobody asks for it."""
        if self._found and now >= self._renews_at:
            return True
        return any(self._said.get(number) != row for number, row in self._found.items())


_HEARS: Final[Mapping[type[fact.Fact], Callable[[RuntimeAdviser, World, Any], None]]] = {
    fact.Accepted: RuntimeAdviser._accepted,
    fact.Began: RuntimeAdviser._began,
    fact.StopAsked: RuntimeAdviser._stopped,
    fact.Requeued: RuntimeAdviser._stopped,
    fact.Ended: RuntimeAdviser._ended,
}
"""What it does at each fact that says anything of run times."""


def _traits(spec: Spec, user: str, since: int) -> Traits:
    return Traits(spec.tenant, user, spec.name, spec.whole[0].gpus * spec.tasks, spec.limit_ms, hour_of(since))


def _is_cut(phase: TaskPhase, why: Why) -> bool:
    """Whether it would have run on: it neither succeeded nor failed by itself, nor for its limit, which is known."""
    return phase != TaskPhase.SUCCEEDED and (phase != TaskPhase.FAILED or why not in (Why.EXIT, Why.LIMIT))


def _columns(rows: dict[int, _Row]) -> dict[str, tuple[int, ...]]:
    found = sorted(rows.items())
    columns = {name: tuple(row[place] for _, row in found) for place, name in enumerate(_Row._fields)}
    return {"job": tuple(number for number, _ in found), **columns}
