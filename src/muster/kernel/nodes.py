"""What engines report of nodes: seen, silent, gone. Here Muster's view and the node's are made one.

Silence kills nothing. A node that reports itself says all that it holds: what should run there and is not held was
lost, what is held and not wanted is fenced, and what may not have been heard is said again. A node that comes back with
less has less at once: what sits on a device that is not there any more is stopped and waits again. One that comes back
with more, or as something else, is that once nothing runs there; its labels and taints hold at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from muster.kernel.attempts import lose
from muster.kernel.bars import stop_seats
from muster.kernel.intake import find_fault, lack_of
from muster.kernel.quarantine import judge_devices, judge_others
from muster.kernel.turn import Turn, refuse
from muster.lifecycle.node import can_move
from muster.model import event, fact
from muster.model.instruction import Stop
from muster.model.job import Job, NodePhase, Resize
from muster.model.node import NO_LACK, Lack, Said, address_of
from muster.model.phase import Running, Starting, TaskPhase, Why
from muster.model.ranges import as_ranges
from muster.model.reason import DONE, Code, Done, Refused
from muster.world.seats import Seat, seats_on, seats_on_devices
from muster.world.tasks import spans_of
from muster.world.widths import members_of, split_leases


def on_node_seen(turn: Turn, item: event.NodeSeen) -> Done | Refused:
    """A node is there: it joins or comes back, and what it holds is compared with what it should."""
    fleet = turn.world.fleet
    known = fleet.slot_of.get(address_of(item.name, item.traits.place))
    fault = find_fault(fleet, item, known)
    if fault is not None:
        return fault
    slot = _admit(turn, known, item)
    seats = seats_on(turn.world, slot)
    for seat in seats:
        if seat.phase == TaskPhase.RUNNING:
            for first, count in _uncovered(seat, item.held):
                lose(turn, seat.job, first, count, f"node {item.name} no longer holds it")
    for seat in _fit(turn, slot, item, seats):
        if seat.phase != TaskPhase.RUNNING:
            _say_again(turn, slot, seat)
    turn.instructions += plan_fences(item.held, seats)
    judge_devices(turn, slot, item.cause)
    return DONE


def plan_fences(held: Sequence[event.Held], seats: Sequence[Seat]) -> Iterator[Stop]:
    """What a node is to end at once: all that it holds and nobody wants there."""
    for each in held:
        for first, count in _uncovered(each, seats):
            yield Stop(each.job, each.epoch, first, count, 0)


def on_node_silent(turn: Turn, item: event.NodeSilent) -> Done | Refused:
    """A node is not heard of: nothing new goes there, and what runs there is left alone."""
    return _move(turn, item.name, NodePhase.UNKNOWN, item.cause)


def on_node_gone(turn: Turn, item: event.NodeGone) -> Done | Refused:
    """A node is fenced: what it held is lost and waits again."""
    answer = _move(turn, item.name, NodePhase.GONE, item.cause)
    if isinstance(answer, Done):
        slot = turn.world.fleet.slot_of[item.name]
        for seat in seats_on(turn.world, slot):
            lose(turn, seat.job, seat.first, seat.count, f"node {item.name} gone")
        judge_others(turn, slot, item.cause)
    return answer


def _admit(turn: Turn, known: int | None, item: event.NodeSeen) -> int:
    fleet = turn.world.fleet
    if known is None:
        _join(turn, len(fleet), item)
        return len(fleet) - 1
    if can_move(NodePhase(fleet.phase[known]), NodePhase.UP):
        turn.emit(fact.NodePhased(known, NodePhase.UP, item.cause))
    return known


def _join(turn: Turn, slot: int, item: event.NodeSeen) -> None:
    turn.emit(fact.NodeJoined(slot, item.name, item.capacity, item.cause, item.traits, item.devices))


def _fit(turn: Turn, slot: int, item: event.NodeSeen, seats: list[Seat]) -> list[Seat]:
    """What changed of a node is taken over once nothing runs there. Until then it is what it was, but for its labels
    and for what it lacks: that is gone at once, and whoever sat on a lost device is stopped. The seats that nobody
    spoke to yet."""
    fleet = turn.world.fleet
    lack = lack_of(fleet, slot, item)
    if fleet.is_idle(slot):
        mine = (fleet.capacities[slot], fleet.traits[slot], fleet.device_ids.get(slot, ()))
        if mine != (item.capacity, item.traits, item.devices) or slot in fleet.lacks or slot in fleet.said:
            _join(turn, slot, item)
        return seats
    _hear(turn, slot, item, lack)
    if lack != fleet.lacks.get(slot, NO_LACK):
        turn.emit(fact.NodeLacks(slot, lack, item.cause))
        stop_seats(
            turn, seats_on_devices(turn.world, slot, lack.devices), Why.LOST, f"node {item.name} lost its device"
        )
        told = [seat for seat in seats if seat.phase == TaskPhase.STOPPING]
        return told + [seat for seat in seats_on(turn.world, slot) if seat.phase == TaskPhase.STARTING]
    return seats


def _hear(turn: Turn, slot: int, item: event.NodeSeen, lack: Lack) -> None:
    """A node where work is has the labels and taints that it says; what else is not as it was, and is no lack, waits
    until nothing runs there."""
    fleet, said = turn.world.fleet, item.traits
    mine, known = fleet.traits[slot], frozenset(fleet.device_ids.get(slot, ()))
    traits = replace(mine, labels=said.labels, taints=said.taints)
    is_same = item.capacity == fleet.capacities[slot].minus(lack.amount) and known.issuperset(item.devices)
    later = None if is_same and said == traits else Said(item.capacity, said, item.devices)
    if (traits, later) != (mine, fleet.said.get(slot)):
        turn.emit(fact.NodeSaid(slot, said.labels, said.taints, later, item.cause))


def take_over(turn: Turn) -> None:
    """Nodes that said to be another one are that, as soon as nothing runs there. One that is not heard of says it
    again when it is back."""
    fleet = turn.world.fleet
    for slot in sorted(fleet.said):
        if fleet.is_idle(slot) and fleet.phase[slot] == NodePhase.UP:
            said, cause = fleet.said[slot], f"{fleet.names[slot]} is idle"
            turn.emit(fact.NodeJoined(slot, fleet.names[slot], said.capacity, cause, said.traits, said.devices))
            judge_devices(turn, slot, cause)


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
        width = turn.world.widths.resizes.get(job.id, Resize(0)).to if isinstance(job.phase, Running) else 0
        turn.stop(job, seat.epoch, seat.first, seat.count, width)
    elif isinstance(job.phase, Running):
        place = members_of(turn.world.ranks[job.id]).index(seat.first)
        behind = split_leases(job.phase.run.leases, place, job.spec.ask)[1]
        turn.start_ranks(job, seat.first, tuple(split_leases(behind, seat.count, job.spec.ask)[0]))
    elif isinstance(job.phase, Starting):
        _fence_over(turn, job)
        turn.start_gang(job)
    else:
        (lease,) = turn.world.arrays[job.id].leases(as_ranges(seat.first, seat.count))
        turn.start_tasks(job, seat.first, [slot], [seat.count], [lease.devices])


def _fence_over(turn: Turn, job: Job) -> None:
    """A start is said for the whole gang, since each rank is told its place in it: fence the ranks that are over."""
    ranks = turn.world.ranks.get(job.id, b"")
    for first, count in spans_of(ranks, (TaskPhase.SUCCEEDED,), 0, len(ranks)):
        turn.stop(job, job.epoch, first, count)
