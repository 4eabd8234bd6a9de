"""`top` opens on what is wrong; `doctor` names each trouble with its fix; `explain` and `completion` ask nobody."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest
from served import Serve

from muster import __version__
from muster.cli.doctor import Finding, examine
from muster.cli.main import run_command
from muster.cli.pages import PACKED, SOURCE, read_pages
from muster.cli.top import Sight, draw, look
from muster.model.reason import Code
from muster.sdk.client import Client
from muster.sdk.errors import NoServerError, make_error
from muster.sdk.home import Address, Home
from muster.sdk.node_file import NodeFile, write_node_file
from muster.units import Resources
from muster.wire.views import BarView, Health, JobPage, JobView, NodeView, Place, Problem

NODE = NodeView("n1", "up", Resources(8, 32_000), Resources(2, 31_000), 1)
RUNNING = JobView(1, "big", "vision", "running", 1, Resources(6, 1000), 1, 1, 1, places=[Place("n1", 1)])
QUEUED = JobView(2, "wants", "lab", "queued", 1, Resources(4, 1000), 1, 1)
FAILED = JobView(3, "bad", "lab", "failed", 1, Resources(1), 1, 1, 1, 1, "exit", 3, is_over=True)
FIT = Health("ok", True, 9, 12, __version__)


def lines_of(sight: Sight, rows: int, width: int) -> list[str]:
    return [row.text for row in draw(sight, rows, width)]


def test_the_failures_of_the_last_minutes_are_asked_for_and_not_the_first_thousand(serve: Serve) -> None:
    lately = msgspec.structs.replace(FAILED, since_ms=int(time.time() * 1000))
    seen = serve({"GET /v1/health": FIT, "GET /v1/nodes": (NODE,), "GET /v1/jobs": JobPage([lately])})
    with Client() as client:
        sight = look(client)
    [asked] = [request.path for request in seen if "phase=failed" in request.path]
    assert "since=" in asked
    assert "order=" not in asked
    assert sight.failed == [lately]


def test_who_runs_is_seen_behind_very_many_who_wait(serve: Serve) -> None:
    def asked(**words: object) -> str:
        return "GET /v1/jobs?" + "&".join(f"{name}={value}" for name, value in words.items())

    late = msgspec.structs.replace(RUNNING, id=5000)
    serve(
        {
            "GET /v1/health": FIT,
            "GET /v1/nodes": (NODE,),
            asked(state="live", limit=1000, order="oldest"): JobPage([QUEUED], next_after=2),
            asked(state="live", phase="running", limit=1000): JobPage([late]),
        }
    )
    with Client() as client:
        sight = look(client)
    assert (sight.live, sight.is_cut) == ([QUEUED, late], True)


def test_a_quiet_fleet_has_nothing_wrong() -> None:
    frame = lines_of(Sight(FIT, [QUEUED, RUNNING], [], [NODE], False), 10, 100)
    assert frame[0].endswith("· ok · lag 12ms · 1 running, 1 waiting")
    assert "nothing is wrong" in frame
    assert f"GPUs  {'█' * 22}{'░' * 8}  6 of 8 in use" in frame
    rows = [line.split()[:2] for line in frame if line[:1].isdigit()]
    assert rows == [["1", "big"], ["2", "wants"]]


def test_what_is_wrong_comes_first_and_is_cut() -> None:
    barred = NodeView("n2", "gone", Resources(8), Resources(), 3, bars=[BarView("drain", "operator", 1, "xid")])
    unfit = Health("no leader", False, 9)
    frame = lines_of(Sight(unfit, [], [FAILED] * 9, [barred], False), 8, 100)
    wrong = [line for line in frame if line.startswith("!")]
    assert wrong[0].startswith("! no leader: changes do not get through")
    assert wrong[1].startswith("! node n2: gone; drain by operator: xid, 3 jobs there")
    assert wrong[2].startswith("! job 3 bad failed: exit code 3, ")
    assert wrong[-1] == "! … and 7 more"


def test_many_jobs_are_cut_to_the_screen() -> None:
    frame = lines_of(Sight(FIT, [RUNNING] * 50, [], [NODE], True), 5, 60)
    assert "… and 45+ more: muster ls" in frame
    assert frame[0].endswith("50 running, 0+ waiting")


def test_without_a_terminal_top_is_one_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path))
    monkeypatch.setattr(Client, "health", lambda _: FIT)
    monkeypatch.setattr(Client, "list", lambda _, **asked: JobPage([FAILED] if asked.get("phase") else [RUNNING]))
    monkeypatch.setattr(Client, "nodes", lambda _: (NODE,))
    assert run_command(["top"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"muster {__version__} · ")
    assert "\x1b" not in shown


def states(home: Home) -> dict[str, Finding]:
    return {one.check: one for one in examine(home)}


def test_a_home_that_is_not_there_is_said_with_what_makes_it(tmp_path: Path) -> None:
    found = states(Home(tmp_path / "none"))
    assert (found["home"].state, found["leader"].state, found["server"].state) == ("warning", "wrong", "wrong")
    assert all(one.fix for one in found.values() if one.state != "ok")


def test_open_doors_a_clock_that_went_back_and_an_old_server_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    home.root.chmod(0o755)
    home.token_file.chmod(0o644)
    home.journal_file.write_text("")
    os.utime(home.journal_file, (time.time() + 3600, time.time() + 3600))
    home.write_address(Address("127.0.0.1", 1))
    monkeypatch.setattr(Client, "health", lambda _: Health("ok", True, 9, 5000, "0.0.9"))
    monkeypatch.setattr(Client, "nodes", lambda _: (NodeView("n", "gone", Resources(8), Resources()),))
    found = states(home)
    assert {name: found[name].state for name in ("home", "token", "clock", "server", "lag", "engine")} == {
        "home": "wrong",
        "token": "wrong",
        "clock": "wrong",
        "server": "warning",
        "lag": "warning",
        "engine": "wrong",
    }
    assert found["home"].fix == f"chmod 700 {home.root}"
    assert found["server"].words == f"http://127.0.0.1:1 is version 0.0.9, this is {__version__}"


def test_a_server_that_answers_says_itself_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    home.write_address(Address("127.0.0.1", 1))

    def refuse(_: Client) -> Health:
        raise make_error(
            Problem("about:blank", "unauthorised", 401, "M308", "no valid token", "use the one of the home")
        )

    monkeypatch.setattr(Client, "health", refuse)
    assert states(home)["server"].fix == "use the one of the home"


def test_a_leader_that_is_there_and_does_not_decide_is_no_reason_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    home.write_address(Address("127.0.0.1", 1))
    monkeypatch.setattr(Client, "health", lambda _: Health("no leader", False, 9, 5, __version__))
    monkeypatch.setattr(Client, "nodes", lambda _: (NODE,))
    assert states(home)["server"].fix == "`muster up`"
    monkeypatch.setattr("muster.cli.doctor._process", lambda _, role: Finding(role, "ok", "process 7"))
    assert "disk may hang" in states(home)["server"].fix

    def say_nothing(_: Client) -> Health:
        raise NoServerError("http://127.0.0.1:1", 5)

    monkeypatch.setattr(Client, "health", say_nothing)
    assert "the follower's log" in states(home)["server"].fix


def test_devices_that_are_declared_are_said_to_be_and_a_broken_node_file_is_named(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    write_node_file(home.node_file, NodeFile(capacity="gpus=8"))
    assert (states(home)["gpus"].state, "gpus=8" in states(home)["gpus"].words) == ("warning", True)
    home.node_file.write_text("{")
    assert (states(home)["gpus"].state, states(home)["gpus"].fix) == ("wrong", f"mend or remove {home.node_file}")


def test_doctor_leaves_with_one_if_something_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "none"))
    assert run_command(["doctor", "-o", "name"]) == 1
    assert "leader\nfollower\n" in capsys.readouterr().out


def test_every_code_has_a_page_that_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(read_pages()) == {code.value for code in Code}
    assert not PACKED.exists()
    assert SOURCE.exists()
    assert run_command(["explain", "m201"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("M201 no room\n\n")
    assert "**Fix.**" in page
    assert run_command(["explain"]) == 0
    assert "M201  no room" in capsys.readouterr().out
    assert run_command(["explain", "M2O1"]) == 2
    assert "`muster explain` lists them" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_get_what_completes(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    assert run_command(["completion", shell]) == 0
    assert "_MUSTER_COMPLETE" in capsys.readouterr().out


def test_a_shell_is_told_the_commands(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in (("_MUSTER_COMPLETE", "bash_complete"), ("COMP_WORDS", "muster no"), ("COMP_CWORD", "1")):
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        run_command([])
    assert capsys.readouterr().out == "plain,nodes\nplain,notify\n"
