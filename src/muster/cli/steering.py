"""What keys do in `muster top`: a line is marked, looked into, and something is done about it.

Every page is made of commands that could be typed, and says so; nothing is done that was not first shown with whom it
hits and then said yes to. Pure but for what is asked of the server: it draws nothing and reads no key.
"""

from __future__ import annotations

import contextlib
import io
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from muster.cli.printing import show_ask, show_plain
from muster.wire.views import JobView, NodeView

HIT_SHOWN: Final = 12
LIST_FOOT: Final = " ↑↓ mark  ⏎ look into  d drain a node  c cancel a job  q leave "
PAGE_FOOT: Final = " ↑↓ scroll  q back "
ASK_FOOT: Final = " y yes, and what runs finishes  s yes, and stop what runs now  any other key: no "
CANCEL_FOOT: Final = " y yes  any other key: no "


class Subject(NamedTuple):
    """What a line is about: a job by its number, or a node by its name."""

    kind: str
    name: str


class Row(NamedTuple):
    """One line of the first page, and what it is about, if one can look into it."""

    text: str
    subject: Subject | None = None


Run = Callable[[list[str]], int]
"""Runs one command line in this process."""


@dataclass
class Panel:
    """Where somebody is: on the first page with a line marked, on a page about something, or being asked."""

    run: Run
    marked: int = 0
    page: list[str] = field(default_factory=list)
    offset: int = 0
    asked: Subject | None = None
    is_left: bool = False

    def press(self, key: str, rows: Sequence[Row], live: Sequence[JobView], nodes: Sequence[NodeView]) -> None:
        """One key."""
        if self.asked is not None:
            self._answer(self.asked, key)
        elif self.page:
            self._turn(key)
        elif key in ("up", "k", "down", "j"):
            self._mark(rows, -1 if key in ("up", "k") else 1)
        elif key in ("q", "Q", "escape"):
            self.is_left = True
        elif (subject := self.subject_of(rows)) is not None:
            self._take(key, subject, live, nodes)

    def subject_of(self, rows: Sequence[Row]) -> Subject | None:
        """What the marked line is about; the first that is about something, if that one is about nothing."""
        self._mark(rows, 0)
        return rows[self.marked].subject if self.marked < len(rows) else None

    def foot(self) -> str:
        """What can be pressed."""
        if self.asked is not None:
            return ASK_FOOT if self.asked.kind == "node" else CANCEL_FOOT
        return PAGE_FOOT if self.page else LIST_FOOT

    def _mark(self, rows: Sequence[Row], step: int) -> None:
        """The next line up or down that is about something."""
        about = [at for at, row in enumerate(rows) if row.subject is not None]
        if not about:
            self.marked = 0
            return
        nearest = min(range(len(about)), key=lambda each: abs(about[each] - self.marked))
        self.marked = about[max(0, min(len(about) - 1, nearest + step))]

    def _turn(self, key: str) -> None:
        if key in ("up", "k"):
            self.offset = max(0, self.offset - 1)
        elif key in ("down", "j"):
            self.offset = min(max(0, len(self.page) - 1), self.offset + 1)
        elif key:
            self._open([])

    def _open(self, page: list[str]) -> None:
        self.page, self.offset, self.asked = page, 0, None

    def _take(self, key: str, subject: Subject, live: Sequence[JobView], nodes: Sequence[NodeView]) -> None:
        if key == "enter":
            self._open(self._look_into(subject))
        elif (key, subject.kind) == ("d", "node"):
            self._open(preview_drain(subject.name, live, nodes))
            self.asked = subject
        elif (key, subject.kind) == ("c", "job"):
            self._open([f"$ muster cancel {subject.name}", "", *self._tell(["show", subject.name])])
            self.asked = subject

    def _look_into(self, subject: Subject) -> list[str]:
        if subject.kind == "node":
            return self._quote(["show", subject.name])
        quoted = (self._quote([word, subject.name]) for word in ("show", "why", "story"))
        return [line for lines in quoted for line in (*lines, "")]

    def _answer(self, subject: Subject, key: str) -> None:
        if not key:
            return
        if subject.kind == "job":
            done = self._quote(["cancel", subject.name]) if key == "y" else []
        else:
            more = {"y": [], "s": ["--now"]}.get(key)
            done = [] if more is None else self._quote(["drain", subject.name, "--reason", "from top", *more])
        self._open(done)

    def _quote(self, words: list[str]) -> list[str]:
        return [f"$ muster {shlex.join(words)}", *self._tell(words)]

    def _tell(self, words: list[str]) -> list[str]:
        """What a command prints, and what it says of a failure."""
        told = io.StringIO()
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            self.run(words)
        return [show_plain(line) for line in told.getvalue().splitlines()]


def preview_drain(name: str, live: Sequence[JobView], nodes: Sequence[NodeView]) -> list[str]:
    """Whom it hits if a node is drained, and how much room there is elsewhere."""
    hit = [job for job in live if any(place.node == name for place in job.places)]
    others = [node for node in nodes if node.name != name and node.phase == "up" and not node.bars]
    lines = [f"drain {name}: nothing new starts there; {len(hit) or 'no'} job{'s' * (len(hit) != 1)} there now"]
    lines += [
        f"  job {job.id} {show_plain(job.name) or '-'} of {job.tenant}: {job.tasks} x {show_ask(job.ask)}"
        for job in hit[:HIT_SHOWN]
    ]
    if len(hit) > HIT_SHOWN:
        lines.append(f"  … and {len(hit) - HIT_SHOWN} more")
    gpus, whole = (sum(part) for part in zip((0, 0), *((n.free.gpus, n.capacity.gpus) for n in others), strict=True))
    lines.append(f"elsewhere {gpus} of {whole} GPUs are free, on {len(others)} node{'s' * (len(others) != 1)}")
    return lines
