"""Slurm scripts run here as there: exit code, output files, variables, `srun`; and no flag is ever run."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from muster.sdk.jobfile import make_spec
from muster.sdk.slurm.flags import read_flags
from muster.sdk.slurm.mapping import import_script
from muster.sdk.slurm.script import read_script, spell_pattern

TOLD = {"MUSTER_JOB": "7", "MUSTER_TASK": "0", "MUSTER_EPOCH": "1"}


def start(
    text: str, folder: Path, *words: str, args: tuple[str, ...] = (), told: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """The script as an engine would start it: from nothing but its spec."""
    said = [*read_script(text, "x.sh"), *read_flags(words, "the command line")[0]]
    job = import_script(text, "x.sh", said, args=args, env={"PATH": os.environ["PATH"]}, here=str(folder)).job
    spec = make_spec(job, here="/", now_ms=0)
    env = {**spec.env, **TOLD, **(told or {})}
    return subprocess.Popen(
        spec.command, cwd=spec.workdir, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def run(text: str, folder: Path, *words: str, args: tuple[str, ...] = (), told: dict[str, str] | None = None) -> str:
    with start(text, folder, *words, args=args, told=told) as process:
        return process.communicate(timeout=60)[0]


def test_output_goes_to_the_file_and_to_the_log_and_the_exit_code_stays(tmp_path: Path) -> None:
    with start("#!/bin/bash\necho out\necho err >&2\nexit 3\n", tmp_path) as process:
        printed, _ = process.communicate(timeout=60)
    assert (process.returncode, printed) == (3, "out\nerr\n")
    assert (tmp_path / "slurm-7.out").read_text() == printed


def test_errors_may_go_to_a_file_of_their_own(tmp_path: Path) -> None:
    text = "#!/bin/sh\n#SBATCH -o o-%4j -e e-%x\necho out\necho err >&2\n"
    assert sorted(run(text, tmp_path, "-J", "n").split()) == ["err", "out"]
    assert ((tmp_path / "o-0007").read_text(), (tmp_path / "e-n").read_text()) == ("out\n", "err\n")


@pytest.mark.parametrize(("mode", "kept"), [("truncate", "new\n"), ("append", "old\nnew\n")])
def test_files_are_begun_anew_or_not(tmp_path: Path, mode: str, kept: str) -> None:
    (tmp_path / "o").write_text("old\n")
    run(f"#SBATCH -o o --open-mode={mode}\necho new\n", tmp_path)
    assert (tmp_path / "o").read_text() == kept


def test_a_script_sees_itself_as_slurm_would_show_it(tmp_path: Path) -> None:
    text = (
        '#!/bin/bash\n#SBATCH -n 4 -c 2 -J n\necho $0 "$*" $SLURM_JOB_ID $SLURM_NTASKS $SLURM_CPUS_PER_TASK $LINENO\n'
    )
    assert run(text, tmp_path, args=("a b", "$(c)")) == "x.sh a b $(c) 7 4 2 3\n"


@pytest.mark.parametrize("indexes", ["3-9:2", "3,5,7,9", "3,5,9"])
def test_a_task_of_an_array_has_its_index_and_its_file(tmp_path: Path, indexes: str) -> None:
    assert run("echo $SLURM_ARRAY_TASK_ID", tmp_path, f"-a{indexes}", told={"MUSTER_TASK": "1"}) == "5\n"
    assert (tmp_path / "slurm-7_5.out").read_text() == "5\n"


def test_srun_starts_this_node_s_part(tmp_path: Path) -> None:
    text = "srun -l --cpu-bind=cores -o x.log sh -c 'echo $SLURM_PROCID/$SLURM_NTASKS; exit $SLURM_LOCALID'\necho $?\n"
    told = {"NODE_RANK": "1"}
    lines = sorted(run(text, tmp_path, "-N2", "--ntasks-per-node=2", told=told).split())
    assert lines == ["1", "2/4", "3/4"]


def test_other_languages_run_too_and_read_their_input(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("42")
    text = "#!/usr/bin/env python3\nimport os, sys\nprint(sys.stdin.read(), os.environ['SLURM_JOB_ID'], sys.argv[1:])\n"
    assert run(text, tmp_path, "-i", "in", args=("x y",)) == "42 7 ['x y']\n"


def test_a_script_that_is_told_to_stop_may_finish_and_say_so(tmp_path: Path) -> None:
    text = "#!/bin/bash\ntrap 'echo saved; exit 9' TERM\necho ready\nwhile :; do sleep 0.02; done\n"
    with start(text, tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGTERM)
        rest, _ = process.communicate(timeout=60)  # the shell may also say that its `sleep` was ended
    assert (process.returncode, rest.splitlines()[-1]) == (9, "saved")
    assert (tmp_path / "slurm-7.out").read_text() == f"ready\n{rest}"


HOSTILE = [
    "$(touch owned)",
    "`touch owned`",
    "'; touch owned; '",
    '"; touch owned; "',
    "a\ntouch owned\n",
    "-e x",
    "%x$IFS",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_said_in_a_flag_is_never_run(tmp_path: Path, text: str) -> None:
    words = ["-J", text, "-o", f"o{text.replace('/', '')}", "-A", "a", "--export", f"V={text.replace(',', '')}"]
    run('#!/bin/bash\necho "$V" "$@"\n', tmp_path, *words, args=(text,))
    assert not (tmp_path / "owned").exists()


def test_patterns_are_one_quoted_word() -> None:
    assert spell_pattern("a b/%x-%j.out") == '\'a b/\'"${SLURM_JOB_NAME}"-"${SLURM_JOB_ID}".out'
    assert spell_pattern("none") == "/dev/null"
    assert spell_pattern("100%%$x%") == "100%'$x'%"
