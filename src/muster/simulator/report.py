"""The report of a simulation: its figures as a value, and the value as a page of text. It measures no real time."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence
from typing import Final

import msgspec

from muster.simulator.options import SimOptions
from muster.units import DAY_MS, show_duration

BLOCKS: Final = " ▁▂▃▄▅▆▇█"


class Sample(msgspec.Struct, frozen=True, gc=False):
    """One look at the world: GPUs held and jobs waiting, at an instant."""

    at: int
    gpus_held: int
    waiting: int


class Report(msgspec.Struct, frozen=True):
    """What a run was like. Times are virtual. `arrival_pct` is how much of the GPU time was held while jobs came, and
    `busy_pct` until the last of them was over."""

    options: SimOptions
    span_ms: int
    batches: int
    events: int
    entries: int
    facts: int
    inspections: int
    node_faults: int
    node_bars: int
    accepted: int
    refused: int
    outcomes: dict[str, int]
    tasks: dict[str, int]
    restarts: int
    waits_ms: dict[str, int]
    busy_pct: int
    samples: list[Sample]
    journal_hash: str
    digest: str
    bundle: bytes | None = None
    device_faults: int = 0
    goodput: dict[str, int] = {}
    takings: int = 0
    arrival_pct: int = 0

    def render(self, width: int = 80) -> str:
        """The report as text, at most `width` wide."""
        total = self.options.nodes * self.options.gpus
        fleet = f"{_count(self.options.nodes, 'node')} x {_count(self.options.gpus, 'GPU')}"
        waits = ", ".join(f"{name} {show_duration(span)}" for name, span in self.waits_ms.items())
        lines = [
            f"{fleet}, {self._span()}, seed {self.options.seed}",
            f"jobs      {_pairs({'accepted': self.accepted, 'refused': self.refused, **self.outcomes})}",
            f"tasks     {_pairs(self.tasks)}",
            f"restarts  {self.restarts} runs, after {_pairs(self._troubles())}; {self.takings} for others",
            f"wait      {waits or 'nobody started'}",
            f"GPU time  {self.arrival_pct}% held while jobs came, {self.busy_pct}% in all",
            f"goodput   {self._shares()}",
            f"work      {self.events} events in {self.batches} batches, {self.facts} facts in {self.entries} entries",
            f"laws      {self.entries} entries audited, {_count(self.inspections, 'full inspection')}, none broken",
            f"digest    {self.digest} (journal {self.journal_hash})",
            "",
            *plot("GPUs held", [sample.gpus_held for sample in self.samples], width, total),
            *plot("waiting", [sample.waiting for sample in self.samples], width),
        ]
        return "\n".join(part for line in lines for part in _fold(line, width)) + "\n"

    def as_value(self, picture: object) -> dict[str, object]:
        """All figures for programs, with the picture of the run."""
        figures = {name: getattr(self, name) for name in self.__struct_fields__ if name != "bundle"}
        return {"command": self.options.command(), **figures, "picture": picture}

    def _span(self) -> str:
        """For how long jobs came, and when the last of them was over."""
        arrivals = show_duration(int(self.options.days * DAY_MS))
        return f"jobs came for {arrivals}, the last ended after {show_duration(self.span_ms)}"

    def _shares(self) -> str:
        """What all device time was spent on, in tenths of a per cent."""
        total = max(1, sum(self.goodput.values()))
        shares = {name: divmod(1000 * time // total, 10) for name, time in self.goodput.items() if time}
        return ", ".join(f"{name} {whole}.{tenth}%" for name, (whole, tenth) in shares.items()) or "none"

    def _troubles(self) -> dict[str, int]:
        return {"node faults": self.node_faults, "device faults": self.device_faults, "bars": self.node_bars}


def plot(name: str, values: Sequence[int], width: int, top: int = 0, height: int = 4) -> list[str]:
    """A small plot of values over time: `height` rows of blocks under a line that names the scale."""
    top = max(top, *values, 1) if values else 1
    columns = _squeeze(values, max(10, width - 2))
    lines = [f"{name}, 0 to {top}"]
    for row in reversed(range(height)):
        cells = [value * height * 8 // top - row * 8 for value in columns]
        lines.append(" │" + "".join(BLOCKS[max(0, min(8, cell))] for cell in cells))
    return lines


def percentiles(values: Sequence[int]) -> dict[str, int]:
    """The figures that a wait is told by."""
    ordered = sorted(values)
    if not ordered:
        return {}
    last = len(ordered) - 1
    found = {f"p{share}": ordered[last * share // 100] for share in (50, 90, 99)}
    return {**found, "max": ordered[-1]}


def _fold(line: str, width: int) -> list[str]:
    """A line that is too long goes on under its own words; a plot's never is."""
    if len(line) <= width:
        return [line]
    return textwrap.wrap(line, max(30, width), subsequent_indent=" " * 10)


def _squeeze(values: Sequence[int], width: int) -> list[int]:
    """At most `width` values, each the mean of its part."""
    if len(values) <= width:
        return list(values)
    cuts = [index * len(values) // width for index in range(width + 1)]
    return [sum(values[a:b]) // (b - a) for a, b in itertools.pairwise(cuts)]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _pairs(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"
