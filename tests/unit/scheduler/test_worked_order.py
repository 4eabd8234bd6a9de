"""The worked example of docs/concepts/order.md, row by row."""

from __future__ import annotations

from pathlib import Path

from muster.model import fact
from muster.testing.rig import Rig
from muster.testing.worked_tables import read_table
from muster.units import MINUTE_MS
from muster.world.decay import WEIGHT_BITS

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "order.md"
WAITING = (("vision", 3), ("speech", 2), ("maps", 1))


def rows() -> list[list[str]]:
    return read_table(PAGE, "starts | share of language")


def start(gpus: int) -> tuple[list[str], list[int]]:
    """Who starts when so many GPUs come free, and the shares of use then, in GPU minutes."""
    rig = Rig(nodes=1, gpus=gpus)
    rig.tenant("language", weight=2)
    for name in ("maps", "speech"):
        rig.tenant(name, parent="language")
    blocker = rig.submit(gpus, tenant="blocker")
    names = {rig.submit(1, tenant=name): f"{name}-{turn + 1}" for name, count in WAITING for turn in range(count)}
    rig.feed(after_ms=10 * MINUTE_MS - rig.now - 1)
    before = len(rig.outcomes)
    rig.exit(blocker)
    assert rig.now == 10 * MINUTE_MS
    facts = [item for outcome in rig.outcomes[before:] for item in outcome.facts]
    begun = [names[job] for item in facts if isinstance(item, fact.Placed) for job in item.jobs]
    minutes = MINUTE_MS * 1_000_000 << WEIGHT_BITS
    vision, maps, speech = (rig.world.usage.charge(name, rig.now) // minutes for name in ("vision", "maps", "speech"))
    return begun, [(maps + speech) // 2, vision, maps, speech]


def test_the_worked_example_is_true() -> None:
    table = rows()
    assert len(table) == 5
    assert start(5)[0] == [row[0] for row in table]
    for number, row in enumerate(table[1:], start=1):
        begun, shares = start(number)
        assert begun == [earlier[0] for earlier in table[:number]]
        assert [str(share) for share in shares] == row[1:]
