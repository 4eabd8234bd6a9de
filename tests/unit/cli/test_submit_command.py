"""`muster submit`: what is sent for a file, and the published schema."""

from __future__ import annotations

import io
from pathlib import Path

import click
import msgspec
import pytest

from muster.cli.handing import SHOWN_MAX
from muster.cli.main import run_command
from muster.cli.run import run
from muster.cli.submit import job_schema
from muster.model.spec import Spec
from muster.sdk.bulk import JOBS_AT_ONCE
from muster.sdk.errors import make_error
from muster.sdk.jobfile import JobFile
from muster.sdk.transport import Patience, Reply, Request, Transport
from muster.wire.views import BulkAnswer, BulkPart, JobPage, Problem

SCHEMA = Path(__file__).parents[3] / "docs" / "reference" / "job.schema.json"


TOO_MUCH = Problem("about:blank", "never fits", 422, "M110", "never fits: too much", "ask for less")
NOBODY_LEADS = Problem("about:blank", "no leader", 503, "M307", "nobody leads", "start one")


class Taken(msgspec.Struct):
    """One of many jobs, as a server reads it."""

    spec: Spec
    key: str


class Asked(msgspec.Struct):
    """Many of them."""

    jobs: list[Taken]


class Made:
    """A server that counts jobs from 41, and refuses those whose names are in `refused`."""

    def __init__(self) -> None:
        self.requests: list[list[Taken]] = []
        self.refused: dict[str, Problem] = {}
        self._next = 41

    @property
    def jobs(self) -> list[Taken]:
        return [job for request in self.requests for job in request]

    def answer(self, request: Request) -> Reply:
        if request.method == "GET":
            return Reply(200, {}, msgspec.json.encode(JobPage([])))
        assert request.path == "/v1/jobs/bulk"
        self.requests.append(msgspec.json.decode(request.body, type=Asked).jobs)
        return Reply(200, {}, msgspec.json.encode(BulkAnswer(list(map(self._judge, self.requests[-1])), 5)))

    def _judge(self, job: Taken) -> BulkPart:
        if job.spec.name in self.refused:
            return BulkPart(problem=self.refused[job.spec.name])
        self._next += 1
        return BulkPart(job=self._next - 1)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Made:
    """What a server is asked that takes every job."""
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    made = Made()
    monkeypatch.setattr(Transport, "_try", lambda _, request: made.answer(request))
    return made


def write_many(path: Path, count: int, **lines: str) -> None:
    """So many jobs of the names j1, j2, …; `lines` adds one to some of them."""
    path.write_text("---\n".join(f"name: j{at}\ncommand: x\n{lines.get(f'j{at}', '')}" for at in range(1, count + 1)))


def test_jobs_of_a_file_are_handed_in_and_name_each_other(
    sent: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "j.yaml").write_text("name: a\ncommand: x\nworkdir: data\n---\ncommand: y\nafterok: a\n")
    assert run_command(["submit", "sub/j.yaml", "--key", "k"]) == 0
    assert capsys.readouterr().out == "job 41 a\njob 42\n"
    first, second = (job.spec for job in sent.jobs)
    assert first.workdir == str(tmp_path / "sub" / "data")
    assert (second.workdir, second.after[0].job) == (str(tmp_path), 41)
    assert [job.key for job in sent.jobs] == ["k/1", "k/2"]


def test_jobs_that_name_nobody_leave_together_and_who_is_named_leaves_before(sent: Made, tmp_path: Path) -> None:
    write_many(tmp_path / "j.yaml", JOBS_AT_ONCE + 3, j2="afterok: 7\n", j3="afterany: [j1, j2]\n")
    assert run_command(["submit", "j.yaml"]) == 0
    assert [len(request) for request in sent.requests] == [2, JOBS_AT_ONCE, 1]
    assert [after.job for after in sent.jobs[2].spec.after] == [41, 42]
    assert [job.spec.name for job in sent.jobs] == [f"j{at}" for at in range(1, JOBS_AT_ONCE + 4)]


def test_the_same_key_means_other_jobs_in_another_file_of_one_command(sent: Made, tmp_path: Path) -> None:
    write_many(tmp_path / "a.yaml", 2)
    write_many(tmp_path / "b.yaml", 1)
    assert run_command(["submit", "a.yaml", "b.yaml", "--key", "k"]) == 0
    assert [job.key for job in sent.jobs] == ["k/1", "k/2", "k/3"]
    sent.requests.clear()
    assert run_command(["submit", "a.yaml", "b.yaml"]) == 0
    assert len({job.key for job in sent.jobs}) == 3


def test_a_refused_job_has_its_place_and_takes_along_who_comes_after_it_and_nobody_else(
    sent: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_many(tmp_path / "j.yaml", 5, j3="afterok: j2\n", j4="afterok: j3\n")
    sent.refused["j2"] = TOO_MUCH
    assert run_command(["submit", "j.yaml", "-o", "name"]) == 2
    printed = capsys.readouterr()
    assert printed.out == "41\n42\n"
    assert [job.spec.name for job in sent.jobs] == ["j1", "j2", "j5"]
    assert printed.err.splitlines() == [
        "error[M110]: never fits: too much",
        "  --> j.yaml:4",
        "help: ask for less",
        "more: muster explain M110",
        "2 of 5 jobs were accepted",
    ]


def test_of_many_refused_jobs_a_few_are_told_and_all_are_counted(
    sent: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_many(tmp_path / "j.yaml", 9)
    sent.refused = {f"j{at}": TOO_MUCH for at in range(2, 10)}
    assert run_command(["submit", "j.yaml"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert sum(line.startswith("error") for line in told) == SHOWN_MAX
    assert told[-1] == "1 of 9 jobs were accepted, 8 were refused"


def test_a_server_that_cannot_is_asked_again_and_then_no_more(
    sent: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Patience, "pause", lambda _: len(sent.requests) < 3)
    write_many(tmp_path / "j.yaml", 3, j3="afterok: j1\n")
    sent.refused["j2"] = NOBODY_LEADS
    assert run_command(["submit", "j.yaml"]) == 4
    assert [[job.spec.name for job in request] for request in sent.requests] == [["j1", "j2"], ["j2"], ["j2"]]
    assert len({job.key for job in sent.jobs}) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "1 of 3 jobs were accepted"


def test_who_only_sees_numbers_go_into_a_file_is_shown_how_far_it_is(
    sent: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    write_many(tmp_path / "j.yaml", JOBS_AT_ONCE + 1)
    assert run_command(["submit", "j.yaml"]) == 0
    assert capsys.readouterr().err == "\r\033[K200 of 201 jobs\r\033[K201 of 201 jobs\r\033[K"


def test_ctrl_c_says_what_is_known(
    sent: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(_: Transport, request: Request) -> Reply:
        if sent.requests:
            raise KeyboardInterrupt
        return sent.answer(request)

    monkeypatch.setattr(Transport, "_try", answer)
    write_many(tmp_path / "j.yaml", 2, j2="afterok: j1\n")
    assert run_command(["submit", "j.yaml"]) == 130
    printed = capsys.readouterr()
    assert printed.out == "job 41 j1\n"
    assert printed.err.startswith("1 of 2 jobs were accepted before this; `muster ls` shows whether")


@pytest.mark.parametrize(("answers", "first"), [(0, "error[M309]: no server"), (1, "1 of 2 jobs were accepted before")])
def test_a_server_that_goes_away_is_told_with_what_is_known(
    sent: Made,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answers: int,
    first: str,
) -> None:
    monkeypatch.setattr(
        Transport, "_try", lambda _, request: sent.answer(request) if len(sent.requests) < answers else None
    )
    write_many(tmp_path / "j.yaml", 2, j2="afterok: j1\n")
    assert run_command(["submit", "j.yaml"]) == 3
    assert capsys.readouterr().err.startswith(first)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("two.yaml", "command: x\n---\n# nothing here\n---\n- command: y\n- command: z\n"),
        ("list.json", '[{"command": "x"}, {"command": ["y"]},\n{"command": "z"}]'),
        ("list.toml", '[[job]]\ncommand = "x"\n[[job]]\ncommand = "y"\n[[job]]\ncommand = "z"\n'),
        ("-", "command: x\n---\ncommand: y\n---\ncommand: z\n"),
        ("-", '[{"command": "x"}, {"command": "y"}, {"command": "z"}]'),
    ],
)
def test_every_language_has_lists_of_jobs(
    sent: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    if name == "-":
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
    else:
        (tmp_path / name).write_text(text)
    assert run_command(["submit", name]) == 0
    assert [job.spec.command for job in sent.jobs] == [("x",), ("y",), ("z",)]


@pytest.mark.parametrize(("output", "printed"), [("name", "41\n"), ("json", '{"job":41,"seq":5}\n')])
def test_what_programs_read(
    sent: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str], output: str, printed: str
) -> None:
    (tmp_path / "j.toml").write_text('command = "x"')
    assert run_command(["submit", "j.toml", "-o", output]) == 0
    assert capsys.readouterr().out == printed


def test_nothing_is_handed_in_if_anything_is_wrong_and_the_error_has_its_place(
    sent: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
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
    assert not sent.requests


@pytest.mark.parametrize(
    ("arguments", "words"), [([], "error: name a file"), (["no.yaml"], "error[M170]: no.yaml: No")]
)
def test_what_is_not_there_is_said(
    sent: Made, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert run_command(["submit", *arguments]) == 2
    assert capsys.readouterr().err.startswith(words)


def test_what_a_trial_refuses_is_said_with_its_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: Transport, __: Request) -> Reply:
        raise make_error(TOO_MUCH)

    monkeypatch.setenv("MUSTER_HOME", str(tmp_path))
    monkeypatch.setattr(Transport, "send", refuse)
    file = tmp_path / "jobs.yaml"
    file.write_text("# two\nname: a\ncommand: x\n")
    assert run_command(["submit", "--dry-run", str(file)]) == 2
    assert capsys.readouterr().err.splitlines()[:2] == ["error[M110]: never fits: too much", f"  --> {file}:2"]


def test_a_file_that_is_not_there_is_looked_for_and_not_corrected(
    sent: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["submit", "no.yaml"], ["sbatch", "no.sh"]):
        assert run_command(words) == 2
        assert capsys.readouterr().err.splitlines()[1] == "help: check its name, and whether you may read it"


def test_a_script_is_sent_to_the_command_that_takes_it(
    sent: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.sh").write_text("#!/bin/sh\n#SBATCH --ntasks=1\necho\n")
    assert run_command(["submit", "t.sh"]) == 2
    assert capsys.readouterr().err.startswith("error: t.sh is a script and no job file; `muster sbatch t.sh`")


def test_the_published_schema_is_that_of_the_type() -> None:
    assert SCHEMA.read_text() == job_schema(), "run `muster submit --schema > docs/reference/job.schema.json`"


def test_every_flag_of_run_is_a_field_of_a_file() -> None:
    about_this_call = {"detach", "key", "dry_run", "output", "snapshot"}
    flags = {parameter.name for parameter in run.params if isinstance(parameter, click.Option)}
    assert flags - about_this_call <= set(JobFile.__struct_fields__)
