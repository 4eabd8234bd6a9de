"""An agenda: what holds comes in order, whenever it was noted."""

from __future__ import annotations

import random

from muster.units import MINUTE_MS
from muster.world.agenda import Agenda, Entry


def holds(entry: Entry) -> bool:
    return entry[1] >= 0


def test_the_first_that_holds_is_found_in_whatever_order_they_were_noted() -> None:
    dice, agenda = random.Random(1), Agenda()
    left: list[Entry] = []
    for number in range(400):
        entry = (dice.randrange(9 * MINUTE_MS), number)
        agenda.add(entry)
        left.append(entry)
        if number % 3:
            assert agenda.find(holds) == min(left)
            left.remove(min(left))
            agenda.drop()
    twin = agenda.fork()
    for both in (agenda, twin):
        found = []
        while (first := both.find(holds)) is not None:
            found.append(first)
            both.drop()
        assert found == sorted(left)
        assert not both.minutes


def test_what_was_outlived_is_dropped_and_does_not_come_back() -> None:
    agenda = Agenda()
    for entry in ((5, 1), (MINUTE_MS, 2), (3 * MINUTE_MS, 3), (MINUTE_MS, 1)):
        agenda.add(entry)
    assert agenda.find(lambda entry: entry[1] == 2) == (MINUTE_MS, 2)
    assert agenda.find(holds) == (MINUTE_MS, 2)
    agenda.add((MINUTE_MS - 1, 4))
    assert agenda.find(holds) == (MINUTE_MS - 1, 4)
    assert agenda.find(lambda entry: entry[1] == 3) == (3 * MINUTE_MS, 3)
    assert agenda.find(lambda entry: entry[1] == 9) is None
