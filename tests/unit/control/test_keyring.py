"""The keyring: fetched beside the requests, kept through failures, and not for ever."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from muster.control.keyring import AGE_MAX_MS, Keyring

ISSUER = "https://login.example.org/realms/lab"
FOUND = f"{ISSUER}/.well-known/openid-configuration"
KEY = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}


def key_set(*kids: str) -> bytes:
    return json.dumps({"keys": [{**KEY, "kid": kid} for kid in kids]}).encode()


class Issuer:
    """Documents by their addresses, which may change or go away."""

    def __init__(self) -> None:
        self.documents = {
            FOUND: json.dumps({"issuer": ISSUER, "jwks_uri": "https://keys.example.org/1"}).encode(),
            "https://keys.example.org/1": key_set("a"),
        }
        self.asked: list[str] = []
        self.now = 1000

    def fetch(self, url: str) -> bytes:
        self.asked.append(url)
        if url not in self.documents:
            raise ConnectionRefusedError(url)
        return self.documents[url]

    def now_ms(self) -> int:
        return self.now

    def keyring(self, jwks: str = "", least_s: float = 0.0) -> Keyring:
        return Keyring(ISSUER, jwks, self.fetch, self, least_s)


def kids(keyring: Keyring) -> list[str]:
    return list(keyring.find_keys() or ())


def test_the_issuer_says_where_its_keys_are() -> None:
    issuer = Issuer()
    keyring = issuer.keyring()
    assert keyring.find_keys() is None
    asyncio.run(keyring.refresh())
    assert kids(keyring) == ["a"]
    assert issuer.asked == [FOUND, "https://keys.example.org/1"]


def test_or_the_admin_does() -> None:
    issuer = Issuer()
    asyncio.run((keyring := issuer.keyring(jwks="https://keys.example.org/1")).refresh())
    assert kids(keyring) == ["a"]
    assert issuer.asked == ["https://keys.example.org/1"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda issuer: issuer.documents.clear(),
        lambda issuer: issuer.documents.update({FOUND: b"<html>"}),
        lambda issuer: issuer.documents.update({FOUND: b'{"issuer": "https://evil", "jwks_uri": "https://evil/"}'}),
        lambda issuer: issuer.documents.update({"https://keys.example.org/1": b'{"keys": []}'}),
        lambda issuer: issuer.documents.update({"https://keys.example.org/1": b"nonsense"}),
    ],
)
def test_what_is_known_stays_through_failures_and_not_for_ever(spoil: Callable[[Issuer], None]) -> None:
    issuer = Issuer()
    keyring = issuer.keyring()
    asyncio.run(keyring.refresh())
    spoil(issuer)
    issuer.now += AGE_MAX_MS
    asyncio.run(keyring.refresh())
    assert kids(keyring) == ["a"]
    issuer.now += 1
    assert keyring.find_keys() is None


def test_a_new_key_is_looked_for_once_somebody_names_it() -> None:
    issuer = Issuer()

    async def rotate() -> list[str]:
        keyring = issuer.keyring()
        running = asyncio.ensure_future(keyring.run())
        async with asyncio.timeout(30):
            while not kids(keyring):
                await asyncio.sleep(0.001)
            issuer.documents["https://keys.example.org/1"] = key_set("a", "b")
            keyring.miss()
            while "b" not in kids(keyring):
                await asyncio.sleep(0.001)
        running.cancel()
        return kids(keyring)

    assert asyncio.run(rotate()) == ["a", "b"]
    assert len(issuer.asked) == 4  # twice, and no more


def test_nobody_can_make_it_ask_often() -> None:
    issuer = Issuer()

    async def pester() -> None:
        keyring = issuer.keyring(least_s=3600.0)
        running = asyncio.ensure_future(keyring.run())
        async with asyncio.timeout(30):
            while not kids(keyring):
                await asyncio.sleep(0.001)
            for _ in range(100):
                keyring.miss()
                await asyncio.sleep(0)
        running.cancel()

    asyncio.run(pester())
    assert len(issuer.asked) == 2
