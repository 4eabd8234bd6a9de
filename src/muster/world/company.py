"""Company: where the jobs are that others want to be beside or apart from. An index by name, kept for those alone.

A job is meant by its tenant and its name. Only names that some job's needs mention are watched, so that nobody else
pays for it. Whom it keeps off where is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from muster.model.job import Job
from muster.model.phase import Lease
from muster.model.spec import Needs, Spec

NAMES_MAX: Final = 4096
"""How many names are watched at most before those are dropped that nobody mentions any longer."""


def name_of(spec: Spec) -> str:
    """What others call a job by: `vision/web`."""
    return f"{spec.tenant}/{spec.name}"


def names_in(needs: Needs) -> tuple[str, ...]:
    """Whom needs mention."""
    return (*needs.apart, *needs.beside)


class Company:
    """`by_name` are the tasks of each watched name by slot; `has_grown` is whether somebody who is watched took a place
    since that was last looked at."""

    __slots__ = ("by_name", "has_grown")

    def __init__(self) -> None:
        self.by_name: dict[str, dict[int, int]] = {}
        self.has_grown = False

    def watch(self, names: Iterable[str], jobs: Mapping[int, Job], holders: Mapping[int, Mapping[int, int]]) -> None:
        """Keep an eye on these, wherever they are already."""
        new: dict[str, dict[int, int]] = {name: {} for name in names if name not in self.by_name}
        if new:
            for slot, here in holders.items():
                for job, tasks in here.items():
                    places = new.get(name_of(jobs[job].spec))
                    if places is not None:
                        places[slot] = places.get(slot, 0) + tasks
            self.by_name.update(new)

    def seat(self, spec: Spec, leases: Iterable[Lease], sign: int) -> bool:
        """A job took places (1) or left them (-1); whether anybody watches it."""
        places = self.by_name.get(name_of(spec))
        if places is None:
            return False
        for lease in leases:
            left = places.get(lease.slot, 0) + sign * lease.tasks
            if left:
                places[lease.slot] = left
            else:
                del places[lease.slot]
        self.has_grown = self.has_grown or sign > 0
        return True

    def fork(self) -> Company:
        """An independent copy."""
        twin = Company()
        twin.by_name = {name: places.copy() for name, places in self.by_name.items()}
        twin.has_grown = self.has_grown
        return twin
