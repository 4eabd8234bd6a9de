"""extras: what elastic gangs have beyond their least, for whoever waits and may start by its quota.

It is held on the weakest terms, so on the stage on which places are taken all of it is gone from the beginning: who
borrows, who may take what and who fits is judged as if every gang had its least. Of each plan only what is needed is
then taken: the dearest is given back first, and of a run that bears it in place all but the last ranks. Nobody is told
to stop whose extra part is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final, NamedTuple

from muster.model import fact
from muster.model.job import Job
from muster.model.phase import Lease, Running, Starting, Why
from muster.scheduler.stage import Seat, Stage
from muster.world.usage import amount_of
from muster.world.widths import leases_of, split_leases, width_of
from muster.world.world import World

TRIED_MAX: Final = 64
"""Of how many it is tried one by one whether they are needed; the cheapest of more are taken untried."""


class Shrink(NamedTuple):
    """A run that is to have so many tasks, in place; 0 if it is begun anew."""

    job: int
    width: int

    def fact(self, cause: str) -> fact.Fact:
        """It as a fact."""
        if self.width:
            return fact.ShrinkAsked(self.job, self.width, cause)
        return fact.StopAsked(self.job, Why.SHRINK, cause=cause)


class Extras:
    """What is left of them on a stage, by job: all are gone, and what a plan needs is not here any more."""

    def __init__(self, world: World, stage: Stage, now: int) -> None:
        self._world = world
        self._stage = stage
        self._now = now
        self._left = {number: seat for number in sorted(world.widths.wide) if (seat := _seat_of(world, number))}
        self._places = stage.gather(list(self._left.values()))
        stage.take_all(self._places)

    def spend(
        self, find: Callable[[], list[Lease] | None], taken: Container[int], leases: list[Lease]
    ) -> tuple[list[Shrink], list[Lease]]:
        """Who has to shrink so that a claimant still fits, which has these leases with all gone and in whose plan some
        are taken whole; and the leases that it has then. Who shrinks stays gone, the others are back until `resume`."""
        self._drop(taken)
        mine = self._left.copy()
        if not mine:
            return [], leases
        self._stage.give_back_all(self._places)
        if (found := find()) is not None:
            return [], found
        needed, found = self._needed(find, mine, leases)
        for number in needed:
            del self._left[number]
        shrinks = [self._settle(mine[number], seat) for number, seat in needed.items()]
        self._places = self._stage.gather(list(self._left.values()))
        return shrinks, found or leases

    def resume(self) -> None:
        """For the next plan all that is left is gone again."""
        self._stage.take_all(self._places)

    def _drop(self, taken: Container[int]) -> None:
        """Nothing is left of those who are taken whole."""
        left = {number: seat for number, seat in self._left.items() if number not in taken}
        if len(left) < len(self._left):
            self._left, self._places = left, self._stage.gather(list(left.values()))

    def _needed(
        self, find: Callable[[], list[Lease] | None], mine: dict[int, Seat], leases: list[Lease]
    ) -> tuple[dict[int, Seat], list[Lease] | None]:
        """Take all, and give back whoever is not needed: those on other nodes first, then the dearest."""
        slots = {lease.slot for lease in leases}
        order = sorted(mine, key=lambda number: self._price(number, slots), reverse=True)
        self.resume()
        needed, tried = dict(mine), order[:TRIED_MAX] if len(order) > TRIED_MAX else order
        found = find()
        for number in tried:
            self._stage.give_back(mine[number])
            again = find()
            if again is None:
                self._stage.take(mine[number])
                needed[number], again = self._trim(find, mine[number])
            else:
                del needed[number]
            found = again or found
        return needed, found

    def _trim(self, find: Callable[[], list[Lease] | None], seat: Seat) -> tuple[Seat, list[Lease] | None]:
        """As few of the last ranks of a run that bears it as are needed: found by halving. The stage has them gone."""
        if not (seat.spec.in_place and isinstance(self._world.jobs[seat.job].phase, Running)):
            return seat, find()
        least, most = 0, _count(seat) - 1  # so many may stay
        best = seat
        while least < most:
            stay = (least + most + 1) // 2
            trial = seat._replace(leases=tuple(split_leases(seat.leases, stay, seat.spec.ask)[1]))
            self._stage.give_back(best)
            self._stage.take(trial)
            if find() is not None:
                least, best = stay, trial
            else:
                most = stay - 1
                self._stage.give_back(trial)
                self._stage.take(best)
        return best, find()

    def _settle(self, whole: Seat, gone: Seat) -> Shrink:
        """It is settled that a run shrinks: nobody stops it in this look. What it keeps of the extra part may go."""
        number, spec = whole.job, whole.spec
        self._stage.fix(number)
        if not (spec.in_place and isinstance(self._world.jobs[number].phase, Running)):
            return Shrink(number, 0)
        stay = _count(whole) - _count(gone)
        if stay:
            self._stage.give_back(gone)
            self._stage.take(gone._replace(first=spec.gang + stay))
            self._left[number] = whole._replace(leases=tuple(split_leases(whole.leases, stay, spec.ask)[0]))
        return Shrink(number, spec.gang + stay)

    def _price(self, number: int, slots: Container[int]) -> tuple[bool, bool, int, int]:
        """Who is elsewhere comes back first, then whose run would be begun anew, then whose is worth most."""
        seat, job = self._left[number], self._world.jobs[number]
        elsewhere = not any(lease.slot in slots for lease in seat.leases)
        saved = self._world.goodput.saved_at(number, job.phase.since)
        return elsewhere, not seat.spec.in_place, amount_of(seat.spec.ask, width_of(job)) * (self._now - saved), number


def has_extras(world: World) -> bool:
    """Whether anybody has more than its least, and is not giving it back already."""
    return any(_seat_of(world, number) for number in world.widths.wide)


def _seat_of(world: World, number: int) -> Seat | None:
    """What a run has beyond its least part, and is not giving back already."""
    job: Job = world.jobs[number]
    if not isinstance(job.phase, (Starting, Running)):
        return None
    spec, resize, held = job.spec, world.widths.resizes.get(number), leases_of(job)
    leaves = resize is not None and resize.to
    stays = leaves or width_of(job)
    if stays <= spec.gang:
        return None
    if leaves:
        held = tuple(split_leases(held, stays, spec.ask)[0])
    return Seat(number, spec.gang, spec, tuple(split_leases(held, spec.gang, spec.ask)[1]))


def _count(seat: Seat) -> int:
    return sum(lease.tasks for lease in seat.leases)
