"""A replay is judged entry by entry, and starts from a snapshot if the bundle has one."""

from __future__ import annotations

import msgspec

from muster.kernel.kernel import Kernel, Outcome
from muster.model import event, fact
from muster.model.phase import TaskPhase
from muster.simulator.replay import replay
from muster.testing.rig import Rig, spec
from muster.wire.bundle import Bundle, chain_of
from muster.wire.codec import encode_entry, encode_inputs
from muster.world.snapshot import digest, restore, snapshot


def bundle_of(start: bytes, batches: list[tuple[int, list[event.Event]]], outcomes: list[Outcome], end: str) -> Bundle:
    inputs = [encode_inputs(out.seq, at, items) for (at, items), out in zip(batches, outcomes, strict=True)]
    entries = [encode_entry(out.seq, out.at, out.facts) for out in outcomes]
    return Bundle(start, inputs, entries, chain_of(entries), end)


def recorded() -> Bundle:
    rig = Rig(nodes=2)
    rig.submit(4, gang=2)
    start = snapshot(rig.world)
    kernel = Kernel(restore(start))
    batches: list[tuple[int, list[event.Event]]] = [
        (100, [event.Submit(spec(2)), event.Started(1, 1, 0, 2)]),
        (200, [event.Exited(1, 1, 0, 0, 2)]),
        (1_000_000, []),
    ]
    outcomes = [kernel.handle(items, at) for at, items in batches]
    return bundle_of(start, batches, outcomes, digest(kernel.world))


def test_a_run_from_a_snapshot_replays() -> None:
    replayed = replay(recorded())
    assert replayed.same
    assert replayed.entries == 3


def test_an_extra_fact_is_a_difference() -> None:
    bundle = recorded()
    longer = encode_entry(7, 200, [fact.Ended(1, TaskPhase.SUCCEEDED), fact.Retired([1])])
    entries = [bundle.entries[0], longer, bundle.entries[2]]
    replayed = replay(msgspec.structs.replace(bundle, entries=entries))
    assert not replayed.same
    assert replayed.entries == 2
    assert replayed.first_difference is not None


def test_an_empty_bundle_is_an_empty_world() -> None:
    rig = Rig()
    assert replay(Bundle(b"", [], [], [], digest(rig.world))).same
