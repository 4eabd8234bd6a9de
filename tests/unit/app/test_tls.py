"""TLS: needed beyond this machine, spoken by server and client alike, and refused when it is not what it says."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.app.serve import Tls, bind, check_host, configure, names_in
from muster.model.errors import RejectedError
from muster.model.reason import Code
from muster.sdk.exchange import Connection
from muster.sdk.whereabouts import Address

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    root = tmp_path_factory.mktemp("tls")
    made = Tls(root / "cert.pem", root / "key.pem")
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    words += [
        "-addext",
        "subjectAltName=DNS:localhost,DNS:Muster.Example,IP:10.0.0.7",
        "-keyout",
        str(made.key),
        "-out",
        str(made.cert),
    ]
    subprocess.run(words, check=True, capture_output=True)
    return made


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "::", "muster.example"])  # noqa: S104 - to be refused
def test_beyond_this_machine_there_is_tls_or_nothing(host: str, tls: Tls) -> None:
    with pytest.raises(RejectedError) as caught:
        check_host(host)
    assert caught.value.reason.code is Code.TLS_NEEDED
    check_host(host, tls)


def test_a_certificate_that_is_none_is_refused(tmp_path: Path, tls: Tls) -> None:
    (tmp_path / "junk").write_text("junk")
    for wrong in (Tls(tmp_path / "absent", tls.key), Tls(tmp_path / "junk", tls.key), Tls(tls.cert, tmp_path / "junk")):
        with pytest.raises(RejectedError):
            check_host("127.0.0.1", wrong)


@pytest.fixture
def port(tls: Tls) -> Iterator[int]:
    """A server that says yes, by TLS."""

    async def say(request: Request) -> Response:
        return Response(b"yes")

    listening = bind("127.0.0.1", 0, None)
    server = uvicorn.Server(configure(Starlette(routes=[Route("/", say)]), tls))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join()


def test_client_and_server_speak_tls(port: int, tls: Tls) -> None:
    link = Connection(Address("localhost", port, str(tls.cert)), 30)
    assert link.exchange("GET", "/", {}, b"").body == b"yes"
    link.close()


def test_a_name_that_the_certificate_does_not_have_is_refused(port: int, tls: Tls) -> None:
    with pytest.raises(OSError, match=r"[Hh]ostname|IP address"):
        Connection(Address("127.0.0.1", port, str(tls.cert)), 30)


def test_in_the_clear_nothing_is_answered(port: int) -> None:
    link = Connection(Address("127.0.0.1", port), 30)
    with pytest.raises(OSError):
        link.exchange("GET", "/", {}, b"")
    link.close()


def test_the_names_in_a_certificate_are_the_servers(tls: Tls) -> None:
    assert names_in(tls.cert) == ["localhost", "muster.example", "10.0.0.7"]
