"""Bars with real processes: a cordoned machine starts nothing, and a drained one gives its jobs back to the queue."""

from __future__ import annotations

from pathlib import Path

from live import LiveHome, await_true

TRIES = 'echo "$MUSTER_EPOCH" >> "$0"; [ "$MUSTER_EPOCH" = 1 ] || exit 0; while :; do sleep 0.05; done'


def test_a_cordon_holds_new_work_and_a_drain_moves_what_runs(live: LiveHome, tmp_path: Path) -> None:
    node = live.muster("nodes", "-o", "name").stdout.strip()
    tries = tmp_path / "tries"
    assert live.muster("cordon", node, "--reason", "disk swap").stdout.startswith(f"{node} is cordoned")
    assert "cordon by operator: disk swap" in live.muster("nodes").stdout
    job = live.muster("run", "-d", "--", "sh", "-c", TRIES, str(tries)).stdout.strip()
    assert "0 would fit now (1 of 1 nodes closed)" in live.muster("why", job).stdout
    assert live.muster("uncordon", node).stdout == f"{node} is open for new work\n"
    await_true(lambda: tries.exists() and tries.read_text() == "1\n", "the first try runs")

    assert live.muster("drain", node, "--now").stdout.startswith(f"{node} is drain")
    with live.client() as client:
        await_true(lambda: client.show(int(job)).phase == "queued", "the run waits again")
        assert client.show(int(job)).failures == 0
        live.muster("uncordon", node)
        view = client.wait(int(job))
    assert (view.phase, view.epoch) == ("succeeded", 2)
    assert tries.read_text() == "1\n2\n"
    assert "requeued: node drained" in live.muster("story", job).stdout


def test_a_bar_outlives_the_server_and_ends_by_itself(live: LiveHome) -> None:
    node = live.muster("nodes", "-o", "name").stdout.strip()
    live.muster("drain", node, "--for", "1h")
    live.muster("down")
    live.muster("up")
    assert "drain by operator" in live.muster("nodes").stdout
    drain = ("drain", node, "--for", "2s")  # refused if this machine takes longer than that to say it
    await_true(lambda: live.muster(*drain, code=None).returncode == 0, "a short drain is set")
    live.muster("run", "--", "true")
    assert "drain" not in live.muster("nodes").stdout


def test_a_node_that_is_not_there_is_refused(live: LiveHome) -> None:
    refused = live.muster("cordon", "nobody", code=2)
    assert refused.stderr.startswith("error[M124]: there is no node 'nobody'")
    assert live.muster("uncordon", "nobody", code=2).stderr.startswith("error[M124]")
