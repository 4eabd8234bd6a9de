"""What an admin says of flavors: their family, their exchange units, their price."""

from __future__ import annotations

from muster.kernel.turn import Turn, refuse
from muster.model import event, fact
from muster.model.node import Flavor
from muster.model.overlay import WATTS_MAX
from muster.model.reason import DONE, Code, Done, Refused
from muster.model.spec import is_name
from muster.units import AMOUNT_MAX

UNITS_MAX = 1_000_000


def on_set_flavor(turn: Turn, item: event.SetFlavor) -> Done | Refused:
    """Say what a flavor is. What it counts as cannot change under work that was counted the old way."""
    fault = _find_fault(item)
    if fault is not None:
        return fault
    known = turn.world.flavors.get(item.name, Flavor(item.name))
    if known == item.flavor:
        return DONE
    if (known.family, known.units) != (item.flavor.family, item.flavor.units):
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
    return None


def _count_busy(turn: Turn, flavor: str) -> int:
    fleet = turn.world.fleet
    return sum(fleet.flavor(slot) == flavor for slot in {**fleet.holders, **fleet.claimed})
