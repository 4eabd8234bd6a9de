"""Real processes: a leader and a follower on a temporary home, spoken to over HTTP."""

from __future__ import annotations

import http.client
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from muster.engines.local.engine import shut_down
from muster.ports.failpoint import VARIABLE
from muster.sdk.home import Home
from muster.sdk.node_file import NodeFile, write_node_file

DEADLINE_S = 60.0
DECLARED = NodeFile(capacity="gpus=8,cpus=4,memory=16Gi")


class Server:
    """The two processes of one home."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._seq = 0
        self._turn = threading.Lock()

    def start(self, role: str, *words: str, failpoint: str = "") -> subprocess.Popen[bytes]:
        self.home.root.mkdir(mode=0o700, exist_ok=True)
        write_node_file(self.home.node_file, DECLARED)
        with self.home.log_file(role).open("ab") as log:
            command = [sys.executable, "-P", "-m", "muster.app", role, "--home", str(self.home.root), *words]
            env = {**os.environ, VARIABLE: failpoint}
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log, env=env)
        self.processes[role] = process
        return process

    def up(self) -> None:
        for role in ("leader", "follower"):
            self.start(role)
        self.await_leader()

    def await_leader(self) -> None:
        eventually(lambda: self.try_call("GET", "/v1/health", want=200).get("leader") is True, self.log)

    def down(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait(DEADLINE_S)
        shut_down(self.home.engine_root)

    def log(self) -> str:
        logs = [self.home.log_file(role) for role in ("leader", "follower")]
        return "\n".join(log.read_text() for log in logs if log.exists())

    def call(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        address = self.home.find_address()
        if address is None:
            raise ConnectionError("nobody listens yet")
        connection = http.client.HTTPConnection(address.host, address.port, timeout=DEADLINE_S)
        try:
            fields = {name.replace("_", "-"): value for name, value in headers.items()}
            fields["Authorization"] = f"Bearer {self.home.read_token()}"
            connection.request(method, path, None if body is None else msgspec.json.encode(body), fields)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            with self._turn:
                self._seq = max(self._seq, int(found.get("muster-seq", 0)))
            return answer.status, found, answer.read()
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """Read what rests on everything that we were ever told; a follower that is behind is asked again."""
        give_up_at = time.monotonic() + DEADLINE_S
        while True:
            status, _, body = self.call("GET", path, Muster_At_Least=str(self._seq))
            if status != 503 or time.monotonic() > give_up_at:
                assert status == 200, body
                return msgspec.json.decode(body)

    def submit(self, *command: str, **fields: object) -> int:
        status, _, body = self.call("POST", "/v1/jobs", {"command": command, **fields})
        assert status == 201, body
        return int(msgspec.json.decode(body)["job"])

    def try_call(self, method: str, path: str, want: int, body: object = None, **headers: str) -> dict[str, Any]:
        """The document, or nothing if it did not work out this time."""
        try:
            status, _, data = self.call(method, path, body, **headers)
        except (OSError, http.client.HTTPException):
            return {}
        return dict(msgspec.json.decode(data)) if status == want else {}


@contextmanager
def serving(root: Path) -> Iterator[Server]:
    server = Server(root)
    server.up()
    try:
        yield server
    finally:
        server.down()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for the tests that leave it as they found it."""
    with serving(tmp_path_factory.mktemp("server") / "home") as server:
        yield server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server that a test may harm."""
    with serving(tmp_path / "home") as server:
        yield server


def eventually(holds: Callable[[], bool], explain: Callable[[], str] = str) -> None:
    give_up_at = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < give_up_at, explain()
        time.sleep(0.02)


def submit_stubbornly(server: Server, names: list[str], acknowledged: dict[str, int]) -> None:
    """Submit a job per name, each with its key, again and again until it is acknowledged."""
    for name in names:
        answer: dict[str, Any] = {}
        spec = {"command": ["true"], "name": name, "ask": {"cpu_milli": 100}}
        give_up_at = time.monotonic() + DEADLINE_S
        while not answer and time.monotonic() < give_up_at:
            answer = server.try_call("POST", "/v1/jobs", 201, spec, Idempotency_Key=name)
        acknowledged[name] = answer.get("job", 0)


def test_a_job_from_submit_to_story(shared: Server) -> None:
    job = shared.submit("sh", "-c", "echo hello; exit 3", name="hi", ask={"gpus": 2, "cpu_milli": 500})
    view = shared.get(f"/v1/jobs/{job}?wait_ms=60000")
    assert (view["phase"], view["exit_code"], view["is_over"]) == ("failed", 3, True)
    status, headers, log = shared.call("GET", f"/v1/jobs/{job}/logs")
    assert (status, log, headers["muster-log-over"]) == (200, b"hello\n", "1")
    told = [line["what"] for line in shared.get(f"/v1/jobs/{job}/story")["lines"]]
    assert told[0] == "accepted: 2 GPUs, 0.5 CPUs, tenant default"
    assert told[1].endswith("devices 0-1")
    assert told[-1] == "ended: failed, exit 3"
    [node] = shared.get("/v1/nodes")
    assert (node["phase"], node["capacity"], node["free"]) == ("up", node["free"], node["capacity"])


def test_waiting_is_explained_and_cancelling_frees(shared: Server) -> None:
    first = shared.submit("sleep", "600", ask={"gpus": 8}, grace_ms=100)
    second = shared.submit("true", ask={"gpus": 1})
    eventually(lambda: shared.try_call("GET", f"/v1/jobs/{second}/why", want=200).get("code") == "M201", shared.log)
    why = shared.get(f"/v1/jobs/{second}/why")
    assert (why["needed"], why.get("available", 0), why["position"]) == (1, 0, 1)
    assert shared.call("POST", f"/v1/jobs/{first}/cancel")[0] == 202
    assert shared.get(f"/v1/jobs/{first}?wait_ms=60000")["phase"] == "cancelled"
    assert shared.get(f"/v1/jobs/{second}?wait_ms=60000")["phase"] == "succeeded"
    assert shared.call("POST", f"/v1/jobs/{first}/cancel")[0] == 409


def test_strangers_are_refused(shared: Server) -> None:
    address = shared.home.find_address()
    assert address is not None
    connection = http.client.HTTPConnection(address.host, address.port, timeout=DEADLINE_S)
    statuses = []
    for headers in ({}, {"Authorization": "Bearer no"}, {"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        connection.request("GET", "/v1/jobs", headers=headers)
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
    connection.close()
    assert statuses == [401, 401, 403, 403]
    assert shared.home.leader_socket.stat().st_mode & 0o777 == 0o600
    assert shared.home.token_file.stat().st_mode & 0o777 == 0o600


def test_a_second_leader_is_refused(shared: Server) -> None:
    second = run(shared, "leader")
    assert (second.returncode, second.stderr.splitlines()[-3][:12]) == (2, "error[M303]:")
    assert shared.get("/v1/health")["leader"] is True


def test_a_second_follower_is_refused(shared: Server) -> None:
    second = run(shared, "follower")
    assert (second.returncode, second.stderr.splitlines()[-3][:12]) == (2, "error[M303]:")
    assert shared.get("/v1/health")["leader"] is True


def test_a_port_that_is_taken_is_refused(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        refused = run(Server(tmp_path / "home"), "follower", "--port", str(port))
    assert refused.returncode == 2
    assert f"error[M304]: port {port} is taken\nhelp: " in refused.stderr


def test_a_network_address_is_refused(shared: Server) -> None:
    refused = run(shared, "follower", "--host", "0.0.0.0")  # noqa: S104 - refused is the point
    assert refused.returncode == 2
    assert "--tls-cert" in refused.stderr


def test_a_home_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = run(Server(tmp_path / "file"), "leader")
    assert refused.returncode == 2
    assert refused.stderr.startswith("error[M305]: cannot use")


def test_a_follower_keeps_its_address_and_its_jobs_over_a_restart(shared: Server) -> None:
    job = shared.submit("true")
    before = shared.home.find_address()
    follower = shared.processes["follower"]
    follower.terminate()
    assert follower.wait(DEADLINE_S) == 0
    shared.start("follower")
    shared.await_leader()
    assert shared.home.find_address() == before
    assert shared.get(f"/v1/jobs/{job}?wait_ms=60000")["phase"] == "succeeded"


def test_every_acknowledged_job_survives_a_killed_leader_exactly_once(server: Server) -> None:
    jobs = 40
    acknowledged: dict[str, int] = {}
    names = [f"job-{number}" for number in range(jobs)]
    clients = [
        threading.Thread(target=submit_stubbornly, args=(server, names[part::4], acknowledged)) for part in range(4)
    ]
    for client in clients:
        client.start()
    eventually(lambda: len(acknowledged) >= jobs // 4, server.log)
    server.processes["leader"].send_signal(signal.SIGKILL)
    server.processes["leader"].wait(DEADLINE_S)
    server.start("leader")
    for client in clients:
        client.join(DEADLINE_S)
    server.await_leader()
    assert sorted(acknowledged) == sorted(names)
    eventually(lambda: not server.get("/v1/jobs?state=live&limit=1000")["jobs"], server.log)
    listed = server.get("/v1/jobs?state=all&limit=1000")["jobs"]
    assert {job["name"]: job["id"] for job in listed} == acknowledged
    assert len(listed) == jobs
    assert {job["phase"] for job in listed} == {"succeeded"}


def test_a_disk_that_refuses_stops_the_leader_and_loses_nothing(server: Server) -> None:
    kept = server.submit("true", name="kept")
    leader = server.processes["leader"]
    resource.prlimit(leader.pid, resource.RLIMIT_FSIZE, (0, 0))  # as good as a full disk, for this process alone
    status, headers, body = server.call("POST", "/v1/jobs", {"command": ["true"]}, Idempotency_Key="key")
    assert (status, headers["retry-after"]) == (503, "1"), body
    assert leader.wait(DEADLINE_S) == 3
    assert server.get(f"/v1/jobs/{kept}")["name"] == "kept"  # reads go on
    server.start("leader")
    server.await_leader()
    again = [server.call("POST", "/v1/jobs", {"command": ["true"]}, Idempotency_Key="key") for _ in range(2)]
    assert [status for status, _, _ in again] == [201, 201]
    assert [msgspec.json.decode(body)["job"] for _, _, body in again] == [kept + 1] * 2
    assert len(server.get("/v1/jobs?state=all")["jobs"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "failpoint"),
    [
        ("leader", "leader.after_handle:3"),
        ("leader", "store.in_commit:3"),
        ("leader", "leader.after_commit:3"),
        ("leader", "leader.after_answer:3"),
        ("leader", "leader.after_dispatch:3"),
        ("follower", "follower.before_forward:2"),
        ("follower", "follower.after_answer:2"),
        ("follower", "follower.after_fold:3"),
    ],
)
def test_a_death_at_any_moment_loses_and_doubles_nothing(server: Server, role: str, failpoint: str) -> None:
    server.processes[role].terminate()
    server.processes[role].wait(DEADLINE_S)
    doomed = server.start(role, failpoint=failpoint)
    server.await_leader()
    names = [f"job-{number}" for number in range(4)]
    acknowledged: dict[str, int] = {}
    client = threading.Thread(target=submit_stubbornly, args=(server, names, acknowledged))
    client.start()
    assert doomed.wait(DEADLINE_S) == -signal.SIGKILL
    server.start(role)
    client.join(DEADLINE_S)
    server.await_leader()
    eventually(lambda: not server.get("/v1/jobs?state=live")["jobs"], server.log)
    listed = server.get("/v1/jobs?state=all")["jobs"]
    assert {job["name"]: job["id"] for job in listed} == acknowledged
    assert [job["phase"] for job in listed] == ["succeeded"] * len(names)


@pytest.mark.slow
def test_a_death_after_the_last_snapshot_loses_nothing(server: Server) -> None:
    leader = server.processes["leader"]
    leader.terminate()
    assert leader.wait(DEADLINE_S) == 0
    leader = server.start("leader", failpoint="leader.after_snapshot")
    server.await_leader()
    job = server.submit("true")
    assert server.get(f"/v1/jobs/{job}?wait_ms=60000")["phase"] == "succeeded"
    leader.terminate()
    assert leader.wait(DEADLINE_S) == -signal.SIGKILL
    server.start("leader")
    server.await_leader()
    assert server.get(f"/v1/jobs/{job}")["phase"] == "succeeded"


def run(server: Server, role: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "muster.app", role, "--home", str(server.home.root), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
