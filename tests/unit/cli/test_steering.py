"""Keys in `muster top`: lines are marked and looked into, and nothing is done before it was shown and said yes to."""

from __future__ import annotations

import time

import click
import pytest

from muster.cli.steering import Panel, Row, Subject, preview_drain
from muster.cli.top import Sight, draw
from muster.units import Resources
from muster.wire.views import Health, JobView, NodeView, Place

NODES = [
    NodeView("n1", "up", Resources(8, 32_000), Resources(2, 31_000), 1),
    NodeView("n2", "up", Resources(8, 32_000), Resources(5, 31_000), 0),
]
JOB = JobView(7, "big", "vision", "running", 2, Resources(3, 1000), 1, 1, 2, places=[Place("n1", 2)])
ROWS = [Row("head"), Row("! node n1: gone", Subject("node", "n1")), Row(""), Row("7 big", Subject("job", "7"))]


class Typed:
    """Notes the command lines that are run, and prints something for each."""

    def __init__(self) -> None:
        self.lines: list[list[str]] = []

    def __call__(self, words: list[str]) -> int:
        self.lines.append(words)
        click.echo(f"told of {words[0]}\x07")
        return 0


@pytest.fixture
def typed() -> Typed:
    return Typed()


def press(panel: Panel, *keys: str) -> None:
    for key in keys:
        panel.press(key, ROWS, [JOB], NODES)


def test_marks_go_from_one_line_that_is_about_something_to_the_next(typed: Typed) -> None:
    panel = Panel(typed)
    assert panel.subject_of(ROWS) == Subject("node", "n1")
    press(panel, "down")
    assert panel.subject_of(ROWS) == Subject("job", "7")
    press(panel, "down", "j", "up", "k", "up")
    assert panel.subject_of(ROWS) == Subject("node", "n1")
    assert Panel(typed, marked=9).subject_of([]) is None


def test_enter_shows_what_could_be_typed_and_q_leads_back_before_it_leaves(typed: Typed) -> None:
    panel = Panel(typed)
    press(panel, "down", "enter")
    assert typed.lines == [["show", "7"], ["why", "7"], ["story", "7"]]
    assert panel.page[:2] == ["$ muster show 7", "told of show\\x07"], "what a job is called steers no terminal"
    press(panel, "down", "", "q")
    assert (panel.page, panel.is_left) == ([], False)
    press(panel, "q")
    assert panel.is_left


@pytest.mark.parametrize(("answer", "more"), [("y", [[]]), ("s", [["--now"]]), ("x", []), ("q", [])])
def test_a_node_is_drained_after_a_look_at_whom_that_hits(typed: Typed, answer: str, more: list[list[str]]) -> None:
    panel = Panel(typed)
    press(panel, "d", "")
    assert panel.page[0] == "drain n1: nothing new starts there; 1 job there now"
    assert panel.page[1] == "  job 7 big of vision: 2 x 3g 1c"
    assert typed.lines == []
    press(panel, answer)
    assert typed.lines == [["drain", "n1", "--reason", "from top", *each] for each in more]
    assert panel.asked is None


def test_a_job_is_cancelled_after_a_yes(typed: Typed) -> None:
    panel = Panel(typed)
    press(panel, "c", "down", "c", "n", "c", "y")
    assert [words[0] for words in typed.lines] == ["show", "show", "cancel"]


def test_the_room_elsewhere_leaves_out_who_is_barred_or_away() -> None:
    away = NodeView("n3", "gone", Resources(8), Resources(8), 0)
    assert preview_drain("n2", [JOB], [*NODES, away]) == [
        "drain n2: nothing new starts there; no jobs there now",
        "elsewhere 2 of 8 GPUs are free, on 1 node",
    ]


def test_whoever_was_started_again_lately_is_what_changed() -> None:
    hit = JobView(7, "big", "v", "running", 1, Resources(3), 1, int(time.time() * 1000), epoch=2)
    rows = draw(Sight(Health("ok", True, 9), [hit], [], NODES, False), 10, 100)
    assert Row("! job 7 big was started again, as try 2, 0s ago", Subject("job", "7")) in rows
