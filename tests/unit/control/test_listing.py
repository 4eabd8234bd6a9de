"""A listing costs what it shows, and shows the same as a walk over all jobs would."""

from __future__ import annotations

import random

import pytest

from muster.control.listing import PHASES, STATES, SWEEP_LEAST, Asked, Listing
from muster.control.views import is_over, phase_word
from muster.kernel.kernel import Kernel
from muster.model.event import Cancel, Event, Exited, NodeSeen, Started, Submit
from muster.model.fact import Fact
from muster.model.instruction import Start
from muster.model.spec import Spec
from muster.units import MINUTE_MS, Resources
from muster.world.world import World

TENANTS = ("a", "b", "c")


def _walk(world: World, asked: Asked) -> list[int]:
    """The plain way: look at every job."""
    found = []
    for number in sorted(world.jobs, reverse=asked.newest):
        job = world.jobs[number]
        is_before = asked.after and (number >= asked.after if asked.newest else number <= asked.after)
        if is_before or (asked.tenant and job.spec.tenant != asked.tenant):
            continue
        if asked.sees is not None and not asked.sees(job.spec.tenant):
            continue
        if asked.state != "all" and is_over(job) != (asked.state == "over"):
            continue
        if not asked.phase or phase_word(world, job) == asked.phase:
            found.append(number)
    return found


class Play:
    """A kernel that lives, and a listing that is kept in step with it."""

    def __init__(self) -> None:
        self.kernel = Kernel(World())
        self.listing = Listing(self.kernel.world)
        self.facts: list[Fact] = []
        self.now = 0
        self.started: list[Start] = []
        self.happen(NodeSeen("n", Resources(cpu_milli=8000)))

    def happen(self, *events: Event, after_ms: int = 1) -> None:
        self.now += after_ms
        outcome = self.kernel.handle(events, self.now)
        self.listing.fold(outcome.facts)
        self.started += [item for item in outcome.instructions if isinstance(item, Start)]

    def live(self, dice: random.Random, steps: int) -> None:
        for _ in range(steps):
            kind = dice.randrange(5)
            if kind < 2 or not self.started:
                array = dice.choice((0, 0, 3))
                spec = Spec(("x",), tenant=dice.choice(TENANTS), array=array, ask=Resources(cpu_milli=1000))
                self.happen(Submit(spec))
            elif kind == 2:
                self.happen(Cancel(dice.randrange(1, self.kernel.world.next_job)))
            else:
                item = self.started.pop(dice.randrange(len(self.started)))
                count = sum(item.counts)
                self.happen(Started(item.job, item.epoch, item.first, count))
                self.happen(Exited(item.job, item.epoch, dice.choice((0, 1)), item.first, count))
            if dice.random() < 0.02:
                self.happen(after_ms=20 * MINUTE_MS)


@pytest.mark.parametrize("seed", range(4))
def test_a_page_shows_what_a_walk_would(seed: int) -> None:
    dice = random.Random(seed)
    play = Play()
    for _ in range(6):
        play.live(dice, 40)
        world = play.kernel.world
        for listing in (play.listing, Listing(world)):
            for state in STATES:
                for phase in ("", *PHASES):
                    asked = Asked(state, dice.choice(("", *TENANTS)), phase, dice.randrange(0, 60), 1000)
                    asked = asked._replace(newest=dice.random() < 0.5)
                    assert [row.id for row in listing.page(asked).jobs] == _walk(world, asked)
            hidden = Asked(limit=1000, sees=lambda tenant: tenant != "b")
            assert [row.id for row in listing.page(hidden).jobs] == _walk(world, hidden)


def test_pages_follow_each_other() -> None:
    play = Play()
    play.happen(*(Submit(Spec(("x",), tenant=TENANTS[number % 3])) for number in range(20)))
    assert _turn_pages(play, newest=False) == list(range(1, 21))
    assert _turn_pages(play, newest=True) == list(range(20, 0, -1))


def test_whoever_comes_while_the_newest_are_read_moves_no_page() -> None:
    play = Play()
    play.happen(*(Submit(Spec(("x",))) for _ in range(7)))
    first = play.listing.page(Asked(limit=3))
    play.happen(*(Submit(Spec(("x",))) for _ in range(5)))
    second = play.listing.page(Asked(after=first.next_after or 0, limit=3))
    assert [row.id for row in (*first.jobs, *second.jobs)] == [7, 6, 5, 4, 3, 2]


def _turn_pages(play: Play, *, newest: bool) -> list[int]:
    found: list[int] = []
    after: int | None = 0
    while after is not None:
        page = play.listing.page(Asked(after=after, limit=3, newest=newest))
        found += [row.id for row in page.jobs]
        after = page.next_after
    return found


def test_what_retired_is_swept_out() -> None:
    play = Play()
    for _ in range(3):
        play.happen(
            *(Submit(Spec(("x",), tenant="a", ask=Resources(cpu_milli=8000))) for _ in range(SWEEP_LEAST // 2 + 1))
        )
        play.happen(*(Cancel(number) for number in list(play.kernel.world.jobs)))
        for item in play.started:
            play.happen(Exited(item.job, item.epoch, 143))
        play.started.clear()
        play.happen(after_ms=20 * MINUTE_MS)
    assert not play.kernel.world.jobs
    assert sum(map(len, play.listing._by_tenant.values())) <= SWEEP_LEAST
    assert not play.listing._over
