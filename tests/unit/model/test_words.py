"""The words keep their promises: records are frozen, codes are unique, errors carry their reason."""

from __future__ import annotations

import pytest

from muster.model import event, fact
from muster.model.errors import ConflictError, EngineError, InvariantError, MusterError, RejectedError, StoreError
from muster.model.job import NodePhase
from muster.model.reason import Code, Reason


def test_records_are_frozen() -> None:
    item = fact.Retired([1])
    with pytest.raises(AttributeError):
        item.cause = "x"  # type: ignore[misc]  # frozen, which is what is tested


def test_codes_are_unique_and_well_formed() -> None:
    assert len({code.value for code in Code}) == len(Code)
    assert all(code.value[0] == "M" and code.value[1:].isdigit() and len(code.value) == 4 for code in Code)


def test_an_error_says_its_code_and_subject() -> None:
    error = InvariantError("a law", "the evidence")
    assert str(error) == "M900 invariant: a law the evidence"
    assert (error.law, error.evidence) == ("a law", "the evidence")


def test_every_error_is_ours() -> None:
    reason = Reason(Code.ENGINE_FAILED, "engine")
    assert EngineError(reason, transient=True).transient
    for kind in (RejectedError, ConflictError, StoreError):
        error = kind(reason)
        assert isinstance(error, MusterError)
        assert error.reason == reason


def test_every_fact_and_event_carries_its_cause() -> None:
    for kind in (*fact.Fact.__args__, *event.Event.__args__):
        assert "cause" in kind.__struct_fields__, kind


def test_the_jobs_of_a_fact() -> None:
    assert fact.jobs_of(fact.Retired([3, 4])) == [3, 4]
    assert fact.jobs_of(fact.Began(7, 0, 1)) == [7]
    assert fact.jobs_of(fact.Placed([1, 2], [1, 1], [0, 0], [], [], [])) == [1, 2]
    assert fact.jobs_of(fact.NodePhased(0, NodePhase.UP)) == []
