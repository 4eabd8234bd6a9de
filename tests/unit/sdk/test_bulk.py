"""Many jobs in few requests: within the server's limits, never twice, and each with its own outcome."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from scripted_server import Answer, ScriptedServer, Seen

from muster.api.bulk import JOBS_MAX
from muster.api.guard import BULK_BYTES_MAX, BULK_PATH
from muster.model.errors import RejectedError
from muster.model.spec import Spec
from muster.sdk import Client
from muster.sdk.bulk import BYTES_AT_ONCE, JOBS_AT_ONCE, PATH, split
from muster.sdk.errors import RefusedError, UnfitError
from muster.wire.views import BulkAnswer, BulkPart, Health, Problem, Submitted

SPEC = Spec(("true",))
UNFIT = Problem("about:blank", "no leader", 503, "M307", "nobody leads", "start one")
NEVER = Problem("about:blank", "never fits", 422, "M110", "never fits: because", "ask for less")


def answer(*parts: int | Problem) -> Answer:
    made = [BulkPart(job=part) if isinstance(part, int) else BulkPart(problem=part) for part in parts]
    return Answer(200, BulkAnswer(made, 9))


def keys_in(seen: Seen) -> list[str]:
    jobs: list[dict[str, Any]] = msgspec.json.decode(seen.body)["jobs"]
    return [job["key"] for job in jobs]


def test_the_limits_are_those_of_the_server_or_below() -> None:
    assert PATH == BULK_PATH
    assert JOBS_AT_ONCE <= JOBS_MAX
    assert BYTES_AT_ONCE * 2 <= BULK_BYTES_MAX


def test_groups_are_bounded_by_number_and_by_size_and_lose_nobody() -> None:
    assert [len(group) for group in split([b"x"] * (2 * JOBS_AT_ONCE + 1))] == [JOBS_AT_ONCE, JOBS_AT_ONCE, 1]
    large = [b"x" * (BYTES_AT_ONCE // 2)] * 3 + [b"x" * (2 * BYTES_AT_ONCE), b"y"]
    assert [len(group) for group in split(large)] == [2, 1, 1, 1]
    assert list(split([])) == []


def test_one_that_is_refused_harms_no_other(server: ScriptedServer, client: Client) -> None:
    server.script = [answer(7, NEVER, 8)]
    first, second, third = client.submit_many([SPEC] * 3, ["a", "b", "c"])
    assert (first, third) == (Submitted(7, 9), Submitted(8, 9))
    assert isinstance(second, RefusedError)
    assert keys_in(server.seen[0]) == ["a", "b", "c"]


def test_a_lost_answer_is_asked_for_again_with_the_same_keys(server: ScriptedServer, client: Client) -> None:
    server.script = [Answer(200, Health("ok", True, 1)), Answer(hang_up=True), answer(7, 8)]
    client.health()
    assert client.submit_many([SPEC] * 2) == (Submitted(7, 9), Submitted(8, 9))
    _, lost, found = server.seen
    assert keys_in(lost) == keys_in(found)
    assert len(set(keys_in(lost))) == 2


def test_what_could_not_be_judged_is_sent_again_and_what_could_is_not(server: ScriptedServer, client: Client) -> None:
    server.script = [answer(7, UNFIT, NEVER), answer(8)]
    first, second, third = client.submit_many([SPEC] * 3, ["a", "b", "c"])
    assert (first, second) == (Submitted(7, 9), Submitted(8, 9))
    assert isinstance(third, RefusedError)
    assert [keys_in(seen) for seen in server.seen] == [["a", "b", "c"], ["b"]]


def test_patience_has_an_end_for_each(server: ScriptedServer) -> None:
    server.script = [answer(7, UNFIT)]
    with Client(address=server.address, token="", patience_s=0) as client:
        made, failed = client.submit_many([SPEC] * 2)
    assert made == Submitted(7, 9)
    assert isinstance(failed, UnfitError)


def test_a_key_that_cannot_travel_is_refused_before_anything_is_sent(server: ScriptedServer, client: Client) -> None:
    with pytest.raises(RejectedError):
        client.submit_many([SPEC] * 2, ["fine", "snow\u2603"])
    with pytest.raises(ValueError, match="zip"):
        client.submit_many([SPEC] * 2, ["one"])
    assert server.seen == []
