"""failed_tasks: how a job failed, told from its story.

Tasks of an array that failed alike stand together, so that a thousand failures are a line or two. It asks no engine and
no world: what lives and what retired long ago are told alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from muster.control.story import find_failure_note, get_beginning, own_facts
from muster.model.again import index_spans
from muster.model.event import find_note
from muster.model.fact import TasksEnded
from muster.model.phase import TaskPhase
from muster.model.ranges import Span
from muster.wire.codec import Entry
from muster.wire.views import FailedTasks, JobView

WAYS_TOLD: Final = 32
RANGES_TOLD: Final = 64


def add_failures(view: JobView, entries: Sequence[Entry]) -> JobView:
    """A job with what its story tells of its failure: what the engine said, and of an array which tasks failed how."""
    failed = group_failures(entries, view.id) if view.counts else []
    return replace(view, note=find_failure_note(entries, view.id), failed=failed)


def group_failures(entries: Sequence[Entry], job: int) -> list[FailedTasks]:
    """In which ways tasks failed for good, the most frequent one first, and which ones did; of very many ways and
    ranges the first are told."""
    again = get_beginning(entries, job)[1].again
    ways: dict[tuple[str, int, str], list[Span]] = {}
    for _, item in own_facts(entries, job):
        if isinstance(item, TasksEnded) and item.phase == TaskPhase.FAILED:
            way = (item.why.value, item.code, find_note(item.cause))
            ways.setdefault(way, []).extend(index_spans(again, item.spans))
    groups = [_group(*way, spans) for way, spans in ways.items()]
    return sorted(groups, key=lambda group: (-group.tasks, group.ranges[0]))[:WAYS_TOLD]


def _group(why: str, code: int, note: str, spans: list[Span]) -> FailedTasks:
    return FailedTasks(why, code, note, sum(count for _, count in spans), _join(sorted(spans))[:RANGES_TOLD])


def _join(spans: Iterable[Span]) -> list[tuple[int, int]]:
    """Ranges that go upwards as the first and the last task of each, those that touch as one."""
    joined: list[tuple[int, int]] = []
    for first, count in spans:
        begin = joined.pop()[0] if joined and joined[-1][1] == first - 1 else first
        joined.append((begin, first + count - 1))
    return joined
