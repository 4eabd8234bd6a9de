"""Advice: taken in rising versions, kept until its time is over, and refused in words if it is no advice at all."""

from __future__ import annotations

import pytest

from muster.model import event, fact
from muster.model.advice import KINDS_MAX, WORDS_MAX, Advice
from muster.model.reason import DONE, Code, Refused
from muster.testing.rig import Rig
from muster.units import INSTANT_MAX
from muster.wire.codec import decode_entry, encode_entry
from muster.world.snapshot import restore, snapshot

END = 10_000
COLUMNS: dict[str, tuple[int, ...]] = {"value": (3, 1, -4)}


def code_of(rig: Rig, kind: str, advice: Advice) -> Code | None:
    answer = rig.answer(event.Advise(kind, advice))
    return answer.reason.code if isinstance(answer, Refused) else None


def test_advice_is_a_fact_and_content_of_the_world() -> None:
    rig = Rig()
    advice = Advice(1, END, COLUMNS)
    assert rig.answer(event.Advise("prices", advice, cause="adviser")) == DONE
    facts = rig.outcomes[-1].facts
    assert facts == [fact.Advised("prices", advice, "adviser")]
    assert decode_entry(encode_entry(1, rig.now, facts)).facts == facts
    assert rig.world.advice == {"prices": advice}
    assert restore(snapshot(rig.world)).advice == rig.world.fork().advice == rig.world.advice


def test_a_newer_version_replaces_all_and_an_older_one_is_refused() -> None:
    rig = Rig()
    assert code_of(rig, "prices", Advice(5, END, COLUMNS)) is None
    assert code_of(rig, "prices", Advice(5, END, COLUMNS)) is None, "a repeat is harmless"
    assert code_of(rig, "prices", Advice(5, END, {})) == Code.BAD_AMOUNT
    assert code_of(rig, "prices", Advice(6, END, {"other": ()})) is None
    assert rig.world.advice["prices"].columns == {"other": ()}


def test_it_ends_by_itself_and_the_kernel_wakes_for_that() -> None:
    rig = Rig()
    rig.feed(event.Advise("prices", Advice(1, END, COLUMNS)), event.Advise("other", Advice(1, END + 500, COLUMNS)))
    assert rig.outcomes[-1].wake_at == END
    rig.feed(after_ms=END - rig.now)
    assert rig.outcomes[-1].facts == [fact.AdviceDropped("prices", "expired")]
    assert list(rig.world.advice) == ["other"]
    assert rig.outcomes[-1].wake_at == END + 500


@pytest.mark.parametrize(
    ("kind", "advice", "code"),
    [
        ("", Advice(1, 10**12, {}), Code.BAD_NAME),
        ("x", Advice(0, 10**12, {}), Code.BAD_AMOUNT),
        ("x", Advice(2**62 + 1, 10**12, {}), Code.BAD_AMOUNT),
        ("x", Advice(1, 0, {}), Code.BAD_AMOUNT),
        ("x", Advice(1, INSTANT_MAX + 1, {}), Code.BAD_AMOUNT),
        ("x", Advice(1, 10**12, {"a": (1 << 63,)}), Code.BAD_AMOUNT),
        ("x", Advice(1, 10**12, {"a": (0,) * (WORDS_MAX + 1)}), Code.TOO_LARGE),
    ],
)
def test_what_is_no_advice_is_refused_and_changes_nothing(kind: str, advice: Advice, code: Code) -> None:
    rig = Rig()
    assert code_of(rig, kind, advice) == code
    assert not rig.world.advice


def test_there_are_not_more_than_so_many_kinds() -> None:
    rig = Rig()
    for number in range(KINDS_MAX):
        assert code_of(rig, f"kind-{number}", Advice(1, END, {})) is None
    assert code_of(rig, "one-more", Advice(1, END, {})) == Code.TOO_LARGE
    assert code_of(rig, "kind-0", Advice(2, END, {})) is None
