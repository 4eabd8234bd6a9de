"""One command over many items: what the array carries, and how a task finds its own."""

from __future__ import annotations

import pytest

from muster.model.errors import RejectedError
from muster.sdk.jobfile import make_spec
from muster.sdk.mapping import ITEMS, ITEMS_BYTES_MAX, item, make_map


def test_each_task_finds_its_item(monkeypatch: pytest.MonkeyPatch) -> None:
    job = make_map("sim", ({"x": n} for n in range(3)), {"env": {"A": "b"}, "cpus": 2})
    spec = make_spec(job, here="/", now_ms=0)
    assert (spec.array, spec.command, spec.env["A"], spec.ask.cpu_milli) == (3, ("sim",), "b", 2000)
    monkeypatch.setenv(ITEMS, spec.env[ITEMS])
    monkeypatch.setenv("MUSTER_TASK", "2")
    assert item() == {"x": 2}


@pytest.mark.parametrize(("items", "code"), [([], "M101"), (["x" * ITEMS_BYTES_MAX], "M104")])
def test_nothing_and_too_much_is_refused(items: list[str], code: str) -> None:
    with pytest.raises(RejectedError, match=code):
        make_map("sim", items, {})


def test_elsewhere_there_is_no_item(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ITEMS, raising=False)
    with pytest.raises(LookupError, match="no task of a map"):
        item()
