"""Whoever calls the client with what it does not take is told what it takes, before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from scripted_server import Answer, ScriptedServer

import muster
from muster.model.spec import Spec
from muster.sdk import Client
from muster.sdk.home import Home
from muster.sdk.jobfile import FieldError
from muster.units import Resources
from muster.wire.forecast_views import TrialView
from muster.wire.views import JobView, Submitted

RUNNING = JobView(7, "", "default", "running", 1, Resources(), 1, 1)


NO_JOBS: tuple[Any, ...] = ("python train.py", ["python", "train.py"], {"command": "x"}, None, 7, muster.Job)


@pytest.mark.parametrize("what", NO_JOBS, ids=repr)
def test_what_is_no_job_is_not_submitted(server: ScriptedServer, client: Client, what: Any) -> None:
    with pytest.raises(TypeError, match=r"a job is a muster\.Job, such as"):
        client.submit(what)
    assert not server.seen


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"command": 5}, r"got `int` - at `\$\.command`"),
        ({"command": ["a", 1]}, r"at `\$\.command\[1\]`"),
        ({"env": ["A=1"]}, r"at `\$\.env`"),
        ({"notify": "team"}, r"Expected `array`, got `str` - at `\$\.notify`"),
        ({"tenant": None}, r"at `\$\.tenant`"),
    ],
)
def test_a_field_that_cannot_be_is_named(client: Client, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        client.submit(muster.Job(**{"command": "x", **fields}))


def test_an_amount_that_cannot_be_read_is_named_too(client: Client) -> None:
    with pytest.raises(FieldError, match="limit: duration '60' is not a time"):
        client.submit(muster.Job("x", limit=60))


def test_a_path_may_be_a_path_and_a_trial_takes_a_job_too(server: ScriptedServer, client: Client) -> None:
    server.script = [Answer(200, TrialView(0))]
    client.try_submit(muster.Job("x", workdir=Path("/tmp")))  # type: ignore[arg-type]  # noqa: S108 - it is not used
    assert msgspec.json.decode(server.seen[0].body, type=Spec).workdir == "/tmp"  # noqa: S108 - it is not used


CALLS: tuple[Callable[[Client, Any], object], ...] = (
    Client.show,
    Client.wait,
    Client.cancel,
    Client.hold,
    Client.why,
    Client.story,
    lambda client, job: client.scale(job, 2),
    lambda client, job: list(client.logs(job)),
    lambda client, job: list(client.outputs(job)),
    lambda client, job: list(client.watch(job)),
)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("job", [Submitted(7, 3), None, "7/cancel", "", True, -1, 1.5, "\u0661"], ids=repr)
def test_a_job_is_named_by_its_number(
    server: ScriptedServer, client: Client, call: Callable[[Client, Any], object], job: Any
) -> None:
    with pytest.raises(TypeError, match="a job is named by its number"):
        call(client, job)
    assert not server.seen


def test_a_wait_may_end_before_the_job(server: ScriptedServer, client: Client) -> None:
    server.script = [Answer(200, RUNNING)]
    with pytest.raises(TimeoutError, match=r"job 7 is not over after 0 s: it is running"):
        client.wait(7, timeout_s=0)
    assert server.seen[-1].path == "/v1/jobs/7"


def test_no_watch_hammers_the_server_or_asks_for_more_than_it_gives(server: ScriptedServer, client: Client) -> None:
    server.script = [Answer(200, RUNNING), Answer(200, msgspec.structs.replace(RUNNING, is_over=True))] * 2
    for every_s in (0, 3600):
        assert len(list(client.watch(7, every_s))) == 2
    assert {request.path for request in server.seen} == {"/v1/jobs/7?wait_ms=50", "/v1/jobs/7?wait_ms=30000"}


def test_a_home_may_be_named_by_its_path_and_an_address_is_one(tmp_path: Path) -> None:
    for named in (tmp_path, str(tmp_path), Home(tmp_path)):
        Client(named).close()
    with pytest.raises(TypeError, match=r"an address is an Address\(host, port\), not 'http://x'"):
        Client(address="http://x")  # type: ignore[arg-type]  # it is what is tested
