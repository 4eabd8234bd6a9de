"""Lines that are passed over unseen would have found nobody: to try all of them, or only those that might, is one."""

from __future__ import annotations

import pytest

from muster.scheduler.taking import heads
from muster.scheduler.taking.heads import Heads
from muster.simulator.options import SimOptions
from muster.simulator.simulation import run_simulation

CROWDED = SimOptions(
    nodes=8, days=0.12, seed=11, load=1.6, pace=4, tenants=12, faults=500, maintenance=300, inspect_every=500
)


def journal_with(monkeypatch: pytest.MonkeyPatch, few: int) -> str:
    """What a crowd of many tenants comes to if so few lines of a band are tried without asking whether they might."""
    monkeypatch.setattr(heads, "FEW", few)
    return run_simulation(CROWDED).journal_hash


def test_who_is_passed_over_would_find_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = dict.fromkeys((False, True), 0)
    might = Heads._might

    def counted(self: Heads, *line: object) -> bool:
        found = might(self, *line)  # type: ignore[arg-type]  # handed on as it came
        asked[found] += 1
        return found

    monkeypatch.setattr(Heads, "_might", counted)
    narrow = journal_with(monkeypatch, 0)
    assert min(asked.values()) > 20, "some are passed over, and some are not"
    assert journal_with(monkeypatch, 1000) == narrow
    monkeypatch.setattr(Heads, "_might", lambda *_: False)
    assert journal_with(monkeypatch, 0) != narrow, "it matters who is looked at"
