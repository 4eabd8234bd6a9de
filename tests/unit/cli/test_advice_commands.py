"""`muster advice`: what a table becomes on the way, and how a bad line is told. No server and no socket."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from served import Serve

from muster.cli.main import run_command
from muster.sdk.transport import Request
from muster.wire.views import AdviceView, Changed

KNOWN = (AdviceView("throughput", 3, 1_800_000_000_000, columns=2, numbers=2),)


@pytest.fixture
def seen(serve: Serve) -> list[Request]:
    """What a server with one table is asked."""
    return serve({"GET": KNOWN, "PUT": Changed(5)})


def test_a_table_is_sent_as_columns(seen: list[Request], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "speeds.csv"
    table.write_text("# work, flavor, speed\nresnet, h100, 1000\n\nresnet,a100,450\n")
    assert run_command(["advice", "set", "throughput", str(table), "--for", "7d"]) == 0
    assert capsys.readouterr().out == "throughput: 2 lines, for 7d\n"
    (request,) = seen
    assert (request.method, request.path) == ("PUT", "/v1/advice/throughput")
    assert msgspec.json.decode(request.body)["columns"] == {"resnet:h100": [1000], "resnet:a100": [450]}


@pytest.mark.parametrize("line", ["resnet,h100", "resnet,h100,fast", "resnet,h100,1.5", "a,b,1,2", "a,b,-1"])
def test_a_bad_line_is_named_and_nothing_is_sent(
    line: str, seen: list[Request], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "speeds.csv"
    table.write_text(f"resnet,a100,450\n{line}\n")
    assert run_command(["advice", "set", "throughput", str(table)]) == 2
    assert "speeds.csv, line 2: two names and a whole number" in capsys.readouterr().err
    assert seen == []


def test_what_is_in_force_is_listed(seen: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["advice"]) == 0
    assert capsys.readouterr().out.split()[5:7] == ["throughput", "3"]
    assert [request.path for request in seen] == ["/v1/advice"]
