"""`muster run --group`: a gang of several groups in one line, and as `show` prints it."""

from __future__ import annotations

import msgspec
import pytest
from served import Serve

from muster.cli.main import run_command
from muster.model.group import Group
from muster.model.spec import Needs, Spec
from muster.sdk.transport import Request
from muster.units import Resources
from muster.wire.views import JobPage, JobView, Submitted


@pytest.fixture
def seen(serve: Serve) -> list[Request]:
    """What a server is asked that takes every job."""
    return serve({"GET": JobPage([], seq=5), "POST": Submitted(1, 5)})


def test_groups_have_their_own_amounts_and_the_gang_has_all_their_tasks(seen: list[Request]) -> None:
    groups = ("--group", "driver:1:cpus=4,memory=16Gi", "--group", "worker:4:gpus=8,cpus=64")
    assert run_command(["run", "-d", *groups, "--", "train"]) == 0
    spec = msgspec.json.decode(seen[0].body, type=Spec)
    driver, worker = Resources(0, 4000, 16 * 2**30), Resources(8, 64_000)
    assert spec.needs.groups == (Group("driver", 1, driver), Group("worker", 4, worker))
    assert (spec.gang, spec.ask) == (5, Resources(cpu_milli=1000))


@pytest.mark.parametrize("text", ["worker", "worker:4:gpus", "worker:4:tpus=8", ":4:gpus=1", "worker:x:gpus=1"])
def test_a_group_that_cannot_be_read_is_refused_here(
    text: str, seen: list[Request], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["run", "-d", "--group", text, "--", "train"]) != 0
    assert not [request for request in seen if request.method == "POST"]
    assert "group" in capsys.readouterr().err


def test_two_groups_of_one_name_are_refused_here(seen: list[Request]) -> None:
    assert run_command(["run", "-d", "--group", "a:1:cpus=1", "--group", "a:2:cpus=1", "--", "train"]) != 0
    assert not [request for request in seen if request.method == "POST"]


def test_show_prints_each_group_and_its_command(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    groups = (Group("driver", 1, Resources(0, 4000)), Group("worker", 4, Resources(8, 64_000)))
    spec = Spec(("work",), gang=5, needs=Needs(groups=groups), commands={"driver": ("drive", "far")})
    serve({"GET": JobView(7, "", "lab", "queued", 5, Resources(32, 260_000), 0, 0, spec=spec)})
    assert run_command(["show", "7"]) == 0
    told = capsys.readouterr().out
    assert "driver: 1 x 4 CPUs" in told
    assert "worker: 4 x 8 GPUs, 64 CPUs" in told
    assert "driver: drive far" in told
