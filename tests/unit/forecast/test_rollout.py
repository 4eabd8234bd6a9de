"""A rollout is the kernel in virtual time: what runs ends as long as was guessed, what waits starts then."""

from __future__ import annotations

from itertools import islice

import pytest

from muster.forecast import saying, starts
from muster.forecast.comers import NOBODY, gather
from muster.forecast.comparison import compare
from muster.forecast.lengths import Lengths, Ran
from muster.forecast.rollout import GRAIN_MS, Arrival, Rollout
from muster.forecast.saying import say_start
from muster.forecast.starts import foresee
from muster.kernel.kernel import Kernel
from muster.model.event import BarNode, Event, NodeSeen, SetTenant, Started, Submit
from muster.model.instruction import Start
from muster.model.job import BarKind
from muster.model.spec import Spec
from muster.model.tenant import Line, Tenant
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS, Resources
from muster.world.snapshot import digest
from muster.world.world import World

NODE = NodeSeen("node-1", Resources(gpus=8, cpu_milli=64_000))
NOW = 10_000


def job(tenant: str = "vision", gpus: int = 8, limit_ms: int | None = None, array: int = 0, name: str = "") -> Submit:
    return Submit(
        Spec(("a",), name=name, tenant=tenant, ask=Resources(gpus=gpus), limit_ms=limit_ms, array=array), cause="test"
    )


def live(*events: Event) -> World:
    """A world with a node of eight GPUs after these events, one by one, and all that could start up at once."""
    kernel = Kernel(World())
    for each in (NODE, SetTenant("vision", Tenant()), SetTenant("lab", Tenant()), *events):
        starts = [item for item in kernel.handle([each], NOW).instructions if isinstance(item, Start)]
        kernel.handle([Started(item.job, item.epoch, item.first, sum(item.counts)) for item in starts], NOW)
    return kernel.world


def minutes(*spans: int) -> Lengths:
    return Lengths(Ran("vision", "", span * MINUTE_MS) for span in spans)


def test_who_waits_starts_when_who_is_ahead_is_over() -> None:
    world = live(job(), job(), job("lab"))
    ahead = Rollout(world, NOW, lambda *_: 10 * MINUTE_MS)
    assert ahead.run(NOW + HOUR_MS, 100)
    first, second = sorted(at - NOW for at in ahead.starts.values())
    assert {2, 3} == set(ahead.starts)
    assert 10 * MINUTE_MS <= first <= 10 * MINUTE_MS + GRAIN_MS
    assert 20 * MINUTE_MS <= second <= 20 * MINUTE_MS + 2 * GRAIN_MS


def test_tasks_of_an_array_go_on_from_range_to_range() -> None:
    ahead = Rollout(live(job(gpus=1, array=20), job("lab")), NOW, lambda *_: MINUTE_MS)
    assert ahead.run(NOW + HOUR_MS, 100)
    assert 2 in ahead.starts
    assert MINUTE_MS <= ahead.starts[2] - NOW <= 4 * MINUTE_MS


def test_too_many_batches_are_given_up() -> None:
    assert not Rollout(live(job(), job(), job()), NOW, lambda *_: MINUTE_MS).run(NOW + HOUR_MS, 2)


def test_a_likely_start_is_a_span_and_leaves_the_world_as_it_was() -> None:
    world = live(job(), job("lab"))
    before = digest(world)
    outlook = foresee(world, 2, NOW, minutes(10, 20, 30, 40, 50))
    assert outlook is not None
    assert outlook.earliest is not None
    assert outlook.latest is not None
    assert 0 <= outlook.earliest - NOW <= 20 * MINUTE_MS + GRAIN_MS
    assert outlook.latest - NOW >= 40 * MINUTE_MS
    assert (outlook.after, digest(world)) == ((1,), before)
    assert foresee(world, 2, NOW, minutes(10, 20, 30, 40, 50)) == outlook


def test_of_whom_nothing_is_known_nothing_is_said() -> None:
    outlook = foresee(live(job(), job("lab")), 2, NOW, Lengths([]))
    assert outlook is not None
    assert (outlook.earliest, outlook.latest) == (None, None)


@pytest.mark.parametrize(
    ("sees", "limit_ms", "said"),
    [(True, HOUR_MS, "when job 1 of vision is over"), (False, HOUR_MS, "(in "), (True, None, "no likely start")],
)
def test_words_name_only_those_whom_the_reader_may_see(sees: bool, limit_ms: int | None, said: str) -> None:
    view = say_start(live(job(limit_ms=limit_ms), job("lab")), 2, NOW, Lengths([]), lambda _: sees)
    assert said in view.words
    assert ("job 1" in view.words) == (sees and limit_ms is not None)


def test_an_array_that_fills_the_room_waits_for_tasks_of_its_own() -> None:
    world = live(job(gpus=1, array=20, limit_ms=HOUR_MS))
    assert say_start(world, 1, NOW, minutes(1, 1, 1), lambda _: True).words.endswith("when tasks of its own are over")


def test_who_does_not_wait_has_no_forecast() -> None:
    assert say_start(live(job()), 1, NOW, Lengths([]), lambda _: True).words == ""


def test_lengths_are_mostly_those_of_the_like_and_never_beyond_a_limit() -> None:
    lengths = Lengths([*(Ran("vision", "train", HOUR_MS) for _ in range(27)), Ran("lab", "", MINUTE_MS)])
    train, hasty = job(name="train").spec, job(name="train", limit_ms=MINUTE_MS).spec
    drawn = [lengths.draw(1, train, 0, turn) for turn in range(200)]
    assert drawn.count(HOUR_MS) >= 180
    assert [lengths.draw(1, train, 0, turn) for turn in range(200)] == drawn
    assert {lengths.draw(1, train, HOUR_MS - 5, turn) for turn in range(9)} >= {5}
    assert all((lengths.draw(1, hasty, 0, turn) or 0) <= MINUTE_MS for turn in range(200))
    assert (lengths.count_likes(train), lengths.count_likes(job("nobody").spec)) == (27, 28)


def test_what_few_did_is_believed_less_than_what_many_did() -> None:
    lengths = Lengths([Ran("vision", "new", HOUR_MS), *(Ran("vision", "old", MINUTE_MS) for _ in range(50))])
    drawn = [lengths.draw(1, job(name="new").spec, 0, turn) for turn in range(200)]
    assert 20 <= drawn.count(HOUR_MS) <= 100 <= drawn.count(MINUTE_MS)


def test_who_outlived_all_goes_on_about_as_long_again_or_for_much_longer() -> None:
    left = sorted(minutes(1, 1, 1).draw(1, job().spec, HOUR_MS, turn) or 0 for turn in range(200))
    assert HOUR_MS // 2 < left[100] < 2 * HOUR_MS
    assert left[0] < HOUR_MS // 8
    assert 8 * HOUR_MS < left[-1] < 50 * HOUR_MS


def test_such_as_came_come_again_as_often_by_other_luck() -> None:
    came = [Arrival(NOW + number * MINUTE_MS, job().spec, number) for number in range(0, 120, 2)]
    at_once = Arrival(NOW, job("lab").spec, None)
    comers = gather([*came[1:], at_once, came[0], Arrival(NOW - 2 * DAY_MS, job().spec, 7)], NOW + 2 * HOUR_MS)
    assert comers.seen[:2] == [at_once, came[0]], "those who came at once stay as they were named"
    assert (len(comers.seen), comers.gap_ms) == (61, 2 * HOUR_MS // 61)
    first = list(islice(comers.draw(NOW, 1), 100))
    assert first == list(islice(comers.draw(NOW, 1), 100)) != list(islice(comers.draw(NOW, 2), 100))
    assert sorted(each.at for each in first) == [each.at for each in first]
    assert 100 * MINUTE_MS < first[-1].at - NOW < 400 * MINUTE_MS
    assert list(NOBODY.draw(NOW, 1)) == []


def test_who_comes_later_and_goes_first_is_foreseen() -> None:
    world = live(job("vision", limit_ms=HOUR_MS), job("lab"))
    urgent = Spec(("a",), tenant="vision", tier="critical", ask=Resources(gpus=8))
    alone, among = (
        foresee(world, 2, NOW, Lengths([]), comers)
        for comers in (NOBODY, gather([Arrival(NOW, urgent, HOUR_MS)] * 2, NOW))
    )
    assert alone is not None
    assert alone.latest is not None
    assert among is None or among.latest is None or among.latest > alone.latest


def test_closed_nodes_and_too_many_jobs_are_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    world = live(job(), job("lab"), BarNode("node-1", BarKind.CORDON, "operator"))
    lengths = minutes(10, 10, 10)
    assert say_start(world, 2, NOW, lengths, lambda _: True).words.startswith("no likely start within 7 days")
    monkeypatch.setattr(saying, "JOBS_MAX", 1)
    monkeypatch.setattr(starts, "JOBS_MAX", 1)
    words = say_start(world, 2, NOW, lengths, lambda _: True).words
    assert words == "no forecast: 2 jobs are here, and with more than 1 it would keep readers waiting"


def test_behind_a_closed_door_it_is_not_those_who_come_who_are_too_many() -> None:
    world = live(BarNode("node-1", BarKind.CORDON, "operator"), job("lab"))
    small = Spec(("a",), tenant="lab", ask=Resources(cpu_milli=1))
    comers = gather([Arrival(NOW + number, small, 1) for number in range(100)], NOW + 100)
    words = say_start(world, 1, NOW + 100, minutes(1, 1, 1), lambda _: True, comers).words
    assert words == "no likely start within 7 days: nodes are closed to it, or its quota is, or too many go first"


def test_behind_those_who_may_run_for_ever_it_is_not_the_others_who_are_too_many() -> None:
    world = live(job("lab", gpus=4, array=4), job("vision", gpus=8))
    small = Spec(("a",), tenant="lab", ask=Resources(cpu_milli=1))
    comers = gather([Arrival(NOW + number, small, 1) for number in range(100)], NOW + 100)
    words = say_start(world, 2, NOW + 100, minutes(1, 1, 1), lambda _: True, comers).words
    assert words == "no likely start: those it waits for have no limit, and nothing like them has ended"


def test_a_day_with_less_quota_is_one_in_which_somebody_waits_more() -> None:
    world = live(*(job("vision", 4) for _ in range(8)), *(job("lab", 4) for _ in range(2)))
    before = digest(world)
    less = SetTenant("vision", Tenant(lines=(Line("gpu", limit=4000),)))
    comers = [Arrival(NOW + HOUR_MS, job("lab", 4).spec, MINUTE_MS)]
    hours = minutes(*[60] * 100)
    found = compare(world, less, NOW, hours, comers)
    assert found is not None
    days = {day.tenant: day for day in found.days}
    assert days["vision"].waited_ms[1] > days["vision"].waited_ms[0]
    assert days["lab"].waited_ms[1] <= days["lab"].waited_ms[0]
    assert (days["lab"].jobs, found.comers, digest(world)) == (3, 1, before)
    assert 0 < found.held_milli[1] <= found.held_milli[0] <= 1000
    same = compare(world, SetTenant("other", Tenant()), NOW, hours, comers)
    assert same is not None
    assert all(day.waited_ms[0] == day.waited_ms[1] for day in same.days)
    assert same.days[0].waited_ms[0] < DAY_MS


def test_what_a_change_starts_at_once_is_part_of_its_day() -> None:
    limited = SetTenant("vision", Tenant(lines=(Line("gpu", limit=4_000_000),)))
    world = live(limited, job(gpus=4, limit_ms=HOUR_MS), job(gpus=4, limit_ms=HOUR_MS))
    more = SetTenant("vision", Tenant(lines=(Line("gpu", limit=8_000_000),)))
    found = compare(world, more, NOW, Lengths([]), [])
    assert found is not None
    [day] = found.days
    assert (day.jobs, day.started) == (1, (1, 1))
    assert (day.waited_ms[0] > 0, day.waited_ms[1]) == (True, 0)


def test_whom_a_change_stops_at_once_is_counted() -> None:
    world = live(job("lab", gpus=8), job("vision", gpus=8))
    owner = SetTenant("vision", Tenant(lines=(Line("gpu", guaranteed=8_000_000),)))
    found = compare(world, owner, NOW, Lengths([]), [])
    assert found is not None
    assert found.taken == (0, 1)
