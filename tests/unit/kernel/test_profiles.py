"""Profiles: one is there from the beginning, others are stored by name and version, and one of them is in use."""

from __future__ import annotations

import pytest

from muster.model import event, fact
from muster.model.profile import (
    DEFAULT,
    PROFILES,
    PROFILES_MAX,
    TERM_WEIGHT_MAX,
    TERMS,
    WORTH_TERMS,
    WORTH_WEIGHT_MAX,
    Edition,
    Profile,
)
from muster.model.reason import DONE, Code, Refused
from muster.scheduler.placing.fit import find_gang
from muster.testing.rig import Rig
from muster.units import Resources
from muster.world.snapshot import restore, snapshot

SPREADING = Profile(packing=0, filling=0)


def code_of(rig: Rig, item: event.Event) -> Code | None:
    answer = rig.answer(item)
    return answer.reason.code if isinstance(answer, Refused) else None


def test_one_profile_is_there_from_the_beginning_and_in_use() -> None:
    rig = Rig()
    assert (rig.world.profiles, rig.world.profile_used) == (PROFILES, "default")
    assert rig.world.fleet.profile == DEFAULT


def test_every_change_is_a_new_version_and_no_change_is_none() -> None:
    rig = Rig()
    assert rig.answer(event.SetProfile("even", SPREADING, cause="admin")) == DONE
    assert rig.outcomes[-1].facts == [fact.ProfileSet("even", SPREADING, 1, "admin")]
    rig.answer(event.SetProfile("even", SPREADING))
    assert rig.outcomes[-1].facts == []
    rig.answer(event.SetProfile("even", DEFAULT))
    assert rig.world.profiles["even"] == Edition(DEFAULT, 2)
    assert restore(snapshot(rig.world)).profiles == rig.world.profiles


def test_a_change_of_another_version_is_refused_and_loses_nothing() -> None:
    rig = Rig()
    assert code_of(rig, event.SetProfile("even", SPREADING, of_version=1)) == Code.PROFILE_CHANGED
    assert code_of(rig, event.SetProfile("even", SPREADING, of_version=0)) is None
    assert code_of(rig, event.SetProfile("even", DEFAULT, of_version=0)) == Code.PROFILE_CHANGED
    assert code_of(rig, event.SetProfile("even", SPREADING, of_version=0)) is None, "a repeat of what is so is harmless"
    assert rig.world.profiles["even"] == Edition(SPREADING, 1)


def test_what_is_in_use_scores_the_next_placement() -> None:
    """Node 0 is empty and node 1 is not: packing fills up, and without it the lowest slot is as good as any."""
    rig = Rig(nodes=2)
    fleet, ask = rig.world.fleet, Resources(1, 1000, 1)
    fleet.occupy(1, 7, Resources(4), 1, 0b1111)
    slots = [find_gang(fleet, ask, 1)]
    for name, profile in (("even", SPREADING), ("even", DEFAULT), ("even", SPREADING)):
        rig.answer(event.SetProfile(name, profile))
        rig.answer(event.UseProfile(name))
        slots.append(find_gang(fleet, ask, 1))
    rig.answer(event.UseProfile("default"))
    slots.append(find_gang(fleet, ask, 1))
    assert [found[0].slot for found in slots if found] == [1, 0, 1, 0, 1]


def test_what_is_in_use_survives_a_restore_and_a_fork() -> None:
    rig = Rig(nodes=1)
    rig.answer(event.SetProfile("even", SPREADING))
    assert rig.answer(event.UseProfile("even", "admin")) == DONE
    assert rig.outcomes[-1].facts == [fact.ProfileUsed("even", "admin")]
    rig.answer(event.UseProfile("even"))
    assert rig.outcomes[-1].facts == []
    for twin in (restore(snapshot(rig.world)), rig.world.fork()):
        assert (twin.profile_used, twin.fleet.profile) == ("even", SPREADING)


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("weight", [-1, TERM_WEIGHT_MAX + 1])
def test_a_weight_out_of_range_is_refused_with_the_range(term: str, weight: int) -> None:
    most = WORTH_WEIGHT_MAX if term in WORTH_TERMS else TERM_WEIGHT_MAX
    answer = Rig().answer(event.SetProfile("x", Profile(**{term: weight})))
    assert isinstance(answer, Refused)
    assert answer.reason.code == Code.BAD_AMOUNT
    assert (answer.reason.subject, answer.reason.detail) == (term, f"between 0 and {most}")


def test_what_is_no_profile_is_refused() -> None:
    rig = Rig()
    assert code_of(rig, event.SetProfile("", DEFAULT)) == Code.BAD_NAME
    assert code_of(rig, event.UseProfile("nobody")) == Code.UNKNOWN_PROFILE
    for number in range(PROFILES_MAX - 1):
        assert code_of(rig, event.SetProfile(f"p{number}", DEFAULT)) is None
    assert code_of(rig, event.SetProfile("one-more", DEFAULT)) == Code.TOO_LARGE
    assert code_of(rig, event.SetProfile("default", SPREADING)) is None
