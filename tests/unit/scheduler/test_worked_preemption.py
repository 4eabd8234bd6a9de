"""The worked example of docs/concepts/preemption.md, row by row."""

from __future__ import annotations

from pathlib import Path

from muster.model.fact import StopAsked
from muster.model.tenant import GPU, Line, gpu_amount
from muster.testing.rig import Rig
from muster.testing.worked_tables import read_table
from muster.units import MINUTE_MS

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "preemption.md"


def test_the_worked_example_is_true() -> None:
    rig = Rig(nodes=2, gpus=8)
    rig.tenant("vision", Line(GPU, guaranteed=gpu_amount(8)))
    rig.tenant("speech", Line(GPU, guaranteed=gpu_amount(4)))
    numbers: dict[str, int] = {}
    rows = read_table(PAGE, "job")
    assert len(rows) == 9
    for name, tenant, asks, stopped, right in rows:
        gpus, tier = asks.split()[0], asks.partition(", ")[2] or "standard"
        rig.feed(after_ms=MINUTE_MS)
        number = numbers[name] = rig.submit(int(gpus), tenant=tenant, tier=tier)
        stops = [item for item in rig.outcomes[-1].facts if isinstance(item, StopAsked)]
        wanted = [numbers[victim] for victim in stopped.split(", ") if victim]
        assert [item.job for item in stops] == wanted, name
        for item in stops:
            assert right.startswith(item.why.value), name
            assert item.cause == f"for job {number} of {tenant}"
            rig.exit(item.job, 143)
        waits = not stops and "are free" not in right
        assert (rig.phase(number) == "Queued") == waits, name
