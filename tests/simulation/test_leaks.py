"""A day of simulated time leaks nothing: once the fleet is busy, neither objects nor memory grow with time; and of a
leader over a real store, with a follower that is asked things, neither its files nor its rows."""

from __future__ import annotations

import contextlib
import gc
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from live_body import LiveBody
from live_follower import LiveFollower

from muster.control import leader as leader_module
from muster.control import writer as writer_module
from muster.control.loading import load_world
from muster.kernel.warm import warm_up
from muster.simulator import simulation as simulation_module
from muster.simulator.agenda import Agenda
from muster.simulator.engine import SimulatedEngine
from muster.simulator.options import SimOptions
from muster.simulator.simulation import Simulation
from muster.stores.sqlite import SqliteJournal
from muster.units import HOUR_MS
from muster.world.snapshot import digest

HOURS: Final = 24
SETTLED: Final = 8
"""After so many hours jobs come and go at the same rate, and what stays a while is there."""
GROWTH_PCT: Final = 1
SLACK_PCT: Final = 2
"""Pages of the store come and go."""
ROUGH_PCT: Final = 25
"""Between two snapshots rows gather."""
PAGE: Final = 4096
PACE: Final = 20
"""So much shorter jobs are than they are, and so many more."""
HISTORY_MS: Final = 2 * HOUR_MS
SNAPSHOT_EVERY: Final = 500
INPUTS_KEPT: Final = 5000
"""Limits that a few hours reach, where a server's are for days."""
ROWS: Final = (
    "SELECT count(*) FROM inputs",
    "SELECT count(*) FROM story",
    "SELECT count(*) FROM keys",
    "SELECT count(*) FROM finished",
    "SELECT count(*) FROM amounts",
    "SELECT count(*) FROM owners",
)
"""What is kept of jobs and inputs. The journal itself reaches back to the oldest job that is live or remembered, and
what is kept by the hour grows by the hour."""


class Sample(NamedTuple):
    """What is there at a full hour; of a store also its open files, its threads, its rows and the room they take."""

    objects: int
    rss_mb: float
    jobs: int
    seq: int = 0
    files: int = 0
    threads: int = 0
    rows: int = 0
    disk_mb: float = 0.0


def _look(simulation: Simulation) -> Sample:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    objects = len(gc.get_objects()) + gc.get_freeze_count()  # the tests are frozen before they begin
    return Sample(objects, pages * PAGE / 2**20, len(simulation.body.world.jobs))


def _run_a_day(options: SimOptions, look: Callable[[Simulation], Sample] = _look) -> list[Sample]:
    warm_up()  # as a server does; what is loaded later would look like a leak
    simulation, samples = Simulation(options), []
    go_on = simulation._go_on

    def stop_and_look(until: int, progress: object) -> None:
        go_on(until, None)
        samples.append(look(simulation))
        print(f"hour {len(samples)}: {samples[-1]}", flush=True)

    simulation._go_on = stop_and_look  # type: ignore[method-assign]  # it is called once an hour
    simulation.run()
    return samples


@pytest.mark.soak
def test_a_day_of_simulated_time_leaks_nothing() -> None:
    samples = _run_a_day(SimOptions(nodes=128, days=HOURS / 24, seed=5, inspect_every=10**9, drain=False))
    _check_flat(samples[SETTLED:], "objects", "rss_mb")


@pytest.mark.soak
def test_a_day_of_a_leader_and_a_follower_over_a_real_store_leaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = _lead_for(HOURS, tmp_path, monkeypatch)
    _check_flat(samples[SETTLED:], "files", "threads")
    _check_flat(samples[SETTLED:], "objects", "rss_mb", growth_pct=SLACK_PCT)
    _check_flat(samples[SETTLED:], "rows", growth_pct=ROUGH_PCT)


@pytest.mark.slow
def test_an_hour_of_a_leader_is_told_whole_by_its_store_and_its_follower(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, last = _lead_for(2, tmp_path, monkeypatch)
    assert last.seq > first.seq > 0
    assert (last.files, last.threads) == (first.files, first.threads)


def _lead_for(hours: int, root: Path, monkeypatch: pytest.MonkeyPatch) -> list[Sample]:
    """Let a leader lead a busy fleet for so long; at full hours file and follower have the leader's world."""
    made: list[LiveBody] = []
    following: list[LiveFollower] = []

    def make_body(agenda: Agenda, engine: SimulatedEngine, **_: object) -> LiveBody:
        made.append(LiveBody(agenda, engine, root, HISTORY_MS))
        return made[-1]

    monkeypatch.setattr(simulation_module, "Body", make_body)
    monkeypatch.setattr(leader_module, "SNAPSHOT_EVERY", SNAPSHOT_EVERY)
    monkeypatch.setattr(writer_module, "INPUTS_KEPT", INPUTS_KEPT)
    options = SimOptions(nodes=16, days=hours / 24, seed=5, pace=PACE, inspect_every=10**9, drain=False)
    with contextlib.ExitStack() as at_the_end:
        at_the_end.callback(lambda: made[0].close())
        at_the_end.callback(lambda: following[0].close())

        def look(simulation: Simulation) -> Sample:
            if not following:
                following.append(LiveFollower(root, made[0].agenda))
            following[0].catch_up(made[0].world.seq)
            return _look_at_store(simulation, made[0], following[0], root)

        return _run_a_day(options, look)


def _look_at_store(simulation: Simulation, body: LiveBody, following: LiveFollower, root: Path) -> Sample:
    assert digest(following.follower.world) == digest(body.world)
    with contextlib.closing(SqliteJournal(root / "journal.db")) as journal:
        assert digest(load_world(journal)) == digest(body.world)
    with contextlib.closing(sqlite3.connect(root / "journal.db")) as reading:
        rows = sum(reading.execute(question).fetchone()[0] for question in ROWS)
    size = sum(path.stat().st_size for path in root.glob("journal.db*"))
    return _look(simulation)._replace(
        seq=body.world.seq,
        files=len(list(Path("/proc/self/fd").iterdir())),
        threads=threading.active_count(),
        rows=rows,
        disk_mb=size / 2**20,
    )


def _check_flat(samples: list[Sample], *fields: str, growth_pct: int = GROWTH_PCT) -> None:
    """After the beginning, the last third is no larger than the first."""
    third = len(samples) // 3
    for field in fields:
        early = max(getattr(sample, field) for sample in samples[:third])
        late = max(getattr(sample, field) for sample in samples[-third:])
        assert late <= early * (100 + growth_pct) / 100, f"{field} grew from {early} to {late}"


def test_a_leak_would_be_seen() -> None:
    leaking = [Sample(100_000 + 2000 * hour, 100.0, 500) for hour in range(16)]
    with pytest.raises(AssertionError, match="objects grew"):
        _check_flat(leaking, "objects", "rss_mb")
