"""The worked example of docs/concepts/overlays.md, row by row."""

from __future__ import annotations

import re
from pathlib import Path

from muster.model.event import NodeSeen, SetFlavor, SetOverlay
from muster.model.node import Flavor
from muster.model.overlay import POWER, Overlay
from muster.scheduler.reasons import explain
from muster.testing.rig import Rig
from muster.testing.worked_tables import read_table
from muster.units import Resources
from muster.wire.words import put_in_words
from muster.world.overlays import rooms_of

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "overlays.md"


def make_rig() -> Rig:
    rig = Rig()
    rig.feed(*(NodeSeen(f"n{number}", Resources(8, 64_000, 2**38)) for number in range(4)))
    rig.feed(SetFlavor("gpu", Flavor("gpu", watts=700)))
    rig.feed(SetOverlay("row-a", Overlay(POWER, 9_000, ("n0", "n1"))))
    rig.feed(SetOverlay("row-b", Overlay(POWER, 8_000, ("n2", "n3"))))
    return rig


def places(rig: Rig, job: int) -> str:
    if rig.phase(job) == "Queued":
        return "waits"
    return ", ".join(rig.world.fleet.names[lease.slot] for lease in rig.run(job).leases)


def step(rig: Rig, words: str) -> str:
    """Let one row happen, and say where somebody went by it."""
    ended = re.fullmatch(r"job (\d+) ends", words)
    if ended:
        waiting = rig.world.queue.waiting()
        rig.start(int(ended[1]))
        rig.exit(int(ended[1]))
        return ", ".join(places(rig, job) for job in waiting if rig.phase(job) != "Queued")
    asked = re.fullmatch(r"job \d+: (?:(\d+) tasks of )?(\d+) GPUs", words)
    assert asked is not None, words
    return places(rig, rig.submit(int(asked[2]), gang=int(asked[1] or 1)))


def test_the_worked_example_is_true() -> None:
    rig = make_rig()
    for words, goes_to, *lefts in read_table(PAGE, "comes"):
        assert step(rig, words) == goes_to, words
        rooms = rooms_of(rig.world.fleet)
        assert [f"{rooms[name] // 1000:,} W" for name in ("row-a", "row-b")] == lefts, words


def test_the_reason_on_the_page_is_the_one_that_is_given() -> None:
    rig = make_rig()
    for words, *_ in read_table(PAGE, "comes")[:3]:
        step(rig, words)
    waiting = explain(rig.world, rig.job(3))
    assert waiting is not None
    assert f"`{put_in_words(waiting.reason).what}`" in PAGE.read_text(encoding="utf-8").replace("\n", " ")
