"""Where a server is: read from its home, which may be missing, empty or damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.sdk.home import Home
from muster.sdk.whereabouts import ADDRESS_FILE, VARIABLE, Address, default_root, find_address, read_token


def test_what_the_home_writes_a_client_reads(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.prepare()
    home.write_address(Address("127.0.0.1", 4711))
    assert find_address(str(tmp_path)) == Address("127.0.0.1", 4711)
    assert read_token(str(tmp_path)) == home.token_file.read_text().strip()


def test_a_home_without_a_server_has_neither(tmp_path: Path) -> None:
    assert find_address(str(tmp_path / "none")) is None
    assert read_token(str(tmp_path / "none")) == ""


def test_a_damaged_address_is_none(tmp_path: Path) -> None:
    (tmp_path / ADDRESS_FILE).write_bytes(b'{"host": 7')
    assert find_address(str(tmp_path)) is None


def test_home_is_where_the_variable_says_or_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert default_root() == str(tmp_path)
    monkeypatch.delenv(VARIABLE)
    assert default_root() == str(Path.home() / ".muster")
