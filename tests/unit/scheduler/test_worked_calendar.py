"""The worked example of docs/concepts/calendar.md, row by row."""

from __future__ import annotations

from pathlib import Path

from muster.model import event, fact
from muster.model.spec import Spec
from muster.model.tier import Tier
from muster.scheduler.reasons import explain
from muster.testing.rig import Rig
from muster.testing.worked_tables import read_table
from muster.units import MINUTE_MS, Resources, parse_duration

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "calendar.md"
NODES = 4
NEVER = 10**6


class Story:
    """Four nodes, and jobs by name."""

    def __init__(self) -> None:
        self.rig = Rig()
        nodes = [event.NodeSeen(f"node-{number}", Resources(1, 64_000, 2**38)) for number in range(NODES)]
        self.rig.feed(*nodes, event.SetTier("standard", Tier(200, 0)), after_ms=0)
        self.numbers: dict[str, int] = {}
        self.ends: dict[str, int] = {}

    def go(self, minute: int) -> list[str]:
        """Time passes, and whoever reaches its limit ends; gives who starts meanwhile."""
        begun: list[str] = []
        for name, end in sorted(self.ends.items(), key=lambda item: item[1]):
            if end <= minute:
                del self.ends[name]
                over = event.Exited(self.numbers[name], 1, 0, 0, self.rig.job(self.numbers[name]).spec.gang)
                begun += self.feed(end, over)
        return begun + self.feed(minute)

    def feed(self, minute: int, *events: event.Event) -> list[str]:
        """Feed events at a minute; gives who starts."""
        outcome = self.rig.feed(*events, after_ms=minute * MINUTE_MS - self.rig.now)
        placed = [job for item in outcome.facts if isinstance(item, fact.Placed) for job in item.jobs]
        begun = [name for name, number in self.numbers.items() if number in placed]
        for name in begun:
            limit_ms = self.rig.job(self.numbers[name]).spec.limit_ms
            self.ends[name] = NEVER if limit_ms is None else minute + limit_ms // MINUTE_MS
        return begun

    def what_becomes_of(self, name: str) -> str:
        job = self.rig.job(self.numbers[name])
        waiting = explain(self.rig.world, job)
        if waiting is None:
            return "starts"
        reason = waiting.reason
        names = {number: each for each, number in self.numbers.items()}
        more = {
            "M212": f": starts by minute {reason.needed // MINUTE_MS}",
            "M213": f": would delay {names.get(reason.needed)}",
        }
        return f"waits, {reason.code.value}{more.get(reason.code.value, '')}"


def test_the_worked_example_is_true() -> None:
    story = Story()
    for minute, name, nodes, limit, wanted in read_table(PAGE, "minute | job"):
        story.go(int(minute))
        limit_ms = None if limit == "none" else parse_duration(limit)
        ask = Resources(1, 1000, 2**30)
        story.numbers[name] = story.rig.world.next_job
        story.feed(int(minute), event.Submit(Spec(("true",), gang=int(nodes), ask=ask, limit_ms=limit_ms)))
        assert story.what_becomes_of(name) == wanted
    for minute, over, starts in read_table(PAGE, "minute | ends"):
        assert story.ends[over] == int(minute)
        assert ", ".join(story.go(int(minute))) == starts
