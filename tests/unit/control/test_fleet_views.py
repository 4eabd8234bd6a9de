"""The fleet as a reader sees it: every trait of a node, what it lacks, and kinds of capacity counted right."""

from __future__ import annotations

import pytest

from muster.control.fleet import view_flavors, view_node, view_nodes
from muster.model.errors import RejectedError
from muster.model.event import BarNode, Held, NodeSeen, SetFlavor
from muster.model.job import BarKind
from muster.model.node import Flavor, Place, Traits
from muster.testing.rig import Rig
from muster.units import Resources
from muster.wire.views import DeviceView, FlavorView, LaterView

NODE = Resources(2, 8000, 2**34)


def fleet() -> Rig:
    """Two nodes of one name, one of them with a label and named devices; one without GPUs."""
    rig = Rig()
    alpha = Traits("h100", Place("eu", "alpha", "b1", "r1"), (("zone", "a"),), ("spot",))
    beta = Traits("a100", Place("eu", "beta", "", "r2"))
    rig.feed(NodeSeen("n", NODE, traits=alpha, devices=("x", "y")), NodeSeen("n", NODE, traits=beta))
    rig.feed(NodeSeen("plain", Resources(cpu_milli=4000)))
    return rig


def test_a_node_shows_all_that_it_said() -> None:
    view = view_nodes(fleet().world)[0]
    assert (view.name, view.address, view.flavor) == ("eu/alpha/n", "eu/alpha/n", "h100")
    assert (view.region, view.cluster, view.block, view.rack) == ("eu", "alpha", "b1", "r1")
    assert (view.labels, view.taints) == ({"zone": "a"}, ["spot"])
    assert (view.devices, view.job_ids, view.lacks) == ([], [], None), "told of one node, not of a listing"


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({}, ["eu/alpha/n", "eu/beta/n", "plain"]),
        ({"flavor": "cpu"}, ["plain"]),
        ({"rack": "r2"}, ["eu/beta/n"]),
        ({"region": "eu", "flavor": "h100"}, ["eu/alpha/n"]),
        ({"phase": "gone"}, []),
    ],
)
def test_a_listing_is_narrowed_by_what_nodes_are(wanted: dict[str, str], names: list[str]) -> None:
    assert [view.name for view in view_nodes(fleet().world, wanted)] == names


def test_one_node_is_shown_with_its_devices_and_what_it_lacks() -> None:
    rig = fleet()
    job = rig.submit(ask=Resources(cpu_milli=100, gpu_milli=250))
    traits = rig.world.fleet.traits[1]
    rig.feed(NodeSeen("n", Resources(1, 8000, 2**34), (Held(job, 1, 0, 1),), traits=traits))
    view = view_node(rig.world, "beta/n")
    assert view.devices == [DeviceView(0, 750), DeviceView(1, 0, is_missing=True)]
    assert (view.job_ids, view.lacks, view.capacity.gpus) == ([job], Resources(1), 1)
    assert [device.id for device in view_node(rig.world, "eu/alpha/n").devices] == ["x", "y"]


def test_a_busy_node_shows_what_it_will_be_once_it_is_idle() -> None:
    rig = fleet()
    job = rig.submit(gpus=2)
    slot = rig.run(job).leases[0].slot
    name, traits = rig.world.fleet.addresses[slot], rig.world.fleet.traits[slot]
    more, moved = Resources(4, 8000, 2**34), Traits("b200", Place(traits.place.region, traits.place.cluster, "b9"))
    devices = rig.world.fleet.device_ids.get(slot, ())
    named = (*devices, "more", "most") if devices else ()
    rig.feed(NodeSeen("n", more, (Held(job, 1, 0, 1),), traits=moved, devices=named))
    assert view_node(rig.world, name).later == LaterView(more, "b200", "eu", traits.place.cluster, "b9")
    rig.exit(job)
    view = view_node(rig.world, name)
    assert (view.later, view.flavor, view.capacity, view.block) == (None, "b200", more, "b9")


@pytest.mark.parametrize(("name", "code"), [("n", "M125"), ("nobody", "M124"), ("", "M124")])
def test_who_is_not_meant_is_refused(name: str, code: str) -> None:
    with pytest.raises(RejectedError, match=code):
        view_node(fleet().world, name)


def test_flavors_are_counted_over_their_nodes() -> None:
    rig = fleet()
    rig.feed(SetFlavor("h100", Flavor("gpu", 1000, 2_500_000)), SetFlavor("tpu", Flavor("tpu", 700)))
    rig.submit(gpus=1)
    assert view_flavors(rig.world) == [
        FlavorView("a100", "a100", 1000, 0, 1, 2, 1),
        FlavorView("cpu", "cpu", 1000, 0, 1, 0, 0),
        FlavorView("h100", "gpu", 1000, 2_500_000, 1, 2, 2),
        FlavorView("tpu", "tpu", 700),
    ]
    rig.feed(BarNode("alpha/n", BarKind.CORDON, "me"))
    assert view_flavors(rig.world)[2].free == 0, "what is barred is not free for new work"
