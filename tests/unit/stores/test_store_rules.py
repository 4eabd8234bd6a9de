"""The rules every store shares, case by case."""

from __future__ import annotations

import pytest

from muster.model.errors import StoreError
from muster.stores.rules import check_follows, check_snapshot, plan_trim
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
