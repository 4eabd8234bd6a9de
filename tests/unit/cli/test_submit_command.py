"""`muster submit`: what is sent for a file, and the published schema."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec
import pytest

from muster.cli.main import run_command
from muster.cli.run import run
from muster.cli.submit import job_schema
from muster.model.spec import Spec
from muster.sdk.errors import make_error
from muster.sdk.jobfile import JobFile
from muster.sdk.transport import Reply, Request, Transport
from muster.wire.views import JobPage, Problem, Submitted

SCHEMA = Path(__file__).parents[3] / "docs" / "reference" / "job.schema.json"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Request]:
    """What a server is asked that takes every job and counts them from 41."""
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    asked: list[Request] = []

    def answer(_: Transport, request: Request) -> Reply:
        if request.method == "GET":
            return Reply(200, {}, msgspec.json.encode(JobPage([])))
        asked.append(request)
        return Reply(201, {}, msgspec.json.encode(Submitted(40 + len(asked), 5)))

    monkeypatch.setattr(Transport, "_try", answer)
    return asked


def spec_in(request: Request) -> Spec:
    return msgspec.json.decode(request.body, type=Spec)


def test_jobs_of_a_file_are_handed_in_and_name_each_other(
    sent: list[Request], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "j.yaml").write_text("name: a\ncommand: x\nworkdir: data\n---\ncommand: y\nafterok: a\n")
    assert run_command(["submit", "sub/j.yaml", "--key", "k"]) == 0
    assert capsys.readouterr().out == "job 41 a\njob 42\n"
    first, second = map(spec_in, sent)
    assert first.workdir == str(tmp_path / "sub" / "data")
    assert (second.workdir, second.after[0].job) == (str(tmp_path), 41)
    assert [request.headers["Idempotency-Key"] for request in sent] == ["k/1", "k/2"]


@pytest.mark.parametrize(("output", "printed"), [("name", "41\n"), ("json", '{"job":41,"seq":5}\n')])
def test_what_programs_read(
    sent: list[Request], tmp_path: Path, capsys: pytest.CaptureFixture[str], output: str, printed: str
) -> None:
    (tmp_path / "j.toml").write_text('command = "x"')
    assert run_command(["submit", "j.toml", "-o", output]) == 0
    assert capsys.readouterr().out == printed


def test_nothing_is_handed_in_if_anything_is_wrong_and_the_error_has_its_place(
    sent: list[Request], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.yaml").write_text("command: x\n")
    (tmp_path / "bad.yaml").write_text("command: x\ngpu: 8\n")
    assert run_command(["submit", "good.yaml", "bad.yaml"]) == 2
    told = capsys.readouterr().err
    assert told.splitlines() == [
        "error[M171]: a job has no field 'gpu'",
        "  --> bad.yaml:2",
        "help: did you mean gpus?",
        "more: muster explain M171",
    ]
    assert not sent


@pytest.mark.parametrize(
    ("arguments", "words"), [([], "error: name a file"), (["no.yaml"], "error[M170]: no.yaml: No")]
)
def test_what_is_not_there_is_said(
    sent: list[Request], capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert run_command(["submit", *arguments]) == 2
    assert capsys.readouterr().err.startswith(words)


@pytest.mark.parametrize("flag", [(), ("--dry-run",)])
def test_what_the_server_refuses_is_said_with_its_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: tuple[str, ...]
) -> None:
    def refuse(_: Transport, __: Request) -> Reply:
        raise make_error(Problem("about:blank", "never fits", 422, "M110", "never fits: too much", "ask for less"))

    monkeypatch.setenv("MUSTER_HOME", str(tmp_path))
    monkeypatch.setattr(Transport, "send", refuse)
    file = tmp_path / "jobs.yaml"
    file.write_text("# two\nname: a\ncommand: x\n")
    assert run_command(["submit", *flag, str(file)]) == 2
    assert capsys.readouterr().err.splitlines()[:2] == ["error[M110]: never fits: too much", f"  --> {file}:2"]


def test_the_published_schema_is_that_of_the_type() -> None:
    assert SCHEMA.read_text() == job_schema(), "run `muster submit --schema > docs/reference/job.schema.json`"


def test_every_flag_of_run_is_a_field_of_a_file() -> None:
    about_this_call = {"detach", "key", "dry_run", "output", "snapshot"}
    flags = {parameter.name for parameter in run.params if isinstance(parameter, click.Option)}
    assert flags - about_this_call <= set(JobFile.__struct_fields__)
