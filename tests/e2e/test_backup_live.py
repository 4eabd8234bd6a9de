"""A backup of a server at work is the world as it was at one of its entries, and another server goes on from it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from live import LiveHome, serving

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
