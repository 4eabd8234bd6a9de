"""A live identity provider: real keys over real HTTP, which change, stall and go away while the server runs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from live import LiveHome, await_true, serving

from muster.sdk import Client
from muster.sdk.errors import RefusedError

pytestmark = pytest.mark.slow

SETTINGS = """
issuer = "{issuer}"
audience = "muster"
[[role]]
group = "research"
role = "user"
tenant = "lab"
"""


class Issuer:
    """A provider with one key at a time. While it stalls it takes every question and answers none."""

    def __init__(self) -> None:
        self.stalls = False
        self.asked = 0
        self._end = threading.Event()
        self.rotate("first")

        class Handler(BaseHTTPRequestHandler):
            def do_GET(handler) -> None:  # noqa: N805 - the library's name, and `self` is the issuer
                self._answer(handler)

            def log_message(handler, format: str, *args: object) -> None:  # noqa: A002, N805 - the library's signature
                return

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def rotate(self, kid: str) -> None:
        """Sign with a new key from now on, and publish that one alone."""
        self.kid, self._key = kid, generate_private_key(SECP256R1())

    def sign(self, **claims: Any) -> str:
        """A token for somebody of the research group, by the present key."""
        whole = {"iss": self.url, "aud": "muster", "sub": "ann", "groups": ["research"], "exp": time.time() + 3600}
        return jwt.encode({**whole, **claims}, self._key, "ES256", {"kid": self.kid})

    def close(self) -> None:
        """Go away: from now on nobody listens."""
        self._end.set()
        self._http.shutdown()
        self._http.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.asked += 1
        if self.stalls:
            self._end.wait(60)
            return
        public: Any = jwt.algorithms.ECAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        pages = {
            "/.well-known/openid-configuration": {"issuer": self.url, "jwks_uri": f"{self.url}/keys"},
            "/keys": {"keys": [{**public, "kid": self.kid, "use": "sig"}]},
        }
        body = json.dumps(pages[handler.path]).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    made = Issuer()
    yield made
    made.close()


@pytest.fixture
def home(tmp_path: Path, issuer: Issuer) -> Iterator[LiveHome]:
    root = tmp_path / "home"
    root.mkdir(mode=0o700)
    (root / "oidc.toml").write_text(SETTINGS.format(issuer=issuer.url))
    with serving(root) as running:
        yield running


def ask(home: LiveHome, token: str) -> str:
    """As whom one is known with a token, or the code of the refusal; it is one, and never a fault of the server."""
    with Client(home.home, token=token, patience_s=0) as client:
        try:
            return client.me().name
        except RefusedError as error:
            return error.problem.code if error.problem.status == 401 else repr(error.problem)


def test_keys_change_and_the_issuer_goes_away_while_people_work(home: LiveHome, issuer: Issuer) -> None:
    old = issuer.sign()
    await_true(lambda: ask(home, old) == "ann", "the keys were fetched")
    with Client(home.home, token=old) as client:
        assert [(grant.role, grant.tenant) for grant in client.me().roles] == [("user", "lab")]
    assert ask(home, issuer.sign(aud="other")) == "M331"
    assert ask(home, issuer.sign(exp=time.time() - 3600)) == "M331"

    issuer.rotate("second")
    new = issuer.sign()
    assert ask(home, new) == "M331", "a key that was never heard of is looked for, beside the request"
    assert ask(home, old) == "ann", "until then the old one counts"
    await_true(lambda: ask(home, new) == "ann", "the new key was fetched")
    assert ask(home, old) == "M331", "what the issuer took back counts no more"

    asked, issuer.stalls = issuer.asked, True
    issuer.rotate("third")
    assert ask(home, issuer.sign()) == "M331"
    await_true(lambda: issuer.asked > asked, "the issuer is asked for it")
    assert (ask(home, new), ask(home, issuer.sign())) == ("ann", "M331"), "nobody waits while it stalls"

    issuer.close()
    assert (ask(home, new), ask(home, issuer.sign())) == ("ann", "M331"), "known keys count, and no other"
    with home.client() as client:
        assert client.health().status == "ok"
