"""The story of a job: its own facts, taken from the journal's entries, in words.

It reads facts and never the state of anything but the names of nodes, whose slots are theirs for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from muster.model import fact
from muster.model.again import index_spans
from muster.model.budget import show_device_time
from muster.model.errors import StoreError
from muster.model.event import find_note
from muster.model.partition import devices_in, slots_in, start_in
from muster.model.phase import Lease, TaskPhase, Why
from muster.model.ranges import Span, ranges_of
from muster.model.reason import Code, Reason
from muster.model.spec import Spec
from muster.units import show_bytes, show_cpus, show_duration, show_resources
from muster.wire.codec import Entry
from muster.wire.views import Story, StoryLine
from muster.world.apply import unroll
from muster.world.widths import split_leases

NODES_SHOWN: Final = 4
SPANS_SHOWN: Final = 4


def tell(entries: Sequence[Entry], job: int, names: Sequence[str]) -> Story:
    """A job's life in words; `names` are the nodes by slot."""
    teller = _Teller(job, get_beginning(entries, job)[1], names)
    facts = own_facts(entries, job)
    return Story(job, [StoryLine(entry.seq, entry.at, teller.say(item), item.cause) for entry, item in facts])


def cut_story(story: Story, after: int, limit: int) -> Story:
    """The part of a story after an entry: about `limit` lines, and never part of what one entry tells."""
    lines = [line for line in story.lines if line.seq > after]
    if len(lines) <= limit:
        return Story(story.job, lines)
    last = lines[limit - 1].seq
    shown = [line for line in lines if line.seq <= last]
    return Story(story.job, shown, None if len(shown) == len(lines) else last)


def get_beginning(entries: Sequence[Entry], job: int) -> tuple[Entry, Spec]:
    """The entry that accepted a job, and what it was accepted with."""
    for entry, item in own_facts(entries, job):
        if isinstance(item, fact.Accepted) and item.job == job:
            return entry, item.spec
    raise StoreError(Reason(Code.JOURNAL_DAMAGED, "journal", detail=f"job {job} has no beginning"))


def find_tries(entries: Sequence[Entry], job: int, task: int) -> int:
    """The epoch of a task's latest try, as its story tells it."""
    epoch = 0
    for _, item in own_facts(entries, job):
        if isinstance(item, fact.Placed):
            epoch = item.epochs[item.jobs.index(job)]
        elif isinstance(item, fact.TasksPlaced) and item.first <= task < item.first + sum(item.counts):
            epoch += 1
    return epoch


def find_failure_note(entries: Sequence[Entry], job: int) -> str:
    """What the engine said when the last try of a job failed: of a gang, of the first rank that did; of an array, of
    the first task. Empty if it said nothing."""
    causes: list[str] = []
    for _, item in own_facts(entries, job):
        if isinstance(item, fact.Placed):
            causes.clear()
        elif _is_failure(item):
            causes.append(item.cause)
    return find_note(causes[0]) if causes else ""


def _is_failure(item: fact.Fact) -> bool:
    """Whether it says that a run failed by itself."""
    if isinstance(item, fact.TasksEnded):
        return item.phase == TaskPhase.FAILED
    return isinstance(item, fact.StopAsked | fact.Ended) and item.why == Why.EXIT and item.code != 0


def own_facts(entries: Sequence[Entry], job: int) -> Iterator[tuple[Entry, fact.Fact]]:
    """The facts that a job's story is made of."""
    for entry in entries:
        for item in entry.facts:
            if job in fact.jobs_of(item):
                yield entry, item


class _Teller:
    """Puts one job's facts into words: one method per kind, in one table below."""

    def __init__(self, job: int, spec: Spec, names: Sequence[str]) -> None:
        self._job = job
        self._is_array = bool(spec.array)
        self._tasks = spec.tasks
        self._spec = spec
        self._names = names

    def say(self, item: fact.Fact) -> str:
        """One fact in words."""
        return _SAY[type(item)](self, item)

    def accepted(self, item: fact.Accepted) -> str:
        again = item.spec.again
        if again is not None and item.job != self._job:
            return f"{_spans(list(again.spans))} {'runs' if item.spec.array == 1 else 'run'} again as job {item.job}"
        groups = [f"{each.tasks} {each.name} of {show_resources(each.ask)}" for each in item.spec.needs.groups]
        ask, most = show_resources(item.spec.ask), item.spec.gang_most
        tasks = f"{self._tasks} to {most}" if most else f"{self._tasks}"
        what = "; ".join(groups) or (ask if tasks == "1" else f"{tasks} tasks of {ask}")
        after = "".join(f", {each}" for each in item.spec.after)
        what += "" if again is None else f", {_spans(list(again.spans))} of job {again.of} again"
        return f"accepted: {what}, tenant {item.spec.tenant}{after}"

    def after_met(self, item: fact.AfterMet) -> str:
        return f"waits for job {item.other} no longer"

    def placed(self, item: fact.Placed) -> str:
        run = next(run for number, run in unroll(item, 0) if number == self._job)
        if not self._spec.spares:
            return f"placed on {self._places(run.leases)}"
        ranks, spares = split_leases(run.leases, self._spec.gang, self._spec.ask)
        spare = f", spare {self._places(spares)}" if spares else ", no spare"
        return f"placed on {self._places(ranks)}{spare}"

    def began(self, item: fact.Began) -> str:
        return "began" if item.count == self._tasks else f"{_span('rank', item.first, item.count)} began"

    def progressed(self, item: fact.Progressed | fact.TasksProgressed) -> str:
        what = ", checkpointed" if item.checkpointed else ", writes a checkpoint" if item.checkpointing else ""
        who = f"{self._tasks_in(item.spans)} " if isinstance(item, fact.TasksProgressed) else ""
        return f"{who}at step {item.step}{what}"

    def metered(self, item: fact.Metered) -> str:
        return f"used {show_duration(item.cpu_ms)} of CPU, at most {show_bytes(item.rss_bytes)} of memory"

    def ranks_over(self, item: fact.RanksOver) -> str:
        return f"{_span('rank', item.first, item.count)} over"

    def stop_asked(self, item: fact.StopAsked) -> str:
        return f"told to stop: {WHY_WORDS[item.why]}{_exit(item.code)}"

    def ended(self, item: fact.Ended) -> str:
        word = item.phase.name.lower()
        if self._is_array:
            return f"ended: {word}" + (f", {item.code} of {_count(self._tasks)}" if item.code else "")
        why = f", {WHY_WORDS[item.why]}" if item.why in (Why.LIMIT, Why.DEPENDENCY) else ""
        return f"ended: {word}{why}{_exit(item.code)}"

    def requeued(self, item: fact.Requeued) -> str:
        why = item.cause if item.why == Why.LOST and item.cause else WHY_WORDS[item.why]
        return f"requeued: {why}{_exit(item.code)}"

    def scaled(self, item: fact.Scaled) -> str:
        if self._is_array:
            return f"to have at most {_count(item.most)} at it at once"
        self._spec = replace(self._spec, gang=item.least)
        return f"to have {item.least} to {item.most} tasks"

    def grown(self, item: fact.Grown) -> str:
        leases = tuple(map(Lease, item.slots, item.tasks, item.devices))
        return f"grown by {_count(sum(item.tasks))} on {self._places(leases)}"

    def shrink_asked(self, item: fact.ShrinkAsked) -> str:
        return f"told to shrink to {_count(item.width)}"

    def shrunk(self, item: fact.Shrunk) -> str:
        return f"shrunk to {_count(item.width)}"

    def ranks_lost(self, item: fact.RanksLost) -> str:
        return f"{_span('rank', item.first, item.count)} lost; the others go on"

    def spares_given(self, item: fact.SparesGiven) -> str:
        leases = tuple(map(Lease, item.slots, item.tasks, item.devices))
        return f"has {_spares(sum(item.tasks))} more on {self._places(leases)}"

    def spares_used(self, item: fact.SparesUsed) -> str:
        return f"replaced by {_spares(item.tasks)}"

    def spares_dropped(self, item: fact.SparesDropped) -> str:
        leases = tuple(map(Lease, item.slots, item.tasks))
        return f"{_spares(sum(item.tasks))} let go on {self._places(leases)}"

    def job_held(self, item: fact.JobHeld) -> str:  # noqa: ARG002 - one signature for the table
        return "held"

    def job_released(self, item: fact.JobReleased) -> str:  # noqa: ARG002 - one signature for the table
        return "released"

    def claimed(self, item: fact.Claimed) -> str:
        return f"has a claim on {self._places(item.leases)}"

    def moves_planned(self, item: fact.MovesPlanned) -> str:
        account = f"gain {show_device_time(item.gain)}, cost {show_device_time(item.cost)}"
        if item.job == self._job:
            count, what = len(item.moved), "task" if item.tasks and min(item.tasks) != fact.WHOLE else "job"
            return f"{count} {what}{' is' if count == 1 else 's are'} moved so that it fits: {account}"
        asks = f"{show_cpus(item.asks_milli)} GPU{'s' if item.asks_milli != 1000 else ''}"
        return f"{self._ways(item)} so that job {item.job} ({asks}) can start: {account}"

    def _ways(self, item: fact.MovesPlanned) -> str:
        """Who of it is moved, and which way: tasks that go the same way together."""
        ways: dict[str, list[int]] = {}
        for (number, task), off, to in zip(item.movers, item.off, item.to, strict=True):
            if number == self._job:
                way = f"within {self._names[to]}" if off == to else f"from {self._names[off]} to {self._names[to]}"
                ways.setdefault(way, []).append(task)
        return ", ".join(f"{_movers(tasks)}moved {way}" for way, tasks in ways.items())

    def claim_dropped(self, item: fact.ClaimDropped) -> str:
        return f"claim over: {item.cause}"

    def tasks_placed(self, item: fact.TasksPlaced) -> str:
        leases = tuple(map(Lease, item.slots, item.counts, item.devices))
        return f"{self._tasks_in([(item.first, sum(item.counts))])} placed on {self._places(leases)}"

    def tasks_moved(self, item: fact.TasksMoved) -> str:
        why = "" if item.why is None else f": {WHY_WORDS[item.why]}"
        return f"{self._tasks_in(item.spans)} {item.phase.name.lower()}{why}"

    def tasks_ended(self, item: fact.TasksEnded) -> str:
        what = "requeued" if item.phase == TaskPhase.QUEUED else item.phase.name.lower()
        if item.phase == TaskPhase.QUEUED or item.why == Why.LIMIT:
            what = f"{what}: {WHY_WORDS[item.why]}"
        return f"{self._tasks_in(item.spans)} {what}{_exit(item.code)}"

    def array_cancelled(self, item: fact.ArrayCancelled) -> str:  # noqa: ARG002 - one signature for the table
        return f"told to stop: {WHY_WORDS[Why.CANCEL]}"

    def retired(self, item: fact.Retired) -> str:  # noqa: ARG002 - one signature for the table
        return "retired to history"

    def _tasks_in(self, places: Sequence[Span]) -> str:
        return _spans(list(index_spans(self._spec.again, places)))

    def _places(self, leases: Sequence[Lease]) -> str:
        shown = [self._place(lease, len(leases) > 1) for lease in leases[:NODES_SHOWN]]
        more = len(leases) - NODES_SHOWN
        return "; ".join([*shown, f"{more} more nodes"] if more > 0 else shown)

    def _place(self, lease: Lease, with_tasks: bool) -> str:
        words = [self._names[lease.slot]]
        if with_tasks:
            words.append(f"{lease.tasks} task{'s' if lease.tasks != 1 else ''}")
        if lease.devices:
            several = "s" if devices_in(lease.devices).bit_count() > 1 else ""
            words.append(f"device{several} {show_devices(lease.devices)}")
        if slots_in(lease.devices):
            words.append(f"from slot {start_in(lease.devices)}")
        return ", ".join(words)


_SAY: Final[dict[type, Callable[[_Teller, Any], str]]] = {
    fact.Accepted: _Teller.accepted,
    fact.AfterMet: _Teller.after_met,
    fact.Placed: _Teller.placed,
    fact.Began: _Teller.began,
    fact.Progressed: _Teller.progressed,
    fact.Metered: _Teller.metered,
    fact.RanksOver: _Teller.ranks_over,
    fact.StopAsked: _Teller.stop_asked,
    fact.Ended: _Teller.ended,
    fact.Requeued: _Teller.requeued,
    fact.Scaled: _Teller.scaled,
    fact.Grown: _Teller.grown,
    fact.ShrinkAsked: _Teller.shrink_asked,
    fact.Shrunk: _Teller.shrunk,
    fact.RanksLost: _Teller.ranks_lost,
    fact.SparesGiven: _Teller.spares_given,
    fact.SparesUsed: _Teller.spares_used,
    fact.SparesDropped: _Teller.spares_dropped,
    fact.JobHeld: _Teller.job_held,
    fact.JobReleased: _Teller.job_released,
    fact.Claimed: _Teller.claimed,
    fact.MovesPlanned: _Teller.moves_planned,
    fact.ClaimDropped: _Teller.claim_dropped,
    fact.TasksPlaced: _Teller.tasks_placed,
    fact.TasksMoved: _Teller.tasks_moved,
    fact.TasksEnded: _Teller.tasks_ended,
    fact.TasksProgressed: _Teller.progressed,
    fact.ArrayCancelled: _Teller.array_cancelled,
    fact.Retired: _Teller.retired,
}

WHY_WORDS: Final = {
    Why.EXIT: "exited",
    Why.CANCEL: "cancelled",
    Why.LIMIT: "time limit",
    Why.LOST: "lost",
    Why.DRAIN: "node drained",
    Why.RESIZE: "to start again with another width",
    Why.SHRINK: "to make room for others",
    Why.REQUEUE: "sent back to the queue",
    Why.DEPENDENCY: "what it was to run after cannot come about",
    Why.PREEMPT: "preempted",
    Why.RECLAIM: "reclaimed by the owner",
    Why.MIGRATE: "moved to another place",
    Why.BOOKING: "its node is booked",
    Why.BUDGET: "the budget is spent",
    Why.YIELD: "it gave way at its expected end",
}
"""Why something ended or was stopped, for people."""


def device_list(devices: int) -> list[int]:
    """The numbers of the devices whose bits are set."""
    named = devices_in(devices)
    return [number for number in range(named.bit_length()) if named >> number & 1]


def show_devices(devices: int) -> str:
    """`0-3, 6`."""
    parts: list[list[int]] = []
    for number in device_list(devices):
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def _spans(spans: Sequence[Span]) -> str:
    """`tasks 0-3, 7, 9-12, 20 and 4 more`."""
    words = [_span("task", *span).partition(" ")[2] for span in spans[:SPANS_SHOWN]]
    total, more = (sum(count for _, count in part) for part in (spans, spans[SPANS_SHOWN:]))
    shown = ", ".join(words) + (f" and {more} more" if more else "")
    return f"{'task' if total == 1 else 'tasks'} {shown}"


def _movers(tasks: list[int]) -> str:
    """`tasks 3, 7-9 `, or nothing if it is a gang that moves."""
    if tasks == [fact.WHOLE]:
        return ""
    ranges = ranges_of(sorted(tasks))
    return f"{_spans(list(zip(ranges[::2], ranges[1::2], strict=True)))} "


def _span(word: str, first: int, count: int) -> str:
    return f"{word} {first}" if count == 1 else f"{word}s {first}-{first + count - 1}"


def _spares(count: int) -> str:
    return "a spare" if count == 1 else f"{count} spares"


def _count(tasks: int) -> str:
    return "1 task" if tasks == 1 else f"{tasks} tasks"


def _exit(code: int) -> str:
    return f", exit {code}" if code else ""
