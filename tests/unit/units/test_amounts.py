"""Amounts are exact integers with one ceiling; what is malformed or out of range raises."""

from __future__ import annotations

import pytest

from muster.units import (
    AMOUNT_MAX,
    ZERO,
    AmountError,
    Resources,
    check_amount,
    parse_bytes,
    parse_count,
    parse_cpus,
    parse_gpus,
    parse_money,
    show_bytes,
    show_cpus,
    show_money,
    show_resources,
    spell_bytes,
)


@pytest.mark.parametrize(("text", "wanted"), [("0", 0), ("8", 8), ("4611686018427387904", AMOUNT_MAX)])
def test_counts(text: str, wanted: int) -> None:
    assert parse_count(text) == wanted


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", " 1", "1 ", "1.5", "1e3", "0x8", "1_000", "4611686018427387905", "9" * 400]
)
def test_what_is_no_count(text: str) -> None:
    with pytest.raises(AmountError):
        parse_count(text)


@pytest.mark.parametrize(
    ("text", "micros", "shown"),
    [("2.50", 2_500_000, "2.50"), ("0", 0, "0.00"), ("7", 7_000_000, "7.00"), ("0.000001", 1, "0.000001")],
)
def test_money(text: str, micros: int, shown: str) -> None:
    assert parse_money(text) == micros
    assert show_money(micros) == shown
    assert parse_money(shown) == micros


@pytest.mark.parametrize("text", ["", "-1", "1.", ".5", "2,50", "$2", "0.0000001", "1e3", "9" * 13])
def test_what_is_no_money(text: str) -> None:
    with pytest.raises(AmountError):
        parse_money(text)


@pytest.mark.parametrize(("text", "wanted"), [("2", 2000), ("0.5", 500), ("500m", 500), ("1.234", 1234), ("0", 0)])
def test_cpus(text: str, wanted: int) -> None:
    assert parse_cpus(text) == wanted


@pytest.mark.parametrize("text", ["", ".5", "1.", "1.2345", "m", "-1", "5M", "9999999999999999"])
def test_what_is_no_number_of_cores(text: str) -> None:
    with pytest.raises(AmountError):
        parse_cpus(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("1024", 1024), ("64Gi", 64 * 2**30), ("500M", 500 * 10**6), ("1KiB", 1024), ("3 GB", 3 * 10**9)],
)
def test_sizes(text: str, wanted: int) -> None:
    assert parse_bytes(text) == wanted


@pytest.mark.parametrize("text", ["", "Gi", "1.5Gi", "-1", "1Xi", "4097Pi", "5000000000000000000"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(AmountError):
        parse_bytes(text)


@pytest.mark.parametrize(("text", "meant"), [("1.5Gi", "1536Mi"), ("0.25 TB", "250G"), ("23.55Gi", "24116Mi")])
def test_a_part_of_a_size_is_told_how_to_be_written(text: str, meant: str) -> None:
    with pytest.raises(AmountError, match=f"; write {meant}$"):
        parse_bytes(text)


def test_words_for_amounts() -> None:
    assert show_cpus(2000) == "2"
    assert show_cpus(1500) == "1.5"
    assert show_bytes(0) == "0B"
    assert show_bytes(64 * 2**30) == "64Gi"
    assert show_bytes(1536) == "1.5Ki"
    assert show_resources(Resources(1, 1000, 2**30)) == "1 GPU, 1 CPU, 1Gi"
    assert show_resources(Resources(8, 64_000)) == "8 GPUs, 64 CPUs"
    assert show_resources(ZERO) == "nothing"


@pytest.mark.parametrize("size", [0, 1, 1023, 2**10, 1536, 10**9, 4097 * 2**20, 61 * 2**30, 2**50, AMOUNT_MAX])
def test_a_size_that_is_spelled_is_parsed_to_the_same(size: int) -> None:
    assert parse_bytes(spell_bytes(size)) == size


def test_sums_are_checked_and_never_stick_at_the_ceiling() -> None:
    most = Resources(AMOUNT_MAX)
    assert most.minus(most) == ZERO
    with pytest.raises(AmountError):
        most.plus(Resources(1))
    with pytest.raises(AmountError):
        ZERO.minus(Resources(cpu_milli=1))
    with pytest.raises(AmountError):
        Resources(2).times(AMOUNT_MAX)
    with pytest.raises(AmountError):
        Resources(memory_bytes=1).times(-1)


def test_an_amount_in_range_comes_back() -> None:
    assert check_amount(AMOUNT_MAX) == AMOUNT_MAX
    with pytest.raises(AmountError, match="grace is -1"):
        check_amount(-1, "grace")
    with pytest.raises(AmountError):
        check_amount(AMOUNT_MAX + 1)


@pytest.mark.parametrize(("text", "wanted"), [("8", (8, 0)), ("0", (0, 0)), ("0.5", (0, 500)), ("0.125", (0, 125))])
def test_gpus_are_whole_or_a_share_of_one(text: str, wanted: tuple[int, int]) -> None:
    assert parse_gpus(text) == wanted


@pytest.mark.parametrize("text", ["1.5", "-1", "500m", "half", "0.0001"])
def test_other_gpus_are_refused(text: str) -> None:
    with pytest.raises(AmountError):
        parse_gpus(text)
