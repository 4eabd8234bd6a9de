"""The server's own log has an end: the file before the last is the oldest that is kept."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from muster.engines.local.log_file import LOOK_EVERY, LogFile


def _log(path: Path, handle: int, lines: int) -> None:
    with os.fdopen(handle, "w", closefd=False) as stream:
        log = LogFile(stream, path, bytes_max=1000)
        for number in range(lines):
            log.emit(logging.LogRecord("muster", logging.INFO, "", 0, "line %d", (number,), None))


def test_a_log_that_grows_is_begun_anew_and_the_last_one_kept(tmp_path: Path) -> None:
    path = tmp_path / "leader.log"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    _log(path, handle, 10 * LOOK_EVERY + 1)
    os.write(handle, b"a traceback\n")
    os.close(handle)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["leader.log", "leader.log.1"]
    assert path.read_text().splitlines()[-1] == "a traceback"
    assert f"line {10 * LOOK_EVERY}" in path.read_text()
    assert len(path.read_text().splitlines()) < LOOK_EVERY
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_is_not_our_file_is_left_alone(tmp_path: Path) -> None:
    elsewhere = tmp_path / "of-the-service-manager"
    handle = os.open(elsewhere, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    _log(tmp_path / "leader.log", handle, 10 * LOOK_EVERY)
    os.close(handle)
    assert [found.name for found in tmp_path.iterdir()] == [elsewhere.name]
    assert len(elsewhere.read_text().splitlines()) == 10 * LOOK_EVERY


def test_who_writes_to_the_same_file_follows_when_another_has_begun_it_anew(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.log"
    with path.open("a") as supervisors, path.open("a") as keepers:
        logs = [LogFile(stream, path, bytes_max=1000) for stream in (supervisors, keepers)]
        for number in range(10 * LOOK_EVERY):
            for log in logs:
                log.emit(logging.LogRecord("muster", logging.INFO, "", 0, "line %d", (number,), None))
        assert all(os.path.samestat(os.fstat(stream.fileno()), path.stat()) for stream in (supervisors, keepers))
    assert sorted(found.name for found in tmp_path.iterdir()) == ["supervisor.log", "supervisor.log.1"]
    assert len(path.read_text().splitlines()) <= 2 * LOOK_EVERY
