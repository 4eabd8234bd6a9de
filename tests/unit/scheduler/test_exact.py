"""Terms that see nodes: the very node and device that a reference in plain Python promises, however much is remembered.

The reference shares no code with the search: it looks at every node anew, with fractions where the terms have integers.
"""

from __future__ import annotations

import random
from fractions import Fraction
from math import exp, floor

import pytest

from muster.model.advice import PACKING, Advice
from muster.model.node import Traits
from muster.model.profile import TERMS, Profile
from muster.scheduler.placing.book import is_sound
from muster.scheduler.placing.fit import find_gang
from muster.units import Resources
from muster.world.fleet import Fleet

NOTHING = dict.fromkeys(TERMS, 0)
CLASSES = (
    (1000, 100, 0, 300, 600_000),
    (2000, 400, 0, 500, 300_000),
    (3000, 300, 1, 0, 60_000),
    (500, 1, 0, 0, 40_000),
)
"""CPU, memory, GPUs, thousandths of one and how often: shares, whole devices, and a class that takes none."""
VALUES = tuple(1000 * (left // 250) // 4 for left in range(1001))
ADVICE = Advice(
    1,
    10**9,
    {
        "cpu_milli": tuple(row[0] for row in CLASSES),
        "memory_bytes": tuple(row[1] for row in CLASSES),
        "gpus": tuple(row[2] for row in CLASSES),
        "gpu_milli": tuple(row[3] for row in CLASSES),
        "share": tuple(row[4] for row in CLASSES),
        "places": (40_000, 90_000, 200_000, 0),
        "value": VALUES,
        "on:a": (500_000, 300_000, 200_000, 0),
        "on:b": (1_000_000, -1, 0, 0),
        "price:b": (300,),
    },
)
ASKS = (
    Resources(0, 1000, 100, 300),
    Resources(0, 2000, 400, 500),
    Resources(1, 3000, 300),
    Resources(2, 4000, 600),
    Resources(0, 1500, 50),
)


def build(**weights: int) -> Fleet:
    fleet = Fleet()
    fleet.weigh(Profile(**NOTHING | weights))
    fleet.heed(ADVICE)
    for slot in range(6):
        fleet.join(slot, f"n{slot}", Resources(2 + slot % 2, 8000, 3000), Traits("a" if slot < 4 else "b"))
    return fleet


def fragments_of(flavor: str, cpu: int, left: list[int]) -> Fraction:
    total = Fraction(0)
    for (need, _, gpus, milli, share), on in zip(CLASSES, ADVICE.columns[f"on:{flavor}"], strict=True):
        size, count = (1000, gpus) if gpus else (milli, 1)
        usable = size and on >= 0 and cpu >= need and sum(each >= size for each in left) >= count
        total += Fraction(share, 10**6) * sum(each for each in left if not usable or each < size)
    return total


def worth_of(profile: Profile, flavor: str, cpu: int, memory: int, left: list[int]) -> Fraction:
    value, places, stranded = sum(VALUES[each] for each in left), 0, 0
    rows = zip(CLASSES, ADVICE.columns["places"], ADVICE.columns[f"on:{flavor}"], strict=True)
    for (need_cpu, need_memory, gpus, milli, _), place, on in rows:
        size = 1000 if gpus else milli
        if on < 0 or not size:
            continue
        room = min(sum(each // size for each in left) // (gpus or 1), cpu // need_cpu, memory // need_memory)
        places += place * room
        stranded += on * max(0, value - room * VALUES[size] * (gpus or 1)) ** 2
    worth = 10**6 * profile.pattern * value + 1000 * profile.displacement * places
    return Fraction(worth - profile.stranding * (stranded // max(1, value)))


def points_of(fleet: Fleet, slot: int, ask: Resources, device: int | None) -> int:
    """What a place scores, by the terms that compare before and after."""
    profile, flavor, free = fleet.profile, fleet.flavor(slot), fleet.free(slot)
    before = list(fleet.devices(slot))
    after, wanted = before.copy(), ask.gpus
    if device is not None:
        after[device] -= ask.gpu_milli
    for place, left in enumerate(before):
        if wanted and left == 1000:
            after[place], wanted = 0, wanted - 1
    cpu, memory, points = free.cpu_milli - ask.cpu_milli, free.memory_bytes - ask.memory_bytes, 0
    if profile.fragments:
        gain = fragments_of(flavor, free.cpu_milli, before) - fragments_of(flavor, cpu, after)
        points += profile.fragments * 10 * floor(100 / (1 + exp(-gain / 1000)))
    if profile.pattern or profile.displacement or profile.stranding:
        own = 1000 * ask.gpus or VALUES[ask.gpu_milli]
        price = ADVICE.columns.get(f"price:{flavor}", (0,))[0]
        cost = worth_of(profile, flavor, free.cpu_milli, free.memory_bytes, before)
        cost -= worth_of(profile, flavor, cpu, memory, after) + 10**6 * profile.pattern * own
        points += 500_000 - floor((cost + 1000 * profile.price * own * price) / 10**8)
    return points


def best_place(fleet: Fleet, ask: Resources) -> tuple[int, int] | None:
    """By trying every node and device: the best, then the lowest slot, the tightest device and the lowest of those."""
    found: list[tuple[int, int, int, int]] = []
    for slot in range(len(fleet)):
        free, left = fleet.free(slot), fleet.devices(slot)
        if free.cpu_milli < ask.cpu_milli or free.memory_bytes < ask.memory_bytes:
            continue
        if ask.gpu_milli:
            fitting = [device for device, each in enumerate(left) if each >= ask.gpu_milli]
            found += [(-points_of(fleet, slot, ask, each), slot, left[each], each) for each in fitting]
        elif sum(each == 1000 for each in left) >= ask.gpus:
            found.append((-points_of(fleet, slot, ask, None), slot, 0, 0))
    if not found:
        return None
    _, slot, _, device = min(found)
    whole = [place for place, each in enumerate(fleet.devices(slot)) if each == 1000][: ask.gpus]
    return slot, 1 << device if ask.gpu_milli else sum(1 << place for place in whole)


WEIGHTS = (
    {"fragments": 1},
    {"pattern": 60, "price": 60, "displacement": 4, "stranding": 3},
    {"pattern": 1, "stranding": 7},
    {"displacement": 9, "price": 50, "fragments": 300},
)


@pytest.mark.parametrize("weights", WEIGHTS, ids=lambda weights: "-".join(weights))
def test_the_search_finds_what_a_look_at_everything_finds(weights: dict[str, int]) -> None:
    """Jobs come and go, so that what is remembered of nodes is often out of date."""
    dice, fleet = random.Random(7), build(**weights)
    held: list[tuple[int, Resources, int]] = []
    for step in range(160):
        if held and dice.random() < 0.3:
            slot, ask, devices = held.pop(dice.randrange(len(held)))
            fleet.vacate(slot, 1, ask, 1, devices)
        ask = dice.choice(ASKS)
        wanted, leases = best_place(fleet, ask), find_gang(fleet, ask, 1)
        found = None if leases is None else (leases[0].slot, leases[0].devices)
        assert found == wanted, (step, ask)
        if found is not None:
            fleet.occupy(found[0], 1, ask, 1, found[1])
            held.append((found[0], ask, found[1]))
    assert len(held) > 10


@pytest.mark.parametrize("term", ["chance", "alignment", "clustering", "breaking", "snugness", "fragments", "pattern"])
def test_what_is_remembered_changes_nothing(term: str) -> None:
    """A fork that shares the memory, and a fleet that remembers nothing, both find the same."""
    dice, fleet = random.Random(3), build(**{term: 10})
    for job in range(40):
        ask, fork = dice.choice(ASKS), fleet.fork()
        for lease in find_gang(fork, ask, 1, job=job) or ():
            fork.occupy(lease.slot, job, ask, 1, lease.devices)
        find_gang(fork, dice.choice(ASKS), 1, job=job)
        remembered = find_gang(fleet, ask, 1, job=job)
        fleet.weigh(fleet.profile)
        assert find_gang(fleet, ask, 1, job=job) == remembered
        for lease in remembered or ():
            fleet.occupy(lease.slot, job, ask, 1, lease.devices)


def test_advice_that_comes_and_goes_leaves_no_score_behind() -> None:
    """A fork that shares the memory goes by advice of its own, as the fleet does from time to time."""
    dice, fleet = random.Random(5), build(pattern=60, displacement=4, stranding=3, price=60)
    turned = {name: column[::-1] for name, column in ADVICE.columns.items() if name[:2] in ("sh", "pl", "on")}
    others = (Advice(2, 10**9, ADVICE.columns | turned), Advice(3, 10**9, ADVICE.columns | {"price:a": (900,)}), None)
    for job in range(60):
        ask, fork = dice.choice(ASKS), fleet.fork()
        fork.heed(dice.choice(others))
        find_gang(fork, ask, 1, job=job)
        fleet.heed(dice.choice((ADVICE, others[1])))
        remembered = find_gang(fleet, ask, 1, job=job)
        fleet.weigh(fleet.profile)
        assert find_gang(fleet, ask, 1, job=job) == remembered
        find_gang(fork, ask, 1, job=job)
        for lease in remembered or () if job % 2 else ():
            fleet.occupy(lease.slot, job, ask, 1, lease.devices)


def test_chance_is_a_function_of_job_and_node_and_spreads() -> None:
    fleet = build(chance=1)
    slots = [(find_gang(fleet, ASKS[4], 1, job=job) or [])[0].slot for job in range(60)]
    again = [(find_gang(fleet, ASKS[4], 1, job=job) or [])[0].slot for job in range(60)]
    assert slots == again
    assert set(slots) == set(range(6))


def test_without_advice_the_lowest_node_that_fits_is_taken() -> None:
    fleet = build(pattern=60, displacement=4, stranding=3)
    for advice in (None, Advice(1, 10**9, {"value": (1, 2)}), Advice(1, 10**9, {"share": (1,)})):
        fleet.heed(advice)
        assert advice is None or not is_sound(advice)
        assert [(lease.slot, lease.devices) for lease in find_gang(fleet, ASKS[0], 1) or ()] == [(0, 1)]


@pytest.mark.parametrize(
    "columns",
    [
        {"on:a": (1,)},
        {"price:a": (1, 2)},
        {"value": tuple(range(1, 1002))},
        {"gpu_milli": (300, 500, 0, -1)},
        {"places": (1, 1, 1, 10**12)},
        {"price:a": (-1,)},
    ],
)
def test_advice_that_makes_no_sense_is_none(columns: dict[str, tuple[int, ...]]) -> None:
    assert is_sound(ADVICE)
    assert not is_sound(Advice(1, 10**9, ADVICE.columns | columns))


def test_packing_is_the_kind_of_advice_that_is_heeded() -> None:
    assert PACKING == "packing"
