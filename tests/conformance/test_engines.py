"""Every engine, with real processes, through the one suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from muster.engines.local.engine import LocalEngine, shut_down
from muster.model.instruction import Stop
from muster.testing.engine_conformance import CHECKS, Bench
from muster.units import Resources

JOBS = (1, 2, 3)
TASKS_MAX = 12


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """The local engine on a root of its own; afterwards nothing of it runs."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    root = tmp_path / "engine"
    bench = Bench(lambda: LocalEngine(root, "here", Resources(cpu_milli=4000)), "here", scratch)
    try:
        yield bench
    finally:
        bench.engine.carry_out([Stop(job, epoch, 0, TASKS_MAX, 0) for job in JOBS for epoch in (1, 2)])
        for job in JOBS:
            bench.wait_exited(job, epoch=2, task=TASKS_MAX - 1)
        for job in JOBS:
            for task in range(TASKS_MAX):
                bench.wait_exited(job, epoch=1, task=task)
        bench.engine.close()
        shut_down(root)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_local(check: Callable[[Bench], None], bench: Bench) -> None:
    """The local engine keeps the contract."""
    check(bench)
