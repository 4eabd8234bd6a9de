"""The fleet as a reader sees it: nodes and flavors, what is free of them, and what keeps work off. Built on read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from muster.control.story import device_list
from muster.control.views import show_place, words_on
from muster.model.errors import RejectedError
from muster.model.job import Bar, NodePhase
from muster.model.node import NO_LACK, Flavor, flavor_of
from muster.model.partition import show_partition, start_in
from muster.model.reason import Reason
from muster.units import show_sides
from muster.wire.views import BarView, DeviceView, FlavorView, LaterView, NodeView
from muster.world.fleet import Fleet
from muster.world.world import World

FILTERS: Final = ("flavor", "region", "cluster", "block", "rack", "phase")
"""What a listing of nodes can be narrowed by."""

replace = msgspec.structs.replace


def view_nodes(world: World, wanted: Mapping[str, str] | None = None) -> list[NodeView]:
    """Every node that is what is wanted, by slot."""
    return [view for _, view in walk_nodes(world, wanted or {})]


def walk_nodes(world: World, wanted: Mapping[str, str], after: int = -1) -> Iterator[tuple[int, NodeView]]:
    """The same one by one, each with its slot, from beyond a slot on."""
    pairs = list(wanted.items())
    for slot in range(after + 1, len(world.fleet)):
        view = _view(world, slot)
        if all(getattr(view, field) == value for field, value in pairs):
            yield slot, view


def view_node(world: World, reference: str, sees: Callable[[str], bool] = bool) -> NodeView:
    """One node, with its devices, and the jobs there of tenants that its reader sees; RejectedError if nobody is
    meant, or several are."""
    fleet = world.fleet
    slot = fleet.find_slot(reference)
    if isinstance(slot, Reason):
        raise RejectedError(slot)
    ids, missing = fleet.device_ids.get(slot, ()), fleet.lacks.get(slot, NO_LACK).devices
    cut = _partitions_on(world, slot)
    devices = [
        DeviceView(number, free, ids[number] if ids else "", bool(missing >> number & 1), cut.get(number, []))
        for number, free in enumerate(fleet.devices(slot))
    ]
    seen = [job for job in sorted(fleet.holders.get(slot, ())) if sees(world.jobs[job].spec.tenant)]
    return replace(_view(world, slot), devices=devices, job_ids=seen)


def view_flavors(world: World) -> list[FlavorView]:
    """Every flavor that was set or has nodes, by name."""
    fleet = world.fleet
    found = {name: _flavor(name, flavor) for name, flavor in world.flavors.items()}
    for slot in range(len(fleet)):
        name = fleet.flavor(slot)
        view = found.get(name) or _flavor(name, world.flavor_of(slot))
        free = fleet.find_free(slot)
        found[name] = replace(
            view,
            nodes=view.nodes + 1,
            devices=view.devices + fleet.capacity(slot).gpus,
            free=view.free + (0 if free is None else free[0]),
        )
    return [found[name] for name in sorted(found)]


def _flavor(name: str, flavor: Flavor) -> FlavorView:
    shown = [show_partition(each) for each in flavor.partitions]
    return FlavorView(
        name,
        flavor.family,
        flavor.units,
        flavor.price_micros,
        watts=flavor.watts,
        core_watts=flavor.core_watts,
        slots=flavor.slots,
        partitions=shown,
    )


def _partitions_on(world: World, slot: int) -> dict[int, list[str]]:
    """The partitions on each device of a node, the lowest first."""
    found: dict[int, list[tuple[int, str]]] = {}
    for number in world.fleet.holders.get(slot, ()):
        job = world.jobs[number]
        for word in words_on(world, job, slot) if job.spec.needs.partition else ():
            found.setdefault(device_list(word)[0], []).append((start_in(word), show_place(job.spec, word)))
    return {device: [shown for _, shown in sorted(each)] for device, each in found.items()}


def _slots_of(fleet: Fleet, slot: int) -> tuple[int, int]:
    """How many slots the devices of a node are cut into, and how many of them are free."""
    flavor = fleet.cuts.get(fleet.flavor(slot))
    if flavor is None:
        return 0, 0
    pairs = list(zip(fleet.devices(slot), fleet.slots_taken(slot), strict=True))
    return flavor.slots * len(pairs), sum(flavor.slots - taken.bit_count() for rest, taken in pairs if rest)


def _view(world: World, slot: int) -> NodeView:
    fleet, traits = world.fleet, world.fleet.traits[slot]
    place, lack = traits.place, fleet.lacks.get(slot)
    slots, slots_free = _slots_of(fleet, slot)
    return NodeView(
        name=fleet.shown()[slot],
        phase=NodePhase(fleet.phase[slot]).name.lower(),
        capacity=fleet.capacity(slot),
        free=fleet.free(slot),
        jobs=len(fleet.holders.get(slot, ())),
        bars=[_bar(bar) for bar in fleet.bars.get(slot, ())],
        address=fleet.addresses[slot],
        flavor=fleet.flavor(slot),
        region=place.region,
        cluster=place.cluster,
        block=place.block,
        rack=place.rack,
        labels=dict(traits.labels),
        taints=list(traits.taints),
        lacks=None if lack is None else lack.amount,
        torus="" if traits.spot is None else traits.spot.torus,
        spot="" if traits.spot is None else f"{show_sides(traits.spot.at)} of {show_sides(traits.spot.size)}",
        losses=fleet.losses.count(slot, world.now),
        slots=slots,
        slots_free=slots_free,
        later=_later(fleet, slot),
    )


def _later(fleet: Fleet, slot: int) -> LaterView | None:
    said = fleet.said.get(slot)
    if said is None:
        return None
    place = said.traits.place
    flavor = flavor_of(said.traits, said.capacity)
    return LaterView(said.capacity, flavor, place.region, place.cluster, place.block, place.rack)


def _bar(bar: Bar) -> BarView:
    return BarView(bar.kind.value, bar.owner, bar.since, bar.reason, bar.until, bar.lets_finish)
