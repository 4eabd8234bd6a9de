"""Requests to the outside: where they may go, and how little of a hostile answer reaches us. The servers are real."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from muster.outward.addresses import EVERYWHERE, is_allowed, read_ranges
from muster.outward.http import REPLY_BYTES_MAX, ForbiddenError, OutwardError, fetch, read_target, send

HERE = read_ranges(["127.0.0.0/8"])
INSIDE = [
    *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "192.0.2.1"),
    *("0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "ff02::1"),  # noqa: S104 - refused here, not listened on
    *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "2002:7f00:1::", "64:ff9b::7f00:1", "2001:db8::1", "fd00:ec2::254"),
]


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that answers one connection with what a test says; its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            link, _ = listener.accept()
            with link:
                link.recv(65536)
                answer(link)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/keys?a=1"
        thread.join(30)


def saying(data: bytes) -> Callable[[socket.socket], None]:
    return lambda link: link.sendall(data)


@pytest.mark.parametrize("address", INSIDE)
def test_what_only_the_server_reaches_is_not_asked_on_somebodys_word(address: str) -> None:
    assert not is_allowed(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111"])
def test_the_public_network_is(address: str) -> None:
    assert is_allowed(ipaddress.ip_address(address))


def test_a_range_that_an_admin_named_is_allowed_however_it_is_written() -> None:
    allowed = read_ranges(["10.1.0.0/16", "fd00::/8"])
    for address, is_in in (("10.1.2.3", True), ("::ffff:10.1.2.3", True), ("10.2.0.1", False), ("fd00::1", True)):
        assert is_allowed(ipaddress.ip_address(address), allowed) is is_in


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "file:///etc/passwd",
        "http://",
        "https://user:secret@example.org/",
        "https://example.org:99999/",
        "https://example.org/\r\nHost: other",
        "https://ex ample.org/",
        "https://example.org/" + "a" * 2048,
        "https://[::1/",
        "https://ex\u00e4mple.org/",
        "//example.org",
    ],
)
def test_what_is_no_plain_url_is_refused(url: str) -> None:
    with pytest.raises(ForbiddenError):
        read_target(url)


def test_a_request_goes_to_the_address_that_was_looked_at() -> None:
    with answering(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")) as url:
        assert send(url, HERE) == (200, b"ok")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]"])
def test_this_machine_is_not_asked_whatever_it_is_called(host: str) -> None:
    with pytest.raises(OutwardError):
        send(f"http://{host}:1/", ())


def test_a_name_that_leads_to_a_forbidden_address_besides_others_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [(0, 0, 0, "", (address, 80)) for address in ("8.8.8.8", "169.254.169.254")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    with pytest.raises(ForbiddenError, match=r"169\.254"):
        send("http://rebound.example/", ())


def test_a_name_is_asked_for_once_so_that_it_cannot_lead_elsewhere_a_moment_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    found = socket.getaddrinfo

    def resolve(host: str, *words: int, **more: int) -> object:
        asked.append(host)
        return found("127.0.0.1" if host == "rebound.example" else host, *words, **more)

    with answering(saying(b"HTTP/1.1 204 No Content\r\n\r\n")) as url:
        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        assert send(url.replace("127.0.0.1", "rebound.example"), HERE).status == 204
    assert asked == ["rebound.example", "127.0.0.1"]


def test_a_redirect_is_an_answer_and_not_followed() -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    with answering(saying(moved)) as url:
        assert send(url, HERE).status == 302


def test_a_long_answer_is_cut_off() -> None:
    body = b"a" * (REPLY_BYTES_MAX + 5000)
    with answering(saying(b"HTTP/1.1 200 OK\r\n\r\n" + body)) as url:
        assert len(send(url, HERE).body) == REPLY_BYTES_MAX


def test_whoever_sends_a_byte_now_and_then_is_cut_off() -> None:
    def drip(link: socket.socket) -> None:
        try:
            while True:
                link.sendall(b"H")
                if not link.recv(1):
                    return
        except OSError:
            return

    with answering(drip) as url, pytest.raises(OutwardError):
        send(url, HERE, patience_s=0.2)


@pytest.mark.parametrize("data", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"])
def test_an_answer_that_is_none_is_an_error(data: bytes) -> None:
    with answering(saying(data)) as url, pytest.raises(OutwardError):
        send(url, HERE)


def test_a_document_of_the_admins_comes_whole_or_not_at_all() -> None:
    with answering(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")) as url:
        assert fetch(url) == b"{}"
    with answering(saying(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")) as url, pytest.raises(OutwardError):
        fetch(url)
    with pytest.raises(ForbiddenError, match="neither https"):
        fetch("http://login.example.org/keys")


def test_everywhere_is_everywhere() -> None:
    assert is_allowed(ipaddress.ip_address("127.0.0.1"), EVERYWHERE)
    assert is_allowed(ipaddress.ip_address("::1"), EVERYWHERE)
