"""The output contract: every listing in every format, watching, widths, and nothing that steers a terminal."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable

import click
import msgspec
import pytest
import yaml  # type: ignore[import-untyped]  # the package brings no types

from muster.cli import printing
from muster.cli.commands import COMMANDS, cli
from muster.cli.printing import (
    DETAILS,
    LISTINGS,
    Listing,
    render,
    show_ask,
    show_listing,
    show_mark,
    show_progress,
    spell_table,
)
from muster.sdk.changes import Changes
from muster.units import Resources
from muster.wire.views import JobView, MarkView, TaskCounts

LISTING = Listing(
    heads=("NAME", "PLACE", "ID", "NOTE"),
    rows=[("a", "", "1", "x, y"), ("b", "", "2", "")],
    value=[{"name": "a"}, {"name": "b"}],
    names=["a", "b"],
    wide=frozenset({"ID"}),
    spare=frozenset({"PLACE"}),
)


def commands_with(option: str) -> list[tuple[str, click.Option]]:
    found = []
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        found += [(name, each) for each in command.params if isinstance(each, click.Option) and each.name == option]
    return found


def test_everything_that_lists_lists_in_every_format_and_can_be_watched() -> None:
    listed = {name for name, _ in commands_with("watch")}
    assert {"ls", "nodes", "flavors", "tenants", "tiers", "profiles", "avail", "goodput", "story"} <= listed
    for name, option in commands_with("output"):
        assert isinstance(option.type, click.Choice)
        assert tuple(option.type.choices) in ((LISTINGS,) if name in listed else (DETAILS, ("text", "json", "name")))


def test_a_table_leaves_out_what_nobody_has_and_what_only_wide_shows() -> None:
    assert render(LISTING, "table") == "NAME  NOTE\na     x, y\nb\n"
    assert render(LISTING, "wide") == "NAME  ID  NOTE\na     1   x, y\nb     2\n"


@pytest.mark.parametrize(
    ("ask", "shown"),
    [
        (Resources(gpus=8, cpu_milli=1500, memory_bytes=2**30), "8g 1.5c 1Gi"),
        (Resources(gpu_milli=250, cpu_milli=1000), "0.25g 1c"),
    ],
)
def test_an_ask_is_shown_in_few_letters_a_share_of_a_device_too(ask: Resources, shown: str) -> None:
    assert show_ask(ask) == shown


def test_programs_get_all_of_it() -> None:
    assert render(LISTING, "name") == "a\nb\n"
    assert msgspec.json.decode(render(LISTING, "json")) == LISTING.value
    assert yaml.safe_load(render(LISTING, "yaml")) == LISTING.value
    rows = list(csv.reader(io.StringIO(render(LISTING, "csv"))))
    assert rows == [["name", "place", "id", "note"], *map(list, LISTING.rows)]


def test_what_is_blank_because_it_stands_above_is_told_to_programs_again() -> None:
    tree = Listing(("T", "LINE"), [("lab", "gpu"), ("", "cpu"), ("  sub", "-")], [], [], carried=1)
    assert render(tree, "csv") == "t,line\nlab,gpu\nlab,cpu\nsub,-\n"
    assert render(tree, "table").splitlines()[2] == "       cpu"


def test_nothing_is_an_empty_table_and_an_empty_list() -> None:
    empty = LISTING._replace(rows=[], value=[], names=[])
    assert [render(empty, output) for output in ("table", "name", "json")] == ["", "", "[]\n"]


def test_a_line_is_cut_to_the_terminal_and_control_characters_are_shown() -> None:
    table = spell_table(("NAME", "NOTE"), [("a", "x" * 50), ("b", "y\x1b[2Jz")], width=20)
    assert table.splitlines()[1] == "a     " + "x" * 13 + "…"
    assert "y\\x1b[2Jz" in table


def test_a_long_name_makes_room_for_the_columns_beside_it() -> None:
    heads, row = ("JOB", "NAME", "PHASE", "DETAIL"), ("7", "train-" + "x" * 60, "running", "node-1")
    assert spell_table(heads, [row], width=40).splitlines() == [
        "JOB  NAME                PHASE    DETAIL",
        "7    train-xxxxxxxxxxx…  running  node-1",
    ]
    assert spell_table(heads, [row], width=24).splitlines()[1] == "7    train-xxxxx…  runn…", "but not for ever"
    assert row[1] in spell_table(heads, [row])


def look_at(*listings: Listing) -> Callable[[], Listing]:
    """What is seen, look by look; then whoever watches has had enough."""
    seen = iter(listings)

    def look() -> Listing:
        try:
            return next(seen)
        except StopIteration:
            raise KeyboardInterrupt from None

    return look


def test_what_is_drawn_in_place_fits_the_terminal_and_says_why_it_is_empty(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    many = LISTING._replace(rows=[(str(number), "", "", "") for number in range(50)])
    look = look_at(many, LISTING._replace(rows=[], empty="nothing is here"))
    monkeypatch.setattr(Changes, "wait", lambda _, __: False)
    monkeypatch.setattr(printing, "is_terminal", lambda: True)
    monkeypatch.setattr(printing, "_size", lambda: os.terminal_size((80, 10)))
    with pytest.raises(KeyboardInterrupt):
        show_listing(look, "table", watch=True)
    first, second = capsys.readouterr().out.split("\x1b[H")[1:]
    assert (first.count("\n"), "… 43 lines more" in first) == (9, True)
    assert second == "nothing is here\x1b[K\n\x1b[J"


def test_watching_prints_again_what_has_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    look = look_at(LISTING, LISTING, LISTING._replace(names=["c"]))
    monkeypatch.setattr(Changes, "wait", lambda _, __: False)
    with pytest.raises(KeyboardInterrupt):
        show_listing(look, "name", watch=True)
    assert capsys.readouterr().out == "a\nb\nc\n"


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        (None, ""),
        (MarkView(9), "at step 9"),
        (MarkView(9, 7, 1), "at step 9, checkpointed at 7"),
        (MarkView(9, writes=True), "at step 9, writes a checkpoint"),
    ],
)
def test_how_far_a_gang_is_in_words(mark: MarkView | None, words: str) -> None:
    assert show_mark(JobView(7, "", "a", "running", 1, Resources(1), 1, 1, mark=mark)) == words


def test_how_far_an_array_is_in_words() -> None:
    counts = TaskCounts(running=5, succeeded=2, failed=1)
    view = JobView(7, "", "a", "running", 9, Resources(1), 1, 1, counts=counts, saved=3)
    assert show_progress(view) == "3/9 done, 5 running, 3 with a checkpoint, 1 failed"
