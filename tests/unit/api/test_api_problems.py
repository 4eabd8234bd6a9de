"""Refusals on their way out."""

from __future__ import annotations

import pytest

from muster.api.problems import STATUS
from muster.model.reason import Code


@pytest.mark.parametrize(
    "code",
    [
        *(Code.NODE_TAKEN, Code.DEVICE_TAKEN, Code.PROMISES_FULL, Code.BAD_GROUP),
        *(Code.BAD_PARTITION, Code.UNKNOWN_PARTITION, Code.BAD_TABLE, Code.PARTITION_IN_USE),
    ],
)
def test_what_the_caller_did_wrong_is_no_fault_of_the_server(code: Code) -> None:
    assert STATUS[code] in (409, 422)
