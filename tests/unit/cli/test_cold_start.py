"""What a cold `muster ls` does not pay for: modules that a listing does not need, and the garbage collector."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from muster.sdk.home import Address, Home
from muster.units import Resources
from muster.wire.views import JobPage, JobView

# What click, httptools, msgspec and socket load for themselves is theirs to answer for.
LISTING = """
import atexit, gc, sys
import click, httptools, msgspec, socket

def count_collections():
    return sum(generation["collections"] for generation in gc.get_stats())

def tell():
    print(*sorted(set(sys.modules) - theirs), file=sys.stderr)
    print(count_collections() - looked, gc.get_freeze_count() > 0, file=sys.stderr)

gc.collect()
theirs, looked = set(sys.modules), count_collections()
atexit.register(tell)
from muster.cli.main import main
main()
"""
NEEDLESS_PACKAGES = {
    *("asyncio", "dataclasses", "email", "http", "ipaddress", "json", "pathlib", "sqlite3", "ssl", "starlette"),
    *("subprocess", "tempfile", "urllib", "uvicorn"),
}
OUR_MODULES = {
    *("muster", "muster.cli", "muster.cli.commands", "muster.cli.failing", "muster.cli.jobs", "muster.cli.main"),
    "muster.cli.moments",
    "muster.cli.naming",
    *(
        "muster.cli.printing",
        "muster.model",
        "muster.model.after",
        "muster.model.again",
        "muster.model.bounds",
        "muster.model.errors",
        "muster.model.group",
        "muster.model.node",
        "muster.model.origin",
        "muster.model.partition",
        "muster.model.phase",
        "muster.model.reason",
        "muster.model.record",
        "muster.model.sharing",
    ),
    *(
        "muster.model.spec",
        "muster.model.tier",
        "muster.sdk",
        "muster.sdk.asking",
        "muster.sdk.client",
        "muster.sdk.ear",
        "muster.sdk.errors",
        "muster.sdk.exchange",
    ),
    *("muster.sdk.paths", "muster.sdk.spelling", "muster.sdk.transport", "muster.sdk.trying", "muster.sdk.whereabouts"),
    *("muster.units", "muster.units.amounts"),
    *(
        "muster.units.times",
        "muster.wire",
        "muster.wire.access_views",
        "muster.wire.forecast_views",
        "muster.wire.views",
    ),
}


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    """Where the server of the home in `tmp_path` would listen."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(60)
        Home(tmp_path).write_address(Address("127.0.0.1", made.getsockname()[1]))
        yield made


def test_a_listing_loads_what_it_needs_and_leaves_before_the_collector_begins(
    listener: socket.socket, tmp_path: Path
) -> None:
    environment = os.environ | {"MUSTER_HOME": str(tmp_path)}
    words = [sys.executable, "-c", LISTING, "ls"]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as listing:
        answer_once(listener, JobPage([JobView(7, "train", "vision", "running", 4, Resources(2), 1, 1)]))
        printed, told = listing.communicate()
    assert "train" in printed
    modules, collecting = told.splitlines()
    loaded = set(modules.split())
    assert {name for name in loaded if name.startswith("muster")} <= OUR_MODULES
    assert not {name.partition(".")[0] for name in loaded} & NEEDLESS_PACKAGES
    assert "encodings.idna" not in loaded
    assert collecting == "0 True"


def answer_once(listener: socket.socket, value: object) -> None:
    """Take one request, however it reads, and answer it."""
    link, _ = listener.accept()
    with link:
        link.settimeout(60)
        request = b""
        while b"\r\n\r\n" not in request:
            request += link.recv(65536)
        body = msgspec.json.encode(value)
        link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
