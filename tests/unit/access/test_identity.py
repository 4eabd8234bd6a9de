"""A server with an identity provider: its file, and a real issuer on this machine whose tokens open the API."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from muster.access.oidc import Oidc
from muster.access.roster import Roster
from muster.app.identity import find_provider
from muster.control.keyring import Keyring
from muster.model.access import Grant, Principal, Role
from muster.model.errors import RejectedError
from muster.model.reason import Code
from muster.outward.http import fetch

KEY = ec.generate_private_key(ec.SECP256R1())
FILE = """
issuer = "{issuer}"
audience = "muster"
user = "preferred_username"
clock_skew = "30s"

[[role]]
group = "ml"
role = "user"
tenant = "research"

[[role]]
group = "platform"
role = "admin"
"""


class FixedClock:
    def now_ms(self) -> int:
        return 1_700_000_000_000


@pytest.fixture
def issuer() -> Iterator[str]:
    """An issuer on this machine; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            jwk = {**json.loads(jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key())), "kid": "1"}
            answers = {
                "/.well-known/openid-configuration": {"issuer": address, "jwks_uri": f"{address}/keys"},
                "/keys": {"keys": [jwk]},
            }
            body = json.dumps(answers[self.path]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        address = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield address
        server.shutdown()


def test_a_token_of_a_real_issuer_is_taken(issuer: str, tmp_path: Path) -> None:
    (tmp_path / "oidc.toml").write_text(FILE.format(issuer=issuer))
    provider = find_provider(tmp_path / "oidc.toml")
    assert provider is not None
    keyring = Keyring(provider.trust.issuer, provider.jwks, fetch, FixedClock())
    asyncio.run(keyring.refresh())
    oidc = Oidc(provider.trust, Roster(), keyring.find_keys, keyring.miss)
    said = {
        "iss": issuer,
        "aud": ["other", "muster"],
        "exp": 1_700_000_060,
        "preferred_username": "ada",
        "groups": ["ml"],
    }
    found = oidc.identify(jwt.encode(said, KEY, "ES256", headers={"kid": "1"}), FixedClock().now_ms())
    assert found == Principal("ada", (Grant(Role.USER, "research"),), "oidc:ada", 1_700_000_060_000)


def test_no_file_is_no_provider(tmp_path: Path) -> None:
    assert find_provider(tmp_path / "oidc.toml") is None


@pytest.mark.parametrize(
    "text",
    [
        "issuer",
        'issuer = "https://a.example"',
        'issuer = "https://a.example"\naudience = ""',
        'issuer = "ftp://a.example"\naudience = "m"',
        'issuer = "https://a.example"\naudience = "m"\nclock_skew = "soon"',
        'issuer = "https://a.example"\naudience = "m"\nclock_skew = "11m"',
        'issuer = "https://a.example"\naudience = "m"\nalgorithms = ["none"]',
        'issuer = "https://a.example"\naudience = "m"\n[[role]]\ngroup = "g"\nrole = "root"',
        'issuer = "https://a.example"\naudience = "m"\n[[role]]\ngroup = "g"\nrole = "user"\ntenant = "a b"',
    ],
)
def test_a_file_that_is_not_in_order_is_refused_with_its_path(text: str, tmp_path: Path) -> None:
    path = tmp_path / "oidc.toml"
    path.write_text(text)
    with pytest.raises(RejectedError) as refused:
        find_provider(path)
    assert refused.value.reason.code is Code.BAD_SETTINGS
    assert refused.value.reason.subject == str(path)
