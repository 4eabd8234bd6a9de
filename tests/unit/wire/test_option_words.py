"""Options in words, and as flags that mean exactly what was offered."""

from __future__ import annotations

import pytest

from muster.model.reason import Code
from muster.scheduler.options import LOOSER, RELAXATIONS
from muster.units import Resources, parse_bytes, parse_cpus
from muster.wire.option_words import name_bound, put_offer_in_words, put_option_in_words, spell_ask, spell_flag


@pytest.mark.parametrize(
    ("field", "asked", "to", "flag", "words"),
    [
        ("gang", 4, 2, "--gang 2", "tasks at once: 2 instead of 4"),
        ("gpus", 8, 1, "--gpus 1", "GPUs per task: 1 instead of 8"),
        ("cpu_milli", 2000, 1500, "--cpus 1.5", "CPUs per task: 1.5 instead of 2"),
        ("memory_bytes", 64 * 2**30, 61 * 2**30, "--memory 61Gi", "memory per task: 61Gi instead of 64Gi"),
        ("within", "rack", "block", "--within block", "all within one: block instead of rack"),
        ("spread", "rack", "", "no --spread", "spread over: nothing instead of rack"),
        ("flavors", "h100, a100", "l40", "--flavor l40", "flavor: l40 instead of h100, a100"),
        ("memory_bytes", 5 * 10**9, 4097 * 2**20, "--memory 4097Mi", "memory per task: 4097Mi instead of 4.6Gi"),
    ],
)
def test_an_option_in_words_and_as_a_flag(field: str, asked: int | str, to: int | str, flag: str, words: str) -> None:
    assert (spell_flag(field, to), put_option_in_words(field, asked, to)) == (flag, words)


def test_every_relaxation_has_its_flag() -> None:
    for field, step in RELAXATIONS:
        assert spell_flag(field, step)
    for field in LOOSER:
        assert spell_flag(field, "x")


def test_an_offer_is_one_line() -> None:
    options: list[tuple[str, int | str, int | str]] = [("gang", 4, 2), ("memory_bytes", 2**30, 2**29)]
    line = "now if: --gang 2 (asked 4) · --memory 512Mi (asked 1Gi)"
    assert put_offer_in_words(options, is_array=False, is_next=False) == f"starts {line}"
    assert put_offer_in_words(options, is_array=True, is_next=False) == f"its first task starts {line}"
    assert (
        put_offer_in_words([], is_array=False, is_next=False)
        == "no single change of its size, place or tier would start it now"
    )
    assert put_offer_in_words([], is_array=False, is_next=True) == "starts with the next cycle, as it is"


def test_an_ask_as_flags_means_the_same_ask() -> None:
    """`muster run` asks for one CPU unless told otherwise, so CPUs are always said."""
    assert spell_ask(Resources(2, 3300, 3413 * 2**20)) == "--gpus 2 --cpus 3.3 --memory 3413Mi"
    assert spell_ask(Resources(1)) == "--gpus 1 --cpus 0"
    assert (parse_cpus("3.3"), parse_bytes("3413Mi")) == (3300, 3413 * 2**20)


def test_bounds_have_a_word() -> None:
    assert (name_bound(Code.NO_ROOM), name_bound(Code.OVER_QUOTA)) == ("room", "quota")
