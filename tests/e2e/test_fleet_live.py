"""One machine as a fleet: what it says of itself is set when it starts, shown, and obeyed."""

from __future__ import annotations

from pathlib import Path

import pytest
from live import LiveHome, serving


@pytest.mark.slow
def test_a_machine_has_a_flavor_a_place_and_labels_and_keeps_them(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as mine:
        refused = mine.muster("up", "--rack", "r1", code=2)
        assert "`muster down` first" in refused.stderr
        mine.muster("down")
        mine.muster(
            "up", "--flavor", "h100", "--region", "eu", "--cluster", "alpha", "--rack", "r1", "--label", "zone=a"
        )
        nodes = mine.muster("nodes").stdout
        assert "eu/alpha/r1" in nodes
        assert "zone=a" in nodes
        assert nodes.count("gone") == 1, "the machine was called otherwise before, and counts once"
        mine.muster("down")
        mine.muster("up")
        node = mine.muster("nodes", "--phase", "up", "-o", "name").stdout.strip()
        shown = mine.muster("show", node).stdout
        assert "flavor:  h100" in shown
        assert mine.muster("run", "--flavor", "h100", "--label", "zone=a", "--", "echo", "here").stdout == "here\n"
        other = mine.muster("run", "--flavor", "a100", "--", "true", code=2)
        assert other.stderr.startswith("error[M110]")


def test_a_flavor_is_set_and_listed(live: LiveHome) -> None:
    live.muster("flavors", "set", "cpu", "--price", "0.05")
    assert "0.05" in live.muster("flavors").stdout
    assert live.muster("flavors", "set", "cpu", "--units", "0", code=2).stderr.startswith("error[M102]")
