"""Laws of partitions on random tables and devices, against a reference that tries every slot in plain Python."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.node import Flavor, Traits
from muster.model.partition import Partition, devices_in, find_table_fault, piece_of, slots_in
from muster.model.spec import Needs
from muster.scheduler.placing.fit import count_room, find_gang, find_tasks, widest_room
from muster.units import Resources
from muster.world.fleet import Fleet

Slots = tuple[int, ...]
CPU_PER_NODE = 4000


@st.composite
def flavors(draw: st.DrawFn) -> Flavor:
    """A sound table: a few partitions of a device of up to eight slots, each with some of the starts that it could
    have."""
    slots = draw(st.integers(2, 8))
    found = []
    for number in range(draw(st.integers(1, 4))):
        size = draw(st.integers(1, slots))
        starts = draw(st.lists(st.integers(0, slots - size), min_size=1, max_size=slots, unique=True))
        found.append(Partition(f"p{number}", size, tuple(sorted(starts))))
    flavor = Flavor("cut", slots=slots, partitions=tuple(found))
    assert not find_table_fault(flavor.slots, flavor.partitions)
    return flavor


def fleet_of(flavor: Flavor, nodes: int, gpus: int) -> Fleet:
    fleet = Fleet()
    for slot in range(nodes):
        fleet.join(slot, f"n{slot}", Resources(gpus, CPU_PER_NODE, 2**30), Traits("cut"))
    fleet.join(nodes, "uncut", Resources(2, 10 * CPU_PER_NODE, 2**30))
    fleet.set_cuts("cut", flavor)
    return fleet


def ask_of(flavor: Flavor, partition: Partition) -> Resources:
    milli = piece_of(partition, flavor.slots).milli
    share = (1, 0) if milli == 1000 else (0, milli)
    return Resources(share[0], 500, 0, share[1])


class Reference:
    """Devices as lists of slots; a partition is tried in every slot in which it may begin."""

    def __init__(self, flavor: Flavor, nodes: int, gpus: int) -> None:
        self.taken = [[[False] * flavor.slots for _ in range(gpus)] for _ in range(nodes)]
        self.cpu = [CPU_PER_NODE] * nodes

    def starts(self, node: int, device: int, piece: Partition) -> list[int]:
        here = self.taken[node][device]
        return [start for start in piece.starts if not any(here[start : start + piece.size])]

    def nodes_with_room(self, piece: Partition) -> list[int]:
        return [
            node
            for node, devices in enumerate(self.taken)
            if self.cpu[node] >= 500 and any(self.starts(node, device, piece) for device in range(len(devices)))
        ]

    def room(self, node: int, piece: Partition) -> int:
        """The most that fit at once, over all ways to choose where they begin."""
        total = 0
        for device in range(len(self.taken[node])):
            starts = self.starts(node, device, piece)
            total += max(
                count
                for count in range(len(starts) + 1)
                for chosen in itertools.combinations(starts, count)
                if all(other - one >= piece.size for one, other in itertools.pairwise(chosen))
            )
        return min(total, self.cpu[node] // 500)

    def mark(self, node: int, device: int, slots: Slots, taken: bool) -> None:
        for slot in slots:
            assert self.taken[node][device][slot] is not taken
            self.taken[node][device][slot] = taken
        self.cpu[node] += -500 if taken else 500

    def losses(self, node: int, device: int, slots: Slots, kinds: tuple[Partition, ...]) -> Slots:
        """Of each kind, the largest first: how many starts it loses."""
        ordered = sorted(kinds, key=lambda kind: (-kind.size, kind.name))
        before = [len(self.starts(node, device, kind)) for kind in ordered]
        self.mark(node, device, slots, taken=True)
        after = [len(self.starts(node, device, kind)) for kind in ordered]
        self.mark(node, device, slots, taken=False)
        return tuple(one - other for one, other in zip(before, after, strict=True))


def bits(word: int) -> Slots:
    return tuple(at for at in range(word.bit_length()) if word >> at & 1)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(flavors(), st.integers(1, 2), st.integers(1, 2), st.lists(st.integers(0, 2**16), max_size=24), st.booleans())
def test_a_partition_goes_where_a_reference_would_put_it(
    flavor: Flavor, nodes: int, gpus: int, moves: list[int], stale: bool
) -> None:
    """No false refusal, only free slots and legal starts, the fewest starts lost; and nothing depends on the way."""
    fleet, reference = fleet_of(flavor, nodes, gpus), Reference(flavor, nodes, gpus)
    held: list[tuple[Partition, int, int]] = []
    for job, move in enumerate(moves):
        piece = flavor.partitions[move % len(flavor.partitions)]
        ask, needs = ask_of(flavor, piece), Needs(partition=piece.name)
        if held and move % 3 == 0:
            piece, slot, word = held.pop(move % len(held))
            fleet.vacate(slot, 1, ask_of(flavor, piece), 1, word)
            reference.mark(
                slot, bits(devices_in(word))[0], bits(slots_in(word)) or tuple(range(flavor.slots)), taken=False
            )
            continue
        if stale:
            fleet.set_price("cut", job)  # the arena is laid out anew: it says the same
        could = reference.nodes_with_room(piece)
        assert bool(widest_room(fleet, ask, 1, needs)) == bool(could)
        assert count_room(fleet, ask, needs) == sum(reference.room(node, piece) for node in range(nodes))
        leases = find_gang(fleet, ask, 1, needs)
        assert (leases is not None) == bool(could)
        if leases is None:
            continue
        (lease,) = leases
        device, slots = bits(devices_in(lease.devices))[0], bits(slots_in(lease.devices))
        if ask.gpu_milli:
            assert slots[0] in reference.starts(lease.slot, device, piece)
            assert slots == tuple(range(slots[0], slots[0] + piece.size))
            best = min(
                (
                    not any(reference.taken[lease.slot][other]),
                    reference.losses(lease.slot, other, span, flavor.partitions),
                    other,
                    start,
                )
                for other in range(gpus)
                for start in reference.starts(lease.slot, other, piece)
                for span in (tuple(range(start, start + piece.size)),)
            )
            assert (device, slots[0]) == best[2:]
        fleet.occupy(lease.slot, 1, ask, 1, lease.devices)
        reference.mark(lease.slot, device, slots or tuple(range(flavor.slots)), taken=True)
        held.append((piece, lease.slot, lease.devices))
        assert fleet.find_index_fault() is None


@settings(max_examples=40, deadline=None, derandomize=True)
@given(flavors(), st.integers(1, 2), st.integers(0, 12))
def test_tasks_of_an_array_get_places_that_do_not_overlap(flavor: Flavor, gpus: int, most: int) -> None:
    fleet = fleet_of(flavor, 2, gpus)
    for piece in flavor.partitions:
        ask, before = ask_of(flavor, piece), [fleet.slots_taken(slot) for slot in range(2)]
        leases = find_tasks(fleet, ask, most, Needs(partition=piece.name))
        assert [fleet.slots_taken(slot) for slot in range(2)] == before
        for lease in leases:
            fleet.occupy(lease.slot, 1, ask, lease.tasks, lease.devices)
        placed = sum(lease.tasks for lease in leases)
        assert placed == most or find_gang(fleet, ask, 1, Needs(partition=piece.name)) is None
        for lease in leases:
            fleet.vacate(lease.slot, 1, ask, lease.tasks, lease.devices)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(flavors(), st.integers(1, 999))
def test_a_share_goes_to_uncut_devices_alone(flavor: Flavor, milli: int) -> None:
    fleet = fleet_of(flavor, 1, 2)
    leases = find_gang(fleet, Resources(0, 500, 0, milli), 1)
    assert leases is not None
    assert leases[0].slot == 1
