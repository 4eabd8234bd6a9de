"""What a server says and does before it serves: settings, ports, addresses, and errors with a fix and a page."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from muster.app.__main__ import main
from muster.app.process import FILES, WallClock, allow_connections, only_follower, write_note
from muster.app.serve import LocalLogs, bind, check_host, node_name
from muster.engines.local.layout import log_path
from muster.model.errors import ConflictError, RejectedError
from muster.model.spec import is_name
from muster.sdk.home import Address, Home
from muster.sdk.processes import Note, find_server_process, find_start_time


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody else listens on."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_a_node_has_a_name() -> None:
    assert is_name(node_name())


@pytest.mark.parametrize(("hard", "files"), [(512, 512), (100_000, FILES), (resource.RLIM_INFINITY, FILES)])
def test_a_follower_has_files_for_many_connections(monkeypatch: pytest.MonkeyPatch, hard: int, files: int) -> None:
    limits = [(256, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: limits.append(both))
    allow_connections()
    assert limits[-1] == (files, hard)
    limits.append((2 * FILES, hard))
    allow_connections()
    assert limits[-1] == (2 * FILES, hard), "what it has it keeps"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.1.2.3"])
def test_this_machine_alone_is_served(host: str) -> None:
    check_host(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "example.org", ""])  # noqa: S104 - refused is the point
def test_a_network_is_not(host: str) -> None:
    with pytest.raises(RejectedError, match="M323"):
        check_host(host)


def test_a_port_asked_for_is_given_or_refused(taken: int) -> None:
    with pytest.raises(ConflictError) as caught:
        bind("127.0.0.1", taken, None)
    assert caught.value.reason.needed == taken


def test_the_last_port_is_kept_if_it_is_free(taken: int) -> None:
    with bind("127.0.0.1", 0, None) as first:
        port = first.getsockname()[1]
    with bind("127.0.0.1", 0, Address("127.0.0.1", port)) as again:
        assert again.getsockname()[1] == port
    with bind("127.0.0.1", 0, Address("127.0.0.1", taken)) as other:
        assert other.getsockname()[1] != taken


def test_a_process_says_who_it_is(tmp_path: Path) -> None:
    write_note(tmp_path / "leader.json")
    note = msgspec.json.decode((tmp_path / "leader.json").read_bytes(), type=Note)
    assert (note.pid, note.start_time) == (os.getpid(), find_start_time(os.getpid()))


def test_a_home_has_one_follower_which_says_so_at_once(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with only_follower(home):
        process = find_server_process(home, "follower")
        assert process is not None
        with process:
            assert process.pid == os.getpid()
        with pytest.raises(ConflictError, match="M303"), only_follower(home):
            pass
    with only_follower(home):
        pass


def test_a_log_is_found_once_it_is_written(tmp_path: Path) -> None:
    logs = LocalLogs(tmp_path)
    assert logs.find_log(1, 0, 1) is None
    path = log_path(tmp_path, 1, 0, 1)
    path.parent.mkdir()
    path.write_text("words")
    assert logs.find_log(1, 0, 1) == path


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_a_home_that_is_a_file_is_told_with_a_fix_and_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], role: str
) -> None:
    (tmp_path / "home").write_text("")
    assert main([role, "--home", str(tmp_path / "home")]) == 2
    error, fix, page = capsys.readouterr().err.splitlines()
    assert error.startswith("error[M305]: cannot use")
    assert fix.startswith("help: set MUSTER_HOME")
    assert page == "more: muster explain M305"


def test_a_word_that_is_wrong_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["dance"])
    assert caught.value.code == 2
    assert "dance" in capsys.readouterr().err


def test_the_clock_counts_milliseconds() -> None:
    assert WallClock().now_ms() > 1_700_000_000_000
