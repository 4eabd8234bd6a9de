"""Refusals on their way out."""

from __future__ import annotations

import pytest

from muster.api.problems import STATUS
from muster.model.reason import Code


@pytest.mark.parametrize("code", [code for code in Code if code.startswith("M1") and code != Code.TIME_WENT_BACK])
def test_what_the_caller_did_wrong_is_no_fault_of_the_server(code: Code) -> None:
    assert STATUS[code] in (404, 409, 422)
