"""The one wording of reasons, where it depends on a number."""

from __future__ import annotations

import pytest

from muster.model.reason import Code, Reason
from muster.wire.words import put_in_words


@pytest.mark.parametrize(
    ("code", "needed", "said"),
    [
        (Code.NEVER_FITS, 1, "never fits: 1 task must run at once, the whole fleet could hold 0"),
        (Code.NEVER_FITS, 33, "never fits: 33 tasks must run at once, the whole fleet could hold 0"),
        (Code.BOOKING_FULL, 1, "waiting for room in booking night: 1 task must start, 0 would fit now"),
        (Code.BOOKING_FULL, 2, "waiting for room in booking night: 2 tasks must start together, 0 would fit now"),
    ],
)
def test_one_task_is_a_task(code: Code, needed: int, said: str) -> None:
    assert put_in_words(Reason(code, "night", needed=needed)).what == said


@pytest.mark.parametrize(
    ("subject", "needed", "available", "said", "fix"),
    [
        ("gpus", 12, 8, "12 GPUs per task asked, the largest node has 8", "--gang 2 --gpus 6"),
        ("cpu_milli", 96_000, 64_000, "96 CPUs per task asked, the largest node has 64", "ask for --cpus 64 or less"),
        ("gpus", 1, 0, "1 GPU per task asked, no node has any", "leave --gpus out, or add nodes"),
        ("memory_bytes", 2**41, 2**40, "2Ti memory per task asked, the largest node has 1Ti", "ask for --memory 1Ti"),
    ],
)
def test_a_task_larger_than_every_node_is_told_by_how_much(
    subject: str, needed: int, available: int, said: str, fix: str
) -> None:
    words = put_in_words(Reason(Code.NEVER_FITS, f"{subject} per task", needed, available))
    assert (words.what, fix in words.fix) == (f"never fits: {said}", True)


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (Reason(Code.NO_NODES_TO_BOOK, "night", 1), "booking night wants 1 node, 0 would be free for it"),
        (Reason(Code.NO_NODES_TO_BOOK, "night", 3, 1), "booking night wants 3 nodes, 1 would be free for it"),
        (Reason(Code.TOO_FEW_NODES, "rack", 1), "no rack has 1 node like that: the most is 0"),
        (Reason(Code.PARTITION_IN_USE, "", 1, detail="3g"), "1 job is asking for 3g as it is"),
        (Reason(Code.PARTITION_IN_USE, "", 2, detail="3g"), "2 jobs are asking for 3g as it is"),
        (Reason(Code.UNLIKE, "after", 1, 4, "job 3"), "after: it has 1 task and job 3 has 4, so not each"),
    ],
)
def test_one_of_them_is_one(reason: Reason, said: str) -> None:
    assert put_in_words(reason).what.startswith(said)


def test_no_tasks_at_all_are_not_told_as_a_width() -> None:
    words = put_in_words(Reason(Code.BAD_WIDTH, "gang", 1, 0, "from 1 to 100000, the least first"))
    assert words.what == "a job has at least one task"
    assert "muster hold" in words.fix
    assert put_in_words(Reason(Code.BAD_WIDTH, "gang", 8, 2, "x")).what == "a gang of 8 to 2 tasks is none: x"


def test_those_who_wait_for_room_are_told_of_what_size_they_are() -> None:
    words = put_in_words(Reason(Code.NO_ROOM, "tasks of 8 GPUs, 1 CPU", 4, 2))
    assert words.what == "waiting for room: 4 tasks of 8 GPUs, 1 CPU must start together, 2 would fit now"


@pytest.mark.parametrize(
    ("closed", "fix"),
    [
        ("1 of 1 nodes closed", "have a node opened again"),
        ("12 of 12 nodes closed; more", "have a node opened again"),
        ("1 of 12 nodes closed", "wait, or ask for fewer tasks"),
        ("", "wait, or ask for fewer tasks"),
    ],
)
def test_whoever_waits_for_closed_nodes_is_not_told_to_ask_for_less(closed: str, fix: str) -> None:
    assert put_in_words(Reason(Code.NO_ROOM, "tasks of 1 CPU", 1, 0, closed)).fix.startswith(fix)


@pytest.mark.parametrize(
    ("reason", "said", "fix"),
    [
        (Reason(Code.BAD_NAME, "name", 300, 128, "x" * 40), "name has 300 letters, the most is 128", "shorten it"),
        (Reason(Code.BAD_NAME, "name", 2, 128, "né"), "name 'né' is not a name", "use up to 128 letters (a to z), "),
        (Reason(Code.BAD_NAME, "env", 3, 255, "a b"), "env 'a b' is not the name of a variable", "letters (A to Z), "),
    ],
)
def test_a_name_that_is_none_is_told_what_is_wrong_with_it(reason: Reason, said: str, fix: str) -> None:
    words = put_in_words(reason)
    assert (words.what, fix in words.fix) == (said, True)


def test_what_rules_every_node_out_is_what_is_to_be_changed() -> None:
    words = put_in_words(Reason(Code.NEVER_FITS, "tasks of 1 CPU", 1, 0, "ruled out by flavors = h200"))
    assert words.what.endswith("the whole fleet could hold 0 (ruled out by flavors = h200)")
    assert words.fix.startswith("leave that out or change it")
