"""What a run says of its progress, and what it cannot make anybody believe."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import muster
from muster.engines.local.layout import PROGRESS, Key, progress_path
from muster.engines.local.progress import FILE_BYTES_MAX, Mark, Watch, Watches
from muster.engines.local.ranges import CAUSE, merge_marks
from muster.model.event import Progressed


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "progress"
    monkeypatch.setenv("MUSTER_PROGRESS", str(path))
    return path


def test_steps_and_checkpoints_are_heard_in_order(file: Path) -> None:
    watch = Watch(file)
    assert watch.take() == []
    for step in range(5):
        assert muster.progress(step)
    assert watch.take() == [Mark(4, False)]
    muster.progress(4, checkpoint=True)
    muster.progress(5)
    muster.progress(6)
    assert watch.take() == [Mark(4, True), Mark(6, False)]
    assert watch.take() == []
    assert watch.last == [Mark(4, True), Mark(6, False)]
    muster.progress(7)
    watch.take()
    assert watch.last == [Mark(4, True), Mark(7, False)]


def test_a_file_that_came_late_goes_with_its_run(file: Path) -> None:
    watch = Watch(file)
    assert watch.take() == []
    muster.progress(1)
    assert watch.take() == [Mark(1, False)]
    watch.close()
    assert not file.exists()


def test_that_a_checkpoint_begins_is_heard_until_the_next_word(file: Path) -> None:
    watch = Watch(file)
    muster.progress(4)
    muster.progress(4, checkpointing=True)
    assert watch.take() == [Mark(4, False, True)]
    muster.progress(4, checkpoint=True)
    muster.progress(5, checkpointing=True)
    assert watch.take() == watch.last == [Mark(4, True), Mark(5, False, True)]
    muster.progress(6)
    assert watch.take() == [Mark(6, False)]
    assert watch.last == [Mark(4, True), Mark(6, False)]


def test_steps_never_go_back(file: Path) -> None:
    watch = Watch(file)
    muster.progress(10)
    muster.progress(9, checkpoint=True)
    muster.progress(10)
    assert watch.take() == [Mark(10, False)]


def test_half_a_line_waits_for_the_rest(file: Path) -> None:
    watch = Watch(file)
    file.write_text("1\n2 check")
    assert watch.take() == [Mark(1, False)]
    with file.open("a") as more:
        more.write("point\n")
    assert watch.take() == [Mark(2, True)]


@pytest.mark.parametrize(
    "text", ["x\n", "-1\n", "1e3\n", "99999999999999999999\n", "9223372036854775807\n", "\0\n", "1 x\n"]
)
def test_what_is_no_step_counts_as_nothing(file: Path, text: str) -> None:
    file.write_text(text)
    assert Watch(file).take() == []


def test_nothing_but_a_plain_file_is_opened(file: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("5\n")
    file.symlink_to(tmp_path / "secret")
    assert Watch(file).take() == []
    file.unlink()
    os.mkfifo(file)
    assert Watch(file).take() == []
    file.unlink()
    file.mkdir()
    assert Watch(file).take() == []


def test_an_endless_file_is_cut_and_goes_on(file: Path) -> None:
    watch = Watch(file)
    step = 0
    for _ in range(8):
        with file.open("a") as more:
            more.write("".join(f"{step + number}\n" for number in range(30_000)))
        step += 30_000
        watch.take()
    assert file.stat().st_size < 2 * FILE_BYTES_MAX
    muster.progress(1_000_000_000)
    marks = [mark for _ in range(8) for mark in watch.take()]
    assert marks[-1] == Mark(1_000_000_000, False)


def test_outside_of_a_job_nobody_listens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MUSTER_PROGRESS", raising=False)
    assert not muster.progress(1)
    monkeypatch.setenv("MUSTER_PROGRESS", str(tmp_path / "no" / "where"))
    assert not muster.progress(1)
    with pytest.raises(ValueError, match="negative"):
        muster.progress(-1)
    with pytest.raises(AttributeError):
        muster.nonsense  # noqa: B018 - there is none


def test_only_who_said_something_is_watched_and_only_who_is_ours(tmp_path: Path) -> None:
    (tmp_path / PROGRESS).mkdir()
    mine, silent, other = Key(7, 1, 3), Key(7, 1, 4), Key(7, 1, 5)
    watches = Watches(tmp_path)
    assert list(watches.look({mine, silent})) == []
    for key in (mine, other):
        progress_path(tmp_path, key).write_text("2 checkpoint\n3\n")
    (tmp_path / PROGRESS / "7.0.1.width").write_text("4")
    assert list(watches.look({mine, silent})) == watches.last() == [(mine, Mark(2, True)), (mine, Mark(3, False))]
    assert list(watches.look({mine, silent})) == []
    assert list(watches.end(silent)) == []
    with progress_path(tmp_path, mine).open("a") as file:
        file.write("4\n")
    assert list(watches.end(mine)) == [(mine, Mark(4, False))]
    assert watches.last() == []
    assert not progress_path(tmp_path, mine).exists()


def test_where_nothing_can_be_read_nobody_says_anything(tmp_path: Path) -> None:
    assert list(Watches(tmp_path).look({Key(7, 1, 3)})) == []


def test_tasks_that_say_the_same_are_one_word_and_each_says_its_own_in_order() -> None:
    said = [(Key(7, 1, 2), Mark(4, False, True)), (Key(7, 1, 0), Mark(4, True)), (Key(7, 1, 2), Mark(4, True))]
    said += [(Key(7, 1, task), Mark(4, False, True)) for task in (5, 3)]
    assert merge_marks(said) == [
        Progressed(7, 1, 4, False, CAUSE, True, 2, 2, [5, 1]),
        Progressed(7, 1, 4, True, CAUSE, False, 0, 1),
        Progressed(7, 1, 4, True, CAUSE, False, 2, 1),
    ]
    assert merge_marks([(Key(9, 2, 0), Mark(1, False))]) == [Progressed(9, 2, 1, False, CAUSE)]
