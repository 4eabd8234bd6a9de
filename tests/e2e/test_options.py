"""What is offered holds: a job that waits is told a flag, and the same job with that flag starts at once."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import msgspec
from live import LiveHome, serving

from muster.wire.views import AvailView, WhyView


def test_a_job_with_the_offered_flag_starts_while_the_one_that_asked_for_more_waits(live: LiveHome) -> None:
    large = live.muster("run", "-d", "--no-evict", "--gpus", "5", "--", "sleep", "600").stdout.strip()
    waiting = live.muster("run", "-d", "--gpus", "2", "--gang", "2", "--", "true").stdout.strip()
    assert "\n  starts now if: --gang 1 (asked 2) · --gpus 1 (asked 2)\n" in live.muster("why", waiting).stdout
    why = msgspec.json.decode(live.muster("why", waiting, "-o", "json").stdout, type=WhyView)
    for option in why.options:
        asked = {"--gpus": "2", "--gang": "2"} | dict([shlex.split(option.flag)])
        words = [word for pair in asked.items() for word in pair]
        live.muster("run", *words, "--", "true")  # it leaves once the job is over
    assert live.muster("why", waiting).stdout.startswith(f"job {waiting} is waiting for room")
    live.muster("cancel", waiting)
    live.muster("cancel", large)
    live.muster("wait", large, code=1)


def test_the_line_that_why_gives_starts_the_job_and_ends_the_one_that_waits(live: LiveHome, tmp_path: Path) -> None:
    large = live.muster("run", "-d", "--no-evict", "--gpus", "5", "--", "sleep", "600").stdout.strip()
    asked = ("--gpus", "4", "--name", "its-own", "--env", "A=b c", "--workdir", str(tmp_path))
    waiting = live.muster("run", "-d", *asked, "--", "sh", "-c", 'echo "$A in $PWD"').stdout.strip()
    line = next(each for each in live.muster("why", waiting).stdout.splitlines() if "to do so: " in each)
    typed = ["/bin/sh", "-c", line.partition("to do so: ")[2]]
    ran = subprocess.run(typed, env=live.env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    job = ran.stdout.split()[0]
    live.muster("wait", job)
    assert live.muster("logs", job).stdout == f"b c in {tmp_path}\n"
    assert "cancelled" in live.muster("show", waiting).stdout
    gang = live.muster("run", "-d", "--gpus", "2", "--gang", "2", "--", "true").stdout.strip()
    assert f"\n  to do so: muster scale {gang} 1-1\n" in live.muster("why", gang).stdout
    live.muster("scale", gang, "1-1")
    live.muster("wait", gang)
    live.muster("cancel", large)
    live.muster("wait", large, code=1)


def test_what_avail_lists_starts_with_the_flags_that_it_gives(tmp_path: Path) -> None:
    with serving(tmp_path / "home", capacity="gpus=2,cpus=4,memory=8Gi") as live:
        live.muster("quota", "set", "lab", "gpus=1")
        view = msgspec.json.decode(live.muster("avail", "--tenant", "lab", "-o", "json").stdout, type=AvailView)
        found = [(opening.ask.gpus, opening.tasks, opening.limited_by) for opening in view.openings]
        assert found == [(0, 4, "room"), (1, 1, "quota"), (2, 0, "quota")]
        for opening in view.openings[:2]:
            gang = ["--gang", str(opening.gang)]
            live.muster("run", "--tenant", "lab", *gang, *shlex.split(opening.flags), "--", "true")
        rows = live.muster("avail", "--tenant", "lab").stdout.splitlines()
        assert rows[2].endswith("--gpus 1 --cpus 2 --memory 4Gi")
