"""Tasks of which the same is said become one event, in a row or scattered, so that ten thousand ends are one. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, groupby, islice
from typing import Final, NamedTuple

from muster.engines.local.layout import Key
from muster.engines.local.progress import Mark
from muster.model.event import Exited, Held, Progressed, Started
from muster.model.instruction import Forget, Stop
from muster.model.ranges import Ranges, ranges_of

CAUSE: Final = "local engine"
RANGES_MAX: Final = 1024
"""Of how many ranges one event may be: so a frame of events has its limit, too."""


class End(NamedTuple):
    """How a run ended: its code, the engine's own word when the code alone would mislead, and what it used."""

    code: int
    note: str = ""
    cpu_ms: int = 0
    rss_bytes: int = 0


def keys_of(instruction: Stop | Forget) -> Iterator[Key]:
    """The runs that an instruction is about."""
    spans = instruction.spans if isinstance(instruction, Forget) else [(instruction.first, instruction.count)]
    for task in chain(*(range(first, first + count) for first, count in spans)):
        yield Key(instruction.job, instruction.epoch, task)


def merge_held(keys: Iterable[Key]) -> list[Held]:
    """All of `keys`, as ranges."""
    found: list[Held] = []
    for (job, epoch), tasks in _by_run(keys):
        ranges = ranges_of(tasks)
        found += [Held(job, epoch, *span) for span in zip(ranges[::2], ranges[1::2], strict=True)]
    return found


def merge_started(keys: Iterable[Key]) -> list[Started]:
    """All of `keys`, as events."""
    return [
        Started(job, epoch, part[0], part[1], CAUSE, part[2:].tolist())
        for (job, epoch), tasks in _by_run(keys)
        for part in _parts(ranges_of(tasks))
    ]


def merge_marks(marks: Iterable[tuple[Key, Mark]]) -> list[Progressed]:
    """Those that say the same, as events: of each run one word after the other, as it said them."""
    said, alike = Counter[Key](), dict[tuple[int, int, int, Mark], list[int]]()
    for key, mark in marks:
        alike.setdefault((said[key], key.job, key.epoch, mark), []).append(key.task)
        said[key] += 1
    return [
        Progressed(job, epoch, *mark[:2], CAUSE, mark.checkpointing, part[0], part[1], part[2:].tolist())
        for (_, job, epoch, mark), tasks in sorted(alike.items())
        for part in _parts(ranges_of(sorted(tasks)))
    ]


def merge_exited(ended: Iterable[tuple[Key, End]]) -> list[Exited]:
    """Those that ended alike, as events: what they used is added up, and the largest is told."""
    alike: dict[tuple[int, int, int, str], dict[int, End]] = {}
    for key, end in sorted(ended):
        alike.setdefault((key.job, key.epoch, end.code, end.note), {})[key.task] = end
    return [event for group, ends in alike.items() for event in _tell_ends(*group, ends)]


def _tell_ends(job: int, epoch: int, code: int, note: str, ends: dict[int, End]) -> Iterator[Exited]:
    left = iter(ends.values())
    for part in _parts(ranges_of(ends)):
        mine = list(islice(left, sum(part[1::2])))
        used = sum(end.cpu_ms for end in mine), max(end.rss_bytes for end in mine)
        yield Exited(job, epoch, code, part[0], part[1], note, CAUSE, *used, part[2:].tolist())


def _by_run(keys: Iterable[Key]) -> Iterator[tuple[tuple[int, int], Iterator[int]]]:
    """Tasks by the job and the epoch that they are of, upwards."""
    for run, group in groupby(sorted(keys), key=lambda key: (key.job, key.epoch)):
        yield run, (key.task for key in group)


def _parts(ranges: Ranges) -> Iterator[Ranges]:
    for at in range(0, len(ranges), 2 * RANGES_MAX):
        yield ranges[at : at + 2 * RANGES_MAX]
