"""The worked example of docs/concepts/placement.md, row by row."""

from __future__ import annotations

import re
from math import prod
from pathlib import Path

from muster.model.node import Spot, Traits
from muster.model.spec import Needs
from muster.scheduler.placing.fit import find_gang
from muster.testing.worked_tables import read_table
from muster.units import Resources, parse_sides
from muster.world.fleet import Fleet

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "placement.md"
GIB = 2**30


def rows(heading: str) -> list[list[str]]:
    return read_table(PAGE, heading)


def make_fleet() -> Fleet:
    fleet = Fleet()
    for slot, (name, _, _) in enumerate(rows("node")):
        fleet.join(slot, name, Resources(8, 64_000, 256 * GIB))
    for slot, (_, gpus, cores) in enumerate(rows("node")):
        taken = 8 - int(gpus)
        if taken:
            ask = Resources(taken, 64_000 - 1000 * int(cores), taken * GIB)
            fleet.occupy(slot, 1, ask, 1, (1 << taken) - 1)
    return fleet


def ask_of(words: str) -> Resources:
    found = re.match(r"([\d.]+) GPU", words)
    assert found is not None
    milli = int(float(found[1]) * 1000)
    share = 0 if milli % 1000 == 0 else milli
    return Resources(0 if share else milli // 1000, 8 * milli, milli * GIB // 1000, share)


def test_the_worked_example_is_true() -> None:
    fleet = make_fleet()
    assert len(rows("job")) == 5
    for number, (words, node, _) in enumerate(rows("job"), 2):
        leases = find_gang(fleet, ask_of(words), 1)
        assert leases is not None, words
        assert fleet.names[leases[0].slot] == node, words
        fleet.occupy(leases[0].slot, number, ask_of(words), 1, leases[0].devices)


def test_the_worked_boxes_are_true() -> None:
    fleet, ask = Fleet(), Resources(8, 8000, GIB)
    for slot in range(4):
        spot = Spot("t", (4, 1, 1), (slot, 0, 0))
        fleet.join(slot, f"node-{slot}", Resources(8, 64_000, 256 * GIB), Traits(spot=spot))
    fleet.occupy(1, 1, ask, 1, 255)
    for number, (shape, gets, _) in enumerate(rows("shape"), 2):
        sides = parse_sides(shape)
        leases = find_gang(fleet, ask, prod(sides), Needs(shape=sides))
        assert leases is not None, shape
        assert ", ".join(str(lease.slot) for lease in leases) == gets
        for lease in leases:
            fleet.occupy(lease.slot, number, ask, 1, lease.devices)


def test_the_weights_on_the_page_are_those_of_the_profile() -> None:
    from muster.model.profile import DEFAULT

    assert {term: int(weight) for term, _, weight in rows("term")} == {
        field: getattr(DEFAULT, field) for field in DEFAULT.__struct_fields__
    }
