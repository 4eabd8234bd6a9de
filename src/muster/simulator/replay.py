"""Replay: decide a recorded run again, and say where the decisions part.

The kernel is pure, so equal inputs give equal facts; if they do not, either the code has changed since or a law is
broken. Nothing is written anywhere.
"""

from __future__ import annotations

import msgspec

from muster.kernel.kernel import Kernel
from muster.model.fact import Fact
from muster.wire.bundle import Bundle
from muster.wire.codec import decode_entry, decode_inputs, encode_entry
from muster.world.snapshot import digest, restore
from muster.world.world import World


class Difference(msgspec.Struct, frozen=True):
    """The first entry that came out otherwise, and the first facts in it that differ."""

    seq: int
    recorded: str
    replayed: str

    def __str__(self) -> str:
        return f"entry {self.seq}\n  recorded  {self.recorded}\n  replayed  {self.replayed}"


class Replayed(msgspec.Struct, frozen=True):
    """What came of a replay; it stops at the first difference."""

    entries: int
    digest: str
    same: bool
    first_difference: Difference | None = None


def replay(bundle: Bundle) -> Replayed:
    """Handle every recorded input again and compare entry by entry, then the worlds."""
    world = restore(bundle.start) if bundle.start else World()
    kernel = Kernel(world)
    for count, (data, recorded) in enumerate(zip(bundle.inputs, bundle.entries, strict=True), start=1):
        inputs = decode_inputs(data)
        outcome = kernel.handle(inputs.events, inputs.at)
        if encode_entry(outcome.seq, outcome.at, outcome.facts) != recorded:
            difference = _difference(recorded, outcome.seq, outcome.facts)
            return Replayed(count, digest(world), same=False, first_difference=difference)
    found = digest(world)
    if found == bundle.digest:
        return Replayed(len(bundle.entries), found, same=True)
    apart = Difference(world.seq, f"a world of digest {bundle.digest}", f"a world of digest {found}")
    return Replayed(len(bundle.entries), found, same=False, first_difference=apart)


def _difference(recorded: bytes, seq: int, replayed: list[Fact]) -> Difference:
    entry = decode_entry(recorded)
    for mine, theirs in zip(entry.facts, replayed, strict=False):
        if mine != theirs:
            return Difference(entry.seq, str(mine), str(theirs))
    shared = min(len(entry.facts), len(replayed))
    if len(entry.facts) != len(replayed):
        return Difference(entry.seq, _tail(entry.facts, shared), _tail(replayed, shared))
    return Difference(entry.seq, f"entry {entry.seq} at {entry.at}", f"entry {seq}, with the same facts")


def _tail(facts: list[Fact], shared: int) -> str:
    return str(facts[shared]) if len(facts) > shared else f"no more than {shared} facts"
