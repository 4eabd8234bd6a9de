"""An overlay: a named set of nodes that cuts across the tree of places, with a budget in one resource.

A power feed, a cooling loop, an uplink: what runs on the nodes behind it takes from its budget, and all of it together
never takes more. It says who is a member by the addresses of nodes, by labels, or by both: a node that joins later with
such labels is a member too. A node may be in many.
"""

from __future__ import annotations

from typing import Final

from muster.model.record import Record

POWER: Final = "power"
NETWORK: Final = "network"
SCALE: Final = {POWER: 1000, NETWORK: 1}
"""By resource, how many of the finest amounts that a task can take are one of a budget: of a watt, milliwatts, for a
share of a device takes its share; of the network, one Mbit/s."""
UNITS: Final = {POWER: "W", NETWORK: "Mbit/s"}
"""How a budget is shown."""
BUDGET_MAX: Final = 10**15
OVERLAYS_MAX: Final = 256
MEMBERS_MAX: Final = 100_000
WATTS_MAX: Final = 10**6


class Overlay(Record, frozen=True):
    """One of them. `nodes` are addresses; `labels` are wishes as an ask has them, and a node has to fulfil all."""

    resource: str
    budget: int
    nodes: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
