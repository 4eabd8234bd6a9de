"""A table says whether a goal was met, and shows by how much it was not."""

from __future__ import annotations

from bench.report import Metric, Result


def test_a_ratio_just_below_its_goal_does_not_look_as_if_it_were_met() -> None:
    metrics = {
        "ratio": Metric(0.496, "of it", 0.5),
        "per_s": Metric(1_234_567.0, "tasks/s", 1_000_000),
        "p99": Metric(12.3, "ms", 30, at_least=False),
        "free": Metric(7.0, "MB"),
    }
    rows = [line.split() for line in Result("trial", metrics, {"floor": 35_030.0}).as_table().splitlines()[1:]]
    assert rows == [
        ["ratio", "0.496", "≥", "0.5", "of", "it", "MISSED"],
        ["per_s", "1,234,567.0", "≥", "1,000,000", "tasks/s", "met"],
        ["p99", "12.3", "≤", "30", "ms", "met"],
        ["free", "7.000", "MB"],
        ["floor", "35,030.0", "reference"],
    ]
