"""Where a server listens is remembered, whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.model.errors import RejectedError
from muster.model.reason import Code
from muster.sdk.listen_file import ListenFile, read_listen_file, write_listen_file


def test_nothing_said_is_this_machine(tmp_path: Path) -> None:
    assert read_listen_file(tmp_path / "listen.json") == ListenFile()
    assert ListenFile().words() == []


def test_what_was_said_is_said_again(tmp_path: Path) -> None:
    said = ListenFile("0.0.0.0", "/etc/cert.pem", "/etc/key.pem")  # noqa: S104 - written down here, not listened on
    write_listen_file(tmp_path / "listen.json", said)
    assert read_listen_file(tmp_path / "listen.json") == said
    assert said.words() == ["--host", said.host, "--tls-cert", "/etc/cert.pem", "--tls-key", "/etc/key.pem"]


@pytest.mark.parametrize("data", [b"", b"[]", b'{"host": 1}', b'{"port": 1}', b"\xff"])
def test_a_file_that_is_not_in_order_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "listen.json").write_bytes(data)
    with pytest.raises(RejectedError) as refused:
        read_listen_file(tmp_path / "listen.json")
    assert refused.value.reason.code is Code.BAD_SETTINGS
