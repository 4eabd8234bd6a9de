"""Who is over goes in the order in which it ended, however they came."""

from __future__ import annotations

import random

from muster.world.over import Over


def test_they_go_by_when_they_ended_and_then_by_number() -> None:
    over, here = Over(), {1, 2, 3, 4, 5}
    for end in ((10, 3), (10, 1), (20, 2), (5, 5), (20, 4)):
        over.add(end)
    assert over.find(here) == (5, 5)
    assert over.take(here, by=10, most=2) == [5, 1]
    assert over.take(here, by=20, most=9) == [3, 2, 4]
    assert (over.find(here), len(over)) == (None, 0)


def test_whoever_is_not_here_any_more_is_passed_over() -> None:
    over = Over()
    for number in range(6):
        over.add((number, number))
    assert over.find({3, 5}) == (3, 3)
    assert over.take({3, 5}, by=9, most=9) == [3, 5]


def test_a_fork_goes_its_own_way() -> None:
    over, here = Over(), {1, 2, 3}
    over.add((1, 1))
    over.add((2, 2))
    twin = over.fork()
    assert twin.take(here, by=9, most=9) == [1, 2]
    over.add((1, 3))
    assert over.take(here, by=9, most=9) == [1, 3, 2]


def test_it_is_as_if_all_were_sorted_at_any_moment() -> None:
    dice, over, wanted = random.Random(3), Over(), list[tuple[int, int]]()
    now, here = 0, set[int]()
    for number in range(2000):
        now += dice.random() < 0.2
        end = (now, number if dice.random() < 0.5 else 10_000 - number)
        if end[1] not in here:
            here.add(end[1])
            over.add(end)
            wanted.append(end)
        if dice.random() < 0.1:
            by, most = now - dice.randrange(40), dice.randrange(30)
            wanted.sort()
            due = [job for at, job in wanted if at <= by][:most]
            assert over.take(here, by, most) == due
            wanted = wanted[len(due) :]
            assert over.find(here) == (wanted[0] if wanted else None)
        assert len(over) == len(wanted)
