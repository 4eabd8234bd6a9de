"""Whole fleets for whole days, with faults; the laws are watched at every entry. A failure names its replay command."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest

from muster.simulator.options import SimOptions
from muster.simulator.replay import replay
from muster.simulator.report import Report
from muster.simulator.simulation import Progress, run_simulation
from muster.wire.bundle import chain_of, decode_bundle
from muster.wire.codec import decode_entry, encode_entry

SMALL = SimOptions(nodes=24, days=0.5, seed=7, faults=1500, maintenance=500, lost=50, doubled=100, inspect_every=200)


@pytest.fixture(scope="module")
def recorded() -> Report:
    """One small run, recorded."""
    return run_simulation(msgspec.structs.replace(SMALL, record=True))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_a_day_of_a_small_fleet_keeps_every_law(seed: int) -> None:
    report = run_simulation(msgspec.structs.replace(SMALL, days=1, seed=seed))
    assert report.accepted == sum(report.outcomes.values()) > 100
    assert report.outcomes["succeeded"] > report.outcomes["failed"]
    assert report.inspections > 3


@pytest.mark.parametrize("days", [0.1, pytest.param(0.25, marks=pytest.mark.slow)])
def test_hours_of_a_thousand_nodes_keep_every_law(days: float) -> None:
    report = run_simulation(SimOptions(nodes=1000, days=days, seed=1, faults=200, drain=False, inspect_every=2000))
    assert report.accepted > 4000 * days
    assert report.node_faults > 40 * days


def test_a_fleet_without_gpus_works_too() -> None:
    report = run_simulation(SimOptions(nodes=6, gpus=0, days=3, seed=3, faults=0, inspect_every=50))
    assert report.accepted == sum(report.outcomes.values()) > 0


def test_a_quiet_fleet_loses_nothing() -> None:
    report = run_simulation(
        SimOptions(nodes=4, days=0.5, faults=0, maintenance=0, lost=0, doubled=0, failures=0, cancels=0, load=0.3)
    )
    assert report.outcomes["cancelled"] == report.restarts == report.node_faults == 0


def test_the_same_seed_gives_the_same_journal_and_another_seed_another(recorded: Report) -> None:
    again, other = run_simulation(SMALL), run_simulation(msgspec.structs.replace(SMALL, seed=8))
    assert (again.journal_hash, again.digest) == (recorded.journal_hash, recorded.digest), "also if nobody records it"
    assert other.journal_hash != recorded.journal_hash


PROGRAM = """
from muster.simulator.options import SimOptions
from muster.simulator.simulation import run_simulation
storm = {'faults': 2000, 'maintenance': 900, 'lost': 100, 'doubled': 100}
report = run_simulation(SimOptions(nodes=12, days=0.3, seed=5, **storm, inspect_every=100))
print(report.journal_hash, report.digest)
"""


def prints_of(variable: str, *values: str) -> set[str]:
    """What the program prints in processes of its own, with a variable set to each of some values."""
    return {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, variable: value},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for value in values
    }


def test_the_same_seed_gives_the_same_journal_under_two_hash_seeds() -> None:
    assert len(prints_of("PYTHONHASHSEED", "1", "4242")) == 1


@pytest.mark.slow
def test_compiled_and_uncompiled_code_decide_alike() -> None:
    """The same source, with the compiler and without: the same journal, byte for byte."""
    assert len(prints_of("NUMBA_DISABLE_JIT", "0", "1")) == 1


def test_progress_is_told_and_does_not_change_the_run(recorded: Report) -> None:
    told: list[Progress] = []
    assert run_simulation(SMALL, told.append).journal_hash == recorded.journal_hash
    assert [item.done_pct for item in told] == sorted(item.done_pct for item in told)
    assert told[-1].done_pct == 100


def test_a_recorded_run_replays_to_the_same_world(recorded: Report) -> None:
    assert recorded.bundle is not None
    replayed = replay(decode_bundle(recorded.bundle))
    assert replayed.same
    assert replayed.first_difference is None
    assert (replayed.entries, replayed.digest) == (recorded.entries, recorded.digest)


def test_a_replay_shows_where_decisions_part(recorded: Report) -> None:
    assert recorded.bundle is not None
    bundle = decode_bundle(recorded.bundle)
    entry = decode_entry(bundle.entries[40])
    entries = bundle.entries.copy()
    entries[40] = encode_entry(entry.seq, entry.at, entry.facts[1:])
    replayed = replay(msgspec.structs.replace(bundle, entries=entries, chain=chain_of(entries)))
    assert not replayed.same
    assert replayed.first_difference is not None
    assert replayed.first_difference.seq == entry.seq
    assert type(entry.facts[0]).__name__ in str(replayed.first_difference)


def test_a_replay_notices_another_end() -> None:
    report = run_simulation(msgspec.structs.replace(SMALL, days=0.1, record=True))
    assert report.bundle is not None
    replayed = replay(msgspec.structs.replace(decode_bundle(report.bundle), digest="0" * 32))
    assert not replayed.same
    assert "digest" in str(replayed.first_difference)


def test_a_report_is_as_wide_as_asked_for() -> None:
    text = run_simulation(msgspec.structs.replace(SMALL, days=0.2)).render(60)
    assert max(len(line) for line in text.splitlines()) <= 60
    assert "none broken" in " ".join(text.split())
    assert "GPUs held, 0 to 192" in text


@pytest.mark.slow
@pytest.mark.parametrize("seed", [100, 101])
def test_two_storms(seed: int) -> None:
    _storm(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(102, 130))
def test_many_storms(seed: int) -> None:
    _storm(seed)


def _storm(seed: int) -> None:
    report = run_simulation(
        SimOptions(nodes=16, days=1, seed=seed, load=1.2, pace=8, faults=5000, maintenance=2000, lost=100,
                   doubled=300, failures=0.2, cancels=0.1, inspect_every=100)
    )  # fmt: skip
    assert report.accepted == sum(report.outcomes.values())


@pytest.mark.soak
def test_two_days_of_a_thousand_full_nodes_keep_every_law() -> None:
    report = run_simulation(SimOptions(nodes=1000, days=2, seed=1, inspect_every=5000))
    assert report.accepted == sum(report.outcomes.values()) > 10_000


@pytest.mark.soak
def test_a_month_of_a_thousand_nodes_keeps_every_law() -> None:
    """What it is like and what it costs stands in docs/reference/soak.md."""
    report = run_simulation(SimOptions(nodes=1000, days=30, seed=1, load=0.3, inspect_every=5000))
    assert report.accepted == sum(report.outcomes.values()) > 50_000
