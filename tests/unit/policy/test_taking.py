"""Who may take from whom, over all pairs."""

from __future__ import annotations

import itertools

import pytest

from muster.model.phase import Why
from muster.policy.taking import Kin, Party, find_right, strength
from muster.world.quota import Standing

INSIDE, BORROWING = Standing.INSIDE, Standing.BORROWING
TIERS = ((100, "critical", False), (200, "standard", False), (200, "other", False), (50, "alarm", True))
PARTIES = [
    Party(standing, rank, tier, priority, emergency)
    for standing, (rank, tier, emergency), priority in itertools.product((INSIDE, BORROWING), TIERS, (0, 5))
]
PAIRS = list(itertools.product(PARTIES, PARTIES, Kin, (False, True)))


def rights_by_the_page(claimant: Party, victim: Party, kin: Kin, owed: bool) -> Why | None:
    """The rows of the table in docs/concepts/preemption.md, as a list of cases."""
    higher = claimant.rank < victim.rank
    if victim.emergency and not claimant.emergency:
        return None
    if claimant.emergency and higher:
        return Why.PREEMPT
    if claimant.standing == BORROWING and victim.standing == INSIDE:
        return None
    if claimant.standing == INSIDE and victim.standing == BORROWING and owed and kin != Kin.SAME:
        return Why.RECLAIM
    if higher and (kin in (Kin.SAME, Kin.BELOW) or victim.standing == BORROWING):
        return Why.PREEMPT
    same_line = kin == Kin.SAME and claimant.tier == victim.tier
    return Why.PREEMPT if same_line and claimant.priority > victim.priority else None


def test_the_table_is_the_one_on_the_page() -> None:
    for claimant, victim, kin, owed in PAIRS:
        wanted = rights_by_the_page(claimant, victim, kin, owed)
        if victim.emergency < claimant.emergency and wanted == Why.RECLAIM:
            continue  # an emergency that is owed something: it reclaims, or preempts what is below it
        assert find_right(claimant, victim, kin, owed=owed) == wanted, (claimant, victim, kin, owed)


def test_whoever_takes_is_the_stronger_one() -> None:
    for claimant, victim, kin, owed in PAIRS:
        if find_right(claimant, victim, kin, owed=owed) is not None:
            assert strength(claimant) < strength(victim)


def test_nobody_takes_from_each_other() -> None:
    for claimant, victim, kin, owed in PAIRS:
        if find_right(claimant, victim, kin, owed=owed) is not None:
            for other, owing in itertools.product(Kin, (False, True)):
                assert find_right(victim, claimant, other, owed=owing) is None


def test_another_tenants_guaranteed_runs_are_never_taken() -> None:
    for claimant, victim, kin, owed in PAIRS:
        if kin == Kin.OTHER and victim.standing == INSIDE and not claimant.emergency:
            assert find_right(claimant, victim, kin, owed=owed) is None


@pytest.mark.parametrize("kin", Kin)
def test_what_may_not_be_evicted_is_never_taken(kin: Kin) -> None:
    for claimant, victim in itertools.product(PARTIES, PARTIES):
        assert find_right(claimant, victim._replace(evictable=False), kin, owed=True) is None
