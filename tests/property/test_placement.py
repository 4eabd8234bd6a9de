"""Placement against a reference that tries everything: no false refusal, the very node that the terms promise, and
gangs as tight as they can be. The reference shares no code with the search: it looks at every node, in plain Python."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.group import Group, parts_of
from muster.model.job import NodePhase
from muster.model.node import LEVELS, Level, Place, Traits
from muster.model.phase import Lease
from muster.model.profile import Profile
from muster.model.spec import ANYWHERE, Needs
from muster.scheduler.placing.fit import count_room, find_gang, find_tasks, widest_capacity, widest_room
from muster.units import DAY_MS, Resources
from muster.world.fleet import Fleet
from muster.world.laws.holding import plain
from muster.world.mix import Steps

EXACT = settings(derandomize=True, deadline=None, max_examples=300)
AMOUNT = st.integers(0, 40)
ASKS = st.one_of(
    st.builds(Resources, st.integers(0, 4), AMOUNT, AMOUNT, st.just(0), st.integers(0, 3), st.integers(0, 3)),
    st.builds(Resources, st.just(0), AMOUNT, AMOUNT, st.integers(1, 999)),
).filter(lambda ask: ask != Resources())
WHOLE_ASKS = st.builds(Resources, st.integers(0, 3), st.integers(0, 20), st.integers(0, 20)).filter(
    lambda ask: ask != Resources()
)
CAPACITIES = st.builds(
    Resources, st.integers(0, 6), st.integers(0, 100), st.integers(0, 100), st.just(0), st.integers(0, 9), st.just(9)
)
PLACES = st.builds(Place, st.just(""), st.sampled_from("ab"), st.sampled_from("xy"), st.sampled_from("rst"))
TRAITS = st.builds(
    Traits,
    st.sampled_from(("", "fast")),
    PLACES,
    st.sampled_from(((), (("zone", "1"),))),
    st.sampled_from(((), ("spot",))),
)
USES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 999), st.integers(0, 60), st.integers(0, 60)), max_size=3)
LOSSES = st.lists(st.tuples(st.integers(0, 80), st.integers(1, 4)), max_size=3)
"""How many days ago, and how many points."""
TODAY = 20_000
NODES = st.lists(st.tuples(CAPACITIES, TRAITS, USES, st.sampled_from(NodePhase), st.just([]) | LOSSES), max_size=9)
NEEDS = st.builds(
    Needs,
    flavors=st.sampled_from(((), ("fast",), ("gpu", "fast"), ("fast", "cpu", "gpu"))),
    any_flavor=st.booleans(),
    labels=st.sampled_from(((), ("zone=1",), ("zone!=1",), ("zone",))),
    tolerates=st.sampled_from(((), ("spot",))),
)
COMPANY_NEEDS = st.builds(
    Needs,
    within=st.sampled_from(("", "rack", "fleet")),
    spread=st.sampled_from(("", "node")),
    spread_most=st.integers(1, 3),
    tolerates=st.just(("spot",)),
    apart=st.sampled_from(((), ("t/a",), ("t/a", "t/b"))),
    apart_level=st.sampled_from(("node", "rack", "block", "cluster")),
    beside=st.sampled_from(((), ("t/c",), ("t/b", "t/c"))),
    beside_level=st.sampled_from(("node", "rack", "cluster", "fleet")),
)
SEATS = st.dictionaries(st.sampled_from(("t/a", "t/b", "t/c")), st.sets(st.integers(0, 8), max_size=3))
"""Which jobs that others mind are where."""
LEVEL_NEEDS = st.builds(
    Needs,
    within=st.sampled_from(("", "node", "rack", "block", "fleet")),
    spread=st.sampled_from(("", "node", "rack")),
    spread_most=st.integers(1, 3),
    tolerates=st.just(("spot",)),
)
GROUPS = st.lists(st.tuples(st.integers(1, 3), WHOLE_ASKS), min_size=1, max_size=3).map(
    lambda pairs: tuple(Group(f"g{place}", tasks, ask) for place, (tasks, ask) in enumerate(pairs))
)
SOME_NODES = NODES.map(lambda nodes: nodes[:5])
MIXES = st.just(()) | st.sampled_from((((2, 4),), ((2, 1), (4, 8)), ((3, 2), (5, 1), (8, 16))))
WEIGHED = Profile(fitting=700)
Nodes = list[tuple[Resources, Traits, list[tuple[int, int, int, int]], NodePhase, list[tuple[int, int]]]]


def build(nodes: Nodes, mix: Steps = ()) -> Fleet:
    """A fleet whose nodes have some of what they have taken, as far as it goes, and failed now and then."""
    fleet = Fleet()
    fleet.weigh(WEIGHED)
    fleet.mix = mix
    fleet.mention(frozenset({"zone"}))
    for slot, (capacity, traits, _, _, losses) in enumerate(nodes):
        fleet.join(slot, f"n{slot}", capacity, traits)
        for age, points in sorted(losses, reverse=True):
            fleet.losses.note(slot, points, (TODAY - age) * DAY_MS)
    fleet.settle_risks(TODAY * DAY_MS)
    for slot, (capacity, _, uses, phase, _) in enumerate(nodes):
        for device, milli, cpu, memory in uses:
            free = fleet.free(slot)
            left = fleet.devices(slot)[device] if device < capacity.gpus else 0
            ask = Resources(0, min(cpu, free.cpu_milli), min(memory, free.memory_bytes), min(milli, left))
            if ask != Resources():
                fleet.occupy(slot, 1, ask, 1, (1 << device) if ask.gpu_milli else 0)
        if phase != NodePhase.UP:
            fleet.set_phase(slot, phase)
    return fleet


def room_on(fleet: Fleet, slot: int, ask: Resources) -> int:
    """How many tasks fit on one node, by trying one more and one more."""
    if not fleet.is_open(slot):
        return 0
    free, devices = fleet.free(slot), fleet.devices(slot)
    for count in itertools.count(1):
        if ask.gpu_milli:
            enough = sum(left // ask.gpu_milli for left in devices) >= count
        else:
            enough = sum(left == 1000 for left in devices) >= ask.gpus * count
        if not enough or any(
            getattr(ask, field) * count > getattr(free, field)
            for field in ("cpu_milli", "memory_bytes", "disk_bytes", "network_mbps")
        ):
            return count - 1
    raise AssertionError


def may_use(fleet: Fleet, slot: int, needs: Needs) -> bool:
    """Whether flavor, taints and labels let an ask onto a node."""
    traits = fleet.traits[slot]
    zone = dict(traits.labels).get("zone")
    wishes = {"zone=1": zone == "1", "zone!=1": zone != "1", "zone": zone is not None}
    return (
        (not needs.flavors or fleet.flavor(slot) in needs.flavors)
        and not any(slot in around(fleet, name, needs.apart_level) for name in needs.apart)
        and all(slot in around(fleet, name, needs.beside_level) for name in needs.beside)
        and all(taint in needs.tolerates for taint in traits.taints)
        and all(wishes[wish] for wish in needs.labels)
    )


def around(fleet: Fleet, name: str, level: str) -> list[int]:
    """The nodes that are in one domain of a level with a job."""
    seats = fleet.company.by_name.get(name, {})
    if level == "node":
        return list(seats)
    places = [traits.place for traits in fleet.traits]
    homes = [places[seat].path(LEVELS[level]) for seat in seats]
    return [slot for slot, place in enumerate(places) if place.path(LEVELS[level]) in homes]


def step(amount: int, most: int) -> int:
    """How many of the bounds an amount reaches; the bounds are rounded down, but for 3/4, which is rounded up."""
    bounds = [most // 16, most // 8, most // 4, most // 2, most - most // 4]
    return 6 if amount >= most else sum(amount >= bound for bound in bounds)


def risk(nodes: Nodes, slot: int) -> int:
    """0, 1 from three points on, 2 from six on; a point weighs half after a week and nothing after ten."""
    weights = [count * int(2**20 * 2 ** (-age / 7)) for age, count in nodes[slot][4] if age <= 70]
    return (sum(weights) >= 3 * 2**20) + (sum(weights) >= 6 * 2**20)


def fitting(mix: Steps, most: int, before: int, after: int) -> int:
    """From 0 to 1000: how much less a placement strands for the mix than the worst would."""
    worst = sum(weight * min(most, size - 1) for size, weight in mix)
    stranded = sum(weight * (after % size - before % size) for size, weight in mix)
    return 1000 * (worst - stranded) // (2 * worst) if worst else 1000


def points(fleet: Fleet, nodes: Nodes, slot: int, ask: Resources) -> int:
    """The weighted terms, from their words."""
    capacity, free = fleet.capacity(slot), fleet.free(slot)
    most, left = capacity.gpus, free.gpus - ask.gpus
    cpu, memory = step(free.cpu_milli, capacity.cpu_milli), step(free.memory_bytes, capacity.memory_bytes)
    pools = [pool_key(fleet, other) for other in range(len(fleet))]
    common = 1000 - (1000 - 1000 * pools.count(pool_key(fleet, slot)) // len(pools))
    surely_mends = (
        ask.gpu_milli and (500 if free.gpu_milli >= 500 else 250 if free.gpu_milli >= 250 else 1) >= ask.gpu_milli
    )
    breaks = ask.gpu_milli and not (free.gpu_milli and surely_mends)
    terms = {
        "packing": 1000 * (most - left) // most if most else 0,
        "filling": 1000 * (12 - cpu - memory) // 12,
        "balance": 1000 - 1000 * abs(6 * left - most * cpu) // (6 * most) if most else 1000,
        "sparing": 1000 if ask.gpus or ask.gpu_milli or not most else 1000 - 1000 * free.gpus // most,
        "mending": 1000 if free.gpu_milli and surely_mends else 0,
        "scarcity": common,
        "cost": 1000,
        "steadiness": 1000 - 500 * risk(nodes, slot),
        "fitting": fitting(fleet.mix, most, free.gpus, max(0, free.gpus - 1) if breaks else left),
    }
    return sum(getattr(WEIGHED, name) * value for name, value in terms.items())


def pool_key(fleet: Fleet, slot: int) -> object:
    traits = fleet.traits[slot]
    return (
        traits.place.region,
        traits.place.cluster,
        fleet.flavor(slot),
        fleet.capacity(slot),
        traits.taints,
        traits.labels,
    )


def check_leases(fleet: Fleet, ask: Resources, leases: list[Lease], tasks: int) -> None:
    """The leases are real: nodes that are up, free devices, and the fleet takes them; the index stays in order."""
    assert sum(lease.tasks for lease in leases) == tasks
    for lease in leases:
        assert fleet.is_open(lease.slot)
        fleet.occupy(lease.slot, 9, ask, lease.tasks, lease.devices)
    assert fleet.find_index_fault() is None


@EXACT
@given(NODES, ASKS, NEEDS, MIXES)
def test_one_task_goes_to_the_best_node_of_all(nodes: Nodes, ask: Resources, needs: Needs, mix: Steps) -> None:
    fleet = build(nodes, mix)
    fitting = [slot for slot in range(len(fleet)) if may_use(fleet, slot, needs) and room_on(fleet, slot, ask)]
    leases = find_gang(fleet, ask, 1, needs)
    if not fitting:
        assert leases is None, "something was found where nothing fits"
        return
    assert leases is not None, "a false refusal"

    def key(slot: int) -> tuple[int, int, int]:
        ordered = needs.flavors and not needs.any_flavor
        return (needs.flavors.index(fleet.flavor(slot)) if ordered else 0, -points(fleet, nodes, slot, ask), slot)

    assert leases[0].slot == min(fitting, key=key)
    check_leases(fleet, ask, leases, 1)


class Wanted(NamedTuple):
    """What a gang looks for, and where: on nodes of one flavor, or any; and not on those it keeps off."""

    ask: Resources
    needs: Needs
    gang: int
    flavor: str | None = None
    avoids: tuple[int, ...] = ()


def rooms_at(fleet: Fleet, wanted: Wanted, level: Level) -> dict[object, int]:
    """Room by domain of a level, as spread leaves it."""
    ask, needs = wanted.ask, wanted.needs
    rooms: dict[object, int] = {}
    for slot in range(len(fleet)):
        is_wanted = slot not in wanted.avoids and wanted.flavor in (None, fleet.flavor(slot))
        if is_wanted and may_use(fleet, slot, needs):
            rooms[slot] = room_on(fleet, slot, ask)
    for here in Level:
        if needs.spread and here <= LEVELS[needs.spread]:
            rooms = {domain: min(room, needs.spread_most) for domain, room in rooms.items()}
        if here == level:
            return rooms
        above: dict[object, int] = {}
        for domain, room in rooms.items():
            slot = domain if isinstance(domain, int) else domain[1]  # type: ignore[index]  # (path, any slot in it)
            up = Level(here + 1)
            path = ("fleet",) if up == Level.FLEET else fleet.traits[slot].place.path(up)
            known = next((key for key in above if key[0] == path), (path, slot))  # type: ignore[index]  # as above
            above[known] = above.get(known, 0) + room
        rooms = above
    raise AssertionError


def tries(fleet: Fleet, nodes: Nodes, ask: Resources, gang: int, needs: Needs) -> list[Wanted]:
    """What is tried, one after the other: a gang that takes devices keeps to one flavor, one that does not may mix;
    and in each, first without the nodes that are too much of a risk for a gang of that size."""
    flavors = [*sorted({fleet.flavor(slot) for slot in range(len(fleet))})] if ask.gpus else [None]
    avoids = tuple(slot for slot in range(len(fleet)) if risk(nodes, slot) * gang >= 4)
    return [Wanted(ask, needs, gang, flavor, slots) for flavor in flavors for slots in (avoids, ())]


def takes(fleet: Fleet, wanted: Wanted, level: Level) -> bool:
    """Whether a domain of a level takes the whole gang."""
    return max(rooms_at(fleet, wanted, level).values(), default=0) >= wanted.gang


@EXACT
@given(NODES, WHOLE_ASKS, st.integers(2, 9), LEVEL_NEEDS)
def test_a_gang_gets_the_tightest_domain_or_is_refused_because_none_takes_it(
    nodes: Nodes, ask: Resources, gang: int, needs: Needs
) -> None:
    fleet = build(nodes)
    within = LEVELS[needs.within or "cluster"]
    found = find_gang(fleet, ask, gang, needs)
    chosen = next((one for one in tries(fleet, nodes, ask, gang, needs) if takes(fleet, one, within)), None)
    assert (found is not None) == (chosen is not None), "a false refusal, or a false promise"
    assert (widest_room(fleet, ask, gang, needs) >= gang) == (chosen is not None)
    if found is None or chosen is None:
        return
    assert not {lease.slot for lease in found} & set(chosen.avoids), "it fits without the nodes that are a risk"
    level = next(level for level in Level if takes(fleet, chosen, level))
    assert len(domains(fleet, found, level)) == 1, "a tighter domain would have done"
    if not needs.spread:
        check_fewest(fleet, chosen, found, level)
    check_leases(fleet, ask, found, gang)


def seat(fleet: Fleet, seats: dict[str, set[int]]) -> None:
    fleet.company.by_name = {name: {slot: 1 for slot in slots if slot < len(fleet)} for name, slots in seats.items()}


@EXACT
@given(NODES, WHOLE_ASKS, st.integers(1, 9), COMPANY_NEEDS, SEATS)
def test_a_gang_is_in_the_company_it_wants_or_there_is_no_such_place(
    nodes: Nodes, ask: Resources, gang: int, needs: Needs, seats: dict[str, set[int]]
) -> None:
    fleet = build(nodes)
    seat(fleet, seats)
    within = LEVELS[needs.within or "cluster"]
    found = find_gang(fleet, ask, gang, needs)
    tried = [Wanted(ask, needs, gang, None)] if gang == 1 else tries(fleet, nodes, ask, gang, needs)
    fits = any(takes(fleet, one, within) for one in tried)
    assert (found is not None) == fits, "a false refusal, or a false promise"
    assert (widest_room(fleet, ask, gang, needs) >= gang) == fits
    room = sum(room_on(fleet, slot, ask) for slot in range(len(fleet)) if may_use(fleet, slot, needs))
    assert count_room(fleet, ask, needs) == room
    assert sum(lease.tasks for lease in find_tasks(fleet, ask, 50, needs)) == min(room, 50)
    assert fleet.find_index_fault() is None, "whoever was left out is let in again"
    if found is not None:
        assert all(may_use(fleet, lease.slot, needs) for lease in found)
        check_leases(fleet, ask, found, gang)


def domains(fleet: Fleet, leases: list[Lease], level: Level) -> set[object]:
    if level == Level.NODE:
        return {lease.slot for lease in leases}
    return {() if level == Level.FLEET else fleet.traits[lease.slot].place.path(level) for lease in leases}


def check_fewest(fleet: Fleet, wanted: Wanted, leases: list[Lease], level: Level) -> None:
    """One level below the domain that was chosen, no smaller number of domains would have held the gang."""
    if level == Level.NODE:
        return
    below = Level(level - 1)
    home = () if level == Level.FLEET else fleet.traits[leases[0].slot].place.path(level)
    inside: list[int] = []
    for domain, room in rooms_at(fleet, wanted, below).items():
        slot = domain if isinstance(domain, int) else domain[1]  # type: ignore[index]  # (path, any slot in it)
        if level == Level.FLEET or fleet.traits[slot].place.path(level) == home:
            inside.append(room)
    inside.sort(reverse=True)
    fewest = next(width for width in range(1, len(inside) + 1) if sum(inside[:width]) >= wanted.gang)
    assert len(domains(fleet, leases, below)) == fewest, "a gang goes to the fewest domains"


def divides(fleet: Fleet, slots: list[list[int]], groups: tuple[Group, ...]) -> bool:
    """Whether some division puts every task of every group on a node of its own, by trying them all."""
    free = [[sum(left == 1000 for left in fleet.devices(slot)), *plain(fleet.free(slot))] for slot in range(len(fleet))]
    tasks = [(group, here) for group, here in zip(groups, slots, strict=True) for _ in range(group.tasks)]

    def put(task: int, least: int) -> bool:
        if task == len(tasks):
            return True
        group, here = tasks[task]
        ask = [group.ask.gpus, *plain(group.ask)]
        for slot in here:
            if slot < least or any(have < want for have, want in zip(free[slot], ask, strict=True)):
                continue
            free[slot] = [have - want for have, want in zip(free[slot], ask, strict=True)]
            follows = task + 1 < len(tasks) and tasks[task + 1][0] is group
            if put(task + 1, slot if follows else 0):
                return True
            free[slot] = [have + want for have, want in zip(free[slot], ask, strict=True)]
        return False

    return put(0, 0)


def groups_fit(fleet: Fleet, needs: Needs, flavor: str, inside: list[int]) -> bool:
    """Whether all groups fit on some nodes together, with devices of one flavor."""
    usable = [slot for slot in inside if fleet.is_open(slot) and may_use(fleet, slot, needs)]
    fast = [slot for slot in usable if fleet.flavor(slot) == flavor]
    return divides(fleet, [fast if group.ask.gpus else usable for group in needs.groups], needs.groups)


def homes(fleet: Fleet, level: Level) -> list[list[int]]:
    """The nodes of each domain of a level."""
    found: dict[object, list[int]] = {}
    for slot, traits in enumerate(fleet.traits):
        path: object = slot if level == Level.NODE else () if level == Level.FLEET else traits.place.path(level)
        found.setdefault(path, []).append(slot)
    return list(found.values())


@settings(EXACT, max_examples=150)
@given(
    SOME_NODES,
    GROUPS,
    st.sampled_from(("", "node", "rack", "fleet")),
    st.sampled_from(((), ("fast",), ("gpu", "fast"))),
)
def test_groups_go_together_to_the_tightest_domain_that_holds_them_all(
    nodes: Nodes, groups: tuple[Group, ...], within: str, flavors: tuple[str, ...]
) -> None:
    fleet = build(nodes)
    needs = Needs(groups=groups, within=within, flavors=flavors, tolerates=("spot",))
    tasks, has_devices = sum(group.tasks for group in groups), any(group.ask.gpus for group in groups)
    order = list(flavors) or sorted({fleet.flavor(slot) for slot in range(len(fleet))})
    levels = [level for level in Level if level <= LEVELS[within or "cluster"]]
    tried = [(flavor, level) for flavor in (order if has_devices else [""]) for level in levels]
    fitting = (
        (f, level, [here for here in homes(fleet, level) if groups_fit(fleet, needs, f, here)]) for f, level in tried
    )
    wanted = next((each for each in fitting if each[2]), None)
    found = find_gang(fleet, groups[0].ask, tasks, needs)
    assert (found is None) == (wanted is None), "a false refusal, or a false promise"
    assert widest_room(fleet, groups[0].ask, tasks, needs) == (tasks if wanted else 0)
    if found is not None and wanted is not None:
        check_groups(fleet, needs, found, wanted)


def check_groups(fleet: Fleet, needs: Needs, found: list[Lease], wanted: tuple[str, Level, list[list[int]]]) -> None:
    flavor, level, domains = wanted
    by_devices = any(group.ask.gpus for group in needs.groups)

    def free_in(here: list[int]) -> tuple[int, ...]:
        """Of nodes, whole devices and then CPU; of wider domains, devices if any are asked for, and else CPU."""
        if level == Level.NODE:
            return sum(left == 1000 for left in fleet.devices(here[0])), fleet.free(here[0]).cpu_milli
        spare = [slot for slot in here if fleet.is_open(slot)]
        return (sum(sum(fleet.devices(slot)) if by_devices else fleet.free(slot).cpu_milli for slot in spare),)

    used = {lease.slot for lease in found}
    least = min(map(free_in, domains))
    assert any(used <= set(here) and free_in(here) == least for here in domains), "the tightest that takes it"
    parts = parts_of(needs.groups, found)
    for group, (ask, leases) in zip(needs.groups, parts, strict=True):
        assert ask == group.ask
        assert not group.ask.gpus or {fleet.flavor(lease.slot) for lease in leases} == {flavor}
        check_leases(fleet, ask, list(leases), group.tasks)


@EXACT
@given(NODES, WHOLE_ASKS, st.integers(1, 4), st.integers(1, 4))
def test_slices_stay_together(nodes: Nodes, ask: Resources, slices: int, width: int) -> None:
    fleet = build(nodes)
    needs = Needs(slice="rack", slice_tasks=width, tolerates=("spot",))
    found = find_gang(fleet, ask, slices * width, needs)
    if found is None:
        return
    by_rack: dict[object, int] = {}
    for lease in found:
        rack = fleet.traits[lease.slot].place.path(Level.RACK)
        by_rack[rack] = by_rack.get(rack, 0) + lease.tasks
    assert all(tasks % width == 0 for tasks in by_rack.values())
    check_leases(fleet, ask, found, slices * width)


@EXACT
@given(NODES, ASKS, st.integers(1, 20))
def test_tasks_of_an_array_get_all_the_room_there_is(nodes: Nodes, ask: Resources, most: int) -> None:
    fleet = build(nodes)
    needs = Needs(tolerates=("spot",))
    room = sum(room_on(fleet, slot, ask) for slot in range(len(fleet)))
    assert count_room(fleet, ask, needs) == room
    check_leases(fleet, ask, find_tasks(fleet, ask, most, needs), min(most, room))


@EXACT
@given(NODES, WHOLE_ASKS, st.integers(1, 9))
def test_capacity_is_the_room_of_an_empty_fleet_that_is_all_up(nodes: Nodes, ask: Resources, gang: int) -> None:
    empty = build([(capacity, traits, [], NodePhase.UP, []) for capacity, traits, *_ in nodes])
    assert widest_capacity(build(nodes), ask, gang, ANYWHERE) == widest_room(empty, ask, gang, ANYWHERE)


@EXACT
@given(NODES, WHOLE_ASKS, st.integers(1, 9), st.permutations(range(9)))
def test_where_a_gang_goes_does_not_depend_on_how_the_fleet_came_to_be_so(
    nodes: Nodes, ask: Resources, gang: int, order: list[int]
) -> None:
    """The same occupancy, reached by taking and giving back in another order, with searches in between."""
    plain, winding = build(nodes), build(nodes)
    for slot in order:
        if slot < len(nodes) and plain.free(slot).cpu_milli:
            amount = Resources(cpu_milli=plain.free(slot).cpu_milli)
            winding.occupy(slot, 2, amount, 1, 0)
            find_gang(winding, ask, 1)
            winding.vacate(slot, 2, amount, 1, 0)
            find_gang(winding, ask, gang)
    assert find_gang(plain, ask, gang) == find_gang(winding, ask, gang)
    assert find_tasks(plain, ask, gang) == find_tasks(winding, ask, gang)


def test_thirds_of_the_bounds_are_where_the_words_say() -> None:
    """The reference's steps are the fractions that the page names, for capacities that divide."""
    bounds = [Fraction(1, 16), Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(1)]
    assert [step(int(bound * 160), 160) for bound in bounds] == [1, 2, 3, 4, 5, 6]
    assert [step(int(bound * 160) - 1, 160) for bound in bounds] == [0, 1, 2, 3, 4, 5]
