"""A span of time is decided again from what was heard in it, and told; a recorder that was cut says so."""

from __future__ import annotations

import pytest

from muster.app.lab import read_span
from muster.app.retelling import retell
from muster.control.batches import Item, make_batch
from muster.kernel.kernel import Kernel
from muster.model.advice import Advice
from muster.model.errors import RejectedError
from muster.model.event import Advise, Event, Exited, NodeSeen, Started, Submit
from muster.model.reason import Code
from muster.model.spec import Spec, bring_back
from muster.stores.memory import MemoryStore
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS, Resources
from muster.world.world import World

GPUS = Resources(gpus=4, cpu_milli=1000)


@pytest.fixture
def store() -> MemoryStore:
    """A node of 4 GPUs at 1 s; two jobs at 2 s, of which one gets it; that one ends at 4 s and the other starts."""
    return live_through(
        [
            (1000, [NodeSeen("node-1", Resources(gpus=4, cpu_milli=8000))]),
            (2000, [Submit(Spec(("a",), ask=GPUS), "a"), Submit(Spec(("b",), ask=GPUS), "b")]),
            (3000, [Started(1, 1)]),
            (4000, [Exited(1, 1, 0)]),
        ]
    )


def live_through(lives: list[tuple[int, list[Event]]]) -> MemoryStore:
    """The journal and the recorder of a server that heard this."""
    store, kernel = MemoryStore(), Kernel(World())
    for at, events in lives:
        batch = make_batch([Item(event) for event in events], kernel.handle(events, at))
        assert batch.commit is not None
        store.append([batch.commit])
    return store


def test_what_was_learned_meanwhile_is_told_by_its_kind() -> None:
    seen = NodeSeen("node-1", Resources(gpus=4, cpu_milli=8000))
    learned = Advise("packing", Advice(1, 10_000, {"gpus": (1,)}), "adviser")
    told = list(retell(live_through([(1000, [seen]), (2000, [learned])]), 2000, 3000))
    assert told[0].lines[1:] == ["    advised packing"]


def test_a_span_is_told_with_what_was_heard_decided_and_left_out(store: MemoryStore) -> None:
    told = list(retell(store, 2000, 3999))
    assert [batch.is_same for batch in told] == [True, True]
    first = told[0].lines
    assert first[0].endswith("entry 2, by 2 submit: the same")
    assert any("job 1 placed on node-1" in line for line in first)
    assert any(line.startswith("    left out: job 2: ") for line in first)
    assert told[1].lines[1:] == ["    job 1 began"]


def test_what_is_decided_otherwise_today_is_told_and_the_past_goes_on(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Kernel.handle

    def forgetful(kernel: Kernel, batch: list[Event], now: int) -> object:
        return honest(kernel, [] if now == 3000 else batch, now)

    monkeypatch.setattr(Kernel, "handle", forgetful)
    told = list(retell(store, 2000, 9000))
    assert [batch.is_same for batch in told] == [True, False, True]
    assert "DIFFERS" in told[1].lines[0]


def test_a_recorder_that_was_cut_is_said_to_be(store: MemoryStore) -> None:
    store.trim_inputs(keep=1)
    with pytest.raises(RejectedError) as caught:
        list(retell(store, 2000, 9000))
    assert caught.value.reason.code is Code.NO_RECORD


def test_who_runs_failed_tasks_again_is_told_in_both_lives() -> None:
    first = Spec(("a",), array=2, ask=GPUS)
    again = bring_back(first, 1, (1, 1))
    store = live_through(
        [
            (1000, [NodeSeen("node-1", Resources(gpus=8, cpu_milli=8000))]),
            (2000, [Submit(first, "a")]),
            (3000, [Started(1, 1, 0, 2), Exited(1, 1, 0, 0, 1), Exited(1, 1, 3, 1, 1)]),
            (4000, [Submit(again, "b")]),
        ]
    )
    *_, last = retell(store, 1000, 9000)
    assert any(line.startswith("    job 2 accepted: ") for line in last.lines)
    assert any(line.startswith("    job 1 ") and "again as job 2" in line for line in last.lines)


NOON = 20_000 * DAY_MS + 12 * HOUR_MS


@pytest.mark.parametrize(
    ("since", "until", "span_ms"),
    [
        ("02:50", "03:10", (-9 * HOUR_MS - 10 * MINUTE_MS, -8 * HOUR_MS - 50 * MINUTE_MS)),
        ("11:50", "12:20", (-10 * MINUTE_MS, 0)),  # still to come: as far as it is told
        ("23:50", "00:10", (-12 * HOUR_MS - 10 * MINUTE_MS, -11 * HOUR_MS - 50 * MINUTE_MS)),
        ("1h", None, (-HOUR_MS, 0)),
    ],
)
def test_the_end_of_a_span_comes_after_its_beginning(since: str, until: str | None, span_ms: tuple[int, int]) -> None:
    assert read_span(since, until, NOON) == (NOON + span_ms[0], NOON + span_ms[1])


@pytest.mark.parametrize(("since", "until"), [("10m", "20m"), ("5 minutes ago", None), ("1h", "later")])
def test_a_span_that_is_none_is_refused(since: str, until: str | None) -> None:
    with pytest.raises(RejectedError) as caught:
        read_span(since, until, NOON)
    assert caught.value.reason.code == Code.BAD_SPEC
