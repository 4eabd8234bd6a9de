"""`muster replay --from 02:50 --to 03:10`: every decision of a span of time, made again from its inputs and compared.

The world is folded from the journal up to the beginning of the span; from there on the kernel is given what it was
given then, batch by batch. Each batch is told with what was heard, what was decided, whether it is decided alike today,
and why those still wait who were left out. Nothing is written anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from muster.control.past import load_past
from muster.control.story import tell
from muster.control.views import find_reason
from muster.kernel.kernel import Kernel
from muster.model import fact
from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.model.tenant import name_line, show_amount
from muster.ports import Journal
from muster.units import show_instant
from muster.wire.codec import Entry, Inputs, decode_entry, decode_inputs
from muster.world.apply import apply_entry
from muster.world.world import World

LEFT_OUT: Final = 3
"""How many of those who wait are told of, after a batch that gave somebody a place."""
_OF_PLACES: Final = (fact.Placed, fact.TasksPlaced, fact.Claimed, fact.StopAsked)


class Retold(NamedTuple):
    """One batch: its lines for a reader, and whether it was decided alike."""

    lines: list[str]
    is_same: bool


def retell(journal: Journal, from_ms: int, to_ms: int) -> Iterator[Retold]:
    """Decide everything again that was decided in a span of time."""
    world = load_past(journal, from_ms - 1)
    kernel, first = Kernel(world), True
    for data in journal.read_inputs(world.seq):
        inputs = decode_inputs(data)
        if inputs.at > to_ms:
            return
        if first and inputs.seq != world.seq + 1:
            raise RejectedError(Reason(Code.NO_RECORD, "recorder", needed=world.seq + 1, available=inputs.seq))
        first = False
        [recorded] = journal.read_entries(inputs.seq - 1, 1)
        entry = decode_entry(recorded)
        outcome = kernel.handle(inputs.events, inputs.at)
        is_same = (outcome.seq, outcome.facts) == (entry.seq, entry.facts)
        yield Retold(_tell(world, inputs, entry, outcome.facts, is_same), is_same)
        if not is_same:  # what was decided then is what happened: go on from there
            world = load_past_entry(journal, entry.seq)
            kernel = Kernel(world)


def load_past_entry(journal: Journal, seq: int) -> World:
    """The world after an entry of that number."""
    found = journal.read_entries(seq - 1, 1)
    world = load_past(journal, decode_entry(found[0]).at - 1)
    for data in journal.read_entries(world.seq, seq - world.seq):
        entry = decode_entry(data)
        apply_entry(world, entry.seq, entry.at, entry.facts)
    return world


def _tell(world: World, inputs: Inputs, entry: Entry, facts: Sequence[fact.Fact], is_same: bool) -> list[str]:
    heard = Counter(str(event.__struct_config__.tag) for event in inputs.events)
    kinds = ", ".join(f"{count} {kind}" if count > 1 else kind for kind, count in sorted(heard.items())) or "time alone"
    lines = [f"{show_instant(entry.at)}  entry {entry.seq}, by {kinds}: {'the same' if is_same else 'DIFFERS'}"]
    lines += [f"    {line}" for item in entry.facts for line in _say(world, entry, item)]
    if not is_same:
        lines += [f"    today: {item}" for item in facts if item not in entry.facts]
    if any(isinstance(item, _OF_PLACES) for item in entry.facts):
        lines += [f"    left out: {line}" for line in _left_out(world)]
    return lines


def _say(world: World, entry: Entry, item: fact.Fact) -> Iterator[str]:
    """A fact in the words of the stories of those it is about; one of no job by its kind and whose it is."""
    jobs = fact.jobs_of(item)
    if not jobs:
        yield _say_of_fleet(world, item)
    for number in jobs:
        job = world.jobs.get(number)
        if job is None:
            continue  # it has retired
        begins = isinstance(item, fact.Accepted) and item.job == number  # another's beginning may be of its story, too
        own: list[fact.Fact] = [] if begins else [fact.Accepted(number, job.spec)]
        told = tell([Entry(entry.format, entry.seq, entry.at, [*own, item])], number, world.fleet.shown())
        yield f"job {number} {told.lines[-1].what}"


def _say_of_fleet(world: World, item: fact.Fact) -> str:
    """`node n1 phased: gone`, `tenant vision set: gpu at most 8 GPUs`, `advised packing`."""
    noun, _, verb = str(item.__struct_config__.tag).partition(".")[0].partition("_")
    slot = getattr(item, "slot", None)
    name = getattr(item, "name", getattr(item, "kind", ""))
    name = world.fleet.shown()[slot] if isinstance(slot, int) else str(name)
    detail = ""
    if isinstance(item, fact.NodePhased):
        detail = item.phase.name.lower()
    elif isinstance(item, fact.NodeBarred):
        detail = f"{item.bar.kind} by {item.bar.owner}, {item.bar.reason or 'no reason given'}"
    elif isinstance(item, fact.TenantSet):
        lines = [line for line in item.tenant.lines if line.limit is not None]
        detail = ", ".join(
            f"{name_line(line.family, line.scope)} at most {show_amount(line.family, line.limit or 0)}"
            for line in lines
        )
    return " ".join(filter(None, (noun, name, verb.replace("_", " ")))) + (f": {detail}" if detail else "")


def _left_out(world: World) -> Iterator[str]:
    waiting = (number for number in sorted(world.jobs) if world.is_waiting(world.jobs[number]))
    for number, _ in zip(waiting, range(LEFT_OUT), strict=False):
        found = find_reason(world, number)
        if found is not None:
            yield f"job {number}: {found[1].words} [{found[1].code}]"
