"""What an admin says of flavors: their family, their exchange units, their price, and how they are cut."""

from __future__ import annotations

from muster.kernel.turn import Turn, refuse
from muster.model import event, fact
from muster.model.node import Flavor
from muster.model.overlay import WATTS_MAX
from muster.model.partition import DEVICE, SLOTS_MAX, find_table_fault, piece_of
from muster.model.phase import TERMINAL
from muster.model.reason import DONE, Code, Done, Refused
from muster.model.spec import is_name
from muster.units import AMOUNT_MAX
from muster.world.cuts import find_piece

UNITS_MAX = 1_000_000


def on_set_flavor(turn: Turn, item: event.SetFlavor) -> Done | Refused:
    """Say what a flavor is. What it counts as, and how it is cut, cannot change under work that has the old one."""
    fault = _find_fault(item)
    if fault is not None:
        return fault
    known = turn.world.flavors.get(item.name, Flavor(item.name))
    if known == item.flavor:
        return DONE
    fault = _find_cut_fault(turn, item)
    if fault is not None:
        return fault
    if _counted(known) != _counted(item.flavor):
        busy = _count_busy(turn, item.name)
        if busy:
            return refuse(Code.FLAVOR_IN_USE, "nodes", busy, detail=item.name)
    turn.emit(fact.FlavorSet(item.name, item.flavor, item.cause))
    return DONE


def _find_fault(item: event.SetFlavor) -> Refused | None:
    flavor = item.flavor
    for field, name in (("flavor", item.name), ("family", flavor.family)):
        if not is_name(name):
            return refuse(Code.BAD_NAME, field, len(name), 128, name[:40])
    if not 1 <= flavor.units <= UNITS_MAX:
        return refuse(Code.BAD_AMOUNT, "units", flavor.units, UNITS_MAX, f"between 1 and {UNITS_MAX}")
    if not 0 <= flavor.price_micros <= AMOUNT_MAX:
        return refuse(Code.BAD_AMOUNT, "price_micros", flavor.price_micros, AMOUNT_MAX, "from 0 to 2^62")
    for field, watts in (("watts", flavor.watts), ("core_watts", flavor.core_watts)):
        if not 0 <= watts <= WATTS_MAX:
            return refuse(Code.BAD_AMOUNT, field, watts, WATTS_MAX, f"from 0 to {WATTS_MAX}")
    for each in flavor.partitions:
        if not is_name(each.name):
            return refuse(Code.BAD_NAME, "partition", len(each.name), 128, each.name[:40])
    fault = find_table_fault(flavor.slots, flavor.partitions)
    return refuse(Code.BAD_TABLE, item.name, flavor.slots, SLOTS_MAX, fault) if fault else None


def _counted(flavor: Flavor) -> tuple[object, ...]:
    return flavor.family, flavor.units, flavor.slots, flavor.partitions


def _find_cut_fault(turn: Turn, item: event.SetFlavor) -> Refused | None:
    """A partition's name means the same in every flavor, and to whoever asks for it already."""
    flavor, world = item.flavor, turn.world
    others = {name: other for name, other in world.fleet.cuts.items() if name != item.name}
    shares: dict[str, int] = {}
    for each in flavor.partitions:
        piece = piece_of(each, flavor.slots)
        if find_piece(others, each.name) not in (None, piece):
            detail = f"{each.name} is of another size, or begins elsewhere, in another flavor"
            return refuse(Code.BAD_TABLE, item.name, detail=detail)
        shares[each.name] = piece.milli
    for name, milli in shares.items():
        jobs = [job for job in world.jobs.values() if job.spec.needs.partition == name]
        differ = sum((job.spec.ask.gpu_milli or DEVICE) != milli for job in jobs if not isinstance(job.phase, TERMINAL))
        if differ:
            return refuse(Code.PARTITION_IN_USE, "jobs", differ, detail=name)
    return None


def _count_busy(turn: Turn, flavor: str) -> int:
    fleet = turn.world.fleet
    return sum(fleet.flavor(slot) == flavor for slot in {**fleet.holders, **fleet.claimed})
