"""Whatever comes through the door, of whatever kind and with whatever words a wire can carry: it is answered, a refusal
changes nothing, and no law is broken."""

from __future__ import annotations

import enum
import random
import types
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

from muster.model.event import Event
from muster.model.reason import Done, Refused
from muster.testing.rig import Rig
from muster.testing.scripts import KINDS, events_of, gap_of
from muster.wire.codec import encode_entry
from muster.world.laws.invariants import check_world
from muster.world.snapshot import digest

EVENTS: Final = get_args(Event)
NUMBERS: Final = (0, 1, 2, 3, 4, -1, 2**31, 2**62, 2**62 + 1, 2**63, 2**64 - 1, -(2**63))
TEXTS: Final = ("", "a", "default", "standard", "node-0", "x" * 200, "\0", "é", "../..", "y" * 100_000)
GIVEN: Final = 0.3
"""How often a field that could be left out is given."""


@pytest.mark.parametrize(
    "seed", [38, 104, 105, 153, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1000, 1200))]
)
def test_nonsense_is_answered_and_what_is_refused_changes_nothing(seed: int) -> None:
    dice = random.Random(seed)
    rig = Rig(nodes=4, gpus=8, cpu_milli=32_000, memory_bytes=2**36)
    for _ in range(30):
        step = (dice.randrange(KINDS), dice.randrange(2**16), dice.randrange(2**16))
        rig.feed(*events_of(rig, step), after_ms=gap_of(step))
    refused = 0
    for _ in range(60):
        event = record_of(dice.choice(EVENTS), dice)
        before = digest(rig.world)
        outcome = rig.feed(event, after_ms=0)
        [answer] = outcome.answers
        assert isinstance(answer, (Done, Refused))
        encode_entry(outcome.seq, outcome.at, outcome.facts)
        after = digest(rig.world)
        if isinstance(answer, Refused) and not outcome.facts:
            refused += 1
            assert after == before, event
    assert refused > 30
    check_world(rig.world)


def record_of(kind: Any, dice: random.Random) -> Any:
    """A record with all that it has to have, and some of what it may."""
    hints = get_type_hints(kind)
    fields = [field for field in msgspec.structs.fields(kind) if field.required or dice.random() < GIVEN]
    return kind(**{field.name: value_of(hints[field.name], dice) for field in fields})


def value_of(kind: Any, dice: random.Random) -> Any:
    """Anything of a type."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return value_of(dice.choice(parts), dice)
    if origin is Literal:
        return dice.choice(parts)
    if origin is tuple and parts[-1] is not Ellipsis:
        return tuple(value_of(part, dice) for part in parts)
    if origin is not None and len(parts) == 2 and parts[-1] is not Ellipsis:
        return {value_of(parts[0], dice): value_of(parts[1], dice) for _ in range(dice.randrange(3))}
    if origin is not None:
        return origin(value_of(parts[0], dice) for _ in range(dice.randrange(3)))
    if issubclass(kind, msgspec.Struct):
        return record_of(kind, dice)
    if issubclass(kind, enum.Enum):
        return dice.choice(list(kind))
    plain = {bool: (False, True), int: NUMBERS, str: TEXTS, type(None): (None,)}
    return dice.choice(plain[kind])
