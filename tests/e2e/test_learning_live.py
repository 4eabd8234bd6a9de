"""A real server learns for how long jobs run: the next of a kind is told its likely end, after a restart too, unless
that is switched off."""

from __future__ import annotations

from pathlib import Path

import pytest
from live import await_true, serving

from muster.learning.foretelling import LEAST_LIKES

WORDS = f"from {LEAST_LIKES} jobs of its owner with the same name, size and limit"


@pytest.mark.slow
def test_the_next_of_a_kind_is_told_when_it_is_likely_over(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as live, live.client() as client:
        for _ in range(LEAST_LIKES):
            live.muster("run", "--name", "train", "--", "true")
        job = int(live.muster("run", "--detach", "--name", "train", "--", "sleep", "600").stdout)

        def is_told() -> bool:
            end = client.show(job).end
            return end is not None and end.words == WORDS

        await_true(is_told, "its likely end comes from those before it")
        assert "runtime" in live.muster("advice").stdout
        assert "likely over" in live.muster("show", str(job)).stdout
        version = next(each.version for each in client.advice() if each.name == "runtime")

        live.muster("down")
        live.muster("up")
        other = int(live.muster("run", "--detach", "--name", "train", "--", "sleep", "600").stdout)
        await_true(lambda: client.show(other).end is not None, "what ended before the restart is known")
        assert next(each.version for each in client.advice() if each.name == "runtime") > version

        live.muster("up", "--no-learn", code=2)
        live.muster("down")
        live.muster("up", "--no-learn")
        assert not live.home.learns
        live.muster("down")
        live.muster("up")
        assert not live.home.learns, "it is remembered"
        live.muster("cancel", str(job), str(other))
