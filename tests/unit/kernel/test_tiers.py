"""Tiers: three are there from the beginning, an admin sets others, and a job names one that exists."""

from __future__ import annotations

import pytest

from muster.model import event, fact
from muster.model.reason import DONE, Code, Refused
from muster.model.tier import RANK_MAX, SHADOWS_MAX, TIERS, TIERS_MAX, Tier
from muster.testing.rig import Rig, spec
from muster.units import AMOUNT_MAX, DAY_MS
from muster.world.snapshot import restore, snapshot


def code_of(rig: Rig, item: event.Event) -> Code | None:
    answer = rig.answer(item)
    return answer.reason.code if isinstance(answer, Refused) else None


def test_three_tiers_are_there_from_the_beginning() -> None:
    rig = Rig()
    assert rig.world.tiers == TIERS
    assert sorted(TIERS, key=lambda name: TIERS[name].rank) == ["critical", "standard", "opportunistic"]


def test_a_tier_is_set_once_and_survives_a_restore() -> None:
    rig = Rig()
    batch = event.SetTier("batch", Tier(400, DAY_MS), "admin")
    assert rig.answer(batch) == DONE
    assert rig.outcomes[-1].facts == [fact.TierSet("batch", Tier(400, DAY_MS), "admin")]
    rig.answer(batch)
    assert rig.outcomes[-1].facts == []
    rig.answer(event.SetTier("standard", Tier(1, 1)))
    assert restore(snapshot(rig.world)).tiers == {**TIERS, "batch": Tier(400, DAY_MS), "standard": Tier(1, 1)}


@pytest.mark.parametrize(
    ("name", "tier", "code"),
    [
        ("", Tier(1, 1), Code.BAD_NAME),
        ("x", Tier(-1, 1), Code.BAD_AMOUNT),
        ("x", Tier(RANK_MAX + 1, 1), Code.BAD_AMOUNT),
        ("x", Tier(1, -1), Code.BAD_AMOUNT),
        ("x", Tier(1, 1, -1), Code.BAD_AMOUNT),
        ("x", Tier(1, 1, SHADOWS_MAX + 1), Code.BAD_AMOUNT),
        ("x", Tier(1, AMOUNT_MAX + 1), Code.BAD_AMOUNT),
    ],
)
def test_what_is_no_tier_is_refused(name: str, tier: Tier, code: Code) -> None:
    assert code_of(Rig(), event.SetTier(name, tier)) == code


def test_there_are_not_too_many() -> None:
    rig = Rig()
    for number in range(TIERS_MAX - len(TIERS)):
        assert code_of(rig, event.SetTier(f"t{number}", Tier(1, 1))) is None
    assert code_of(rig, event.SetTier("one-more", Tier(1, 1))) == Code.TOO_LARGE
    assert code_of(rig, event.SetTier("standard", Tier(1, 1))) is None


def test_a_job_of_no_known_tier_or_of_no_priority_is_refused() -> None:
    rig = Rig(nodes=1)
    assert code_of(rig, event.Submit(spec(tier="gold"))) == Code.UNKNOWN_TIER
    assert code_of(rig, event.Submit(spec(tier="../etc"))) == Code.BAD_NAME
    assert code_of(rig, event.Submit(spec(priority=1001))) == Code.BAD_AMOUNT
    assert code_of(rig, event.Submit(spec(priority=-1001))) == Code.BAD_AMOUNT
    assert code_of(rig, event.Submit(spec(tier="critical", priority=-1000))) is None
