"""What each command sends and prints, against answers that are given here. No server and no socket."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest
from served import Serve

from muster.cli.main import run_command
from muster.model.after import After, When
from muster.model.spec import Spec
from muster.units import HOUR_MS, Resources
from muster.wire.forecast_views import ForecastView
from muster.wire.views import (
    Ahead,
    AvailView,
    FailedTasks,
    FlavorGoodput,
    GoodputView,
    Health,
    JobAccount,
    JobPage,
    JobView,
    NodeView,
    OpeningView,
    Place,
    Story,
    StoryLine,
    Submitted,
    TaskCounts,
    UsageRow,
    UsageView,
    WhyView,
)

ASK = Resources(gpus=2, cpu_milli=1500)
RUNNING = JobView(7, "train", "vision", "running", 4, ASK, 1, 1, 1, places=[Place("n1", 4, [0, 1])])
QUEUED = JobView(9, "", "default", "queued", 1, ASK, 1, 1)
FAILED = JobView(7, "", "a", "failed", 1, ASK, 1, 1, 1, 1, "exit", 3, is_over=True)
DONE = JobView(7, "", "a", "succeeded", 1, ASK, 1, 1, 1, exit_code=0, is_over=True)


def output_of(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert run_command(list(arguments)) == code
    return capsys.readouterr().out


def test_ls_shows_a_table_numbers_or_the_api_json(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    page = JobPage([RUNNING, QUEUED], next_after=9)
    seen = serve({"GET /v1/jobs": page})
    table = output_of(capsys, "ls", "--limit", "2").splitlines()
    assert table[0].split() == ["JOB", "NAME", "TENANT", "PHASE", "TASKS", "EACH", "SINCE", "DETAIL"]
    assert table[1].split()[:5] == ["7", "train", "vision", "running", "4"]
    assert "2g 1.5c" in table[1]
    assert output_of(capsys, "ls", "--limit", "2", "-o", "name") == "7\n9\n"
    assert msgspec.json.decode(output_of(capsys, "ls", "--limit", "2", "-o", "json"), type=JobPage) == page
    output_of(capsys, "ls", "--limit", "2", "--all", "--tenant", "vision")
    assert "state=all&tenant=vision" in seen[-1].path
    assert "order=" not in seen[-1].path, "the newest come first by themselves"
    output_of(capsys, "ls", "--limit", "2", "--oldest")
    assert "order=oldest" in seen[-1].path


def test_a_long_listing_is_read_page_by_page(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    full, short = JobPage([QUEUED] * 1000, next_after=9), JobPage([QUEUED] * 3, next_after=5)
    seen = serve({"GET /v1/jobs": [full, short, JobPage([RUNNING])]})
    assert output_of(capsys, "ls", "--limit", "2500", "-o", "name").splitlines() == ["9"] * 1003 + ["7"]
    asked = [dict(parse_qsl(urlsplit(each.path).query)) for each in seen]
    assert [(each.get("after"), each["limit"]) for each in asked] == [(None, "1000"), ("9", "1000"), ("5", "1000")]
    serve({"GET /v1/jobs": [full, full]})
    assert run_command(["ls", "--limit", "1500"]) == 0
    assert "more: add --after 9" in capsys.readouterr().err


def test_an_empty_listing_says_what_it_left_out(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    serve({"GET /v1/jobs": JobPage([])})
    assert run_command(["ls"]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "muster ls --all" in told.err


def test_show_leaves_out_what_is_empty(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    view = msgspec.structs.replace(RUNNING, spec=Spec(("python", "train.py"), limit_ms=60_000))
    serve({"GET /v1/jobs/7": view})
    shown = output_of(capsys, "show", "7")
    assert "command:  python train.py" in shown
    assert "places:   4 tasks on n1, devices 0,1" in shown
    assert "directory" not in shown
    assert msgspec.json.decode(output_of(capsys, "show", "7", "-o", "json"), type=JobView) == view


def test_show_says_how_many_places_the_server_did_not_tell(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    held = {"places_total": 3, "spares": [Place("n2", 1)], "spares_total": 9}
    serve({"GET /v1/jobs/7": msgspec.structs.replace(RUNNING, spec=Spec(("x",), gang=4, spares=9), **held)})
    shown = output_of(capsys, "show", "7")
    assert "places:   4 tasks on n1, devices 0,1; … and 2 more" in shown
    assert "spares:   n2, … and 8 more" in shown


def test_what_others_chose_cannot_steer_the_terminal(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    serve({"GET /v1/jobs/7": msgspec.structs.replace(RUNNING, spec=Spec(("echo", "a\x1b[2Jb")))})
    assert "echo 'a\\x1b[2Jb'" in output_of(capsys, "show", "7")


@pytest.mark.parametrize(("variables", "painted"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colour_is_for_terminals_that_want_it(
    serve: Serve,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    painted: bool,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    serve({"GET /v1/jobs": JobPage([RUNNING])})
    monkeypatch.setattr("muster.cli.printing.is_terminal", lambda: True)
    assert ("\x1b[32mrunning" in output_of(capsys, "ls")) == painted


@pytest.mark.parametrize(
    ("view", "code"),
    [(DONE, 0), (FAILED, 3), (msgspec.structs.replace(FAILED, phase="cancelled", exit_code=None), 1)],
)
def test_wait_leaves_with_the_job_s_code(serve: Serve, view: JobView, code: int) -> None:
    serve({"GET /v1/jobs/7": [RUNNING, view]})
    assert run_command(["wait", "7"]) == code


def test_why_names_the_reason_the_line_and_the_fix(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    ahead = [Ahead(3, "vision", 4, ASK)]
    words = "waiting for room: 4 tasks must start together, 1 would fit now"
    view = WhyView(9, "queued", "M201", words, "wait, or ask for fewer tasks", 4, 1, 8, ahead, Resources(gpus=20))
    serve({"GET /v1/jobs/9/why": view})
    told = output_of(capsys, "why", "9")
    assert told.splitlines() == [
        f"job 9 is {words} [M201]",
        "  place in the line: 8",
        "  ahead: job 3 of vision, 4 x 2g 1.5c",
        "  ahead: 6 more",
        "  all ahead ask for 20 GPUs",
        "help: wait, or ask for fewer tasks",
    ]


def test_why_prints_what_the_server_offers(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    offer = "starts now if: --gang 2 (asked 4)"
    serve({"GET /v1/jobs/9/why": WhyView(9, "queued", "M201", "waiting for room", "wait", 4, 2, 1, offer=offer)})
    assert output_of(capsys, "why", "9").splitlines()[-2:] == [f"  {offer}", "help: wait"]


def test_why_says_when_it_will_likely_start(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    words = "likely start: 14:05Z to 14:40Z (in 12m to 47m), when job 2 of vision is over"
    view = WhyView(9, "queued", "M201", "waiting for room", "wait", 4, 2, 1)
    serve({"GET /v1/jobs/9/why": view, "GET /v1/jobs/9/forecast": ForecastView(9, 5, 0, 9, 1, 2, [2], words=words)})
    assert output_of(capsys, "why", "9").splitlines()[-2:] == [f"  {words}", "help: wait"]


def test_avail_shows_a_table_or_the_api_json(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    view = AvailView("lab", [OpeningView(ASK, "--gpus 2 --cpus 1.5", 6, 6, "quota")])
    seen = serve({"GET /v1/avail": view})
    heads, row = output_of(capsys, "avail", "--tenant", "lab").splitlines()
    assert heads.split("  ")[0] == "EACH"
    assert [cell.strip() for cell in row.split("  ") if cell] == ["2g 1.5c", "6", "6", "quota", "--gpus 2 --cpus 1.5"]
    assert seen[-1].path == "/v1/avail?tenant=lab"
    assert msgspec.json.decode(output_of(capsys, "avail", "-o", "json"), type=AvailView) == view
    assert seen[-1].path == "/v1/avail"
    serve({"GET /v1/avail": AvailView("lab", [OpeningView(ASK, "--gpus 2", 6, 6, "quota", 5_000_000)])})
    assert output_of(capsys, "avail").split()[-7:] == ["1.5c", "6", "6", "quota", "5.00", "--gpus", "2"]


def test_avail_of_no_fleet_says_so(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    serve({"GET /v1/avail": AvailView("default", [])})
    assert run_command(["avail"]) == 0
    assert capsys.readouterr().err == "no node has reported yet\n"


def test_why_of_a_held_job_says_so(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    held = WhyView(7, "queued", "M208", "held: it starts nothing until it is released", "let it start")
    serve({"GET /v1/jobs/7/why": held})
    assert output_of(capsys, "why", "7").splitlines() == [
        "job 7 is held: it starts nothing until it is released [M208]",
        "help: let it start",
    ]


def test_why_of_a_running_job_says_where_and_since(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    serve({"GET /v1/jobs/7/why": WhyView(7, "running", "M203", "job 7 is not waiting"), "GET /v1/jobs/7": RUNNING})
    assert output_of(capsys, "why", "7").startswith("job 7 does not wait: it is running on n1, for ")


def test_story_is_told_in_order_with_causes(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    serve({"GET /v1/jobs/7/story": Story(7, [StoryLine(1, 0, "accepted", "api"), StoryLine(2, 5, "placed on n1")])})
    told = output_of(capsys, "story", "7").splitlines()
    assert "accepted" in told[1]
    assert told[1].endswith("api")
    assert "placed on n1" in told[2]


def test_run_sends_the_whole_spec_and_prints_the_output(
    serve: Serve, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    view = msgspec.structs.replace(RUNNING, tasks=1)
    seen = serve(
        {"POST /v1/jobs": Submitted(7, 1), "GET /v1/jobs/7": [view, FAILED], "GET /v1/jobs/7/logs": [b"hi\n", b""]}
    )
    words = "run --gpus 2 --cpus 0.5 --memory 1Gi --gang 2 --limit 90s --retries 1 --env A=1=2 --name n --tenant t"
    code = run_command([*words.split(), "--workdir", str(tmp_path), "--key", "k", "--", "sh", "-c", "x --gpus 9"])
    assert code == 3
    told = capsysbinary.readouterr()
    assert told.out == b"hi\n"
    assert told.err == b"job 7\njob 7 failed: exit code 3 (took 0ms)\n"
    assert seen[0].headers["Idempotency-Key"] == "k"
    assert msgspec.json.decode(seen[0].body, type=Spec) == Spec(
        command=("sh", "-c", "x --gpus 9"),
        name="n",
        tenant="t",
        gang=2,
        ask=Resources(2, 500, 2**30),
        env={"A": "1=2"},
        workdir=str(tmp_path),
        limit_ms=90_000,
        retries=1,
    )


def test_run_sends_what_it_waits_for_and_show_tells_it(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    after = (After(12, When.STARTED), After(13), After(14), After(15, When.OVER), After(16, When.NOT_SUCCEEDED))
    spec = Spec(("true",), after=after)
    view = msgspec.structs.replace(QUEUED, spec=spec, waits=[13, 15])
    seen = serve({"POST /v1/jobs": Submitted(9, 1), "GET /v1/jobs/9": view, "GET /v1/jobs": JobPage([view])})
    words = "run -d --after 12 --afterok 13,14 --afterany 15 --afternotok 16 -- true"
    assert run_command(words.split()) == 0
    assert msgspec.json.decode(seen[0].body, type=Spec).after == after
    told = output_of(capsys, "show", "9")
    assert "after:    after:12, afterok:13, afterok:14, afterany:15, afternotok:16; waits for 13, 15" in told
    assert "after 13,15" in output_of(capsys, "ls")
    assert run_command(["run", "-d", "--afterok", "12,x", "--", "true"]) == 2


def test_run_sends_its_due_time_and_show_and_why_tell_it(
    serve: Serve, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 5.0)
    view = msgspec.structs.replace(QUEUED, spec=Spec(("true",), due_at=60_000))
    late = WhyView(9, "queued", "M201", "waiting for room", "wait", late="due soon")
    seen = serve(
        {
            "POST /v1/jobs": Submitted(9, 1),
            "GET /v1/jobs/9": view,
            "GET /v1/jobs/9/why": late,
            "GET /v1/jobs": JobPage([]),
        }
    )
    for text, due_at in (("90s", 95_000), ("1970-01-02", 86_400_000)):
        assert run_command(["run", "-d", "--due", text, "--", "true"]) == 0
        assert msgspec.json.decode(seen[-2].body, type=Spec).due_at == due_at
    assert "due:      at 1970-01-01 00:01:00.000Z" in output_of(capsys, "show", "9")
    assert "\n  due soon\n" in output_of(capsys, "why", "9")
    assert run_command(["run", "-d", "--due", "soon", "--", "true"]) == 2


def test_run_follows_a_second_try(serve: Serve, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    first = msgspec.structs.replace(RUNNING, tasks=1)
    second = msgspec.structs.replace(first, epoch=2)
    serve(
        {
            "POST /v1/jobs": Submitted(7, 1),
            "GET /v1/jobs/7": [first, second, DONE],
            "GET /v1/jobs/7/logs": [b"one\n", b"", b"", b"two\n", b""],
        }
    )
    assert run_command(["run", "--", "x"]) == 0
    told = capsysbinary.readouterr()
    assert told.out == b"one\ntwo\n"
    assert b"job 7 is tried again, as epoch 2" in told.err


def test_run_shows_ranks_side_by_side(serve: Serve, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    view = msgspec.structs.replace(RUNNING, tasks=2)
    over = msgspec.structs.replace(DONE, tasks=2)
    logs = [b"a\nb", b"c\n", b"", b"", b"\n", b"", b"d", b""]
    serve({"POST /v1/jobs": Submitted(7, 1), "GET /v1/jobs/7": [view, over], "GET /v1/jobs/7/logs": logs})
    assert run_command(["run", "--gang", "2", "--", "x"]) == 0
    assert capsysbinary.readouterr().out == b"[0] a\n[1] c\n[0] b\n[1] d\n"


def test_an_array_of_no_tasks_is_no_job_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["run", "--array", "0", "--", "x"]) == 2
    assert "an array has a task at least" in capsys.readouterr().err


def test_run_of_an_array_shows_progress(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    def at(**counts: int) -> JobView:
        is_over = not counts.get("queued")
        return msgspec.structs.replace(RUNNING, tasks=20, counts=TaskCounts(**counts), is_over=is_over, phase="failed")

    views = [at(queued=20), at(queued=10, running=10), at(queued=1, running=9, succeeded=9, failed=1)]
    ways = [FailedTasks("exit", 5, "no \x1b[31mdata", 1, [(3, 3)])]
    over = msgspec.structs.replace(at(succeeded=19, failed=1), exit_code=5, why="exit", failed=ways)
    serve({"POST /v1/jobs": Submitted(7, 1), "GET /v1/jobs/7": [*views, over]})
    assert run_command(["run", "--array", "20", "--", "x"]) == 5
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "job 7",
        "0/20 done",
        "10/20 done, 9 running, 1 failed",
        "20/20 done, 1 failed",
        "job 7 failed: 1 of 20 tasks (took 0ms)",
        "  task 3: exit code 5: no \\x1b[31mdata",
        "help: see `muster logs 7 --task 3`; `muster requeue 7 --failed` runs them again",
    ]


def test_show_tells_which_tasks_failed_how(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    many = [(10 * n, 10 * n) for n in range(9)]
    ways = [FailedTasks("limit", 143, "", 20, many), FailedTasks("exit", 2, "", 4, [(3, 5), (7, 7)])]
    serve({"GET /v1/jobs/7": msgspec.structs.replace(RUNNING, failed=ways)})
    lines = [line for line in output_of(capsys, "show", "7").splitlines() if line.startswith("failed")]
    assert lines == [
        "failed:   tasks 0, 10, 20, 30, 40, 50, 60, 70 and 12 more: ran past its limit",
        "failed:   tasks 3-5, 7: exit code 2",
    ]


def test_ctrl_c_lets_go_of_the_job(
    serve: Serve, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    serve({"POST /v1/jobs": Submitted(7, 1)})
    monkeypatch.setattr("muster.cli.run.follow_output", interrupt)
    assert run_command(["run", "--", "x"]) == 130
    assert "detached; job 7 goes on: muster logs -f 7 · muster cancel 7" in capsys.readouterr().err


def test_detached_run_prints_the_number_alone(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    seen = serve({"POST /v1/jobs": Submitted(7, 1), "GET /v1/jobs": JobPage([])})
    assert output_of(capsys, "run", "-d", "--", "x") == "7\n"
    assert len(seen) == 2  # the second makes sure that the next command will know the job


def test_nodes_show_what_is_free(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    node = NodeView("n1", "up", Resources(8, 64_000, 2**30), Resources(6, 62_500, 2**29), 1)
    serve({"GET /v1/nodes": (node,)})
    assert output_of(capsys, "nodes").splitlines()[1].split() == ["n1", "up", "6/8", "62.5/64", "512Mi/1Gi", "1"]


@pytest.mark.parametrize(
    ("command", "said"),
    [("hold", "job 7 is held"), ("release", "job 7 is released"), ("requeue", "job 7 goes back to the queue")],
)
def test_jobs_are_held_released_and_requeued(
    serve: Serve, capsys: pytest.CaptureFixture[str], command: str, said: str
) -> None:
    serve({f"POST /v1/jobs/7/{command}": Submitted(7, 1), "GET /v1/jobs": JobPage([])})
    assert output_of(capsys, command, "7").splitlines() == [said]


def test_a_gang_is_moved(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    serve({"POST /v1/jobs/7/migrate": Submitted(7, 1), "GET /v1/jobs": JobPage([])})
    said = output_of(capsys, "migrate", "7", "--off", "node-3", "--to", "node-4", "--to", "node-5")
    assert said.splitlines() == ["job 7 is to go on elsewhere"]


@pytest.mark.parametrize(("width", "said"), [("4", "at most 4 tasks"), ("2-16", "2 to 16 tasks")])
def test_a_gang_is_scaled(serve: Serve, capsys: pytest.CaptureFixture[str], width: str, said: str) -> None:
    serve({"POST /v1/jobs/7/scale": Submitted(7, 1), "GET /v1/jobs": JobPage([])})
    assert output_of(capsys, "scale", "7", width).splitlines() == [f"job 7 is to have {said}"]


def test_cancel_takes_several(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    serve(
        {
            "POST /v1/jobs/7/cancel": Submitted(7, 1),
            "POST /v1/jobs/8/cancel": Submitted(8, 2),
            "GET /v1/jobs": JobPage([]),
        }
    )
    assert output_of(capsys, "cancel", "7", "8").splitlines() == [
        "job 7 is being cancelled",
        "job 8 is being cancelled",
    ]


def test_status_tells_when_the_leader_is_away(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    serve({"GET /v1/health": Health("degraded", False, 5)})
    assert "leader:   not running" in output_of(capsys, "status", code=3)
    serve({"GET /v1/health": Health("ok", True, 5)})
    assert output_of(capsys, "status").startswith("status:   ok")


def test_usage_is_a_table_for_people_and_for_those_who_pay(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    hour = 1000 * HOUR_MS
    rows = [
        UsageRow("lab", time={"useful": 3 * hour, "lost": hour}, cpu_ms=HOUR_MS // 2, cost_micros=12_500_000, jobs=2),
        UsageRow("vision", cpu_ms=HOUR_MS, jobs=1),
    ]
    seen = serve({"GET /v1/usage": UsageView(rows, 0, 2 * HOUR_MS, 1)})
    told = output_of(capsys, "usage", "--since", "2h").splitlines()
    assert told[0].split() == ["TENANT", "GPU-HOURS", "USEFUL", "CPU-HOURS", "JOBS", "COST"]
    assert told[1].split() == ["lab", "4.000", "75.0%", "0.500", "2", "12.50"]
    assert told[2].split() == ["vision", "0.000", "-", "1.000", "1", "0.00"]
    told = output_of(capsys, "report", "cost", "--by", "tenant", "--format", "focus").splitlines()
    assert told[0].startswith("BilledCost,ChargeCategory,ChargePeriodStart")
    assert told[1] == "12.50,Usage,1970-01-01T00:00:00Z,1970-01-01T02:00:00Z,4.000,GPU-Hours,muster,cpu,lab,,0.500,2"
    assert "by=tenant&since=" in seen[-1].path


def test_goodput_is_a_small_chart(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    hour = 3_600_000_000
    time = {"useful": 6 * hour, "lost": 0, "no_demand": 2 * hour + 1}
    view = GoodputView(1, [FlavorGoodput("h100", time)], since_ms=1000)
    seen = serve({"GET /v1/goodput": view})
    told = output_of(capsys, "goodput").splitlines()
    assert [line.split() for line in told] == [
        ["FLAVOR", "BUCKET", "GPU-HOURS", "SHARE", "CHART"],
        ["h100", "useful", "6.000", "74.9%", "█" * 29],
        ["h100", "no_demand", "2.000", "25.0%", "█" * 10],
        ["h100", "all", "8.000", "100%"],
    ]
    assert msgspec.json.decode(output_of(capsys, "goodput", "--tenant", "lab", "-o", "json"), type=GoodputView) == view
    assert "tenant=lab" in seen[-1].path
    serve({"GET /v1/goodput": GoodputView(1, [])})
    assert run_command(["goodput"]) == 0
    assert capsys.readouterr() == ("", "no GPU time yet\n")


def test_goodput_of_a_job_is_its_own_account(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    hour = 3_600_000_000
    account = JobAccount("ann", {"useful": 3 * hour, "checkpointing": hour})
    serve({"GET /v1/jobs/7": [msgspec.structs.replace(RUNNING, account=account), RUNNING]})
    told = output_of(capsys, "goodput", "--job", "7").splitlines()
    assert [line.split() for line in told] == [
        ["BUCKET", "GPU-HOURS", "SHARE", "CHART"],
        ["useful", "3.000", "75.0%", "█" * 30],
        ["checkpointing", "1.000", "25.0%", "█" * 10],
        ["all", "4.000", "100%"],
    ]
    assert run_command(["goodput", "--job", "7"]) == 0
    assert capsys.readouterr().err == "job 7 held no GPU yet\n"
    assert run_command(["goodput", "--job", "7", "--tenant", "lab"]) == 2


def test_wait_waits_for_all_and_leaves_with_the_first_failure(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    serve({"GET /v1/jobs/1": DONE, "GET /v1/jobs/7": [RUNNING, FAILED], "GET /v1/jobs/8": DONE})
    assert run_command(["wait", "1", "7", "8"]) == 3
    assert [line.split()[1] for line in capsys.readouterr().err.splitlines()] == ["1", "7", "8"]


def test_logs_of_several_tasks_stand_side_by_side(serve: Serve, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    seen = serve({"GET /v1/jobs/7/logs": [b"a\nb", b"", b"c\n", b""]})
    assert run_command(["logs", "7", "--task", "0-1"]) == 0
    assert capfdbinary.readouterr().out == b"[0] a\n[0] b\n[1] c\n"
    assert "task=1" in seen[-1].path
    assert run_command(["logs", "7", "--rank", "0-999"]) == 2
