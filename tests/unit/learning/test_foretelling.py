"""The adviser on run times: it learns from what ended and never from what is to come, in bounded memory, and says what
is news."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from muster.control.history import write_chapter
from muster.learning import foretelling
from muster.learning.foretelling import (
    FOLLOWED_MAX,
    LEAST_LIKES,
    MET_MAX,
    PAUSE_MS,
    RECKONED_MAX,
    ROW_PAUSE_MS,
    STANDS_MS,
    RuntimeAdviser,
)
from muster.model import event, fact
from muster.model.advice import RUNTIME, Advice
from muster.model.history import Remembered
from muster.testing.rig import Rig
from muster.units import HOUR_MS, MINUTE_MS, SECOND_MS
from muster.wire.evidence import KINS
from muster.world.accounting import keep_diary
from muster.world.snapshot import restore, snapshot


class School:
    """A world with an adviser that hears all of it, and is heard."""

    def __init__(self, nodes: int = 1, adviser: RuntimeAdviser | None = None) -> None:
        self.rig = Rig(nodes=nodes)
        self.diary = keep_diary(self.rig.world)
        self.remembered: list[Remembered] = []
        self.adviser = adviser or RuntimeAdviser()
        self._heard = len(self.rig.outcomes)

    def hear(self) -> None:
        for outcome in self.rig.outcomes[self._heard :]:
            self.adviser.observe(self.rig.world, outcome.facts)
            chapter = write_chapter(self.diary, outcome.facts)
            self.remembered += [Remembered(each, "", ()) for each in chapter.finished]
        self._heard = len(self.rig.outcomes)

    def begin(self, name: str = "train", **fields: object) -> int:
        job = self.rig.submit(gpus=1, name=name, **fields)
        self.rig.start(job)
        self.hear()
        return job

    def run(self, span_ms: int, name: str = "train", **fields: object) -> int:
        job = self.begin(name, **fields)
        self.rig.feed(after_ms=span_ms)
        self.hear()
        self.rig.exit(job)
        self.hear()
        return job

    def look(self, after_ms: int = PAUSE_MS) -> Advice | None:
        """What is said after a while, if anything is; it is taken."""
        self.rig.feed(after_ms=after_ms)
        words = self.adviser.advise(self.rig.world, self.rig.now)
        self.rig.feed(*words, after_ms=0)
        return words[0].advice if words else None

    def taught(self, spans: Sequence[int]) -> School:
        for span in spans:
            self.run(span)
        return self


def rows_of(advice: Advice | None) -> dict[int, int]:
    assert advice is not None
    return dict(zip(advice.columns["job"], advice.columns["run_ms"], strict=True))


def test_the_next_of_a_kind_is_foretold_by_those_that_ended() -> None:
    school = School().taught([10 * MINUTE_MS] * 5)
    job = school.begin()
    said = school.look()
    assert said is not None
    assert 6 * MINUTE_MS < rows_of(said)[job] < 15 * MINUTE_MS
    assert (said.columns["likes"], said.columns["kin"]) == ((5,), (KINS.index("like"),))
    told = school.rig.world.ends.told
    assert told == {job: school.rig.run(job).since + rows_of(said)[job]}, "the kernel goes by it"
    assert said.columns["least_ms"][0] <= rows_of(said)[job] <= said.columns["most_ms"][0]


def test_of_whom_too_few_like_it_have_ended_nothing_is_said() -> None:
    school = School().taught([MINUTE_MS] * (LEAST_LIKES - 1))
    school.begin()
    assert school.look() is None
    other = School().taught([MINUTE_MS] * 9)
    other.begin(tenant="other")
    assert other.look() is None, "what others run says nothing of it"


def test_few_of_its_name_say_less_than_many_of_its_owner() -> None:
    school = School().taught([10 * MINUTE_MS] * 4)
    school.run(MINUTE_MS, name="eval")
    school.begin(name="eval")
    said = school.look()
    assert said is not None
    assert (said.columns["likes"], said.columns["kin"]) == ((5,), (KINS.index("owner"),))


def test_what_its_owner_expects_is_left_alone_and_so_is_who_waits() -> None:
    school = School().taught([MINUTE_MS] * 5)
    job = school.begin(expect_ms=HOUR_MS)
    school.rig.submit(gpus=8, name="train")
    assert school.look() is None
    assert school.rig.world.ends.foreseen(job, school.rig.now) == school.rig.run(job).since + HOUR_MS


def test_it_never_sees_the_future() -> None:
    def said_of_a_job(then: Sequence[int]) -> Advice | None:
        school = School().taught([MINUTE_MS, 2 * MINUTE_MS, 4 * MINUTE_MS])
        school.begin()
        said = school.look()
        for span in then:
            school.run(span)
        return said

    assert said_of_a_job(()) == said_of_a_job((9 * HOUR_MS, SECOND_MS))


def test_who_goes_on_past_its_figure_gets_another_and_nothing_else_is_news() -> None:
    school = School().taught([5 * MINUTE_MS] * 8)
    job = school.begin()
    first = rows_of(school.look())[job]
    assert school.look() is None, "nothing is new"
    later = rows_of(school.look(30 * MINUTE_MS))[job]
    assert later > first
    assert (school.adviser.words, school.adviser.rows) == (2, 2)


def test_a_word_is_said_again_before_it_is_over() -> None:
    school = School().taught([20 * HOUR_MS] * 4)
    job = school.begin()
    first = school.look()
    again = school.look(STANDS_MS * 2 // 3)
    assert first is not None
    assert again is not None
    assert again.version > first.version
    assert again.expires_at > first.expires_at
    assert job in school.rig.world.ends.told


def test_the_more_it_says_the_longer_it_is_silent() -> None:
    school = School().taught([10 * HOUR_MS] * 4)
    jobs = [school.begin() for _ in range(4)]
    assert list(rows_of(school.look())) == jobs
    jobs.append(school.begin())
    assert school.look(PAUSE_MS + 4 * ROW_PAUSE_MS - 10) is None
    assert list(rows_of(school.look(10))) == jobs


def test_whoever_else_advises_on_run_times_is_not_contradicted() -> None:
    school = School().taught([MINUTE_MS] * 5)
    job = school.begin()
    columns: dict[str, tuple[int, ...]] = {"job": (job,), "run_ms": (HOUR_MS,)}
    school.rig.feed(event.Advise(RUNTIME, Advice(1, school.rig.now + HOUR_MS, columns)))
    assert school.look() is None
    assert school.rig.world.advice[RUNTIME].columns == columns


def test_cancelled_jobs_say_only_how_far_they_got() -> None:
    school = School().taught([HOUR_MS] * 4)
    for _ in range(12):
        job = school.begin()
        school.rig.feed(event.Cancel(job), after_ms=MINUTE_MS)
        school.hear()
        school.rig.exit(job, 143)
        school.hear()
    job = school.begin()
    assert rows_of(school.look())[job] > HOUR_MS // 2


def test_a_job_that_was_stopped_goes_on_where_it_was() -> None:
    school = School().taught([HOUR_MS] * 6)
    job = school.begin()
    school.rig.feed(event.RequeueJob(job), after_ms=20 * MINUTE_MS)
    school.hear()
    school.rig.exit(job, 143)
    school.rig.start(job)
    school.hear()
    run_ms = rows_of(school.look())[job]
    assert 20 * MINUTE_MS < run_ms < 50 * MINUTE_MS, "a third of it was before"


def test_what_history_remembers_is_known_after_a_restart() -> None:
    school = School().taught([10 * MINUTE_MS] * 5 + [11 * MINUTE_MS])
    job = school.begin()
    before = school.look()
    fresh = School(adviser=RuntimeAdviser(school.remembered))
    fresh.adviser.observe(school.rig.world, [fact.Began(job, 0, 1)])
    words = fresh.adviser.advise(school.rig.world, school.rig.now)
    assert before is not None
    assert words[0].advice.columns == before.columns
    assert words[0].advice.version == before.version + 1


def test_a_restored_world_foretells_the_same() -> None:
    school = School().taught([10 * MINUTE_MS] * 5)
    school.begin()
    school.look()
    world = school.rig.world
    assert restore(snapshot(world)).ends.told == world.ends.told != {}


def test_memory_is_bounded_whatever_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foretelling, "CLASSES_MAX", 60)
    school = School()
    for number in range(200):
        school.run(SECOND_MS, name=f"{'abcdefghij'[number % 10]}{'klmnopqrst'[number // 10 % 10]}{number}")
    hazards = school.adviser.learned.hazards
    assert len(hazards._classes) <= 60
    assert len(hazards._rows) <= 60
    assert not hazards._live
    assert not hazards.stirred
    school.taught([10 * MINUTE_MS] * 5)
    job = school.begin()
    assert 6 * MINUTE_MS < rows_of(school.look())[job] < 15 * MINUTE_MS, "it learns on"


def test_a_long_row_is_forgotten_from_its_beginning() -> None:
    school = School()
    school.begin(name="old")
    for number in range(1, 2500):
        school.adviser.learned.accept(10_000 + number, school.adviser.learned._traits[1], number)
        school.adviser.learned.cut(10_000 + number, number)
    (row, place) = school.adviser.learned.hazards._live[1].rows[0]
    assert row.count <= 1024
    assert place < row.gone, "the first is not in its row any more"
    assert school.adviser.learned.predict(1).quantiles


def test_of_many_that_begin_at_once_some_are_met() -> None:
    school = School(nodes=2 * MET_MAX // 8)
    jobs = [school.rig.submit(gpus=1) for _ in range(2 * MET_MAX)]
    school.hear()
    school.rig.feed(*(event.Started(job, 1, 0, 1) for job in jobs))
    school.hear()
    assert len(school.adviser._followed) == MET_MAX < FOLLOWED_MAX
    assert RECKONED_MAX >= MET_MAX
