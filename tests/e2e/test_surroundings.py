"""A real server and those around it: served by TLS, known by an identity provider, told of what happened, also after a
SIGKILL in between."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from live import LiveHome, await_true, serving

from muster.sdk.client import Client

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")

NOTIFY = """
allow = ["127.0.0.0/8"]

[webhook.team]
url = "http://127.0.0.1:{port}/"
secret = "hush"
on = ["job_failed"]
"""


class Receiver(ThreadingHTTPServer):
    """Keeps what it is sent, by id; the first request of all comes to nothing."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests = 0
        self.heard: dict[str, dict[str, object]] = {}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Receiver)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server.requests += 1
        if server.requests > 1:
            server.heard[self.headers["Muster-Notice"]] = json.loads(body)
        self.send_response(204 if server.requests > 1 else 503)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def home(tmp_path: Path, receiver: Receiver) -> Iterator[LiveHome]:
    """A server that is down, with its files."""
    root = tmp_path / "home"
    root.mkdir(mode=0o700)
    (root / "notify.toml").write_text(NOTIFY.format(port=receiver.server_address[1]))
    with serving(root) as running:
        running.muster("down")
        yield running


@pytest.mark.slow
def test_a_server_beyond_this_machine_and_whom_it_tells(home: LiveHome, receiver: Receiver, tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    subprocess.run([*words, "-addext", names, "-keyout", key, "-out", cert], check=True, capture_output=True)
    everywhere = "0.0.0.0"  # noqa: S104 - by TLS, as tested
    refused = home.muster("up", "--host", everywhere, code=2)
    assert "M323" in refused.stderr
    told = home.muster("up", "--host", everywhere, "--tls-cert", str(cert), "--tls-key", str(key)).stdout
    assert "https://localhost:" in told
    home.muster("run", "--", "true")
    home.muster("run", "--", "false", code=1)
    home.muster("run", "--notify", "team", "--", "true")
    await_true(lambda: len(receiver.heard) == 2, "two notices")
    home.kill("follower")
    with Client(home.home, patience_s=0) as client, pytest.raises(Exception, match=r"M309|no server|refused"):
        client.health()
    assert "https://localhost:" in home.muster("up").stdout  # it remembers where it listened
    home.muster("run", "--", "false", code=1)
    await_true(lambda: len(receiver.heard) == 3, "the third")
    assert sorted((notice["job"], notice["kind"]) for notice in receiver.heard.values()) == [
        (2, "job_failed"),
        (3, "job_ended"),
        (4, "job_failed"),
    ]
    assert receiver.requests == 4  # one came to nothing, and none came twice
