"""What a clumsy user types is answered with the one cause and the one fix, and what can be done is done."""

from __future__ import annotations

import msgspec
import pytest
from served import Serve, Told

from muster.sdk.errors import make_error
from muster.sdk.transport import Reply, Request, Transport
from muster.units import Resources
from muster.wire.views import JobAccount, JobPage, JobView, Problem, Submitted

OVER = JobView(7, "", "lab", "succeeded", 1, Resources(1), 1000, 4000, 1, is_over=True)
QUEUED = JobView(8, "", "lab", "queued", 1, Resources(1), 1000, 4000)


def test_of_several_jobs_one_that_is_refused_keeps_nobody_from_it(monkeypatch: pytest.MonkeyPatch, told: Told) -> None:
    def send(_: Transport, request: Request) -> Reply:
        number = request.path.split("/")[3] if request.method == "POST" else ""
        if number in ("1", "3"):
            raise make_error(Problem("about:blank", "unknown job", 404, "M120", f"there is no job {number}", "look"))
        return Reply(200, {}, msgspec.json.encode(Submitted(2, 1) if number else JobPage([])))

    monkeypatch.setattr(Transport, "send", send)
    assert told("cancel", "1", "2", "3", code=2).splitlines() == [
        "error[M120]: there is no job 3",
        "error[M120]: there is no job 1",
        "help: look",
        "more: muster explain M120",
    ]


class Hourglass:
    """Stands in for the time module: sleeping is what makes time pass."""

    now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, span_s: float) -> None:
        self.now_s += span_s


def test_nobody_looks_at_a_terminal_that_says_nothing(monkeypatch: pytest.MonkeyPatch, told: Told) -> None:
    away = msgspec.json.encode(Problem("about:blank", "no leader", 503, "M307", "the leader is away", "try again"))
    monkeypatch.setattr("muster.sdk.transport.time", Hourglass())
    monkeypatch.setattr(Transport, "_try", lambda *_: Reply(503, {}, away))
    assert told("cancel", "7", "8", "9", code=4).splitlines() == [
        "the leader is away; trying again for 13s",
        "error[M307]: the leader is away",
        "help: try again",
        "more: muster explain M307",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["exec", "7", "--", "true"], "error[M121]: job 7 is already over"),
        (["shell", "8"], "error: job 8 waits, so nothing of it runs yet; `muster why 8` says for what"),
        (["ls", "--at", "2999-01-01"], "2999-01-01 is still to come"),
    ],
)
def test_what_cannot_be_is_said(serve: Serve, told: Told, words: list[str], said: str) -> None:
    serve({"GET /v1/jobs/7": OVER, "GET /v1/jobs/8": QUEUED})
    assert said in told(*words, code=2).splitlines()[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["show", "train"],
            "error: 'train' is no node (`muster nodes`), and a job is called by its number (`muster ls -a`)",
        ),
        (["show", "9" * 30], f"'{'9' * 30}' is not the number of a job; `muster ls -a` lists them"),
        (["goodput", "--job", "train"], "'train' is not the number of a job; `muster ls -a` lists them"),
    ],
)
def test_a_job_called_by_its_name_is_told_of_its_number(
    monkeypatch: pytest.MonkeyPatch, told: Told, words: list[str], said: str
) -> None:
    def send(*_: object) -> Reply:
        raise make_error(Problem("about:blank", "unknown node", 404, "M124", "there is no node 'train'", "look"))

    monkeypatch.setattr(Transport, "send", send)
    assert said in told(*words, code=2).splitlines()[0]


def test_a_code_is_found_by_its_number() -> None:
    from muster.cli.main import run_command

    assert run_command(["explain", "201"]) == 0
    assert run_command(["explain", "m201"]) == 0


def test_whoever_waited_for_it_is_told_what_it_took_and_cost(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    from muster.cli.main import run_command

    account = JobAccount("ann", {"useful": 3_000_000, "lost": 1_000_000}, cost_micros=250_000)
    over = msgspec.structs.replace(OVER, cpu_ms=900, rss_bytes=1 << 30, account=account)
    serve({"POST /v1/jobs": Submitted(7, 1), "GET /v1/jobs/7": over, "GET /v1/jobs/7/logs": b""})
    assert run_command(["run", "--", "true"]) == 0
    spent = "GPU time 4s: useful 75.0%, lost 1s; cost 0.25"
    said = f"job 7 succeeded (took 3s; used 900ms of CPU, at most 1Gi of memory; {spent})"
    assert capsys.readouterr().err.splitlines()[-1] == said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["quota", "lab"], "error: there is no command 'lab'; `muster quota show lab` shows one"),
        (["tokens", "make", "--for", "400d"], "error: --for 400d: a token lives for at most 366d"),
        (
            ["ls", "--at", "1h", "--since", "2h"],
            "error: --since counts back from now; with --at, --all ",
        ),
        (["usage", "--since", "2999-01-01"], "error: --since 2999-01-01 is later than now"),
        (["tokens", "make", "--for", "0s"], "error: --for 0s: a token lives for at most 366d"),
    ],
)
def test_what_was_likely_meant_is_said(told: Told, words: list[str], said: str) -> None:
    assert told(*words, code=2).splitlines()[0].startswith(said)


@pytest.mark.parametrize("word", ["bookings", "advice", "tenants"])
def test_a_listing_of_nothing_says_so(serve: Serve, capsys: pytest.CaptureFixture[str], word: str) -> None:
    from muster.cli.main import run_command

    serve({f"GET /v1/{word}": ()})
    assert run_command([word]) == 0
    out, err = capsys.readouterr()
    assert (out, "`muster " in err) == ("", True)


def test_help_and_version_are_found_where_people_look_for_them(told: Told) -> None:
    from muster import __version__

    assert told("--version") == told("version") == f"muster {__version__}\n"
    assert told("help", "run") == told("run", "--help")
    assert told("help") == told("--help")


def test_codes_are_listed_in_order(told: Told) -> None:
    listed = told("explain").splitlines()
    assert listed == sorted(listed)


@pytest.mark.parametrize(("flags", "more"), [((), ""), (("--all",), "; --since 1h shows what ended lately")])
def test_a_long_listing_says_how_to_go_on_and_where_the_last_are(
    serve: Serve, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], more: str
) -> None:
    from muster.cli.main import run_command

    serve({"GET /v1/jobs": JobPage([OVER], next_after=7)})
    assert run_command(["ls", *flags]) == 0
    assert capsys.readouterr().err == f"more: add --after 7{more}\n"


@pytest.mark.parametrize("command", ["logs", "why", "cancel", "story", "wait"])
def test_a_job_that_is_called_by_its_name_is_told_where_numbers_are(serve: Serve, told: Told, command: str) -> None:
    serve({})
    for word in ("train", "-1", "1" * 40, "٣"):
        said = told(command, "--", word, code=2)
        assert "is not the number of a job; `muster ls -a` lists them" in said
