"""Bugs planted in where things go: devices given twice, gangs in parts, indexes and scores that remember."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final
from unittest import mock

import msgspec

from muster.model.errors import InvariantError
from muster.model.partition import devices_in, slots_in, word_of
from muster.model.phase import Lease
from muster.model.profile import Profile
from muster.model.spec import ANYWHERE, Needs, Spec
from muster.scheduler import cycle
from muster.scheduler.placing import fit
from muster.scheduler.placing.pieces import choose_slots
from muster.testing.planted.plant import Plant
from muster.units import Limit, Resources
from muster.world.fleet import Fleet
from muster.world.losses import Losses
from muster.world.mix import Mix
from muster.world.queue import Queue
from muster.world.world import World

_replace = msgspec.structs.replace


@contextlib.contextmanager
def device_given_twice() -> Iterator[None]:
    """Placement takes the node's first devices, whether they are free or not, and the node does not look."""
    honest = fit._find_one

    def careless(fleet: Fleet, ask: Resources, needs: Needs, pools: fit.Pools, job: int) -> list[Lease] | None:
        found = honest(fleet, ask, needs, pools, job)
        return None if found is None else [Lease(lease.slot, 1, (1 << ask.gpus) - 1) for lease in found]

    with mock.patch.object(fit, "_find_one", careless), unguarded_nodes():
        yield


@contextlib.contextmanager
def capacity_overrun() -> Iterator[None]:
    """CPU is not looked at: neither where a task goes, nor by the node it goes to."""
    honest = fit._find_one

    def careless(fleet: Fleet, ask: Resources, needs: Needs, pools: fit.Pools, job: int) -> list[Lease] | None:
        return honest(fleet, _replace(ask, cpu_milli=0, memory_bytes=0), needs, pools, job)

    with mock.patch.object(fit, "_find_one", careless), unguarded_nodes():
        yield


@contextlib.contextmanager
def unguarded_nodes() -> Iterator[None]:
    """A node gives away what it does not have."""
    occupy, vacate = Fleet.occupy, Fleet.vacate

    def take(fleet: Fleet, slot: int, job: int, ask: Resources, tasks: int, devices: int) -> None:
        with contextlib.suppress(InvariantError):
            occupy(fleet, slot, job, ask, tasks, devices)

    def give(fleet: Fleet, slot: int, job: int, ask: Resources, tasks: int, devices: int) -> None:
        with contextlib.suppress(InvariantError):
            vacate(fleet, slot, job, ask, tasks, devices)

    with mock.patch.object(Fleet, "occupy", take), mock.patch.object(Fleet, "vacate", give):
        yield


@contextlib.contextmanager
def partitions_overlap() -> Iterator[None]:
    """A partition begins in the first slot in which it may, whoever is there already."""

    def first(fleet: Fleet, slot: int, milli: int, name: str) -> int:  # noqa: ARG001 - not looking is the bug
        flavor = fleet.cuts[fleet.flavor(slot)]
        piece = next(each for each in flavor.partitions if each.name == name)
        return word_of(0, (1 << piece.size) - 1 << piece.starts[0])

    with mock.patch.object(fit, "choose_slots", first), unguarded_nodes():
        yield


@contextlib.contextmanager
def partition_begins_anywhere() -> Iterator[None]:
    """A partition begins in any slot that is free, whether it may begin there or not."""
    honest = choose_slots

    def shifted(fleet: Fleet, slot: int, milli: int, name: str) -> int:
        word = honest(fleet, slot, milli, name)
        device, slots = devices_in(word).bit_length() - 1, slots_in(word) << 1
        fits = not slots & fleet.slots_taken(slot)[device] and slots < 1 << fleet.cuts[fleet.flavor(slot)].slots
        return word_of(device, slots) if fits else word

    with mock.patch.object(fit, "choose_slots", shifted):
        yield


@contextlib.contextmanager
def partial_gang() -> Iterator[None]:
    """A gang that does not fit starts with as much of it as does."""
    honest = fit.find_gang

    def find(
        fleet: Fleet, ask: Resources, gang: int, needs: Needs, pools: fit.Pools = None, job: int = 0
    ) -> list[Lease] | None:
        found = honest(fleet, ask, gang, needs, pools, job)
        while found is None and gang > 1:
            gang -= 1
            found = honest(fleet, ask, gang, needs, pools, job)
        return found

    with mock.patch.object(cycle, "find_gang", find):
        yield


@contextlib.contextmanager
def box_with_a_hole() -> Iterator[None]:
    """A gang with a shape gets nodes that are free, wherever they are."""

    def anywhere(fleet: Fleet, ask: Resources, gang: int, needs: Needs, pools: fit.Pools) -> list[Lease] | None:
        return fit.find_gang(fleet, ask, gang, _replace(needs, shape=(), spread="node"), pools)

    with mock.patch.object(fit, "_find_box", anywhere):
        yield


@contextlib.contextmanager
def index_with_history() -> Iterator[None]:
    """A task goes to the node that was used last, if it fits there, and not to the best."""
    honest = fit._find_one

    def last_used(fleet: Fleet, ask: Resources, needs: Needs, pools: fit.Pools, job: int) -> list[Lease] | None:
        is_plain = not ask.gpu_milli and needs == ANYWHERE and pools is None
        for slot in reversed(fleet.holders) if is_plain else ():
            free = fleet.find_free(slot)
            if free is not None and ask.gpus <= free[0] and ask.cpu_milli <= free[1] and ask.memory_bytes <= free[2]:
                return [fit._lease(fleet.words, slot, ask)]
        return honest(fleet, ask, needs, pools, job)

    with mock.patch.object(fit, "_find_one", last_used):
        yield


@contextlib.contextmanager
def scores_remembered() -> Iterator[None]:
    """Scores that another profile gave are still believed."""

    def weigh(fleet: Fleet, profile: Profile, jobs: object = None) -> None:  # noqa: ARG001 - as the honest one
        fleet.profile = profile

    with mock.patch.object(Fleet, "weigh", weigh):
        yield


@contextlib.contextmanager
def losses_decay() -> Iterator[None]:
    """What a node lost is halved whenever its risk is weighed."""
    honest = Losses.settle

    def settle(losses: Losses, at: int) -> bool:
        losses.by_slot = {slot: tuple((day, lost // 2) for day, lost in days) for slot, days in losses.by_slot.items()}
        return honest(losses, at)

    with mock.patch.object(Losses, "settle", settle):
        yield


@contextlib.contextmanager
def risk_not_settled() -> Iterator[None]:
    """A node is of the risk that it had when the fleet was last laid out for another reason."""

    def settle_risks(fleet: Fleet, at: int) -> None:
        fleet.losses.settle(at)

    with mock.patch.object(Fleet, "settle_risks", settle_risks):
        yield


@contextlib.contextmanager
def mix_keeps_the_dead() -> Iterator[None]:
    """Whoever is over still counts in the mix."""
    honest = Mix.add

    def add(mix: Mix, spec: Spec, sign: int) -> None:
        if sign > 0:
            honest(mix, spec, sign)

    with mock.patch.object(Mix, "add", add):
        yield


@contextlib.contextmanager
def company_ignored() -> Iterator[None]:
    """Nobody is kept apart from anybody."""

    @contextlib.contextmanager
    def screened(fleet: Fleet, needs: Needs) -> Iterator[None]:  # noqa: ARG001 - not looking is the bug
        yield

    with mock.patch.object(fit, "screened", screened):
        yield


@contextlib.contextmanager
def company_wakes_nobody() -> Iterator[None]:
    """Whoever minds somebody sleeps on when that one leaves."""
    with mock.patch.object(Queue, "wake_company", return_value=None):
        yield


@contextlib.contextmanager
def groups_charged_alike() -> Iterator[None]:
    """The quota counts every task of a gang as one of its first group."""
    honest = World.charge

    def charge(world: World, spec: Spec, leases: Sequence[Lease], at: int, end: Limit = None, sign: int = 1) -> None:
        groups = spec.needs.groups
        alike = _replace(spec, ask=groups[0].ask, needs=ANYWHERE) if groups else spec
        honest(world, alike, leases, at, end, sign)

    with mock.patch.object(World, "charge", charge):
        yield


@contextlib.contextmanager
def groups_in_any_order() -> Iterator[None]:
    """The leases of a gang are in the order of nodes, whatever groups they are of."""
    honest = fit._find_groups

    def find(fleet: Fleet, needs: Needs, pools: fit.Pools, doubts: list[int]) -> list[Lease] | None:
        leases = honest(fleet, needs, pools, doubts)
        return None if leases is None else sorted(leases, key=lambda lease: (lease.slot, -lease.devices))

    with mock.patch.object(fit, "_find_groups", find), unguarded_nodes():
        yield


@contextlib.contextmanager
def stale_wakeup() -> Iterator[None]:
    """What comes free wakes nobody."""
    with mock.patch.object(Queue, "wake_for_room", return_value=None):
        yield


@contextlib.contextmanager
def gangs_sleep_too_long() -> Iterator[None]:
    """A gang that found no room waits until as much came free as if nothing had been."""
    with mock.patch.object(cycle, "count_short", lambda _fleet, ask, gang, _needs: gang if ask.gpus else 0):
        yield


PLANTS: Final[tuple[Plant, ...]] = (
    device_given_twice,
    partitions_overlap,
    partition_begins_anywhere,
    capacity_overrun,
    partial_gang,
    box_with_a_hole,
    index_with_history,
    scores_remembered,
    losses_decay,
    risk_not_settled,
    mix_keeps_the_dead,
    company_ignored,
    company_wakes_nobody,
    groups_charged_alike,
    groups_in_any_order,
    stale_wakeup,
    gangs_sleep_too_long,
)
