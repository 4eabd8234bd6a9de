"""A trace's job as the kernel gets it: of the record, only what `muster.simulator.traces.sight` lets a league see."""

from __future__ import annotations

from bench.leagues.trial import gang_of
from muster.model.spec import Spec
from muster.simulator.traces.record import Record
from muster.simulator.traces.sight import SEEN
from muster.units import Resources

__all__ = ["SEEN", "spec_of"]


def spec_of(league: str, record: Record) -> Spec:
    """A job as the kernel gets it: of the record, only what the league may see."""
    seen = {name: getattr(record, name) for name in SEEN[league]}
    gang, gpus = gang_of(seen["gpus"])
    name = "-".join(filter(None, (seen.get("tenant", ""), seen.get("user", ""))))
    return Spec(("train",), name=name, gang=gang, ask=Resources(gpus), grace_ms=0)
