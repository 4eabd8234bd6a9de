"""The home directory: private, made once, and clear about what is wrong with it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from muster.model.errors import StoreError
from muster.model.reason import Code
from muster.sdk.home import Address, Home
from muster.sdk.whereabouts import VARIABLE


def test_it_is_made_private_and_keeps_its_token(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    token = home.read_token()
    home.prepare()
    assert home.read_token() == token
    assert len(token) >= 43
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.token_file.stat().st_mode) == 0o600


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(StoreError) as caught:
        Home(tmp_path / "home").prepare()
    assert caught.value.reason.code is Code.HOME_UNUSABLE


def test_the_variable_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert Home().root == tmp_path
    monkeypatch.setenv(VARIABLE, "")
    assert Home().root == Path.home() / ".muster"


def test_an_address_is_read_as_it_was_written(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home.find_address() is None
    home.write_address(Address("127.0.0.1", 8080))
    assert home.find_address() == Address("127.0.0.1", 8080)
    home.address_file.write_text("{")
    assert home.find_address() is None
