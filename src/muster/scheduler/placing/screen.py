"""The screen: which nodes the company that a job keeps rules out. They leave the index for the length of one search.

So no other search pays for it, and every search is exact with it: who is to be apart from somebody does not see the
domains where that one is, and who is to be beside somebody sees no others. Bars and phases are untouched.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Iterator

from muster.model.node import LEVELS
from muster.model.spec import Needs
from muster.world.arena import (
    AT_DOMAINS,
    AT_LEVEL,
    AT_NODES,
    DOMAIN_LEVELS,
    DOMAIN_WIDTH,
    DOMAINS,
    NODE_ROW,
    NODES,
    OPEN,
)
from muster.world.compiled import Words, compiled, words_of
from muster.world.fleet import Fleet
from muster.world.index import shelve


@contextlib.contextmanager
def screened(fleet: Fleet, needs: Needs) -> Iterator[None]:
    """Leave out of the index what the company rules out, and let it in again."""
    words, shut = fleet.words, shut_for(fleet, needs)
    shut_out(words, shut)
    try:
        yield
    finally:
        let_in(words, shut)


def count_shut(fleet: Fleet, needs: Needs) -> int:
    """How many nodes the company rules out."""
    return sum(shut_for(fleet, needs).tolist())


def shut_for(fleet: Fleet, needs: Needs) -> Words:
    """By slot: 1 if the company rules the node out. Of a blank, which says what could be, nothing is ruled out."""
    words, by_name = fleet.words, fleet.company.by_name
    shut = words_of(array("q", bytes(8 * len(fleet))))
    marks = words_of(array("q", bytes(8 * (len(fleet) + words[AT_LEVEL + DOMAIN_LEVELS]))))
    if not fleet.is_blank:
        for names, level, wanted in ((needs.apart, needs.apart_level, 0), (needs.beside, needs.beside_level, 1)):
            for name in names:
                seats = words_of(array("q", sorted(by_name.get(name, ()))))
                screen(words, shut, marks, seats, int(LEVELS[level]), wanted)
    return shut


@compiled
def domain_at(words: Words, slot: int, level: int) -> int:
    """A number for the domain of a node at a level: its own slot, or one behind all slots."""
    if not level:
        return slot
    row = words[words[AT_NODES] + NODE_ROW * slot + DOMAINS + level - 1]
    return int(words[NODES] + (row - words[AT_DOMAINS]) // words[DOMAIN_WIDTH])


@compiled
def screen(words: Words, shut: Words, marks: Words, seats: Words, level: int, wanted: int) -> None:
    """Rule out the nodes in whose domain somebody sits (`wanted` is 0), or nobody does (1)."""
    for place in range(len(seats)):
        marks[domain_at(words, seats[place], level)] = 1
    for slot in range(words[NODES]):
        if marks[domain_at(words, slot, level)] != wanted:
            shut[slot] = 1
    for place in range(len(seats)):
        marks[domain_at(words, seats[place], level)] = 0


@compiled
def shut_out(words: Words, shut: Words) -> None:
    """Open nodes that are ruled out leave the index; the others are let off."""
    for slot in range(words[NODES]):
        if shut[slot] and words[words[AT_NODES] + NODE_ROW * slot + OPEN]:
            shelve(words, slot, -1)
        else:
            shut[slot] = 0


@compiled
def let_in(words: Words, shut: Words) -> None:
    """The inverse of `shut_out`."""
    for slot in range(words[NODES]):
        if shut[slot]:
            shelve(words, slot, 1)
