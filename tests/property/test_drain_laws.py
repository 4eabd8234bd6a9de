"""The law of draining: whoever can run has run in the end.

Crowds with everything in them that may come in another's way (`muster.testing.crowd`), and crowds on fleets of several
kinds (`muster.testing.variety`). Then nobody comes any more, all nodes are back and open and nothing is held, and some
weeks later everybody is over: who is not goes round in a circle, or was forgotten. The inspector looks at the books on
the way, and asks a restored world.
"""

from __future__ import annotations

import pytest

from muster.model.phase import TERMINAL
from muster.testing.crowd import Crowd
from muster.testing.variety import VariedCrowd


def check_drained(crowd: Crowd, seed: int) -> None:
    """Everybody is over in the end."""
    for _ in range(crowd.dice.randrange(10, 40)):
        crowd.submit()
        crowd.disturb()
        if crowd.dice.random() < 0.5:
            crowd.scene.advance(seconds=crowd.dice.randrange(4000))
    crowd.drain()
    left = [job for job in crowd.scene.body.world.jobs.values() if not isinstance(job.phase, TERMINAL)]
    assert not left, f"seed {seed}: {left}\n{crowd.scene.story()[-4000:]}"


@pytest.mark.parametrize(("kind", "seed"), [(Crowd, 6), (VariedCrowd, 603)])
def test_everybody_is_over_in_the_end(kind: type[Crowd], seed: int) -> None:
    check_drained(kind(seed, inspect_every=100), seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Crowd, VariedCrowd])
@pytest.mark.parametrize("first", range(100, 140, 8))
def test_so_it_is_in_eighty_crowds(first: int, kind: type[Crowd]) -> None:
    for seed in range(first, first + 8):
        check_drained(kind(seed, inspect_every=50), seed)


@pytest.mark.soak
@pytest.mark.parametrize("kind", [Crowd, VariedCrowd])
@pytest.mark.parametrize("first", range(10_000, 12_000, 100))
def test_so_it_is_in_four_thousand_crowds(first: int, kind: type[Crowd]) -> None:
    for seed in range(first, first + 100):
        check_drained(kind(seed, inspect_every=50), seed)
