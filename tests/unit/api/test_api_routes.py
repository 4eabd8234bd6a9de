"""Each route, by what it answers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from api_kit import Scene

from muster.api import logs as logs_module
from muster.control import follower as follower_module
from muster.lifecycle.gang import RETAIN_MS
from muster.model.event import Exited, NodeSeen, NodeSilent, Started, Submit
from muster.model.spec import Spec
from muster.units import MINUTE_MS, Resources


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def retire(scene: Scene) -> None:
    scene.follower.happen(after_ms=RETAIN_MS + 2 * MINUTE_MS)
    assert not scene.follower.world.jobs


def test_submit_answers_with_the_job_and_its_entry(scene: Scene) -> None:
    reply = scene.call("POST", "/v1/jobs", {"command": ["train"], "ask": {"gpus": 4}})
    assert (reply.status, reply.json) == (201, {"job": 1, "seq": 2})
    assert reply.headers["muster-seq"] == "2"
    assert scene.follower.world.jobs[1].spec == Spec(("train",), ask=Resources(gpus=4))


def test_a_key_makes_a_repeat_harmless_also_after_retirement(scene: Scene) -> None:
    body = {"command": ["train"]}
    assert [scene.call("POST", "/v1/jobs", body, idempotency_key="k").json["job"] for _ in range(2)] == [1, 1]
    other = scene.call("POST", "/v1/jobs", {"command": ["other"]}, idempotency_key="k")
    assert (other.status, other.json["code"]) == (409, "M131")
    scene.follower.happen(Exited(1, 1, 0))
    retire(scene)
    assert scene.call("POST", "/v1/jobs", body, idempotency_key="k").json["job"] == 1
    assert scene.call("POST", "/v1/jobs", {"command": ["other"]}, idempotency_key="k").status == 409
    assert scene.call("POST", "/v1/jobs", body, idempotency_key="k" * 129).json["code"] == "M104"


@pytest.mark.parametrize(
    ("body", "status", "code", "words"),
    [
        (b"", 400, "M101", "not JSON"),
        (b"{", 400, "M101", "not JSON"),
        (b'{"command": ["\xff"]}', 400, "M101", "not JSON"),
        (b'{"command": ["\\ud800 "]}', 400, "M101", "not JSON"),
        (b"[]", 422, "M101", "Expected `object`"),
        (b'{"command": ["a"], "notify": ["nobody"]}', 422, "M335", "this server has team"),
        (b'{"command": ["a"], "notify": ["a b"]}', 422, "M103", "notify"),
        (b'{"command": ["a"], "notify": ["a","b","c","d","e","f","g","h","i"]}', 422, "M104", "notify"),
        (b"{}", 422, "M101", "missing required field `command`"),
        (b'{"command": ["a"], "gpu": 1}', 422, "M101", "unknown field `gpu`"),
        (b'{"command": ["a"], "ask": {"gpus": "1"}}', 422, "M101", "`$.ask.gpus`"),
        (b'{"command": ["a"], "gang": true}', 422, "M101", "`$.gang`"),
        (b'{"command": ["a"], "gang": 1000000000000000000000000000000}', 422, "M102", "gang is 10000"),
        (b'{"command": ["a"], "ask": {"gpus": -1}}', 422, "M102", "ask.gpus is -1"),
        (b'{"command": ["a"], "ask": {}}', 422, "M105", "asks for nothing"),
        (b'{"command": []}', 422, "M101", "command"),
        (b'{"command": ["a"], "tenant": "no spaces"}', 422, "M103", "tenant"),
        (b'{"command": ["a"], "ask": {"gpus": 9}}', 422, "M110", "never fits"),
    ],
)
def test_a_spec_that_is_wrong_is_refused_with_its_place(
    scene: Scene, body: bytes, status: int, code: str, words: str
) -> None:
    reply = scene.call("POST", "/v1/jobs", body)
    assert (reply.status, reply.json["code"]) == (status, code)
    assert words in reply.json["detail"]
    assert not scene.follower.world.jobs


def test_listings_are_filtered_and_paged(scene: Scene) -> None:
    for number in range(5):
        scene.follower.happen(Submit(Spec(("x",), tenant="even" if number % 2 else "odd")))
    scene.follower.happen(Exited(1, 1, 3))
    first = scene.call("GET", "/v1/jobs?limit=2").json
    assert ([job["id"] for job in first["jobs"]], first["next_after"]) == ([5, 4], 4)
    rest = scene.call("GET", "/v1/jobs?limit=2&after=4").json
    assert ([job["id"] for job in rest["jobs"]], rest.get("next_after")) == ([3, 2], None)
    assert all("spec" not in job for job in first["jobs"])
    for query, ids in {
        "state=over": [1],
        "state=all": [5, 4, 3, 2, 1],
        "state=all&order=oldest": [1, 2, 3, 4, 5],
        "tenant=even": [4, 2],
        "phase=failed": [1],
        "phase=failed&state=live": [],
        "after=99&order=oldest": [],
        "after=1": [],
    }.items():
        assert [job["id"] for job in scene.call("GET", f"/v1/jobs?{query}").json["jobs"]] == ids, query


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=x", "limit=-1", "after=1e3", "state=x", "phase=y", "order=z"]
)
def test_a_listing_that_makes_no_sense_is_refused(scene: Scene, query: str) -> None:
    assert scene.call("GET", f"/v1/jobs?{query}").status == 422


def test_a_job_is_shown_while_it_lives_and_when_it_has_retired(scene: Scene) -> None:
    scene.follower.happen(Submit(Spec(("train",), name="n"), "k"))
    assert scene.call("GET", "/v1/jobs/1").json["places"] == [{"node": "node-1", "tasks": 1}]
    scene.follower.happen(Started(1, 1))
    scene.follower.happen(Exited(1, 1, 3))
    living = scene.call("GET", "/v1/jobs/1").json
    assert (living["phase"], living["exit_code"], living["is_over"]) == ("failed", 3, True)
    retire(scene)
    assert scene.call("GET", "/v1/jobs/1").json == living
    assert scene.call("GET", "/v1/jobs/1/why").json["phase"] == "failed"
    assert scene.call("POST", "/v1/jobs/1/cancel").json["code"] == "M121"
    told = [line["what"] for line in scene.call("GET", "/v1/jobs/1/story").json["lines"]]
    assert told[-2:] == ["ended: failed, exit 3", "retired to history"]


@pytest.mark.parametrize("rest", ["", "/why", "/story", "/logs"])
def test_a_job_that_never_was_is_not_found(scene: Scene, rest: str) -> None:
    for job in ("7", "0", "999999999999999999"):
        reply = scene.call("GET", f"/v1/jobs/{job}{rest}")
        assert (reply.status, reply.json["code"]) == (404, "M120")


def test_a_long_poll_ends_with_the_job(scene: Scene) -> None:
    scene.follower.happen(Submit(Spec(("train",))))

    async def wait() -> str:
        asking = asyncio.ensure_future(scene.send("GET", "/v1/jobs/1?wait_ms=60000"))
        while not scene.follower._waiters:
            await asyncio.sleep(0)
        scene.follower.happen(Started(1, 1))
        scene.follower.happen(Exited(1, 1, 0))
        return str((await asking).json["phase"])

    assert asyncio.run(wait()) == "succeeded"
    assert scene.call("GET", "/v1/jobs/1?wait_ms=60001").status == 422


def test_a_long_poll_ends_with_patience_too(scene: Scene) -> None:
    scene.follower.happen(Submit(Spec(("train",))))
    assert scene.call("GET", "/v1/jobs/1?wait_ms=1").json["phase"] == "starting"


def test_why_in_words(scene: Scene) -> None:
    for _ in range(2):
        scene.follower.happen(Submit(Spec(("train",), ask=Resources(gpus=8))))
    why = scene.call("GET", "/v1/jobs/2/why").json
    assert (why["code"], why["needed"], why["position"]) == ("M201", 1, 1)
    assert why["words"].startswith("waiting for room")
    assert scene.call("GET", "/v1/jobs/1/why").json["code"] == "M203"


def test_cancel(scene: Scene) -> None:
    scene.follower.happen(Submit(Spec(("train",))))
    reply = scene.call("POST", "/v1/jobs/1/cancel")
    assert (reply.status, reply.json["job"]) == (202, 1)
    scene.follower.happen(Exited(1, 1, 143))
    again = scene.call("POST", "/v1/jobs/1/cancel")
    assert (again.status, again.json["code"]) == (409, "M121")
    assert scene.call("POST", "/v1/jobs/9/cancel").status == 404


def test_a_gang_is_moved(scene: Scene) -> None:
    scene.follower.happen(Submit(Spec(("train",))))
    assert scene.call("POST", "/v1/jobs/9/migrate", {}).status == 404
    assert scene.call("POST", "/v1/jobs/1/migrate", {"off": 3}).status == 422
    refused = scene.call("POST", "/v1/jobs/1/migrate", {"to": ["nowhere"]})
    assert (refused.status, refused.json["code"]) == (404, "M124")
    refused = scene.call("POST", "/v1/jobs/1/migrate", {})
    assert (refused.status, refused.json["code"]) == (409, "M169"), "there is no other node"
    scene.follower.happen(NodeSeen("another", Resources(8, 64_000, 2**38)))
    assert scene.call("POST", "/v1/jobs/1/migrate", {"to": ["another"]}).status == 202
    assert scene.call("POST", "/v1/jobs/1/migrate", {}).json["code"] == "M161", "it is on its way"


def test_a_gang_is_scaled(scene: Scene) -> None:
    scene.follower.happen(Submit(Spec(("train",))))
    assert scene.call("POST", "/v1/jobs/1/scale", {"most": 4, "least": 1}).status == 202
    refused = scene.call("POST", "/v1/jobs/1/scale", {"most": 2, "least": 3})
    assert (refused.status, refused.json["code"]) == (422, "M157")
    assert scene.call("POST", "/v1/jobs/9/scale", {"most": 2}).status == 404
    assert scene.call("POST", "/v1/jobs/1/scale", {"least": 2}).status == 422


def test_a_job_is_held_released_and_requeued(scene: Scene) -> None:
    scene.follower.happen(Submit(Spec(("train",), held=True)))
    assert scene.call("GET", "/v1/jobs/1").json["held"]
    why = scene.call("GET", "/v1/jobs/1/why").json
    assert (why["code"], why.get("options", []), why["fix"]) == ("M208", [], "let it start with `muster release 1`")
    assert scene.call("POST", "/v1/jobs/1/release").status == 200
    assert scene.call("GET", "/v1/jobs/1").json["phase"] == "starting"
    assert scene.call("POST", "/v1/jobs/1/hold").status == 200
    assert scene.call("POST", "/v1/jobs/1/requeue").status == 202
    scene.follower.happen(Exited(1, 1, 143))
    assert scene.call("GET", "/v1/jobs/1/why").json["code"] == "M208"
    assert scene.call("POST", "/v1/jobs/9/hold").status == 404


def test_what_failed_of_an_array_runs_again(scene: Scene) -> None:
    scene.follower.happen(Submit(Spec(("train",), array=4)))
    scene.follower.happen(Started(1, 1, 0, 4), Exited(1, 1, 1, 1, 1), Exited(1, 1, 0, 0, 1))
    asked = ("POST", "/v1/jobs/1/requeue", {"failed": True})
    made = scene.call(*asked, idempotency_key="a")
    assert (made.status, made.json["job"]) == (202, 2)
    assert scene.call("GET", "/v1/jobs/2").json["spec"]["again"] == {"of": 1, "tasks": [1, 1], "total": 4}
    assert scene.call(*asked, idempotency_key="a").json["job"] == 2, "a repeat makes no second one"
    refused = scene.call(*asked)
    assert (refused.status, refused.json["code"]) == (409, "M175")
    assert refused.json["detail"].endswith("what did runs again as job 2")
    assert scene.call("POST", "/v1/jobs/9/requeue", {"failed": True}).status == 404
    assert scene.call("POST", "/v1/jobs/1/requeue", {"failed": 1}).status == 422
    forged = {"command": ["x"], "array": 1, "again": {"of": 1, "tasks": [1, 1], "total": 4}}
    assert scene.call("POST", "/v1/jobs", forged).json["code"] == "M101"


def test_the_log_of_what_runs_again_is_found_by_its_number(scene: Scene) -> None:
    scene.follower.happen(Submit(Spec(("train",), array=4)))
    scene.follower.happen(Started(1, 1, 0, 4), Exited(1, 1, 1, 2, 2))
    assert scene.call("POST", "/v1/jobs/1/requeue", {"failed": True}).status == 202
    for place in (0, 1):
        scene.logs.path(2, place, 1).write_text(f"place {place}")
    assert [scene.call("GET", f"/v1/jobs/2/logs{query}").body for query in ("", "?task=2", "?task=3")] == [
        *(b"place 0", b"place 0", b"place 1"),
    ]
    refused = scene.call("GET", "/v1/jobs/2/logs?task=0")
    assert (refused.status, "some of job 1" in refused.json["detail"]) == (404, True)


def test_a_job_waits_for_another(scene: Scene) -> None:
    spec = {"command": ["x"], "after": [{"job": 1, "when": "afterok"}]}
    refused = scene.call("POST", "/v1/jobs", spec)
    assert (refused.status, refused.json["code"]) == (422, "M143")
    scene.follower.happen(Submit(Spec(("train",))))
    assert scene.call("POST", "/v1/jobs", spec).status == 201
    assert scene.call("GET", "/v1/jobs/2").json["waits"] == [1]
    why = scene.call("GET", "/v1/jobs/2/why").json
    assert (why["code"], why["fix"]) == ("M215", "wait, or see why the first of them does: `muster why 1`")
    assert scene.call("POST", "/v1/jobs", spec | {"after": [{"job": 1, "when": "soon"}]}).status == 422


def test_goodput_and_progress(scene: Scene) -> None:
    scene.follower.happen(Submit(Spec(("train",), ask=Resources(gpus=1))))
    mark = {"epoch": 1, "step": 5, "checkpointed": True}
    assert scene.call("POST", "/v1/jobs/1/progress", mark).json["code"] == "M123"
    scene.follower.happen(Started(1, 1))
    assert scene.call("POST", "/v1/jobs/1/progress", mark).status == 200
    assert scene.call("POST", "/v1/jobs/1/progress", mark | {"checkpointing": True}).status == 422
    begins = {"epoch": 1, "step": 6, "checkpointing": True}
    assert scene.call("POST", "/v1/jobs/1/progress", begins).status == 200
    assert scene.follower.world.goodput.marks[1].is_writing
    assert scene.call("POST", "/v1/jobs/1/progress", mark | {"step": -1}).status == 422
    assert scene.call("POST", "/v1/jobs/9/progress", mark).status == 404
    [flavor] = scene.call("GET", "/v1/goodput").json["flavors"]
    assert set(flavor["time"]) >= {"useful", "no_demand"}
    assert scene.call("GET", "/v1/goodput?tenant=nobody").json["flavors"] == []


def test_a_task_of_an_array_says_how_far_it_is(scene: Scene) -> None:
    """One that runs again has the number that it had before."""
    scene.follower.happen(Submit(Spec(("x",), array=4)))
    scene.follower.happen(Started(1, 1, 0, 4), Exited(1, 1, 1, 2, 2))
    assert scene.call("POST", "/v1/jobs/1/requeue", {"failed": True}).status == 202
    scene.follower.happen(Started(2, 1, 0, 2))
    mark = {"epoch": 1, "step": 5, "checkpointed": True, "task": 3}
    assert scene.call("POST", "/v1/jobs/2/progress", mark).status == 200
    assert scene.call("GET", "/v1/jobs/2").json["saved"] == 1
    marks = scene.follower.world.arrays[2].marks
    assert marks is not None
    assert [row[0] for row in marks.rows()] == [1]
    assert scene.call("POST", "/v1/jobs/2/progress", mark | {"task": 0}).status == 404
    over = scene.call("POST", "/v1/jobs/1/progress", mark)
    assert (over.status, over.json["code"], over.json["detail"]) == (409, "M121", "task 3 is already over")
    told = [line["what"] for line in scene.call("GET", "/v1/jobs/2/story").json["lines"]]
    assert "task 3 at step 5, checkpointed" in told


def test_a_tenant_that_only_waits_is_there_until_its_jobs_are_gone(scene: Scene) -> None:
    scene.follower.happen(Submit(Spec(("x",), tenant="patient", ask=Resources(gpus=4), held=True)))
    assert [tenant["name"] for tenant in scene.call("GET", "/v1/tenants").json] == ["patient"]
    assert scene.call("GET", "/v1/tenants/patient").json["name"] == "patient"
    then = scene.call("GET", f"/v1/past/{scene.follower.at}/tenants").json
    assert [tenant["name"] for tenant in then] == ["patient"]
    scene.call("POST", "/v1/jobs/1/cancel")
    retire(scene)
    assert scene.call("GET", "/v1/tenants").json == []


def test_nodes_and_tenants(scene: Scene) -> None:
    line = {"family": "gpu", "limit": 2_000_000}
    assert scene.call("PUT", "/v1/tenants/lab/vision", {"lines": [line]}).status == 200
    scene.follower.happen(Submit(Spec(("x",), tenant="lab/vision", ask=Resources(gpus=2))))
    [tenant] = scene.call("GET", "/v1/tenants").json
    assert tenant == {"name": "lab/vision", "lines": [line | {"used": 2_000_000}], "used": {"gpu": 2_000_000}}
    scene.follower.happen(NodeSilent("node-1"))
    [node] = scene.call("GET", "/v1/nodes").json
    assert (node["phase"], node["free"]["gpus"], node["jobs"]) == ("unknown", 6, 1)


def test_a_budget_is_shown_with_what_is_spent(scene: Scene) -> None:
    budget = {"unit": "gpu_hours", "amount": 9_000_000, "period_ms": 3_600_000}
    assert scene.call("PUT", "/v1/tenants/lab", {"budgets": [budget]}).status == 200
    [tenant] = scene.call("GET", "/v1/tenants").json
    [shown] = tenant["budgets"]
    turns_at_ms = shown.pop("turns_at_ms")
    assert (shown, turns_at_ms % 3_600_000) == (budget, 0)


@pytest.mark.parametrize(
    "body",
    [
        {"gpus": 1},
        {"weight": 0},
        {"weight": 10**9},
        {"parent": "nobody"},
        {"lines": [{}]},
        *({"lines": [{"family": "gpu", "limit": amount}]} for amount in ("1", -1, 2**63, 10**30)),
        {"lines": [{"family": "gpu"}] * 65},
        {"budgets": [{"unit": "money"}]},
        {"budgets": [{"unit": "euros", "amount": 1}]},
        {"budgets": [{"unit": "money", "amount": 1, "period_ms": 5}]},
        {"budgets": [{"unit": "money", "amount": 1}] * 2},
        [],
        None,
    ],
)
def test_a_quota_that_is_wrong_is_refused(scene: Scene, body: object) -> None:
    assert scene.call("PUT", "/v1/tenants/lab", body).status == 422
    assert not scene.follower.world.tenants


def test_a_tenant_needs_a_name(scene: Scene) -> None:
    assert scene.call("PUT", "/v1/tenants/no spaces", {}).json["code"] == "M103"


def test_a_reader_waits_for_the_entry_it_knows_of(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.follower.folds = False
    seq = scene.call("POST", "/v1/jobs", {"command": ["x"]}).headers["muster-seq"]
    assert scene.call("GET", "/v1/jobs/1").status == 404

    async def read() -> int:
        asking = asyncio.ensure_future(scene.send("GET", "/v1/jobs/1", muster_at_least=seq))
        while not scene.follower._waiters:
            await asyncio.sleep(0)
        scene.follower.fold()
        return (await asking).status

    assert asyncio.run(read()) == 200
    monkeypatch.setattr(follower_module, "REACH_PATIENCE_S", 0.01)
    late = scene.call("GET", "/v1/jobs", muster_at_least="99")
    assert (late.status, late.headers["retry-after"]) == (503, "1")
    assert scene.call("GET", "/v1/jobs", muster_at_least="x").status == 422


class TestLogs:
    """Output in pieces, until there will be no more."""

    def test_a_piece_and_the_next(self, scene: Scene) -> None:
        scene.follower.happen(Submit(Spec(("x",))))
        empty = scene.call("GET", "/v1/jobs/1/logs")
        assert (empty.body, empty.headers["muster-next-offset"], empty.headers["muster-log-over"]) == (b"", "0", "0")
        scene.logs.path(1, 0, 1).write_bytes(b"one two")
        part = scene.call("GET", "/v1/jobs/1/logs?offset=4")
        assert (part.body, part.headers["muster-next-offset"]) == (b"two", "7")
        assert part.headers["content-type"] == "application/octet-stream"
        assert part.headers["muster-log-over"] == "0"
        scene.follower.happen(Exited(1, 1, 0))
        end = scene.call("GET", "/v1/jobs/1/logs?offset=7")
        assert (end.body, end.headers["muster-log-over"]) == (b"", "1")
        retire(scene)
        late = scene.call("GET", "/v1/jobs/1/logs")
        assert (late.body, late.headers["muster-log-over"], late.headers["muster-log-epoch"]) == (b"one two", "1", "1")

    def test_a_large_log_comes_in_pieces(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(logs_module, "LOG_BYTES_MAX", 4)
        scene.follower.happen(Submit(Spec(("x",))))
        scene.follower.happen(Exited(1, 1, 0))
        scene.logs.path(1, 0, 1).write_bytes(b"abcdefgh")
        offset, pieces, over = "0", [], "0"
        while over == "0":
            part = scene.call("GET", f"/v1/jobs/1/logs?offset={offset}")
            pieces.append(part.body)
            offset, over = part.headers["muster-next-offset"], part.headers["muster-log-over"]
        assert pieces == [b"abcd", b"efgh"]

    def test_an_older_try_is_over(self, scene: Scene) -> None:
        scene.follower.happen(Submit(Spec(("x",), retries=1)))
        scene.logs.path(1, 0, 1).write_bytes(b"first")
        scene.logs.path(1, 0, 2).write_bytes(b"second")
        scene.follower.happen(Exited(1, 1, 1))
        latest = scene.call("GET", "/v1/jobs/1/logs")
        assert (latest.body, latest.headers["muster-log-epoch"], latest.headers["muster-log-over"]) == (
            b"second",
            "2",
            "0",
        )
        older = scene.call("GET", "/v1/jobs/1/logs?epoch=1")
        assert (older.body, older.headers["muster-log-over"]) == (b"first", "1")

    def test_whoever_waits_gets_what_comes(self, scene: Scene) -> None:
        scene.follower.happen(Submit(Spec(("x",))))

        async def wait() -> bytes:
            asking = asyncio.ensure_future(scene.send("GET", "/v1/jobs/1/logs?wait_ms=60000"))
            while not scene.follower._waiters:
                await asyncio.sleep(0.001)
            scene.logs.path(1, 0, 1).write_bytes(b"at last")
            return (await asking).body

        assert asyncio.run(wait()) == b"at last"

    def test_tasks_of_an_array(self, scene: Scene) -> None:
        scene.follower.happen(Submit(Spec(("x",), array=2)))
        scene.logs.path(1, 1, 1).write_bytes(b"second task")
        scene.follower.happen(Exited(1, 1, 0, 1, 1))
        part = scene.call("GET", "/v1/jobs/1/logs?task=1")
        assert (part.body, part.headers["muster-log-over"]) == (b"second task", "1")
        assert scene.call("GET", "/v1/jobs/1/logs?task=0").headers["muster-log-over"] == "0"
        assert scene.call("GET", "/v1/jobs/1/logs?task=2").status == 404

    @pytest.mark.parametrize("query", ["task=../x", "epoch=x", "offset=-1", "task=1.5", "wait_ms=60001"])
    def test_numbers_only(self, scene: Scene, query: str) -> None:
        scene.follower.happen(Submit(Spec(("x",))))
        assert scene.call("GET", f"/v1/jobs/1/logs?{query}").status == 422
