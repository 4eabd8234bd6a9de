"""The walk: the smallest share first, ties by name, moved only by what changed."""

from __future__ import annotations

import random

from muster.units import HOUR_MS
from muster.world.tour import Tour
from muster.world.usage import Usage
from muster.world.walk import Walk


def walk_of(**charges: int) -> tuple[Walk, Usage]:
    usage = Usage()
    walk = Walk(usage, {})
    for tenant, amount in charges.items():
        usage.step(tenant, "gpu", amount, 0)
        walk.join(tenant)
    return walk, usage


def first(walk: Walk, *names: str) -> str:
    found = Tour(walk, [names]).find_first()
    assert found is not None
    return found


def test_the_smallest_share_is_met_first_and_ties_by_name() -> None:
    walk, _ = walk_of(c=5, b=3, a=5)
    walk.settle(1)
    assert list(walk.in_order("abc", 1)) == ["b", "a", "c"]
    assert first(walk, "a", "b", "c") == "b"
    assert first(walk, "a", "c") == "a"


def test_only_whoever_changed_moves() -> None:
    walk, usage = walk_of(a=1, b=2, c=3)
    walk.settle(1)
    usage.step("a", "gpu", 9, 1)
    walk.touched["a"] = None
    walk.settle(1)
    assert first(walk, "a", "b", "c") == "b"
    usage.step("a", "gpu", -10, 1)
    walk.touched["a"] = None
    walk.settle(1)
    assert first(walk, "a", "b", "c") == "a"


def test_it_is_known_whether_others_wait_and_who_waits_again_stands_as_before() -> None:
    walk, _ = walk_of(a=1, b=2)
    walk.join("a")
    walk.leave("a")
    assert walk.has_others("b")
    walk.leave("a")
    assert not walk.has_others("b")
    walk.settle(1)
    assert first(walk, "b") == "b"
    walk.join("a")
    walk.settle(1)
    assert first(walk, "a", "b") == "a"


def test_a_walk_that_lived_is_like_one_made_anew() -> None:
    dice = random.Random(7)
    names = [f"t{number}" for number in range(9)]
    walk, usage = walk_of(**dict.fromkeys(names, 1))
    at = 0
    for _ in range(400):
        at += dice.choice((0, 1000, HOUR_MS // 2))
        name = dice.choice(names)
        usage.step(name, "gpu", dice.randrange(1, 5), at)
        walk.touched[name] = None
        walk.settle(at)
        anew = Walk(usage, {})
        for other in names:
            anew.join(other)
        anew.settle(at)
        assert first(walk, *names) == first(anew, *names) == next(anew.in_order(names, at))
