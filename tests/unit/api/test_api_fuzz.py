"""The API fuzzed from its own description: whatever is sent, no answer is a fault of ours, none shows a trace, and each
is one of those that the description names."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
import pytest
from api_kit import Reply, Scene, call
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.model.event import SetTenant, Submit
from muster.model.spec import Spec
from muster.model.tenant import Tenant

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: `make setup`")

STREAMS = {"/v1/watch", "/v1/jobs/{job}/logs/follow"}
"""These go on for ever; `test_api_watch` has them."""


class Fuzzed:
    """One scene for a whole run, so that requests meet what earlier ones left behind."""

    def __init__(self, root: Path) -> None:
        self.scene = Scene(root)
        self.scene.follower.happen(SetTenant("lab", Tenant()), Submit(Spec(("true",), tenant="lab")))
        self.document = self.scene.call("GET", "/v1/openapi.json").json

    def send(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> Reply:
        return asyncio.run(
            call(
                self.scene.app,
                method,
                target,
                body,
                {"host": "localhost", "authorization": "Bearer a-token", **headers},
            )
        )


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Fuzzed:
    return Fuzzed(tmp_path_factory.mktemp("fuzzed"))


def check(reply: Reply, operation: dict[str, Any]) -> None:
    assert reply.status < 500, reply
    assert b"Traceback" not in reply.body
    assert len(reply.body) <= 1024 * 1024
    told = operation["responses"]
    assert str(reply.status) in told or (400 <= reply.status < 500 and "4XX" in told), reply
    if reply.status >= 400:
        assert reply.headers["content-type"] == "application/problem+json"
        assert reply.json["code"].startswith("M")


@pytest.mark.slow
def test_whatever_the_description_allows_is_answered(fuzzed: Fuzzed) -> None:
    schema = schemathesis.openapi.from_dict(fuzzed.document)
    operations = [found.ok() for found in schema.get_all_operations() if found.ok().path not in STREAMS]
    assert len(operations) > 30
    for operation in operations:
        _fuzz(fuzzed, operation.as_strategy())


def _fuzz(fuzzed: Fuzzed, cases: Any) -> None:
    @settings(derandomize=True, max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=cases)
    def send(case: Any) -> None:
        target = case.path
        for name, value in (case.path_parameters or {}).items():
            target = target.replace("{" + name + "}", quote(str(value), safe=""))
        query = {name: str(value) for name, value in (case.query or {}).items() if name != "wait_ms"}
        headers = {str(name).lower(): str(value) for name, value in (case.headers or {}).items()}
        headers.pop("muster-at-least", None)  # an entry that is not there yet is waited for
        body = case.body if isinstance(case.body, dict | list | str | int | float | bool) else None
        try:
            data = b"" if body is None else msgspec.json.encode(body)
        except (OverflowError, UnicodeEncodeError):
            return  # what JSON cannot say cannot be sent
        told = fuzzed.document["paths"][case.path][case.method.lower()]
        asked = f"{target}?{urlencode(query)}" if query else target
        check(fuzzed.send(case.method.upper(), asked, data, headers), told)

    send()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
FIELDS = [*Spec.__struct_fields__, "unknown"]


@settings(derandomize=True, max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    body=st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6), command=st.lists(st.text(max_size=8), max_size=3)
)
def test_whatever_is_submitted_is_taken_or_refused(fuzzed: Fuzzed, body: dict[str, Any], command: list[str]) -> None:
    data = msgspec.json.encode({"command": command, **body})
    reply = fuzzed.send("POST", "/v1/jobs", data, {})
    assert reply.status in (201, 400, 409, 422), reply
    assert b"Traceback" not in reply.body


@settings(derandomize=True, max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD"]),
    parts=st.lists(
        st.sampled_from(["v1", "jobs", "1", "nodes", "users", "tokens", "..", "%2e%2e", "\x00", "a" * 300]), max_size=5
    ),
    headers=st.dictionaries(
        st.sampled_from(["if-match", "idempotency-key", "last-event-id", "muster-at-least", "content-length"]),
        st.text(st.characters(codec="latin-1"), max_size=20),
        max_size=2,
    ),
    body=st.binary(max_size=60),
)
def test_whatever_comes_is_answered(
    fuzzed: Fuzzed, method: str, parts: list[str], headers: dict[str, str], body: bytes
) -> None:
    if headers.get("muster-at-least", "x").isdigit():
        return
    reply = fuzzed.send(method, "/" + "/".join(parts), body, headers)
    assert reply.status < 500, reply
