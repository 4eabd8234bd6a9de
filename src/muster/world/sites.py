"""Sites: where capacity counts. A site is what nodes have in common for the quota: family, units, region, cluster.

Every slot has its site, found by one read of a list. Per site there is also what is healthy (nodes that are up and
unbarred) and what is held on nodes that are not, so that what is free of a family need not be counted node by node. It
knows nodes and amounts, not tenants.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from muster.model.node import Flavor
from muster.model.phase import Lease
from muster.model.record import Record
from muster.model.spec import Spec
from muster.model.tenant import FLEET, NOT_DEVICES, device_amount
from muster.units import Resources
from muster.world.fleet import Fleet

GPUS_AT, CPU_AT, MEMORY_AT = range(3)
"""Where the kinds of amounts stand in a vector of them."""


class Site(Record, frozen=True):
    """Nodes that count alike. Sites are interned: in one world, two that are equal have one `number`."""

    number: int
    family: str
    units: int
    region: str
    cluster: str

    def scopes(self) -> list[str]:
        """The scopes of lines that count here."""
        named = [self.region] if self.region else []
        return [FLEET, *named, f"{self.region}/{self.cluster}"] if self.cluster else [FLEET, *named]

    def amounts(self, ask: Resources, tasks: int = 1) -> tuple[int, int, int]:
        """What `tasks` of an ask count as here: GPUs in units of the family, CPU, memory."""
        return device_amount(ask, self.units) * tasks, ask.cpu_milli * tasks, ask.memory_bytes * tasks


class Sites:
    """`by_slot` is the site of each slot; `nodes` (how many there are), `healthy` and `closed` are by the site's
    number. While its `version` is the same, so is what is healthy and what is closed."""

    __slots__ = ("_inhabited", "_known", "_numbers", "all", "by_slot", "closed", "healthy", "nodes", "version")

    def __init__(self) -> None:
        self.all: list[Site] = []
        self.by_slot: list[Site] = []
        self.nodes: list[int] = []
        self.healthy: list[list[int]] = []
        self.closed: list[list[int]] = []
        self._known: dict[tuple[str, int, str, str], Site] = {}
        self._inhabited: dict[bool, list[Site]] = {}
        self._numbers = array("q")
        self.version = 0

    def settle(self, fleet: Fleet, slot: int, flavor: Flavor) -> None:
        """Say what a slot's site is, now that it is known; whoever changes it counts the node off and on again."""
        place = fleet.traits[slot].place
        site = self._intern((flavor.family, flavor.units, place.region, place.cluster))
        if slot == len(self.by_slot):
            self.by_slot.append(site)
        else:
            self.nodes[self.by_slot[slot].number] -= 1
            self.by_slot[slot] = site
        self.nodes[site.number] += 1
        self._inhabited.clear()
        self._numbers = array("q")

    def count(self, fleet: Fleet, slot: int, sign: int) -> None:
        """Count a node on (1) or off (-1): healthy with all that it has, or closed with what is held there."""
        site = self.by_slot[slot]
        if fleet.is_open(slot):
            vector, has = self.healthy[site.number], site.amounts(fleet.capacity(slot))
        else:
            gpu_milli, cpu_milli, memory_bytes, _ = fleet.held(slot)
            vector, has = self.closed[site.number], (gpu_milli * site.units, cpu_milli, memory_bytes)
        self.version += 1
        for kind, amount in enumerate(has):
            vector[kind] += sign * amount

    def give_back(self, slot: int, ask: Resources, tasks: int) -> None:
        """Tasks on a closed node are over."""
        site = self.by_slot[slot]
        vector = self.closed[site.number]
        self.version += 1
        for kind, amount in enumerate(site.amounts(ask, tasks)):
            vector[kind] -= amount

    def spread(self, leases: Sequence[Lease]) -> list[tuple[Site, int]]:
        """How many tasks lie on each site, by its number."""
        if len(leases) == 1:
            return [(self.by_slot[leases[0].slot], leases[0].tasks)]
        if len(self.all) == 1 and leases:
            return [(self.all[0], sum([lease.tasks for lease in leases]))]
        tasks: dict[int, int] = {}
        for lease in leases:
            number = self.by_slot[lease.slot].number
            tasks[number] = tasks.get(number, 0) + lease.tasks
        return [(self.all[number], tasks[number]) for number in sorted(tasks)]

    def share(self, spec: Spec, leases: Sequence[Lease]) -> list[tuple[Site, Resources, int]]:
        """On which sites leases of a spec lie, with what each task there asks for, and how many there are."""
        return [(site, ask, tasks) for ask, part in spec.parts(leases) for site, tasks in self.spread(part)]

    def get(self, flavor: Flavor, region: str, cluster: str) -> Site:
        """The site of nodes of a flavor in a place, of which there are some."""
        return self._known[(flavor.family, flavor.units, region, cluster)]

    def inhabited(self, ask: Resources) -> list[Site]:
        """The sites that have nodes; for an ask with devices, only those that could have some."""
        has_devices = ask.gpus > 0 or ask.gpu_milli > 0
        found = self._inhabited.get(has_devices)
        if found is None:
            there = [site for site in self.all if self.nodes[site.number]]
            found = [site for site in there if not (has_devices and site.family in NOT_DEVICES)]
            self._inhabited[has_devices] = found
        return found

    def numbers(self) -> array[int]:
        """The number of each slot's site, for compiled code; counted once for a fleet as it is."""
        if not self._numbers:
            self._numbers = array("q", [site.number for site in self.by_slot] or [0])
        return self._numbers

    def fork(self) -> Sites:
        """An independent copy."""
        twin = Sites()
        twin.all, twin.by_slot, twin.nodes = self.all.copy(), self.by_slot.copy(), self.nodes.copy()
        twin.healthy = [vector.copy() for vector in self.healthy]
        twin.closed = [vector.copy() for vector in self.closed]
        twin._known = self._known.copy()
        return twin

    def _intern(self, key: tuple[str, int, str, str]) -> Site:
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Site(len(self.all), *key)
            self.all.append(known)
            self.nodes.append(0)
            self.healthy.append([0, 0, 0])
            self.closed.append([0, 0, 0])
        return known
