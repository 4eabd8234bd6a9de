"""The client against a scripted server: it tries again safely, reads its own writes, and raises what it is told."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec
import pytest
from scripted_server import Answer, ScriptedServer

from muster.model.budget import Budget
from muster.model.errors import ConflictError, RejectedError
from muster.model.job import BarKind
from muster.model.reason import Code
from muster.model.spec import Spec
from muster.model.tenant import Line, Tenant
from muster.sdk import Client
from muster.sdk.ear import EAR
from muster.sdk.errors import NoServerError, RefusedError, UnfitError, code_of, words_of
from muster.sdk.home import Address, Home
from muster.sdk.transport import Reply, Request, Transport
from muster.wire.views import Changed, Health, JobPage, JobView, NodeView, Problem, Submitted
from muster.wire.words import put_in_words

SPEC = Spec(("true",))


def make_problem(status: int, code: str = "M110") -> Answer:
    return Answer(status, Problem("about:blank", "no", status, code, "never fits: because", "ask for less"))


def make_view(job: int, phase: str, *, is_over: bool = False) -> JobView:
    return JobView(job, "", "default", phase, 1, SPEC.ask, 1, 1, is_over=is_over)


def test_a_submit_carries_the_token_and_a_key_of_its_own(server: ScriptedServer, client: Client) -> None:
    server.script = [Answer(201, Submitted(7, 3))]
    assert client.submit(SPEC).job == 7
    client.submit(SPEC)
    first, second = server.seen
    assert first.headers["authorization"] == "Bearer secret"
    assert first.headers["idempotency-key"] != second.headers["idempotency-key"]
    assert msgspec.json.decode(first.body, type=Spec) == SPEC


@pytest.mark.parametrize("key", ["a\r\nX-Other: b", "snow\u2603", "\0"])
def test_a_key_that_no_header_can_carry_is_refused_before_it_is_sent(
    server: ScriptedServer, client: Client, key: str
) -> None:
    with pytest.raises(RejectedError) as caught:
        client.submit(SPEC, key)
    assert caught.value.reason.code is Code.BAD_NAME
    assert server.seen == []


@pytest.mark.parametrize(
    "trouble",
    [Answer(hang_up=True), make_problem(503, "M307"), make_problem(429, "M310")],
    ids=["broken connection", "no leader", "overloaded"],
)
def test_a_submit_is_tried_again_with_the_same_key(server: ScriptedServer, client: Client, trouble: Answer) -> None:
    server.script = [Answer(200, Health("ok", True, 1)), trouble, trouble, Answer(201, Submitted(7, 3))]
    client.health()
    assert client.submit(SPEC).job == 7
    keys = {seen.headers["idempotency-key"] for seen in server.seen if seen.method == "POST"}
    assert len(keys) == 1
    assert len(server.seen) == 4


def test_patience_has_an_end(server: ScriptedServer) -> None:
    server.script = [make_problem(503, "M307")]
    with Client(address=server.address, token="", patience_s=0) as client, pytest.raises(UnfitError) as caught:
        client.submit(SPEC)
    assert caught.value.reason.code is Code.NO_LEADER
    assert len(server.seen) == 1


class Clock:
    """Stands in for the time module: sleeping is what makes time pass."""

    def __init__(self) -> None:
        self.now_s = 1.0
        self.slept_s: list[float] = []

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, span_s: float) -> None:
        self.slept_s.append(span_s)
        self.now_s += span_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("muster.sdk.transport.time", clock)
    return clock


def test_pauses_grow_to_a_limit_and_end_with_patience(server: ScriptedServer, clock: Clock) -> None:
    server.script = [make_problem(503, "M307")]
    with Client(address=server.address, token="", patience_s=5) as client, pytest.raises(UnfitError):
        client.submit(SPEC)
    assert clock.slept_s[:6] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0]
    assert sum(clock.slept_s) == pytest.approx(5)


@pytest.mark.parametrize(
    ("trouble", "words"),
    [(make_problem(503, "M307"), "never fits: because"), (Answer(hang_up=True), "the server went away")],
    ids=["no leader", "broken connection"],
)
def test_what_takes_long_is_told_once(
    server: ScriptedServer, clock: Clock, monkeypatch: pytest.MonkeyPatch, trouble: Answer, words: str
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(EAR, "hear", heard.append)
    server.script = [Answer(200, Health("ok", True, 1)), trouble, trouble, Answer(200, Health("ok", True, 1)), trouble]
    with Client(address=server.address, token="", patience_s=15) as client:
        client.health()
        client.health()
        assert not heard, "it was soon over"
        with pytest.raises((UnfitError, NoServerError)):
            client.submit(SPEC)
    assert heard == [f"{words}; trying again for 13s"]
    assert sum(clock.slept_s) > 15


def test_an_overloaded_server_is_left_alone_for_as_long_as_it_asks(server: ScriptedServer, clock: Clock) -> None:
    busy = make_problem(429, "M310")._replace(headers={"Retry-After": "3"})
    server.script = [busy, Answer(201, Submitted(7, 3))]
    with Client(address=server.address, token="", patience_s=5) as client:
        client.submit(SPEC)
    assert clock.slept_s == [3]


def test_patience_counts_from_the_failure_not_from_the_question(
    server: ScriptedServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = Answer(200, make_view(7, "succeeded", is_over=True))
    server.script = [Answer(200, Health("ok", True, 1)), Answer(hang_up=True), view]
    ask = Transport._try

    def ask_for_long(transport: Transport, request: Request) -> Reply | None:
        clock.now_s += 25  # longer than all of the patience: it was told to wait
        return ask(transport, request)

    monkeypatch.setattr(Transport, "_try", ask_for_long)
    with Client(address=server.address, token="", patience_s=20) as client:
        client.health()
        assert client.wait(7).is_over


def test_nobody_listens_is_said_at_once(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody can answer there
        address = Address("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(NoServerError) as caught:
            Client(address=address, token="", patience_s=3600).health()
    assert code_of(caught.value) == "M309"
    with pytest.raises(NoServerError, match=str(tmp_path)):
        Client(Home(tmp_path), patience_s=3600).list()


def test_a_server_that_listens_and_says_nothing_is_told_from_none() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        address = Address("127.0.0.1", deaf.getsockname()[1])
        with pytest.raises(NoServerError) as caught, Client(address=address, token="", answer_s=1) as client:
            client.health()
    assert code_of(caught.value) == "M358"
    assert "is there and has not answered for 1 s" in words_of(caught.value).what


@pytest.mark.parametrize(
    ("answer_s", "wait_ms", "told"),
    [
        (0.2, 0, ["the server is there and has not answered for 0ms; waiting for 0ms more"]),
        (0.2, 100, ["the server is there and has not answered for 0ms; waiting for 0ms more"]),
        (0.2, 10_000, []),
        (0.04, 0, []),
    ],
)
def test_silence_is_told_before_it_is_given_up(
    monkeypatch: pytest.MonkeyPatch, answer_s: float, wait_ms: int, told: list[str]
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(EAR, "hear", heard.append)
    monkeypatch.setattr("muster.sdk.transport.SILENT_AFTER_S", 0.05)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        address = Address("127.0.0.1", deaf.getsockname()[1])
        with pytest.raises(NoServerError), Client(address=address, token="", answer_s=answer_s) as client:
            client.show(7, wait_ms=wait_ms)
    assert heard == told


@pytest.mark.parametrize(("status", "kind"), [(422, RejectedError), (404, RejectedError), (409, ConflictError)])
def test_a_problem_is_raised_with_its_own_words(
    server: ScriptedServer, client: Client, status: int, kind: type[Exception]
) -> None:
    server.script = [make_problem(status)]
    with pytest.raises(kind) as caught:
        client.submit(SPEC)
    assert isinstance(caught.value, RejectedError | ConflictError)
    assert words_of(caught.value) == ("never fits: because", "ask for less")
    assert caught.value.reason.code is Code.NEVER_FITS


def test_a_code_from_the_future_keeps_its_text(server: ScriptedServer, client: Client) -> None:
    server.script = [make_problem(422, "M777")]
    with pytest.raises(RefusedError) as caught:
        client.cancel(1)
    assert code_of(caught.value) == "M777"


def test_an_answer_that_is_not_ours_is_not_a_crash(server: ScriptedServer, client: Client) -> None:
    server.script = [Answer(502, b"<html>bad gateway</html>")]
    with pytest.raises(UnfitError, match="bad gateway"):
        client.nodes()
    server.script = [Answer(200, b"<html>welcome</html>")]
    with pytest.raises(UnfitError, match="not what was asked for"):
        client.nodes()


def test_reads_ask_for_what_the_client_has_written(server: ScriptedServer, client: Client) -> None:
    server.script = [Answer(201, Submitted(7, 9), {"Muster-Seq": "9"}), Answer(200, JobPage([]))]
    client.submit(SPEC)
    client.list(tenant="a b", phase="queued", after=3)
    read = server.seen[1]
    assert read.headers["muster-at-least"] == "9"
    assert read.path == "/v1/jobs?state=live&tenant=a%20b&phase=queued&after=3&limit=100"


def test_settling_reads_once_what_was_written(server: ScriptedServer, client: Client) -> None:
    server.script = [Answer(202, Submitted(7, 9), {"Muster-Seq": "9"}), Answer(200, JobPage([]))]
    client.cancel(7)
    client.settle()
    assert [seen.headers.get("muster-at-least") for seen in server.seen] == [None, "9"]


def test_wait_asks_until_the_job_is_over(server: ScriptedServer, client: Client) -> None:
    server.script = [
        Answer(200, make_view(7, "queued")),
        Answer(200, make_view(7, "running")),
        Answer(200, make_view(7, "succeeded", is_over=True)),
    ]
    assert client.wait(7).phase == "succeeded"
    assert len(server.seen) == 3


def test_logs_are_followed_from_offset_to_offset(server: ScriptedServer, client: Client) -> None:
    server.script = [
        Answer(200, b"one\n", {"Muster-Next-Offset": "4"}),
        Answer(200, b"", {"Muster-Next-Offset": "4"}),
        Answer(200, b"two\n", {"Muster-Next-Offset": "8", "Muster-Log-Over": "1"}),
    ]
    assert list(client.logs(7, 2, follow=True)) == [b"one\n", b"two\n"]
    assert "task=2" in server.seen[0].path
    assert "offset=4" in server.seen[2].path


def test_logs_that_are_not_followed_end_where_the_output_does(server: ScriptedServer, client: Client) -> None:
    server.script = [Answer(200, b"one\n", {"Muster-Next-Offset": "4"}), Answer(200, b"", {"Muster-Next-Offset": "4"})]
    assert list(client.logs(7)) == [b"one\n"]


def test_a_tenant_is_sent_whole_and_its_name_quoted(server: ScriptedServer, client: Client) -> None:
    server.script = [Answer(200, Changed(3)), Answer(200, Changed(4))]
    client.set_tenant(
        "team/a", Tenant("team", 2, (Line("h100", "eu", 8, 16),), (Budget("money", 5, period_ms=60_000),))
    )
    client.drop_tenant("team/a")
    assert [(item.method, item.path) for item in server.seen] == [
        ("PUT", "/v1/tenants/team%2Fa"),
        ("DELETE", "/v1/tenants/team%2Fa"),
    ]
    line = {"family": "h100", "scope": "eu", "guaranteed": 8, "limit": 16, "lend": None}
    budget = {"unit": "money", "amount": 5, "soft": False, "period_ms": 60_000, "since_ms": 0}
    body = {"parent": "team", "weight": 2, "lines": [line], "budgets": [budget]}
    assert msgspec.json.decode(server.seen[0].body) == body


def test_a_bar_is_named_by_its_node_and_kind(server: ScriptedServer, client: Client) -> None:
    server.script = [Answer(200, Changed(3)), Answer(200, Changed(4))]
    client.bar("rack/n1", BarKind.DRAIN, reason="fan", until_ms=9, lets_finish=False)
    client.unbar("rack/n1", BarKind.DRAIN)
    assert [(item.method, item.path) for item in server.seen] == [
        ("PUT", "/v1/nodes/rack%2Fn1/bars/drain"),
        ("DELETE", "/v1/nodes/rack%2Fn1/bars/drain"),
    ]
    assert msgspec.json.decode(server.seen[0].body) == {"reason": "fan", "until_ms": 9, "lets_finish": False}


def test_lists_are_tuples_of_views(server: ScriptedServer, client: Client) -> None:
    node = NodeView("n", "up", SPEC.ask, SPEC.ask)
    server.script = [Answer(200, [node])]
    assert client.nodes() == (node,)


def test_words_of_a_local_error_come_from_the_one_table() -> None:
    error = NoServerError("/here")
    assert words_of(error) == put_in_words(error.reason)


@pytest.mark.parametrize("key", ["two\r\nlines: yes", "schlüssel"])
def test_a_key_that_cannot_travel_as_a_header_is_refused_before_it_is_sent(
    server: ScriptedServer, client: Client, key: str
) -> None:
    with pytest.raises(RejectedError, match="M103"):
        client.submit(SPEC, key)
    assert not server.seen


def test_nobody_there_is_said_in_words() -> None:
    assert str(NoServerError("/some/home")) == "M309: no server answers at /some/home; start one with `muster up`"
