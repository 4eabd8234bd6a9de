"""The law of booked nodes: for which booking a node is kept follows from the windows, and the account knows it."""

from __future__ import annotations

from muster.world.booking import keepings
from muster.world.goodput import BOOKED_NODE
from muster.world.laws.law import require_same
from muster.world.world import World


def check_bookings(world: World) -> None:
    """What is kept is what the windows say."""
    wanted = keepings(world.bookings.values())
    require_same(world.fleet.booked, wanted, "a node is kept for the window that opens first")
    claimed = {slot: lack.devices for slot, lack in world.fleet.claimed.items()}
    kept = claimed | {slot: BOOKED_NODE for slot, keeping in wanted.items() if keeping.is_open}
    require_same(world.goodput.kept, kept, "what is kept for somebody is idle for nobody else")
