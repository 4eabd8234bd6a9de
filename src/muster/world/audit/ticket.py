"""The auditor's books of tickets: in which order places were given, or claims on them, and who has them by which.

Kept from the facts alone. A run is as old as its ticket; one that came by a claim has the claim's, and no other has one
that was given before.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from muster.model import fact
from muster.model.phase import TaskPhase
from muster.model.spec import Spec
from muster.world.audit.books import JobBook
from muster.world.audit.group import cut
from muster.world.laws.law import require, require_same
from muster.world.world import World


class TicketBooks:
    """`given` is how many there were. Of whoever got places, its ticket; of an array, those of its tasks."""

    def __init__(self) -> None:
        self.given = 0
        self._gangs: dict[int, int] = {}
        self._tasks: dict[int, array[int]] = {}
        self._claims: dict[int, int] = {}
        self._served: dict[int, int] = {}
        self._movers: dict[int, dict[int, int]] = {}

    def claim(self, job: int, ticket: int, *, keeps: bool) -> int:
        """A job is given a claim, or keeps the places of its last run, or moves: which ticket that is."""
        wanted = self._gangs.get(job, 0) if keeps else 0
        require(ticket == wanted, "who keeps its places is as old as before", f"job {job}: {ticket}, not {wanted}")
        self.given += not ticket
        self._claims[job] = ticket or self.given
        self._movers.pop(job, None)
        return self._claims[job]

    def claim_tasks(self, item: fact.Claimed, book: JobBook) -> int:
        """If tasks of an array move, each keeps the ticket that it has: which one their claim has, or 0."""
        if not item.movers:
            return 0
        moves = book.are_moving(item.movers) and item.tasks == [1] * len(item.movers)
        told = moves and all(book.phases[task] == TaskPhase.STOPPING for task in item.movers)
        require(told, "who moves is told to stop", f"job {item.job}: tasks {item.movers}")
        known, movers = self._tasks.get(item.job, array("q")), dict(zip(item.movers, item.tickets, strict=True))
        same = all(ticket == known[task] for task, ticket in movers.items()) and item.ticket == max(item.tickets)
        require(same, "who keeps its places is as old as before", f"job {item.job}: {movers}, {item.ticket}")
        self._claims[item.job], self._movers[item.job] = item.ticket, movers
        return item.ticket

    def serve(self, job: int, width: int) -> None:
        """A job gets what it claimed, for so many tasks."""
        self._served[job] = width

    def start(self, job: int, book: JobBook, first: int, count: int, claim: int) -> None:
        """Tasks of a job get places, by a claim or by none; those that moved there, by their own tickets."""
        if claim and job in self._movers:
            own = {self._movers[job].pop(task, 0) for task in range(first, first + count)}
            require(own == {claim}, "who moved is as old as before", f"job {job}, tasks from {first}: {claim}")
        else:
            require(claim in (0, self._claims.get(job)), "only its own claim makes a run older", f"job {job}: {claim}")
        require(bool(claim) or job not in self._served, "who is served is as old as its claim", f"job {job}")
        self.given += not claim
        left = self._served.pop(job, 0) - count
        if left > 0:
            self._served[job] = left
        if book.spec.array:
            tasks = self._tasks.setdefault(job, array("q", bytes(8 * book.spec.array)))
            tasks[first : first + count] = array("q", [claim or self.given]) * count
        else:
            self._gangs[job] = claim or self.given

    def places_after(self, job: int, book: JobBook, ticket: int) -> list[tuple[int, int]]:
        """What a job holds by a later ticket, or beyond its least, as (slot, tasks)."""
        if book.spec.array:
            held = zip(book.slots, self._tasks.get(job, ()), strict=False)
            return [(slot, 1) for slot, mine in held if slot >= 0 and mine > ticket]
        if self._gangs.get(job, 0) > ticket:
            return [(slot, tasks) for slot, tasks, _ in book.places()]
        return book.places_behind(book.spec.gang) if book.spec.gang_most else []

    def find_after(self, jobs: Mapping[int, JobBook], ticket: int) -> list[tuple[Spec, list[tuple[int, int]]]]:
        """What everybody holds by a later ticket."""
        found: list[tuple[Spec, list[tuple[int, int]]]] = []
        for number, book in jobs.items():
            places = self.places_after(number, book, ticket)
            if places and book.spec.needs.groups:
                parts = cut(number, book.spec, book.leases)
                found += [(spec, [(slot, tasks) for slot, tasks, _ in seats]) for spec, seats in parts]
            elif places:
                found.append((book.spec, places))
        return found

    def forget(self, job: int) -> None:
        """A job is gone: nobody needs to know more of it."""
        for kept in (self._gangs, self._claims):
            kept.pop(job, None)
        self._tasks.pop(job, None)
        self._movers.pop(job, None)

    def compare(self, world: World) -> None:
        """Whether the world says the same of how many there were."""
        require_same(world.tickets, self.given, "tickets are what the facts say")

    def compare_job(self, world: World, job: int) -> None:
        """Whether the world has the same ticket of a gang that holds places."""
        run = getattr(world.jobs[job].phase, "run", None)
        if run is not None:
            require_same(run.ticket, self._gangs.get(job, 0), "a run is as old as its ticket", f"job {job}")

    def compare_span(self, world: World, job: int, first: int, end: int) -> None:
        """Whether the world has the same tickets of some tasks, of those that hold places."""
        kept, slots = world.arrays[job].ticket[first:end], world.arrays[job].slot[first:end]
        booked = self._tasks.get(job, array("q", bytes(8 * len(world.arrays[job]))))[first:end]
        same = all(mine == (wanted if slot >= 0 else 0) for mine, wanted, slot in zip(kept, booked, slots, strict=True))
        require(same, "a task is as old as its ticket", f"job {job}, tasks {first} to {end - 1}")
