"""A real server and those around it: served by TLS, known by an identity provider, told of what happened, also after a
SIGKILL in between."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from live import LiveHome, await_true, serving

from muster.app.notifying import read_marks
from muster.sdk.client import Client
from muster.testing.receivers import ARRIVED, Receiver, receiving
from muster.wire.notices import Notice

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")

NOTIFY = """
allow = ["127.0.0.0/8"]

[webhook.team]
url = "{url}"
secret = "hush"
on = ["job_failed"]
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """The first request of all comes to nothing."""
    with receiving() as server:
        server.judge = lambda before: ARRIVED if before else 503
        yield server


def arrived(receiver: Receiver) -> dict[str, Notice]:
    """What it was told, by id."""
    return {each.headers["muster-notice"]: msgspec.json.decode(each.body, type=Notice) for each in receiver.heard[1:]}


@pytest.fixture
def home(tmp_path: Path, receiver: Receiver) -> Iterator[LiveHome]:
    """A server that is down, with its files."""
    root = tmp_path / "home"
    root.mkdir(mode=0o700)
    (root / "notify.toml").write_text(NOTIFY.format(url=receiver.url))
    with serving(root) as running:
        running.muster("down")
        yield running


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for this machine, signed by itself, and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    subprocess.run([*words, "-addext", names, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


@pytest.mark.slow
def test_a_server_beyond_this_machine_and_whom_it_tells(home: LiveHome, receiver: Receiver, tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path)
    everywhere = "0.0.0.0"  # noqa: S104 - by TLS, as tested
    refused = home.muster("up", "--host", everywhere, code=2)
    assert "M323" in refused.stderr
    told = home.muster("up", "--host", everywhere, "--tls-cert", str(cert), "--tls-key", str(key)).stdout
    assert "https://localhost:" in told
    home.muster("run", "--", "true")
    home.muster("run", "--", "false", code=1)
    home.muster("run", "--notify", "team", "--", "true")
    await_true(lambda: len(arrived(receiver)) == 2, "two notices")
    last = max(notice.seq for notice in arrived(receiver).values())
    await_true(lambda: read_marks(home.home.notices_file)["team"].seq >= last, "that they were told is written down")
    home.kill("follower")
    with Client(home.home, patience_s=0) as client, pytest.raises(Exception, match=r"M309|no server|refused"):
        client.health()
    assert "https://localhost:" in home.muster("up").stdout  # it remembers where it listened
    home.muster("run", "--", "false", code=1)
    await_true(lambda: len(arrived(receiver)) == 3, "the third")
    assert sorted((notice.job, notice.kind.value) for notice in arrived(receiver).values()) == [
        (2, "job_failed"),
        (3, "job_ended"),
        (4, "job_failed"),
    ]
    assert len(receiver.heard) == 4  # one came to nothing, and none came twice
    home.muster("notify", "add", "command", "file", "--", "/bin/sh", "-c", f'cat > "{tmp_path}/told"')
    home.muster("notify", "test", "file")  # the server has read of it by itself
    assert '"kind":"trial"' in (tmp_path / "told").read_text()
    home.muster("notify", "remove", "file")
    assert home.muster("notify", "-o", "name").stdout == "team\n"
    assert "M335" in home.muster("notify", "test", "file", code=2).stderr


@pytest.mark.slow
def test_a_client_elsewhere_logs_in_with_its_token(home: LiveHome, tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path)
    url = home.muster("up", "--host", "127.0.0.1", "--tls-cert", str(cert), "--tls-key", str(key)).stdout.split()[4]
    home.muster("users", "set", "ann", "--role", "user")
    token = home.muster("tokens", "make", "--user", "ann").stdout
    client = ["--home", str(tmp_path / "client")]
    words = [*client, "login", "--server", url]
    assert "certificate is not trusted" in home.muster(*words, code=2, stdin=token).stderr
    assert "M308" in home.muster(*words, "--ca-cert", str(cert), code=2, stdin="wrong\n").stderr
    home.muster(*words, "--ca-cert", str(cert), stdin=token)
    assert home.muster(*client, "run", "--", "echo", "hello").stdout == "hello\n"
    assert "ann" in home.muster(*client, "whoami").stdout
    assert "M316" in home.muster(*client, "users", "set", "bob", code=2).stderr
    home.muster(*client, "logout")
    home.muster(*client, "ls", code=3)
