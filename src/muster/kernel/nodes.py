"""What engines report of nodes: seen, silent, gone. Here Muster's view and the node's are made one.

Silence kills nothing. A node that reports itself says all that it holds: what should run there and is not held was
lost, what is held and not wanted is fenced, and what may not have been heard is said again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from muster.kernel.attempts import lose
from muster.kernel.turn import Turn, refuse
from muster.lifecycle.node import can_move
from muster.model import event, fact
from muster.model.instruction import Stop
from muster.model.job import Job, NodePhase
from muster.model.node import LABELS_MAX, TAINTS_MAX, Traits
from muster.model.phase import Starting, TaskPhase
from muster.model.reason import DONE, Code, Done, Refused
from muster.model.spec import is_name
from muster.units import AMOUNT_MAX
from muster.world.fleet import DEVICES_MAX
from muster.world.seats import Seat, seats_on
from muster.world.tasks import spans_of


def on_node_seen(turn: Turn, item: event.NodeSeen) -> Done | Refused:
    """A node is there: it joins or comes back, and what it holds is compared with what it should."""
    fault = _find_fault(item)
    if fault is not None:
        return fault
    slot = _admit(turn, item)
    seats = seats_on(turn.world, slot)
    for seat in seats:
        if seat.phase == TaskPhase.RUNNING:
            for first, count in _uncovered(seat, item.held):
                lose(turn, seat.job, first, count, f"node {item.name} no longer holds it")
        else:
            _say_again(turn, slot, seat)
    for held in item.held:
        for first, count in _uncovered(held, seats):
            turn.instructions.append(Stop(held.job, held.epoch, first, count, 0))
    _fit_capacity(turn, slot, item)
    return DONE


def on_node_silent(turn: Turn, item: event.NodeSilent) -> Done | Refused:
    """A node is not heard of: nothing new goes there, and what runs there is left alone."""
    return _move(turn, item.name, NodePhase.UNKNOWN, item.cause)


def on_node_gone(turn: Turn, item: event.NodeGone) -> Done | Refused:
    """A node is fenced: what it held is lost and waits again."""
    answer = _move(turn, item.name, NodePhase.GONE, item.cause)
    if isinstance(answer, Done):
        for seat in seats_on(turn.world, turn.world.fleet.slot_of[item.name]):
            lose(turn, seat.job, seat.first, seat.count, f"node {item.name} gone")
    return answer


def _find_fault(item: event.NodeSeen) -> Refused | None:
    if not is_name(item.name):
        return refuse(Code.BAD_NAME, "node", len(item.name), 128, item.name[:40])
    for field, most in (("gpus", DEVICES_MAX), ("cpu_milli", AMOUNT_MAX), ("memory_bytes", AMOUNT_MAX)):
        amount = getattr(item.capacity, field)
        if not 0 <= amount <= most:
            return refuse(Code.BAD_AMOUNT, f"capacity.{field}", amount, most)
    return _find_trait_fault(item.traits)


def _find_trait_fault(traits: Traits) -> Refused | None:
    """Names are names, there are not too many, and labels come sorted, each key once."""
    keys = [key for key, _ in traits.labels]
    names = [traits.flavor, *msgspec.structs.astuple(traits.place), *keys, *traits.taints]
    names += [value for _, value in traits.labels]
    for name in names:
        if name and not is_name(name):
            return refuse(Code.BAD_NAME, "traits", len(name), 128, name[:40])
    for field, count, most in (("labels", len(keys), LABELS_MAX), ("taints", len(traits.taints), TAINTS_MAX)):
        if count > most:
            return refuse(Code.TOO_LARGE, field, count, most)
    if keys != sorted(dict.fromkeys(keys)) or list(traits.taints) != sorted(dict.fromkeys(traits.taints)):
        return refuse(Code.BAD_SPEC, "traits", detail="labels and taints come sorted, each once")
    return None


def _admit(turn: Turn, item: event.NodeSeen) -> int:
    fleet = turn.world.fleet
    slot = fleet.slot_of.get(item.name)
    if slot is None:
        slot = len(fleet)
        turn.emit(fact.NodeJoined(slot, item.name, item.capacity, item.cause, item.traits))
    elif can_move(NodePhase(fleet.phase[slot]), NodePhase.UP):
        turn.emit(fact.NodePhased(slot, NodePhase.UP, item.cause))
    return slot


def _fit_capacity(turn: Turn, slot: int, item: event.NodeSeen) -> None:
    """What changed of a node is taken over once nothing runs there; until then it is what it was."""
    fleet = turn.world.fleet
    is_same = fleet.capacity(slot) == item.capacity and fleet.traits[slot] == item.traits
    if not is_same and fleet.is_idle(slot):
        turn.emit(fact.NodeJoined(slot, item.name, item.capacity, item.cause, item.traits))


def _move(turn: Turn, name: str, to: NodePhase, cause: str) -> Done | Refused:
    fleet = turn.world.fleet
    slot = fleet.slot_of.get(name)
    if slot is None:
        return refuse(Code.UNKNOWN_NODE, "node", detail=name[:128])
    if can_move(NodePhase(fleet.phase[slot]), to):
        turn.emit(fact.NodePhased(slot, to, cause))
    return DONE


def _uncovered(mine: Seat | event.Held, others: Sequence[Seat | event.Held]) -> Iterator[tuple[int, int]]:
    """The runs of one side's tasks that nothing on the other side covers: there the two views differ."""
    first, end = mine.first, mine.first + mine.count
    spans = sorted((it.first, it.count) for it in others if (it.job, it.epoch) == (mine.job, mine.epoch))
    for begin, count in spans:
        if first < min(begin, end):
            yield first, min(begin, end) - first
        first = max(first, begin + count)
    if first < end:
        yield first, end - first


def _say_again(turn: Turn, slot: int, seat: Seat) -> None:
    """A start or a stop that the node may not have heard."""
    job = turn.world.jobs[seat.job]
    if seat.phase == TaskPhase.STOPPING:
        turn.stop(job, seat.epoch, seat.first, seat.count)
    elif isinstance(job.phase, Starting):
        _fence_over(turn, job)
        turn.start(job, job.phase.run)
    else:
        devices = turn.world.arrays[job.id].held_devices(seat.first, seat.count)
        turn.start_tasks(job, seat.first, [slot], [seat.count], [devices])


def _fence_over(turn: Turn, job: Job) -> None:
    """A start is said for the whole gang, since each rank is told its place in it: fence the ranks that are over."""
    ranks = turn.world.ranks.get(job.id, b"")
    for first, count in spans_of(ranks, (TaskPhase.SUCCEEDED,), 0, len(ranks)):
        turn.stop(job, job.epoch, first, count)
