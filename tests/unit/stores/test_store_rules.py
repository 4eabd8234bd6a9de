"""The rules every store shares, case by case."""

from __future__ import annotations

from itertools import pairwise

import pytest

from muster.model.errors import StoreError
from muster.stores.rules import (
    SNAPSHOTS_BYTES_MAX,
    SNAPSHOTS_MAX,
    check_follows,
    check_snapshot,
    plan_cut,
    plan_snapshots,
    plan_trim,
)
from muster.testing.store_conformance import commits_of


@pytest.mark.parametrize(("last", "seqs"), [(0, []), (0, [1]), (0, [1, 2, 3]), (7, [8, 9])])
def test_numbers_that_follow_are_taken(last: int, seqs: list[int]) -> None:
    check_follows(last, commits_of(seqs))


@pytest.mark.parametrize(
    ("last", "seqs", "due", "got"),
    [(0, [0], 1, 0), (0, [2], 1, 2), (3, [4, 6], 5, 6), (3, [4, 4], 5, 4), (3, [3], 4, 3)],
)
def test_a_gap_or_a_repeat_is_named_with_its_numbers(last: int, seqs: list[int], due: int, got: int) -> None:
    with pytest.raises(StoreError, match="M306") as caught:
        check_follows(last, commits_of(seqs))
    assert (caught.value.reason.needed, caught.value.reason.available) == (due, got)


@pytest.mark.parametrize("seq", [-1, 6])
def test_a_snapshot_never_runs_ahead_of_the_journal(seq: int) -> None:
    with pytest.raises(StoreError, match="M306"):
        check_snapshot(5, seq)


@pytest.mark.parametrize(
    ("snapshot_seq", "keep", "newest_to_go"),
    [
        (None, 4, 6),  # no snapshot: the newest four stay
        (3, 4, 3),  # a replay from the snapshot needs 4 to 10
        (9, 4, 6),
        (10, 0, 10),
        (None, 100, -90),  # nothing goes
    ],
)
def test_trim_keeps_the_newest_and_what_the_snapshot_needs(
    snapshot_seq: int | None, keep: int, newest_to_go: int
) -> None:
    assert plan_trim(10, snapshot_seq, keep) == newest_to_go


def test_snapshots_are_close_near_the_end_and_the_newest_stays_however_large() -> None:
    kept: list[int] = []
    for seq in range(0, 4_000_000, 10_000):
        kept.append(seq)
        gone = plan_snapshots([(each, 1) for each in kept], 0)
        kept = [each for each in kept if each not in gone]
    ages = [kept[-1] - seq for seq in kept]
    assert (len(kept), kept[0], kept[-1]) == (SNAPSHOTS_MAX, 0, 3_990_000)
    assert all(older <= 4 * max(younger, 10_000) for older, younger in pairwise(ages))
    large = SNAPSHOTS_BYTES_MAX
    assert plan_snapshots([(1, large), (2, large), (3, large)], 0) == [2, 1]
    assert plan_snapshots([(1, 1), (2, 1), (3, 1)], 2) == [1], "no fold leads on from 1: entry 2 is gone"
    assert plan_snapshots([(3, 2 * large)], 9) == []


def test_no_entry_goes_that_no_snapshot_has_or_that_is_younger_than_the_forgotten() -> None:
    assert plan_cut(0, 50, None, 90) == 0
    assert plan_cut(10, 50, 40, 90) == 40
    assert plan_cut(10, 30, 40, 90) == 30
    assert plan_cut(10, 50, 50, 50) == 49
