"""Snapshots hold content by name, and a restore derives every index from it."""

from __future__ import annotations

import msgspec
import pytest

from muster.model import event
from muster.model.errors import StoreError
from muster.model.job import BarKind, Job
from muster.model.reason import Code
from muster.testing.rig import Rig
from muster.world import snapshot as snapshot_module
from muster.world.laws.invariants import check_world
from muster.world.snapshot import FORMAT, digest, pack, restore, snapshot


def busy_rig() -> Rig:
    rig = Rig(nodes=3)
    rig.tenant("a", gpus=8)
    rig.submit(8, gang=2)
    rig.submit(1, array=12, tenant="a")
    rig.submit(2, tenant="a", limit_ms=50)
    rig.submit(8, gang=3)
    rig.start(1, 0, 1)
    rig.feed(event.Started(2, 1, 0, 5))
    rig.feed(event.Exited(2, 1, 0, 1, 2))
    rig.feed(event.NodeSilent("node-2"))
    rig.feed(event.BarNode("node-1", BarKind.CORDON, "me", "disk", until=10**6))
    rig.feed(
        event.BarNode("node-2", BarKind.DRAIN, "you", lets_finish=False), event.BarNode("node-2", BarKind.DRAIN, "me")
    )
    return rig


def test_a_world_with_gangs_and_arrays_comes_back_whole() -> None:
    world = busy_rig().world
    again = restore(snapshot(world))
    assert digest(again) == digest(world)
    assert snapshot(again) == snapshot(world)
    assert again.ranks == world.ranks
    assert dict(again.keys.items()) == dict(world.keys.items())
    check_world(again)


@pytest.mark.parametrize("at_once", [1, 2, 3, 4, 500])
def test_one_that_is_taken_breath_by_breath_and_packed_is_the_same(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, breaths = busy_rig().world, list[int]()
    in_one_go = msgspec.msgpack.decode(snapshot(world))
    monkeypatch.setattr(snapshot_module, "JOBS_AT_ONCE", at_once)
    slowly = snapshot(world, lambda: breaths.append(1))
    assert slowly == msgspec.msgpack.encode(in_one_go, order="sorted")
    assert len(breaths) == -(-len(world.jobs) // at_once)
    assert snapshot(restore(pack(slowly))) == slowly


class _Seen(dict[int, Job]):
    """Jobs that note how many of them were looked at."""

    looks = 0

    def __getitem__(self, number: int) -> Job:
        self.looks += 1
        return super().__getitem__(number)


def test_no_more_jobs_are_looked_at_in_one_breath_than_are_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    world, seen = busy_rig().world, list[int]()
    monkeypatch.setattr(snapshot_module, "JOBS_AT_ONCE", 2)
    world.jobs = jobs = _Seen(world.jobs)
    snapshot(world, lambda: seen.append(jobs.looks))
    assert seen == [min(2 * count, len(jobs)) for count in range(1, len(seen) + 1)]


def test_a_restored_world_holds_what_its_leases_hold() -> None:
    world = busy_rig().world
    again = restore(snapshot(world))
    assert again.ledger.holdings() == world.ledger.holdings()
    assert [again.fleet.free(slot) for slot in range(3)] == [world.fleet.free(slot) for slot in range(3)]
    assert again.fleet.holders == world.fleet.holders
    assert again.fleet.bars == world.fleet.bars
    assert list(again.queue.waiting()) == list(world.queue.waiting())


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", b"\x90", b"\x78\x01cut", b"plainly not a snapshot", msgspec.msgpack.encode({"format": 1})]
)
def test_damage_is_a_store_error(data: bytes) -> None:
    with pytest.raises(StoreError) as caught:
        restore(data)
    assert caught.value.reason.code == Code.JOURNAL_DAMAGED


def test_every_cut_of_a_snapshot_is_a_store_error() -> None:
    data = snapshot(busy_rig().world)
    for size in range(0, len(data), 7):
        with pytest.raises(StoreError):
            restore(data[:size])


def test_a_snapshot_from_before_there_were_bars_is_read() -> None:
    content = msgspec.msgpack.decode(snapshot(busy_rig().world))
    del content["nodes"]["bars"]
    older = restore(msgspec.msgpack.encode(content))
    assert older.fleet.bars == {}
    check_world(older)


def test_a_world_without_bars_has_the_bytes_it_had_before_there_were_any() -> None:
    assert "bars" not in msgspec.msgpack.decode(snapshot(Rig(nodes=1).world))["nodes"]


def test_a_bar_on_a_node_that_is_not_there_is_damage() -> None:
    content = msgspec.msgpack.decode(snapshot(busy_rig().world))
    content["nodes"]["bars"][0][0] = 77
    with pytest.raises(StoreError) as caught:
        restore(msgspec.msgpack.encode(content))
    assert caught.value.reason.code == Code.JOURNAL_DAMAGED


def test_a_newer_snapshot_is_refused_even_if_it_could_be_read() -> None:
    content = msgspec.msgpack.decode(snapshot(busy_rig().world))
    content["format"] = FORMAT + 1
    with pytest.raises(StoreError) as caught:
        restore(msgspec.msgpack.encode(content))
    assert caught.value.reason.code == Code.JOURNAL_NEWER


def test_columns_of_unequal_length_are_damage() -> None:
    content = msgspec.msgpack.decode(snapshot(busy_rig().world))
    content["nodes"]["phase"] = b"\0\0\0"
    with pytest.raises(StoreError) as caught:
        restore(msgspec.msgpack.encode(content))
    assert caught.value.reason.code == Code.JOURNAL_DAMAGED
