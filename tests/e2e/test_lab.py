"""`muster sim`, `bundle` and `replay`: what was decided once is decided again, and damage is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from live import LiveHome, serving

from muster.app.lab import main, record
from muster.control.batches import Item, make_batch
from muster.kernel.kernel import Kernel
from muster.model.event import NodeSeen, Submit
from muster.model.spec import Spec
from muster.simulator.replay import replay
from muster.stores.memory import MemoryStore
from muster.units import Resources
from muster.world.snapshot import snapshot
from muster.world.world import World

SMALL_SIM = ("sim", "--nodes", "4", "--days", "0.1", "--seed", "3")


@pytest.fixture
def lone(tmp_path: Path) -> LiveHome:
    """A home without a server."""
    return LiveHome(tmp_path / "home")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    """What a recorded simulation printed, and its bundle."""
    place = tmp_path_factory.mktemp("recorded")
    told = LiveHome(place / "home").muster(*SMALL_SIM, "--bundle", str(place / "bundle")).stdout
    return told, (place / "bundle").read_bytes()


def test_a_simulation_is_told_by_its_seed(lone: LiveHome) -> None:
    first, second = lone.muster(*SMALL_SIM).stdout, lone.muster(*SMALL_SIM).stdout
    assert first == second
    assert "none broken" in first


def test_a_recorded_simulation_replays_to_its_digest(
    lone: LiveHome, tmp_path: Path, recorded: tuple[str, bytes]
) -> None:
    file, (told, bundle) = tmp_path / "sim.bundle", recorded
    file.write_bytes(bundle)
    again = lone.muster("replay", str(file)).stdout
    assert again.startswith("same: ")
    assert again.split()[-1] in told


def test_a_live_server_s_record_replays_also_while_it_runs(harmed: LiveHome, tmp_path: Path) -> None:
    file = tmp_path / "live.bundle"
    harmed.muster("run", "--", "true")
    recorded = harmed.muster("bundle", str(file)).stdout
    harmed.kill("leader")
    harmed.muster("up")
    harmed.muster("run", "--array", "5", "--", "true")
    longer = harmed.muster("bundle", str(file)).stdout
    assert file.stat().st_mode & 0o777 == 0o600, "it holds what jobs were given as their environment"
    assert harmed.muster("replay", str(file)).stdout == f"same: {longer}"
    assert int(longer.split()[0]) > int(recorded.split()[0])


@pytest.mark.slow
def test_a_live_server_s_history_is_a_trace_also_while_it_runs(tmp_path: Path) -> None:
    history, packed = tmp_path / "history.csv", tmp_path / "history.swf.gz"
    with serving(tmp_path / "home") as live:
        live.muster("run", "--name", "first", "--", "true")
        live.muster("run", "--", "false", code=1)
        told = live.muster("trace", "export", str(history)).stdout
        assert told.startswith("2 jobs\n")
        live.muster("trace", "export", str(packed), "--to", "swf")
    found = json.loads(live.muster("trace", "info", str(history), "--json").stdout)
    assert found["figures"]["statuses"] == {"succeeded": 1, "failed": 1}
    assert "2: asks for no GPU" in live.muster("trace", "convert", str(history), str(packed), "--to", "swf").stdout


def test_a_simulation_writes_its_page(lone: LiveHome, tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    lone.muster(*SMALL_SIM, "--like", "kalos", "--report", str(page))
    assert "muster sim --nodes 4 --days 0.1 --seed 3 --like kalos" in page.read_text()


def test_damage_is_named(lone: LiveHome, tmp_path: Path, recorded: tuple[str, bytes]) -> None:
    file = tmp_path / "bundle"
    assert "error[M312]" in lone.muster("replay", str(file), code=2).stderr
    file.write_bytes(b"anything")
    assert "error[M312]: cannot read the bundle" in lone.muster("replay", str(file), code=2).stderr
    file.write_bytes(recorded[1][:-1])
    assert "cut short" in lone.muster("replay", str(file), code=2).stderr


@pytest.mark.parametrize("place", ["no/such/folder/out", "."], ids=["no folder", "a folder"])
def test_a_bundle_that_could_not_be_written_is_refused_before_the_run(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A month takes hours: its bundle is not refused at its end, nor in the words of one that cannot be read."""
    monkeypatch.setattr("muster.app.lab.run_simulation", lambda *_: pytest.fail("it was played all the same"))
    assert main(["sim", "--nodes", "1", "--days", "0.001", "--bundle", str(tmp_path / place)]) == 2
    assert "error[M354]" in capsys.readouterr().err


def test_a_record_that_cannot_be_written_says_so(harmed: LiveHome, tmp_path: Path) -> None:
    assert "error[M354]" in harmed.muster("bundle", str(tmp_path / "no" / "out"), code=2).stderr


def test_a_home_without_a_journal_has_nothing_to_record(lone: LiveHome, tmp_path: Path) -> None:
    told = lone.muster("bundle", str(tmp_path / "out"), code=2).stderr
    assert told.startswith("error[M305]")
    assert not (tmp_path / "out").exists()


def test_options_that_are_unknown_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["sim", "--gold", "1"])
    assert caught.value.code == 2
    assert "--gold" in capsys.readouterr().err


@pytest.mark.parametrize("kept", [1000, 0], ids=["whole recorder", "recorder cut at the snapshot"])
def test_a_record_begins_where_the_recorder_still_can(kept: int) -> None:
    store, kernel = MemoryStore(), Kernel(World())
    node = NodeSeen("n1", Resources(gpus=8, cpu_milli=8000))
    for now in range(1, 21):
        event = node if now == 1 else Submit(Spec(("true",), ask=Resources(gpus=1)))
        commit = make_batch([Item(event)], kernel.handle([event], now)).commit
        assert commit is not None
        store.append([commit])
        if now == 10:
            store.save_snapshot(kernel.world.seq, snapshot(kernel.world))
    store.trim_inputs(kept)
    bundle = record(store)
    assert bool(bundle.start) == (kept == 0)
    assert len(bundle.entries) == len(bundle.inputs) == (10 if kept == 0 else 20)
    assert replay(bundle).same
