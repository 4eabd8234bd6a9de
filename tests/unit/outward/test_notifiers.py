"""Notices on their way out: to a real receiver on this machine, and to a real command."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.engines.local.processes import find_process
from muster.outward.addresses import read_ranges
from muster.outward.command import Command
from muster.outward.webhook import Webhook
from muster.ports.notifier import NotDeliveredError
from muster.testing.receivers import Receiver, receiving

DEADLINE_S = 30.0
HERE = read_ranges(["127.0.0.0/8"])


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


def test_a_notice_arrives_signed(receiver: Receiver) -> None:
    Webhook(receiver.url, "hush", HERE).deliver("7-0", b'{"job":1}')
    [(headers, body)] = receiver.heard
    assert body == b'{"job":1}'
    assert headers["muster-notice"] == "7-0"
    assert headers["content-type"] == "application/json"
    said = f"{headers['muster-timestamp']}.".encode() + body
    assert headers["muster-signature"] == "v1=" + hmac.new(b"hush", said, hashlib.sha256).hexdigest()


def test_without_a_secret_nothing_is_signed(receiver: Receiver) -> None:
    Webhook(receiver.url, "", HERE).deliver("7-0", b"{}")
    assert "muster-signature" not in receiver.heard[0][0]


@pytest.mark.parametrize(
    ("status", "is_final"),
    [(302, True), (400, True), (404, True), (410, True), (408, False), (429, False), (500, False), (503, False)],
)
def test_what_is_no_yes_did_not_arrive_and_no_redirect_is_followed(
    receiver: Receiver, status: int, is_final: bool
) -> None:
    receiver.judge = lambda before: status  # noqa: ARG005 - always the same
    with pytest.raises(NotDeliveredError) as lost:
        Webhook(receiver.url, "", HERE).deliver("7-0", b"{}")
    assert lost.value.is_final is is_final
    assert len(receiver.heard) == 1


def test_this_machine_is_not_told_unless_the_admin_allows_it(receiver: Receiver) -> None:
    with pytest.raises(NotDeliveredError) as lost:
        Webhook(receiver.url).deliver("7-0", b"{}")
    assert lost.value.is_final
    assert receiver.heard == []


def test_nobody_there_may_be_there_later() -> None:
    with pytest.raises(NotDeliveredError) as lost:
        Webhook("http://127.0.0.1:1/", "", HERE).deliver("7-0", b"{}")
    assert not lost.value.is_final


def test_a_command_reads_the_notice_and_no_shell_reads_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_SECRET", "hush")
    program = 'cat > "$1/body"; env > "$1/env"; printf %s "$2" > "$1/word"'
    Command(["/bin/sh", "-c", program, "told", str(tmp_path), "$(reboot); `x` && y"]).deliver("7-0", b'{"name":"$(x)"}')
    assert (tmp_path / "body").read_bytes() == b'{"name":"$(x)"}'
    assert (tmp_path / "word").read_text() == "$(reboot); `x` && y"
    assert "MUSTER_NOTICE=7-0" in (tmp_path / "env").read_text().splitlines()
    assert "hush" not in (tmp_path / "env").read_text()


@pytest.mark.parametrize("argv", [["/bin/false"], ["/nowhere/at/all"], ["/bin/sh", "-c", "kill -9 $$"]])
def test_a_command_that_fails_did_not_tell(argv: list[str]) -> None:
    with pytest.raises(NotDeliveredError) as lost:
        Command(argv).deliver("7-0", b"{}")
    assert not lost.value.is_final


def test_a_command_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    program, patience_s = 'sleep 600 & echo $! > "$1/pid"; wait', 0.25
    while not (written := find_text(tmp_path / "pid")):  # a busy machine may not have come so far
        patience_s *= 2
        with pytest.raises(NotDeliveredError, match="took more"):
            Command(["/bin/sh", "-c", program, "slow", str(tmp_path)], patience_s=patience_s).deliver("7-0", b"{}")
    pid = int(written)
    give_up_at = time.monotonic() + DEADLINE_S
    while is_alive(pid):  # it was killed; dying takes a moment on a busy machine
        assert time.monotonic() < give_up_at, f"{pid} lives on"


def find_text(path: Path) -> str:
    """What a file holds; nothing, if it is not there."""
    return path.read_text() if path.exists() else ""


def is_alive(pid: int) -> bool:
    """Whether a process can still do something."""
    process = find_process(pid)
    return process is not None and process.is_alive
