"""Logs within bounds: the middle of one that is too long is given back, its beginning, end and length stay."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from muster.api import logs as pieces
from muster.api.logs import read_piece
from muster.engines.local import logs
from muster.engines.local.logs import most_kept, open_log, trim_log

MIB = 1024 * 1024


def read_all(path: Path) -> bytes:
    data, offset = b"", 0
    while True:
        piece = read_piece(path, offset)
        data, offset = data + piece.data, piece.next_offset
        if piece.is_last:
            return data


def test_a_long_log_keeps_its_beginning_its_end_and_its_length(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"begin\n" + b"\xff\0\n" * (2 * MIB) + b"end\n")
    size = path.stat().st_size
    assert trim_log(path, MIB)
    assert path.stat().st_size == size
    assert path.stat().st_blocks * 512 <= MIB
    assert not trim_log(path, MIB), "once is enough"
    read = read_all(path)
    assert read.startswith(b"begin\n")
    assert read.endswith(b"end\n")
    assert b"bytes of output were not kept]\n" in read
    assert len(read) < 1.1 * MIB


def test_a_log_that_fits_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 1000)
    assert not trim_log(path, MIB)
    assert not trim_log(tmp_path / "none", MIB)
    assert read_all(path) == b"x" * 1000


@pytest.mark.parametrize("kind", ["symlink", "fifo", "directory"])
def test_nothing_but_a_plain_file_is_a_log(tmp_path: Path, kind: str) -> None:
    path, secret = tmp_path / "log", tmp_path / "secret"
    secret.write_text("secret")
    if kind == "symlink":
        path.symlink_to(secret)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    assert read_piece(path, 0) == pieces.Piece(b"", 0, is_last=True)
    if kind == "symlink":
        os.close(open_log(path))
        assert secret.read_text() == "secret"


def test_output_that_has_no_place_is_dropped_and_not_the_task(tmp_path: Path) -> None:
    handle = open_log(tmp_path / "nowhere" / "log")
    assert os.write(handle, b"x") == 1
    os.close(handle)


def test_a_disk_that_is_nearly_full_makes_logs_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert most_kept(tmp_path, 10 * MIB) in {10 * MIB, MIB}
    monkeypatch.setattr(logs, "FREE_BYTES_MIN", 2**62)
    assert most_kept(tmp_path, 10 * MIB) == MIB


@pytest.mark.parametrize("offset", [7, 8, 2**62])
def test_nothing_is_read_beyond_the_end(tmp_path: Path, offset: int) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"seven b")
    assert read_piece(path, offset) == pieces.Piece(b"", offset, is_last=True)
