"""A backup of a server at work is the world as it was at one of its entries, and another server goes on from it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from live import LiveHome, await_true, serving

from muster.control.loading import load_world
from muster.ports.store import Wanted
from muster.stores.sqlite import SqliteJournal
from muster.wire.codec import decode_entry
from muster.world.apply import apply_entry
from muster.world.snapshot import digest
from muster.world.world import World


def _digest_at(path: Path, seq: int) -> str:
    """The digest of the world after an entry, folded from the first."""
    with closing(SqliteJournal(path)) as journal:
        world = World()
        while world.seq < seq:
            for data in journal.read_entries(world.seq, min(1000, seq - world.seq)):
                entry = decode_entry(data)
                apply_entry(world, entry.seq, entry.at, entry.facts)
    return digest(world)


@pytest.mark.slow
def test_a_backup_of_a_live_server_restores_to_the_same_digest(live: LiveHome, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    first = live.muster("run", "-d", "--", "true").stdout.strip()
    live.muster("wait", first)
    second = live.muster("run", "-d", "--", "sh", "-c", "while ! test -e go; do sleep 0.05; done").stdout.strip()
    said = live.muster("backup", str(copy)).stdout
    live.muster("cancel", second)
    live.muster("wait", second, code=None)
    assert live.muster("restore", str(copy), code=2).stderr.startswith("error[M303]"), "a served journal was replaced"
    seq = int(said.split()[-1])
    other = LiveHome(tmp_path / "other")
    other.muster("restore", str(copy))
    with closing(SqliteJournal(other.home.journal_file)) as journal:
        assert journal.last_seq() == seq
        assert digest(load_world(journal)) == _digest_at(live.home.journal_file, seq)
        jobs = [found.finished.job for found in journal.read_finished(Wanted())]
    assert int(first) in jobs
    assert int(second) not in jobs
    with serving(other.root):
        assert other.muster("show", first).stdout.split("\n")[0].split() == ["job:", first]
        after = int(other.muster("run", "-d", "--", "true").stdout)
        assert after == int(second) + 1


def test_numbers_that_come_a_second_time_are_of_other_work(tmp_path: Path) -> None:
    """What began after the backup is unknown to it, whether it has ended, runs, or waited when the backup was made."""
    script = 'echo "$0 $MUSTER_EPOCH"; echo "$0" >> seen; while test -e "$0.stays"; do sleep 0.05; done'
    with serving(tmp_path / "home", "cpus=2,memory=1Gi") as live:
        for name in ("first", "runs"):
            (tmp_path / f"{name}.stays").touch()

        def submit(name: str, *flags: str) -> str:
            words = ("run", "-d", "--workdir", str(tmp_path), *flags, "--", "sh", "-c", script, name)
            return live.muster(*words).stdout.strip()

        first = submit("first", "--cpus", "2")
        waited = submit("waited")
        live.muster("backup", str(tmp_path / "copy.db"))
        (tmp_path / "first.stays").unlink()
        live.muster("wait", first, waited)
        assert live.muster("wait", submit("ended")).returncode == 0
        second = submit("runs")
        await_true(lambda: "runs" in live.muster("logs", second).stdout, "the task that runs")
        live.muster("down")
        said = live.muster("restore", str(tmp_path / "copy.db"))
        assert said.stderr == "ended 1 task that began after the backup was made\n"
        (tmp_path / "seen").unlink()
        live.muster("up")
        live.muster("wait", first, waited, code=None)
        again = [submit(name) for name in ("new", "newer")]
        assert again[-1] == second
        live.muster("wait", *again)
        assert [live.muster("logs", number).stdout for number in again] == ["new 1\n", "newer 1\n"]
        ran = set((tmp_path / "seen").read_text().split())
        assert ran >= {"new", "newer"}
        assert not ran & {"ended", "runs"}
