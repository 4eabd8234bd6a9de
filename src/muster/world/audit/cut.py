"""The auditor's law of partitions: a lease on a part of a device lies where its flavor says that it may.

From the facts alone. That no two lie in one slot is counted beside the devices, in `muster.world.laws.holding`.
"""

from __future__ import annotations

from typing import Final

from muster.model.node import Flavor
from muster.model.partition import devices_in, slots_in
from muster.model.spec import Spec
from muster.units import Resources
from muster.world.laws.law import require

LAW: Final = "a partition lies where it may"


def check_cut(job: int, spec: Spec, ask: Resources, flavor: Flavor | None, word: int) -> int:
    """A share of a device that is cut is one of its partitions, the one that was asked for, from a slot in which it may
    begin; and no other device has any. Gives the devices that the lease's word names."""
    slots, cut = slots_in(word), () if flavor is None else flavor.partitions
    kinds = [each for each in cut if each.name == spec.needs.partition]
    where = f"job {job}: {word:b}"
    if ask.gpu_milli and cut:
        places = [((1 << kind.size) - 1) << start for kind in kinds for start in kind.starts]
        require(slots in places, LAW, where)
    else:
        require(not slots and not (ask.gpu_milli and spec.needs.partition), LAW, where)
    if kinds and flavor is not None:
        counted = 1000 * ask.gpus + ask.gpu_milli
        require(counted == 1000 * kinds[0].size // flavor.slots, "a partition counts by its slots", where)
    return devices_in(word)
