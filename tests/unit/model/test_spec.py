"""What is wrong with a spec by itself: one row for each thing that a user, or an enemy, may send."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.model.reason import Code
from muster.model.spec import (
    ARRAY_MAX,
    COMMAND_BYTES_MAX,
    ENV_BYTES_MAX,
    GANG_MAX,
    PATH_BYTES_MAX,
    RETRIES_MAX,
    Spec,
    find_fault,
    is_name,
)
from muster.units import AMOUNT_MAX, Resources

GOOD = Spec(("true",))


@pytest.mark.parametrize(
    ("change", "code", "subject"),
    [
        ({"gang": 0}, Code.BAD_AMOUNT, "gang"),
        ({"gang": -1}, Code.BAD_AMOUNT, "gang"),
        ({"gang": GANG_MAX + 1}, Code.BAD_AMOUNT, "gang"),
        ({"array": -1}, Code.BAD_AMOUNT, "array"),
        ({"array": ARRAY_MAX + 1}, Code.BAD_AMOUNT, "array"),
        ({"array": 2, "gang": 2}, Code.BAD_SPEC, "gang"),
        ({"array": 2, "expect_ms": 5}, Code.BAD_SPEC, "expect_ms"),
        ({"retries": -1}, Code.BAD_AMOUNT, "retries"),
        ({"retries": RETRIES_MAX + 1}, Code.BAD_AMOUNT, "retries"),
        ({"ask": Resources()}, Code.ASKS_NOTHING, "ask"),
        ({"ask": Resources(-1)}, Code.BAD_AMOUNT, "ask.gpus"),
        ({"ask": Resources(AMOUNT_MAX + 1)}, Code.BAD_AMOUNT, "ask.gpus"),
        ({"ask": Resources(cpu_milli=-5)}, Code.BAD_AMOUNT, "ask.cpu_milli"),
        ({"ask": Resources(memory_bytes=2**63)}, Code.BAD_AMOUNT, "ask.memory_bytes"),
        ({"ask": Resources(2**61), "gang": 3}, Code.BAD_AMOUNT, "ask.gpus"),
        ({"limit_ms": 0}, Code.BAD_AMOUNT, "limit_ms"),
        ({"limit_ms": -1}, Code.BAD_AMOUNT, "limit_ms"),
        ({"limit_ms": 2**62 + 1}, Code.BAD_AMOUNT, "limit_ms"),
        ({"grace_ms": -1}, Code.BAD_AMOUNT, "grace_ms"),
        ({"grace_ms": 2**62 + 1}, Code.BAD_AMOUNT, "grace_ms"),
        ({"name": "x" * 2**20}, Code.BAD_NAME, "name"),
        ({"name": "a\0b"}, Code.BAD_NAME, "name"),
        ({"name": "../up"}, Code.BAD_NAME, "name"),
        ({"name": "new\nline"}, Code.BAD_NAME, "name"),
        ({"name": "\u202eevil"}, Code.BAD_NAME, "name"),
        ({"tenant": ""}, Code.BAD_NAME, "tenant"),
        ({"tenant": "a b"}, Code.BAD_NAME, "tenant"),
        ({"env": {"A=B": "x"}}, Code.BAD_NAME, "env"),
        ({"env": {"": "x"}}, Code.BAD_NAME, "env"),
        ({"env": {"1A": "x"}}, Code.BAD_NAME, "env"),
        ({"env": {"A": "x\0y"}}, Code.BAD_SPEC, "env"),
        ({"env": {"A": "x" * (ENV_BYTES_MAX + 1)}}, Code.TOO_LARGE, "env"),
        ({"command": ()}, Code.BAD_SPEC, "command"),
        ({"command": ("",)}, Code.BAD_SPEC, "command"),
        ({"command": ("a\0b",)}, Code.BAD_SPEC, "command"),
        ({"command": ("x" * (COMMAND_BYTES_MAX + 1),)}, Code.TOO_LARGE, "command"),
        ({"command": ("\u20ac" * (COMMAND_BYTES_MAX // 2),)}, Code.TOO_LARGE, "command"),
        ({"workdir": "/" * (PATH_BYTES_MAX + 1)}, Code.TOO_LARGE, "workdir"),
        ({"workdir": "a\0b"}, Code.BAD_SPEC, "workdir"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named(change: dict[str, Any], code: Code, subject: str) -> None:
    fault = find_fault(msgspec.structs.replace(GOOD, **change))
    assert fault is not None
    assert (fault.code, fault.subject) == (code, subject)
    assert len(fault.detail) <= 100, "a refusal does not carry back what was sent"


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"gang": GANG_MAX},
        {"array": ARRAY_MAX},
        {"retries": RETRIES_MAX},
        {"ask": Resources(AMOUNT_MAX)},
        {"limit_ms": AMOUNT_MAX, "grace_ms": 0},
        {"name": "x" * 128},
        {"name": ""},
        {"tenant": "org/team-1@site.example"},
        {"env": {"_A1": "any \u20ac text"}},
        {"command": ("sh", "-c", "echo '$HOME; rm'")},
    ],
    ids=str,
)
def test_what_is_in_order_has_no_fault(change: dict[str, Any]) -> None:
    assert find_fault(msgspec.structs.replace(GOOD, **change)) is None


def test_names() -> None:
    assert is_name("node-1.rack/2@site")
    assert not is_name("")
    assert not is_name("-x")
    assert not is_name("x\n")


def test_unknown_fields_of_a_spec_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"command": ["true"], "gpu": 8}', type=Spec)
