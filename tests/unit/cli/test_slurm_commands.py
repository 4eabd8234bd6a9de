"""`muster sbatch` and `muster import`: what is sent, what is printed, and what is said of what was left out."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from muster.cli.main import run_command
from muster.model.spec import Spec
from muster.sdk.documents import make_specs, read_jobs
from muster.sdk.transport import Reply, Request, Transport
from muster.units import Resources
from muster.wire.forecast_views import TrialView
from muster.wire.views import JobPage, JobView, Submitted

SCRIPT = '#!/bin/bash\n#SBATCH -J train --gres=gpu:2\n#SBATCH --partition=gpu -t 10\necho "$SLURM_JOB_ID" "$@"\n'
FAILED = JobView(7, "", "a", "failed", 1, Resources(), 1, 1, 1, 1, "exit", 3, is_over=True)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Request]:
    """What a server is asked that takes every job; job 7 fails."""
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.sh").write_text(SCRIPT)
    asked: list[Request] = []

    def answer(_: Transport, request: Request) -> Reply:
        if request.method == "POST":
            asked.append(request)
            done = TrialView(5, FAILED) if "/trials/" in request.path else Submitted(7, 5)
            return Reply(201, {}, msgspec.json.encode(done))
        return Reply(200, {}, msgspec.json.encode(FAILED if "/7" in request.path else JobPage([])))

    monkeypatch.setattr(Transport, "_try", answer)
    return asked


def test_a_script_is_submitted_and_what_is_left_out_is_said(
    sent: list[Request], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["sbatch", "-c", "4", "--flavor", "h100", "train.sh", "--lr", "0.1"]) == 0
    told = capsys.readouterr()
    assert told.out == "Submitted batch job 7\n"
    assert told.err.startswith("left out: --partition=gpu (train.sh:3): ")
    spec = msgspec.json.decode(sent[0].body, type=Spec)
    assert (spec.name, spec.ask.gpus, spec.ask.cpu_milli, spec.limit_ms) == ("train", 2, 4000, 600_000)
    assert (spec.needs.flavors, spec.command[-2:]) == (("h100",), ("--lr", "0.1"))


@pytest.mark.parametrize("interpreter", ["/bin/bash", "/usr/bin/env python3"])
def test_what_a_script_runs_in_is_not_shown(
    sent: list[Request],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    interpreter: str,
) -> None:
    (tmp_path / "train.sh").write_text(SCRIPT.replace("/bin/bash", interpreter))
    assert run_command(["sbatch", "train.sh", "--lr"]) == 0
    view = msgspec.structs.replace(FAILED, spec=msgspec.json.decode(sent[0].body, type=Spec))
    monkeypatch.setattr(Transport, "_try", lambda *_: Reply(200, {}, msgspec.json.encode(view)))
    capsys.readouterr()
    assert run_command(["show", "7"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split() for line in shown if line.startswith("command")] == [["command:", "sbatch", "train.sh"]]


@pytest.mark.parametrize(
    ("flags", "printed", "code"),
    [
        (["--parsable"], "7\n", 0),
        (["-Q"], "", 0),
        (["--wait"], "Submitted batch job 7\n", 3),
        (["--wrap", "x y"], None, 0),
    ],
)
def test_flags_of_the_call_itself(
    sent: list[Request], capsys: pytest.CaptureFixture[str], flags: list[str], printed: str | None, code: int
) -> None:
    script = [] if "--wrap" in flags else ["train.sh"]
    assert run_command(["sbatch", *flags, *script]) == code
    assert capsys.readouterr().out == ("Submitted batch job 7\n" if printed is None else printed)


def test_a_script_without_a_word_is_none(sent: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty.sh").write_text("\n")
    for word in ("sbatch", "import"):
        assert run_command([word, "empty.sh"]) == 2
        assert capsys.readouterr().err.startswith("error[M170]: empty.sh: there is no script in it")
    assert not sent


def test_test_only_submits_nothing(sent: list[Request]) -> None:
    assert run_command(["sbatch", "--test-only", "train.sh"]) == 0
    assert [request.path for request in sent] == ["/v1/trials/jobs"]


def test_import_prints_a_file_that_can_be_submitted(sent: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["import", "train.sh", "a b"]) == 0
    printed = capsys.readouterr().out
    assert "# left out: --partition=gpu (train.sh:3): " in printed
    assert "# the script speaks to Slurm" in printed
    (spec,) = make_specs(read_jobs(printed, "train.yaml"), here="/here", now_ms=0)
    assert spec.command == ("/bin/bash", "-c", SCRIPT, "train", "a b")
    assert (spec.name, spec.ask.gpus, spec.limit_ms) == ("train", 2, 600_000)


def test_import_names_what_only_sbatch_does(sent: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    words = "left out: --output=o.%j (the command line): `muster logs` has it"
    assert run_command(["import", "-o", "o.%j", "train.sh"]) == 0
    assert f"# {words}" in capsys.readouterr().out
    assert run_command(["sbatch", "-o", "o.%j", "train.sh"]) == 0
    assert words not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sbatch", "no.sh"], "error[M170]: no.sh: No such file"),
        (["sbatch", "--begin=now+1hour", "train.sh"], "error[M173]: --begin cannot be mapped"),
        (["sbatch", "--time=x", "train.sh"], "error[M172]: --time: 'x' is not a time"),
        (["sbatch", "-n1", ":", "-n2", "train.sh"], "error[M173]: ':' cannot be mapped"),
        (["sbatch", "--flavor"], "error: --flavor needs a value"),
    ],
)
def test_refusals_have_a_code_and_a_place(
    sent: list[Request], capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert run_command(arguments) == 2
    assert capsys.readouterr().err.startswith(words)
    assert not sent


@pytest.mark.parametrize(
    ("text", "words"),
    [("\n", "there is no script in it"), ("root:x:0:0\n", "it is no batch script: the first line of one is #!")],
)
def test_what_is_no_batch_script_is_not_run_line_by_line(
    sent: list[Request], capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    Path("train.sh").write_text(text)
    for word in ("sbatch", "import"):
        assert run_command([word, "train.sh"]) == 2
        assert capsys.readouterr().err.startswith(f"error[M170]: train.sh: {words}")
    assert not sent


def test_its_help_lists_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["sbatch", "--help"]) == 0
    printed = capsys.readouterr().out
    assert "-t, --time" in printed
    assert "left out: no mail is sent" in printed
