"""Journals of every released version still fold to the world they folded to; small scenes still decide as they did."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_kit import HERE, JOURNAL, SCENES, decisions_file, decisions_of, pack, unpack

from muster.model import fact
from muster.model.tenant import Tenant, limits
from muster.wire.codec import decode_entry
from muster.world.laws.invariants import check_world, fold
from muster.world.snapshot import digest, restore

JOURNALS = sorted((HERE / "journals").glob("*.journal"))


def test_there_is_a_journal_of_every_version() -> None:
    """v1 is from before nodes had bars, v2 from before they had traits, v3 from before tenants were a tree, v4 from
    before there were profiles, jobs could wait for each other and be stopped for others."""
    assert [path.stem for path in JOURNALS] == ["v1", "v2", "v3", "v4", "v5"]
    assert JOURNALS[-1] == JOURNAL


@pytest.mark.parametrize("path", JOURNALS, ids=lambda path: str(path.stem))
def test_a_golden_journal_folds_to_its_digest(path: Path) -> None:
    world = fold(unpack(path.read_bytes()))
    check_world(world)
    assert digest(world) == path.with_suffix(".digest").read_text(encoding="utf-8").strip()


def test_a_snapshot_of_format_1_restores_to_what_its_journal_folds_to() -> None:
    """It was taken of the fold of v3, when tenants had flat quotas; what they may hold are lines now. Use was not kept
    then, nor when a run began: both count from the restore on."""
    world = restore((HERE / "snapshots" / "v1.snapshot").read_bytes())
    check_world(world)
    folded = fold(unpack((HERE / "journals" / "v3.journal").read_bytes()))
    assert world.tenants == folded.tenants
    assert world.ledger.holdings() == folded.ledger.holdings()
    assert world.fleet.holders == folded.fleet.holders
    assert world.queue.waiting() == folded.queue.waiting()
    assert list(world.usage.books(world.now)) == []
    assert world.tenants["team-1"] == Tenant(lines=limits(gpus=42))


def test_the_newest_journal_holds_every_kind_of_fact() -> None:
    entries = unpack(JOURNAL.read_bytes())
    assert pack(entries) == JOURNAL.read_bytes()
    kinds = {type(item) for data in entries for item in decode_entry(data).facts}
    assert kinds == set(fact.Fact.__args__)


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_decides_as_it_did(name: str) -> None:
    """If a decision changed on purpose, write them again and read the diff: see golden_kit.py."""
    assert decisions_of(name) == decisions_file(name).read_text(encoding="utf-8")
