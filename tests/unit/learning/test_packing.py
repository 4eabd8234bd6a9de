"""The adviser on packing: it learns from what came and nothing else, and says it in integers that the book takes."""

from __future__ import annotations

from collections import Counter

from muster.learning.cutting import values_of
from muster.learning.loads import split
from muster.learning.packing import FIRST, REMEMBERED, Kind, PackingAdviser, pick_typical
from muster.model import event
from muster.model.advice import PACKING
from muster.model.fact import Accepted
from muster.model.node import Traits
from muster.model.profile import DEFAULT_NAME, Profile
from muster.model.spec import Needs
from muster.scheduler.placing.book import is_sound
from muster.testing.rig import Rig, spec
from muster.units import DAY_MS, Resources
from muster.world.world import World


def fleet_of(*flavors: str) -> Rig:
    rig = Rig()
    for number, flavor in enumerate(flavors):
        rig.feed(event.NodeSeen(f"n{number}", Resources(8, 64_000, 2**38), traits=Traits(flavor)))
    rig.feed(event.SetProfile("packed", Profile(pattern=60)), event.UseProfile("packed"))
    return rig


def submit(rig: Rig, adviser: PackingAdviser, ask: Resources, *flavors: str) -> None:
    outcome = rig.feed(event.Submit(spec(ask=ask, needs=Needs(flavors=flavors, any_flavor=bool(flavors)))))
    adviser.observe(rig.world, outcome.facts)


def test_a_rest_is_worth_what_can_be_cut_from_it() -> None:
    """Of 810 one fits, of 470 two; 160 goes into the rest of 810 and needs no device of its own."""
    values = values_of({810: 100, 470: 60, 160: 30})
    assert [round(values[left], 3) for left in (100, 190, 470, 530, 810, 1000)] == [0, 0, 0.5, 0.5, 1, 1]
    assert values_of({}) == [0.0] * 1000 + [1.0]
    assert values == sorted(values)


def test_demand_spreads_to_one_level_where_it_may() -> None:
    loads, parts = split({("a",): 2.0, ("a", "b"): 2.0}, {"a": 30.0, "b": 10.0})
    assert round(loads["a"], 6) == 30
    assert round(loads["b"], 6) == 10
    assert round(parts["a", "b"]["b"], 6) == 0.5
    loads, _ = split({("a",): 1.0}, {"a": 1.0, "b": 9.0})
    assert loads == {"a": 10.0, "b": 0.0}
    assert split({("gone",): 1.0}, {"a": 1.0}) == ({"a": 0.0}, {("gone",): {}})


def test_it_speaks_when_enough_came_and_its_word_is_taken() -> None:
    rig, adviser = fleet_of("a", "a", "b"), PackingAdviser()
    assert adviser.advise(rig.world, rig.now) == []
    for number in range(FIRST):
        submit(rig, adviser, Resources(0, 1000, 2**20, (810, 470)[number % 2]), *(("b",) if number % 4 == 0 else ()))
    (said,) = adviser.advise(rig.world, rig.now)
    assert is_sound(said.advice)
    rig.feed(said)
    assert rig.world.advice[PACKING] == said.advice
    assert said.advice.columns["value"][810] == 1000
    on_a, on_b = (
        dict(zip(said.advice.columns["gpu_milli"], said.advice.columns[f"on:{name}"], strict=True)) for name in "ab"
    )
    assert set(on_b.values()) != {-1}
    assert -1 in said.advice.columns["on:a"]
    assert on_a
    assert adviser.advise(rig.world, rig.now) == [], "nothing is new"
    assert adviser.advise(rig.world, rig.now + DAY_MS), "before its word is over it says it again"
    rig.feed(event.UseProfile(DEFAULT_NAME))
    assert adviser.advise(rig.world, rig.now + 2 * DAY_MS) == [], "nobody is told what nobody asks for"


def test_what_came_long_ago_counts_less_and_what_is_known_stays_small() -> None:
    adviser = PackingAdviser()
    for milli, tasks in ((310, REMEMBERED), (470, 1), (650, REMEMBERED // 2)):
        adviser.observe(World(), [Accepted(1, spec(ask=Resources(gpu_milli=milli), array=tasks))])
    assert {kind.gpu_milli: count for kind, count in adviser.counts.items()} == {310: 50_000, 650: 50_000}


def test_jobs_that_are_to_come_change_nothing() -> None:
    """Two streams that begin alike give the same advice, whatever comes later."""
    said = []
    for tail in (Resources(0, 1, 1, 330), Resources(8, 1, 1)):
        rig, adviser = fleet_of("a", "b"), PackingAdviser()
        words = []
        for number in range(3 * FIRST):
            submit(rig, adviser, Resources(0, 1000, 1, 810) if number < 2 * FIRST else tail)
            words += adviser.advise(rig.world, rig.now)
        said.append([word.advice for word in words])
    assert said[0][:2] == said[1][:2]
    assert said[0][2] != said[1][2]


def test_a_price_is_put_on_what_some_must_have() -> None:
    rig, adviser = fleet_of("a", "b", "b", "b"), PackingAdviser()
    for number in range(FIRST):
        submit(rig, adviser, Resources(0, 1000, 1, 100), *(("a",) if number % 2 else ()))
    columns = adviser.advise(rig.world, rig.now)[0].advice.columns
    assert columns["price:a"][0] > columns["price:b"][0] == 0
    assert columns["on:a"].count(-1) == 0
    assert -1 in columns["on:b"]


def test_typical_classes_cover_most_and_ties_end_in_the_class() -> None:
    kinds = [Kind(cpu, 0, 1, 0, ()) for cpu in (1, 2, 3)]
    counts = Counter({kinds[2]: 5, kinds[0]: 5, kinds[1]: 90})
    assert pick_typical(counts, 0.95) == [kinds[1], kinds[0]]
    assert pick_typical(counts, 1.0, most=1) == [kinds[1]]
