"""What a scheduler may see of a trace's job, league by league. Run times, ends and iterations are never among it."""

from __future__ import annotations

from typing import Final

from bench.leagues.trial import gang_of
from muster.model.spec import Spec
from muster.simulator.traces.record import Record
from muster.units import Resources

SEEN: Final[dict[str, tuple[str, ...]]] = {
    "rigid": ("submit_ms", "gpus"),
    "philly": ("submit_ms", "gpus", "tenant"),
    "deadline": ("submit_ms", "gpus", "user"),
    "faults": ("submit_ms", "gpus"),
    "prediction": ("submit_ms", "gpus", "cpu_milli", "tenant", "user", "name", "limit_ms"),
}
"""By league. An oracle is a policy that says so in its name, and is told the rest beside the kernel's door."""


def spec_of(league: str, record: Record) -> Spec:
    """A job as the kernel gets it: of the record, only what the league may see."""
    seen = {name: getattr(record, name) for name in SEEN[league]}
    gang, gpus = gang_of(seen["gpus"])
    name = "-".join(filter(None, (seen.get("tenant", ""), seen.get("user", ""))))
    return Spec(("train",), name=name, gang=gang, ask=Resources(gpus), grace_ms=0)
