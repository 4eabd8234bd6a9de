"""Who looked in vain looks again when something happened that could matter, or when time alone may have changed it."""

from __future__ import annotations

from typing import Any

import pytest

from muster.kernel import kernel
from muster.model import event, fact
from muster.model.tier import Tier
from muster.scheduler import cycle
from muster.scheduler.taking.herds import MARGIN_MS
from muster.testing.rig import Rig
from muster.units import MINUTE_MS


def count_calls(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[int]:
    """Note when a function of a module is called: it is given the time last."""
    honest, calls = getattr(module, name), list[int]()

    def noted(*args: Any) -> Any:
        calls.append(args[-1])
        return honest(*args)

    monkeypatch.setattr(module, name, noted)
    return calls


def test_who_is_in_the_way_is_asked_again_once_something_was_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(nodes=5)
    rig.feed(event.SetTier("standard", Tier(200, 0, 1)))
    rig.submit(8, gang=3)
    rig.submit(8, tier="opportunistic")
    guest = rig.submit(8, expect_ms=MINUTE_MS, yields=True)
    rig.feed(*(event.Started(job, rig.job(job).epoch, 0, rig.job(job).spec.gang) for job in (1, 2, guest)))
    rig.submit(8, gang=5)
    rig.feed(after_ms=2 * MINUTE_MS)
    looks = count_calls(monkeypatch, kernel, "plan_yields")
    rig.feed()
    rig.feed()
    assert looks == [], "with it gone there is still no room, and nothing has happened"
    rig.submit(8, tier="critical")
    assert any(isinstance(item, fact.StopAsked) for item in rig.outcomes[-1].facts)
    assert looks == [rig.now]
    rig.feed()
    assert looks[1:] == [rig.now], "something was decided after it had been asked"
    rig.feed()
    assert len(looks) == 2


def test_a_claim_is_looked_at_when_something_happened_or_somebody_takes_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig(nodes=2)
    for grace_ms in (MINUTE_MS, 2 * MINUTE_MS):
        rig.submit(8, tier="opportunistic", grace_ms=grace_ms)
    claimant, at = rig.submit(8, gang=2, tier="critical"), rig.now
    looks = count_calls(monkeypatch, cycle, "serve_claims")
    rig.feed()
    assert looks == [rig.now], "it was made after the claims were looked at"
    rig.feed()
    rig.feed()
    assert len(looks) == 1
    rig.submit(8, tier="critical")
    assert len(looks) == 2
    rig.feed(after_ms=at + MINUTE_MS + MARGIN_MS - 1 - rig.now)
    known = len(looks)
    rig.feed()
    assert len(looks) == known + 1, "nobody counts any more on the first to be gone"
    assert claimant in rig.world.claims


def test_a_claim_is_served_as_soon_as_its_places_are_free() -> None:
    rig = Rig(nodes=1)
    victim, claimant = rig.submit(8, tier="opportunistic"), rig.submit(8, tier="critical")
    rig.feed()
    rig.feed()
    rig.exit(victim, code=143)
    assert rig.phase(claimant) == "Starting"
