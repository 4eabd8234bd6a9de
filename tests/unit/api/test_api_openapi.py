"""The description of the API: whole, current, and as it is committed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from api_kit import Scene

from muster.api.gate import RIGHTS
from muster.api.openapi import SHAPES

COMMITTED = Path(__file__).parents[3] / "docs/reference/openapi.json"


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    reply = Scene(tmp_path).call("GET", "/v1/openapi.json", authorization="")
    assert reply.status == 200
    assert len(reply.body) < 1024 * 1024
    found: dict[str, Any] = reply.json
    return found


def test_every_route_is_described(document: dict[str, Any]) -> None:
    assert set(SHAPES) == set(RIGHTS)
    told = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    assert told == {re.sub(r":\w+\}", "}", key) for key in RIGHTS}


def test_every_operation_has_words_and_a_name_of_its_own(document: dict[str, Any]) -> None:
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    assert all(each["summary"] for each in operations)
    names = [each["operationId"] for each in operations]
    assert len(set(names)) == len(names)


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    text = msgspec.json.encode(document).decode()
    for name in set(re.findall(r'"#/components/schemas/(\w+)"', text)):
        assert name in document["components"]["schemas"], name


def test_words_are_not_indented_as_their_source_is(document: dict[str, Any]) -> None:
    words = [component["description"] for component in document["components"]["schemas"].values()]
    assert any("\n" in each for each in words)
    assert not any("\n " in each for each in words)


def test_the_committed_description_is_current(document: dict[str, Any]) -> None:
    """If it is not: `.venv/bin/python -m muster.app openapi > docs/reference/openapi.json`."""
    assert msgspec.json.decode(COMMITTED.read_bytes()) == document
