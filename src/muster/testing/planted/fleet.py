"""Bugs planted in what nodes say of themselves: silence that kills, bars that end late, devices that are not there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final
from unittest import mock

import msgspec

from muster.kernel import attempts, nodes, quarantine
from muster.kernel.reactors import REACTORS
from muster.model.event import NodeGone, NodeSilent
from muster.model.job import BarKind, NodePhase
from muster.model.node import NO_LACK
from muster.testing.planted.plant import Plant
from muster.units import Resources
from muster.world import fleet as fleets
from muster.world.fleet import Fleet
from muster.world.queue import Queue
from muster.world.timers import Timers
from muster.world.world import World

_replace = msgspec.structs.replace


@contextlib.contextmanager
def silence_kills() -> Iterator[None]:
    """A node that is not heard of is taken for gone, and its work is started elsewhere."""

    def on_silent(turn: Any, item: NodeSilent) -> Any:
        return nodes.on_node_gone(turn, NodeGone(item.name, item.cause))

    with mock.patch.dict(REACTORS, {NodeSilent: on_silent}):
        yield


@contextlib.contextmanager
def work_for_a_silent_node() -> Iterator[None]:
    """A node that is not heard of stays in the index."""
    honest = Fleet.set_phase

    def set_phase(fleet: Fleet, slot: int, phase: NodePhase) -> None:
        honest(fleet, slot, NodePhase.UP if phase == NodePhase.UNKNOWN else phase)

    with mock.patch.object(Fleet, "set_phase", set_phase):
        yield


@contextlib.contextmanager
def work_for_a_barred_node() -> Iterator[None]:
    """A bar does not take its node out of the index."""

    def is_open(fleet: Fleet, slot: int) -> bool:
        return fleet.phase[slot] == NodePhase.UP

    with mock.patch.object(Fleet, "is_open", is_open):
        yield


@contextlib.contextmanager
def bar_never_ends() -> Iterator[None]:
    """A bar stands past its time."""
    with mock.patch.object(Timers, "find_bar", return_value=None):
        yield


@contextlib.contextmanager
def unbar_wakes_nobody() -> Iterator[None]:
    """A bar is lifted, and whoever waited for the node sleeps on."""

    honest = World.unbar

    def unbar(world: World, slot: int, kind: BarKind, owner: str) -> None:
        with mock.patch.object(Queue, "wake_all", return_value=None):
            honest(world, slot, kind, owner)

    with mock.patch.object(World, "unbar", unbar):
        yield


@contextlib.contextmanager
def drained_for_good() -> Iterator[None]:
    """A task that a drain stopped is over, as if it had failed by itself."""
    with mock.patch.object(attempts, "_verdicts", attempts._own_verdicts):
        yield


@contextlib.contextmanager
def device_counted_twice() -> Iterator[None]:
    """A device that two nodes claim counts in both."""
    with mock.patch.object(quarantine, "find_rival", return_value=None):
        yield


@contextlib.contextmanager
def phantom_device() -> Iterator[None]:
    """A node that comes back smaller while work is there stays what it was."""
    with mock.patch.object(nodes, "lack_of", return_value=NO_LACK):
        yield


@contextlib.contextmanager
def phantom_comes_free() -> Iterator[None]:
    """Whoever leaves a device that is not there any more leaves it free."""
    honest = Fleet.vacate

    def vacate(fleet: Fleet, slot: int, job: int, ask: Resources, tasks: int, devices: int) -> None:
        with mock.patch.object(fleets, "withhold", lambda *about: about[-1]):
            honest(fleet, slot, job, ask, tasks, devices)

    with mock.patch.object(Fleet, "vacate", vacate):
        yield


PLANTS: Final[tuple[Plant, ...]] = (
    silence_kills,
    work_for_a_silent_node,
    work_for_a_barred_node,
    bar_never_ends,
    unbar_wakes_nobody,
    drained_for_good,
    device_counted_twice,
    phantom_device,
    phantom_comes_free,
)
