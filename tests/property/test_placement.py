"""Placement against a reference that tries everything: no false refusal, and the very node that the words promise."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.job import NodePhase
from muster.model.phase import Lease
from muster.scheduler.fit import count_capacity, count_room, find_gang, find_tasks
from muster.units import Resources
from muster.world.fleet import Fleet

EXACT = settings(derandomize=True, deadline=None, max_examples=200)
ASKS = st.builds(Resources, st.integers(0, 4), st.integers(0, 3), st.integers(0, 3)).filter(
    lambda ask: bool(ask.gpus or ask.cpu_milli or ask.memory_bytes)
)
NODES = st.lists(
    st.tuples(
        st.builds(Resources, st.integers(0, 6), st.integers(0, 6), st.integers(0, 6)),
        st.integers(0, 63),
        st.sampled_from(NodePhase),
    ),
    max_size=6,
)


def build(nodes: list[tuple[Resources, int, NodePhase]]) -> Fleet:
    """A fleet whose nodes have some devices taken, in the order of slots."""
    fleet = Fleet()
    for slot, (capacity, taken, phase) in enumerate(nodes):
        fleet.join(slot, f"n{slot}", capacity)
        mask = taken & ((1 << capacity.gpus) - 1)
        if mask:
            fleet.occupy(slot, 1, Resources(gpus=mask.bit_count()), 1, mask)
        if phase != NodePhase.UP:
            fleet.set_phase(slot, phase)
    return fleet


def room_on(fleet: Fleet, slot: int, ask: Resources) -> int:
    """How many tasks fit on one node, by trying one more and one more."""
    if fleet.phase[slot] != NodePhase.UP:
        return 0
    free = fleet.free_vector(slot)
    for count in itertools.count(1):
        if ask.gpus * count > free[0] or ask.cpu_milli * count > free[1] or ask.memory_bytes * count > free[2]:
            return count - 1
    raise AssertionError


def check_leases(fleet: Fleet, ask: Resources, leases: list[Lease], tasks: int) -> None:
    """The leases are real: distinct nodes that are up, free devices, and the fleet takes them."""
    assert sum(lease.tasks for lease in leases) == tasks
    assert len({lease.slot for lease in leases}) == len(leases)
    for lease in leases:
        assert fleet.phase[lease.slot] == NodePhase.UP
        fleet.occupy(lease.slot, 9, ask, lease.tasks, lease.devices)


@EXACT
@given(NODES, ASKS)
def test_one_task_goes_to_the_node_it_leaves_the_least_free_on(
    nodes: list[tuple[Resources, int, NodePhase]], ask: Resources
) -> None:
    fleet = build(nodes)
    fitting = [(fleet.free_vector(slot), slot) for slot in range(len(fleet)) if room_on(fleet, slot, ask)]
    leases = find_gang(fleet, ask, 1)
    if not fitting:
        assert leases is None
        return
    assert leases is not None
    assert leases[0].slot == min(fitting)[1]
    lowest = [1 << bit for bit in range(62) if fleet.free_devices[leases[0].slot] >> bit & 1][: ask.gpus]
    assert leases[0].devices == sum(lowest)
    check_leases(fleet, ask, leases, 1)


@EXACT
@given(NODES, ASKS, st.integers(2, 9))
def test_a_gang_is_refused_only_if_it_cannot_fit(
    nodes: list[tuple[Resources, int, NodePhase]], ask: Resources, gang: int
) -> None:
    fleet = build(nodes)
    rooms = sorted((room_on(fleet, slot, ask) for slot in range(len(fleet))), reverse=True)
    leases = find_gang(fleet, ask, gang)
    assert (leases is not None) == (sum(rooms) >= gang)
    if leases is not None:
        fewest = next(width for width in range(1, len(rooms) + 1) if sum(rooms[:width]) >= gang)
        assert len(leases) == fewest, "a gang goes to the fewest nodes"
        check_leases(fleet, ask, leases, gang)


@EXACT
@given(NODES, ASKS, st.integers(1, 20))
def test_tasks_of_an_array_get_all_the_room_there_is(
    nodes: list[tuple[Resources, int, NodePhase]], ask: Resources, most: int
) -> None:
    fleet = build(nodes)
    room = sum(room_on(fleet, slot, ask) for slot in range(len(fleet)))
    assert count_room(fleet, ask) == room
    check_leases(fleet, ask, find_tasks(fleet, ask, most), min(most, room))


@EXACT
@given(NODES, ASKS)
def test_capacity_is_the_room_of_an_empty_fleet_that_is_all_up(
    nodes: list[tuple[Resources, int, NodePhase]], ask: Resources
) -> None:
    empty = build([(capacity, 0, NodePhase.UP) for capacity, _, _ in nodes])
    assert count_capacity(build(nodes), ask) == count_room(empty, ask)


@EXACT
@given(NODES, ASKS, st.integers(1, 9), st.permutations(range(6)))
def test_where_a_gang_goes_does_not_depend_on_how_the_fleet_came_to_be_so(
    nodes: list[tuple[Resources, int, NodePhase]], ask: Resources, gang: int, order: list[int]
) -> None:
    """The same occupancy, reached by taking and giving back in another order."""
    plain, winding = build(nodes), build(nodes)
    for slot in order:
        if slot < len(nodes) and winding.free_devices[slot]:
            low = winding.free_devices[slot] & -winding.free_devices[slot]
            winding.occupy(slot, 2, Resources(gpus=1), 1, low)
            winding.vacate(slot, 2, Resources(gpus=1), 1, low)
    assert find_gang(plain, ask, gang) == find_gang(winding, ask, gang)
    assert find_tasks(plain, ask, gang) == find_tasks(winding, ask, gang)
