"""Many places at once: equal tasks take their leases, or give them back, in one go.

What comes of it is what `Fleet.occupy` and `Fleet.vacate` bring about lease by lease, or `Fleet.show`; here the nodes
are gone through in compiled code, so that a range of an array costs little more than one lease. It knows no tasks, only
leases.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

from muster.model.errors import InvariantError
from muster.model.phase import Lease
from muster.units import Resources
from muster.world.compiled import Entry, Words, compiled, words_of
from muster.world.fleet import Fleet
from muster.world.index import seat

LEASE: Final = 3
"""Words of a lease: slot, tasks, devices."""
FEW: Final = 3
"""So many are as quick one by one."""


def rows_of(leases: Sequence[Lease]) -> array[int]:
    """Leases as words."""
    return array("q", [word for lease in leases for word in (lease.slot, lease.tasks, lease.devices)])


def occupy_all(fleet: Fleet, job: int, ask: Resources, leases: Sequence[Lease], rows: array[int] | None = None) -> None:
    """Give tasks of a job that ask for the same all their places, which are `rows` as words if those are known. The
    inverse of `vacate_all`."""
    if len(leases) <= FEW or fleet.crowd is not None or (ask.gpu_milli and fleet.claimed):
        for lease in leases:
            fleet.occupy(lease.slot, job, ask, lease.tasks, lease.devices)
        return
    _move(fleet, job, ask, leases, rows_of(leases) if rows is None else rows, 1)
    holders = fleet.holders
    for lease in leases:
        here = holders.get(lease.slot)
        holders[lease.slot] = {job: lease.tasks} if here is None else {**here, job: here.get(job, 0) + lease.tasks}


def vacate_all(fleet: Fleet, job: int, ask: Resources, leases: Sequence[Lease]) -> None:
    """Take them back. The inverse of `occupy_all`."""
    if len(leases) <= FEW or fleet.crowd is not None or fleet.lacks or fleet.claimed:
        for lease in leases:
            fleet.vacate(lease.slot, job, ask, lease.tasks, lease.devices)
        return
    _move(fleet, job, ask, leases, rows_of(leases), -1)  # first: the fleet may be laid out for it, by who holds what
    holders = fleet.holders
    for lease in leases:
        here = holders.get(lease.slot) or {}
        left = here.get(job, 0) - lease.tasks
        if left > 0:
            holders[lease.slot] = {**here, job: left}
        elif left < 0:
            raise InvariantError("only what is held is given back", f"job {job} on {fleet.names[lease.slot]}: {ask}")
        elif len(here) > 1:
            others = holders[lease.slot] = here.copy()
            del others[job]
        else:
            del holders[lease.slot]


def show_all(fleet: Fleet, ask: Resources, leases: Sequence[Lease], sign: int) -> None:
    """Show nodes as if tasks were there (1), or as if they had left (-1): see `Fleet.show`."""
    if len(leases) <= FEW:
        for lease in leases:
            fleet.show(lease.slot, ask, sign * lease.tasks, lease.devices)
    elif not _could_move(fleet, ask, leases, sign):
        raise InvariantError("what is shown is taken back", f"{ask} on {leases[:3]}")


def show_if_room(fleet: Fleet, ask: Resources, leases: Sequence[Lease]) -> bool:
    """Show nodes as if tasks were there, if all are open, none is booked and they have room."""
    return all(fleet.is_listed(lease.slot) for lease in leases) and _could_move(fleet, ask, leases, 1)


def _could_move(fleet: Fleet, ask: Resources, leases: Sequence[Lease], sign: int) -> bool:
    """Take or give back what all leases have, or nothing if that cannot be."""
    rows = rows_of(leases)
    done = _TAKE_ALL.call(fleet.words, words_of(rows), sign, *_amounts_of(ask))
    if done < len(leases):
        _TAKE_ALL.call(fleet.words, words_of(rows[: LEASE * done]), -sign, *_amounts_of(ask))
        return False
    if fleet.overlays.by_slot:
        _seat_in_overlays(fleet, ask, leases, sign)
    return True


def _move(fleet: Fleet, job: int, ask: Resources, leases: Sequence[Lease], rows: array[int], sign: int) -> None:
    if fleet.overlays.by_slot:
        _seat_in_overlays(fleet, ask, leases, sign)
    done = _TAKE_ALL.call(fleet.words, words_of(rows), sign, *_amounts_of(ask))
    if done < len(leases):
        law = "allocations fit their node" if sign > 0 else "only what is held is given back"
        raise InvariantError(law, f"job {job} on {fleet.names[leases[done].slot]}: {ask} x {leases[done].tasks}")


def _seat_in_overlays(fleet: Fleet, ask: Resources, leases: Sequence[Lease], sign: int) -> None:
    for lease in leases:
        fleet.overlays.seat(lease.slot, fleet.flavor(lease.slot), ask, sign * lease.tasks)


def _amounts_of(ask: Resources) -> tuple[int, int, int, int, int, int]:
    return ask.gpus, ask.gpu_milli, ask.cpu_milli, ask.memory_bytes, ask.disk_bytes, ask.network_mbps


@compiled
def _take_all(
    words: Words,
    rows: Words,
    sign: int,
    gpus: int,
    milli: int,
    cpu: int,
    memory: int,
    disk: int,
    network: int,
) -> int:
    """Take what leases have, or give it back; how many could be."""
    for at in range(0, len(rows), LEASE):
        if not seat(words, rows[at], sign * rows[at + 1], rows[at + 2], gpus, milli, cpu, memory, disk, network):
            return at // LEASE
    return len(rows) // LEASE


_TAKE_ALL: Final = Entry(_take_all)
