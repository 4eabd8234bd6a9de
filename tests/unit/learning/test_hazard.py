"""What is learned of run times: from what ended, and nothing that is said depends on what is still to come."""

from __future__ import annotations

from muster.learning.hazard import COARSE, FINE, Grid, Hazards
from muster.learning.turns import PATIENCE, TurnAdviser
from muster.model import event
from muster.model.advice import INDEX
from muster.model.sharing import ADVISED, Sharing
from muster.model.tier import STANDARD, Tier
from muster.testing.rig import Rig
from muster.units import AMOUNT_MAX, HOUR_MS, MINUTE_MS


class Watched:
    """A rig with one node and an adviser who watches it."""

    def __init__(self, grid: Grid = COARSE, ahead: float = 0.0) -> None:
        self.rig = Rig(1)
        self.adviser = TurnAdviser(grid, ahead)
        self.feed(event.SetTier(STANDARD, Tier(200, AMOUNT_MAX, 0, sharing=Sharing(ADVISED, MINUTE_MS))))

    def feed(self, *events: event.Event, after_ms: int = 1) -> None:
        outcome = self.rig.feed(*events, after_ms=after_ms)
        self.adviser.observe(self.rig.world, outcome.facts)

    def play(self, name: str, span_ms: int, gpus: int = 8) -> None:
        """A job comes, runs for so long and ends."""
        number = self.submit(name, gpus)
        self.feed(event.Started(number, 1))
        self.feed(event.Exited(number, 1, 0), after_ms=span_ms)

    def submit(self, name: str, gpus: int = 8) -> int:
        number = self.rig.submit(gpus, name=name)
        self.adviser.observe(self.rig.world, self.rig.outcomes[-1].facts)
        return number

    def indexes(self) -> dict[int, int]:
        (advise,) = self.adviser.advise(self.rig.world, self.rig.now)
        assert advise.kind == INDEX
        columns = advise.advice.columns
        return dict(zip(columns["job"], columns["index"], strict=True))


def test_without_data_less_service_goes_first() -> None:
    watched = Watched()
    old = watched.submit("a")
    watched.feed(event.Started(old, 1))
    watched.feed(after_ms=2 * HOUR_MS)
    new = watched.submit("b")
    indexes = watched.indexes()
    assert indexes[new] < indexes[old]


def test_jobs_like_those_that_ended_soon_go_first() -> None:
    watched = Watched()
    for _ in range(12):
        watched.play("short", MINUTE_MS)
        watched.play("long", 20 * HOUR_MS)
    watched.submit("other")
    long, short = watched.submit("long"), watched.submit("short")
    indexes = watched.indexes()
    assert 10 * indexes[short] < indexes[long]
    assert watched.adviser.hazards.counts(short)[-1] == 12


def test_patience_grows_with_how_long_jobs_wait_and_not_with_how_long_they_run() -> None:
    watched = Watched()
    first, second = watched.submit("a"), watched.submit("a")
    watched.submit("a")
    for number in (first, second):
        watched.feed(event.Started(number, 1))
        watched.feed(event.Exited(number, 1, 0), after_ms=10 * HOUR_MS)
    watched.submit("a")
    (advise,) = watched.adviser.advise(watched.rig.world, watched.rig.now)
    (patience,) = advise.advice.columns["patience_ms"]
    assert PATIENCE * 9 * HOUR_MS < patience < PATIENCE * 11 * HOUR_MS, "one waited for none, ten, and still for twenty"


def test_neighbours_of_another_size_say_something_and_those_of_the_same_size_more() -> None:
    def index_after(gpus: int, span_ms: int) -> int:
        watched = Watched()
        for _ in range(3):
            watched.play("a", span_ms, gpus)
        watched.submit("other")
        number = watched.submit("a", 4)
        return watched.indexes()[number]

    alike, unlike = (index_after(gpus, MINUTE_MS) / index_after(gpus, 20 * HOUR_MS) for gpus in (4, 8))
    assert alike < unlike < 1


def test_of_jobs_that_came_together_some_go_ahead() -> None:
    watched = Watched(FINE, 0.3)
    sweep = [watched.submit("a") for _ in range(8)]
    order = sorted(sweep, key=watched.indexes().__getitem__)
    places = [sweep.index(number) for number in order[:4]]
    assert all(abs(a - b) > 1 for a in places for b in places if a != b), "whoever goes ahead tells of its neighbours"


def test_an_end_is_likeliest_where_a_neighbours_was() -> None:
    def cost_after(served_ms: int) -> float:
        hazards = Hazards(FINE)
        for number in range(2):
            hazards.accept(number, ((), ("a",)), 0)
        hazards.begin(0, 0, 0)
        hazards.end(0, 10 * HOUR_MS)
        hazards.begin(1, 0, 0)
        hazards.settle(served_ms)
        return hazards.cost_ms(1)

    assert cost_after(9 * HOUR_MS) < cost_after(8 * HOUR_MS) < cost_after(5 * HOUR_MS)
    assert cost_after(11 * HOUR_MS) > cost_after(9 * HOUR_MS), "it did not end there"
    assert cost_after(40 * HOUR_MS) > 10 * cost_after(11 * HOUR_MS), "and says nothing any more"


def test_half_the_devices_cost_half() -> None:
    watched = Watched()
    whole, half = watched.submit("a", 8), watched.submit("b", 4)
    watched.submit("c")
    indexes = watched.indexes()
    assert abs(indexes[whole] - 2 * indexes[half]) <= 2


def test_what_it_says_is_the_same_whatever_comes_later() -> None:
    said = []
    for later_ms in (MINUTE_MS, 50 * HOUR_MS):
        watched = Watched()
        watched.play("a", HOUR_MS)
        running = watched.submit("a")
        watched.feed(event.Started(running, 1))
        watched.submit("a")
        said.append(watched.indexes())
        watched.feed(event.Exited(running, 1, 0), after_ms=later_ms)
    assert said[0] == said[1]


def test_it_says_nothing_when_nobody_waits_or_nothing_is_new() -> None:
    watched = Watched()
    watched.submit("a")
    assert not watched.adviser.advise(watched.rig.world, watched.rig.now)
    watched.submit("b")
    watched.indexes()
    assert not watched.adviser.advise(watched.rig.world, watched.rig.now)


def test_bins_grow_by_half_octaves() -> None:
    assert len(COARSE.edges_ms) == COARSE.bins + 1
    assert COARSE.edges_ms[3] == 2 * COARSE.edges_ms[1]


def test_a_neighbour_of_this_minute_says_more_than_one_of_yesterday() -> None:
    middles = []
    for apart_ms in (MINUTE_MS, 24 * HOUR_MS):
        hazards = Hazards()
        for number in range(40):
            hazards.accept(number, ((), "row"), number)
            hazards.begin(number, 0, number)
            hazards.end(number, number + 10 * HOUR_MS)
        hazards.accept(98, ((), "row"), 90 * HOUR_MS)
        hazards.begin(98, 0, 90 * HOUR_MS)
        hazards.end(98, 90 * HOUR_MS + MINUTE_MS)
        hazards.accept(99, ((), "row"), 90 * HOUR_MS + apart_ms)
        middles += hazards.quantiles_ms(99, (0.5,))
    assert middles[0] < 10 * MINUTE_MS < HOUR_MS < middles[1]


def test_what_people_run_changes_and_old_times_fade() -> None:
    hazards = Hazards()
    for number in range(800):
        hazards.accept(number, ((), "row"), number * HOUR_MS)
        hazards.begin(number, 0, number * HOUR_MS)
        hazards.end(number, number * HOUR_MS + (MINUTE_MS if number < 400 else 30 * MINUTE_MS))
    hazards.accept(900, ((), "row"), 2000 * HOUR_MS)
    assert hazards.quantiles_ms(900, (0.2,))[0] > 10 * MINUTE_MS


def test_quantiles_follow_what_like_jobs_did_and_how_far_it_got() -> None:
    hazards = Hazards()
    for number in range(60):
        hazards.accept(number, ((), "row"), number * HOUR_MS)
        hazards.begin(number, 0, number * HOUR_MS)
        hazards.end(number, number * HOUR_MS + (number % 6 + 1) * MINUTE_MS)
    hazards.accept(100, ((), "row"), 100 * HOUR_MS)
    low, middle, high = hazards.quantiles_ms(100, (0.1, 0.5, 0.9))
    assert low < middle < high < HOUR_MS
    assert MINUTE_MS < middle < 6 * MINUTE_MS
    hazards.begin(100, 0, 100 * HOUR_MS)
    hazards.settle(101 * HOUR_MS)
    assert hazards.quantiles_ms(100, (0.1,))[0] >= COARSE.edges_ms[13], "it ran for an hour already"


def test_who_was_cut_short_is_known_to_run_longer_and_no_more() -> None:
    likely = {}
    for is_cut in (False, True):
        hazards = Hazards()
        for number in range(30):
            hazards.accept(number, ((), "like"), number * 2 * HOUR_MS)
            hazards.begin(number, 0, number * 2 * HOUR_MS)
            hazards.end(number, number * 2 * HOUR_MS + HOUR_MS, is_cut=is_cut)
        hazards.accept(30, ((), "like"), 60 * HOUR_MS)
        likely[is_cut] = hazards.quantiles_ms(30, (0.5,))[0]
        assert hazards.counts(30) == [30, 30]
    assert HOUR_MS / 2 < likely[False] < 2 * HOUR_MS < likely[True]
