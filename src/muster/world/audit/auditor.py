"""The auditor: it reads every entry after it was applied, and keeps books of its own from the facts alone.

It costs what the entry touched, so it can run after every event of a simulation. It trusts neither the world's indexes
nor its primitives: what a slot, a tenant or a job should be is counted here a second time, and only then compared. It
decides nothing, and knows the transition table only as a value that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias, get_args

from muster.model import fact
from muster.model.claim import Claim
from muster.model.errors import InvariantError
from muster.model.job import NodePhase
from muster.model.phase import RESIZED, TAKEN, TaskPhase, Why
from muster.model.ranges import tasks_in
from muster.model.spec import Spec
from muster.units import Resources
from muster.world.audit.advice import AdviceBooks
from muster.world.audit.after import AfterBooks
from muster.world.audit.booking import BookingBooks, BookingFact
from muster.world.audit.books import SENT_BACK, JobBook
from muster.world.audit.claim import SERVED, ClaimBooks
from muster.world.audit.company import check_company
from muster.world.audit.cost import CostBooks, CostFact
from muster.world.audit.cut import check_cut
from muster.world.audit.fleet import FleetBooks, NodeFact
from muster.world.audit.goodput import GoodputBooks, Seats, seats_of
from muster.world.audit.group import cut
from muster.world.audit.mark import MarkBooks
from muster.world.audit.move import MoveBooks
from muster.world.audit.quota import Held
from muster.world.audit.setting import SettingBooks, SettingFact
from muster.world.audit.ticket import TicketBooks
from muster.world.laws.job import ALL_OR_NONE, FINAL, OVER, compare_job, compare_span
from muster.world.laws.law import require, require_same
from muster.world.laws.slot import compare_slot
from muster.world.tasks import HOLDING, LIVE, NOWHERE
from muster.world.world import World

Moves: TypeAlias = Mapping[TaskPhase, Container[TaskPhase]]

_TABLE: Final = "only moves that the table lists"
_BACK: Final = (Why.DRAIN, Why.REQUEUE, Why.MIGRATE, Why.BOOKING, Why.BUDGET, Why.YIELD, *TAKEN, *RESIZED)
_HELD, _RUNS = "what is held starts nothing", "only what runs progresses"


class Auditor:
    """The second set of books, compared with the world after every entry."""

    def __init__(self, moves: Moves | None = None) -> None:
        self._moves = moves
        self._jobs: dict[int, JobBook] = {}
        self.marks = MarkBooks()
        self._goodput = GoodputBooks(self.marks)
        self._after = AfterBooks(self._find_stage)
        self._settings, self._advice, self._tickets = SettingBooks(), AdviceBooks(), TicketBooks()
        self._fleet = FleetBooks(self._settings.flavors)
        self._costs = CostBooks(self._fleet)
        self._claims, self._bookings = ClaimBooks(self._costs.quota), BookingBooks()
        self._moved = MoveBooks(self._claims, self._goodput)
        self._at = self._newest = self.accepted = self.retired = self.gpus_in_use = 0
        self._jobs_touched: dict[int, None] = {}
        self._spared: dict[int, None] = {}
        self._spans_touched: list[tuple[int, int, int]] = []

    def observe(self, world: World, facts: Iterable[fact.Fact]) -> None:
        """Book one entry's facts and compare what they touched with the world that already holds them."""
        self._at = world.now
        self._costs.pass_time(world.now)
        self._goodput.pass_time(world.now)
        for item in facts:
            _BOOK[type(item)](self, item)
        self._compare(world)

    # -- booking -------------------------------------------------------------------------------------------------

    def _cost(self, item: CostFact) -> None:
        self._costs.book(item)

    def _flavor_set(self, item: fact.FlavorSet) -> None:
        self._settings.flavors[item.name] = item.flavor
        self._fleet.touch_plots()

    def _setting(self, item: SettingFact) -> None:
        self._settings.book(item)

    def _advised(self, item: fact.Advised | fact.AdviceDropped) -> None:
        self._advice.book(item, self._at)

    def _node(self, item: NodeFact) -> None:
        self._fleet.book(item, self._at)
        if isinstance(item, fact.NodeJoined):
            for number in self._claims.on(item.slot):
                self._claims.replot(number, self._fleet.plots_at)

    def _accepted(self, item: fact.Accepted) -> None:
        require(item.job > self._newest, "job ids rise", f"job {item.job} after {self._newest}")
        follows = any(other in item.spec.likes for other in item.waits)
        self._newest, self._jobs[item.job] = item.job, JobBook(item.spec, follows=follows)
        self._after.accept(item.job, item.spec, item.waits)
        self._settings.check_promise(item.spec, self._jobs, self._fleet.nodes)
        self._jobs_touched[item.job] = None
        self.accepted += 1

    def _after_met(self, item: fact.AfterMet) -> None:
        self._after.meet(item)
        self._jobs_touched.update(dict.fromkeys(item.jobs))

    def _placed(self, item: fact.Placed) -> None:
        begin, tickets = 0, item.tickets or [0] * len(item.jobs)
        for number, epoch, width, claim in zip(item.jobs, item.epochs, item.widths, tickets, strict=True):
            leases = list(zip(*(c[begin : begin + width] for c in (item.slots, item.tasks, item.devices)), strict=True))
            self._place_gang(number, epoch, leases, claim)
            begin += width

    def _place_gang(self, number: int, epoch: int, leases: list[tuple[int, ...]], claim: int) -> None:
        book = self._move(number, TaskPhase.STARTING)
        require(epoch > book.epoch, "epochs strictly rise", f"job {number}: {epoch} after {book.epoch}")
        require(not book.held, _HELD, f"job {number}")
        self._after.start(number)
        width, most = sum(tasks for _, tasks, _ in leases), book.spec.gang + book.spec.spares
        least = book.spec.gang if self._claims.is_served(number) else most
        require(least <= width <= most, ALL_OR_NONE, f"job {number}: {width} of {least} to {most}")
        book.epoch, book.end = epoch, None if book.spec.limit_ms is None else self._at + book.spec.limit_ms
        book.yields_at = self._at + (book.spec.expect_ms or 0) if book.spec.yields else None
        book.ranks, book.shrinks_to = bytearray(book.spec.gang), 0
        self._tickets.start(number, book, 0, width, claim)
        self._check_company(number, [slot for slot, _, _ in leases])
        for spec, seats in cut(number, book.spec, leases):
            book.leases += seats
            self._take(number, spec, seats, claim)
        if book.spec.spares:
            book.part_spares()
            self._set_spares(number, book)
        self._goodput.place(number, epoch)

    def _began(self, item: fact.Began) -> None:
        book = self._book_of(item.job)
        window = book.ranks[item.first : item.first + item.count]
        book.ranks[item.first : item.first + item.count] = window.replace(b"\0", b"\1")
        self._settle_ranks(item.job, book)

    def _ranks_over(self, item: fact.RanksOver) -> None:
        book = self._book_of(item.job)
        require(book.phase in HOLDING, FINAL, f"ranks of job {item.job} end while it holds nothing")
        window = book.ranks[item.first : item.first + item.count]
        book.ranks[item.first : item.first + item.count] = window.replace(b"\0", b"\2").replace(b"\1", b"\2")
        is_up = 0 in book.ranks or 1 in book.ranks
        require(is_up, ALL_OR_NONE, f"job {item.job}: every rank is over, the job not")
        self._settle_ranks(item.job, book)

    def _settle_ranks(self, number: int, book: JobBook) -> None:
        """A gang runs once no rank is still to come."""
        self._jobs_touched[number] = None
        if 0 not in book.ranks and book.phase == TaskPhase.STARTING:
            self._move(number, TaskPhase.RUNNING)
            self._goodput.run(number)

    def _progressed(self, item: fact.Progressed) -> None:
        book = self._book_of(item.job)
        require(book.phase == TaskPhase.RUNNING, _RUNS, f"job {item.job}")
        self._goodput.mark(item, book.spec, self._seats_of(book))

    def _tasks_progressed(self, item: fact.TasksProgressed) -> None:
        book = self._book_of(item.job)
        for task in tasks_in(item.ranges):
            says = book.phases[task] == TaskPhase.RUNNING and book.epochs[task] == item.epoch
            require(says, _RUNS, f"job {item.job}, task {task}, epoch {item.epoch}")
            self._goodput.mark_task(item, task, book.spec, self._seat_of(book, task))

    def _metered(self, item: fact.Metered) -> None:
        self._book_of(item.job).use(item.cpu_ms, item.rss_bytes)

    def _stop_asked(self, item: fact.StopAsked) -> None:
        book = self._move(item.job, TaskPhase.STOPPING)
        book.why = item.why
        if item.why == Why.YIELD:
            is_late = book.yields_at is not None and book.yields_at <= self._at
            require(is_late, "who yields is left alone until it expects to end", f"job {item.job}")
        if item.why == Why.BUDGET:
            self._costs.check_stop(item.job, book.spec)
        self._goodput.stop(item.job, book.spec, self._seats_of(book))

    def _ended(self, item: fact.Ended) -> None:
        book = self._book_of(item.job)
        require(item.phase in OVER, FINAL, f"job {item.job} ended as {item.phase.name}")
        self._after.end(item.job, item.why)
        if book.spec.array:
            live = [task for task, phase in enumerate(book.phases) if phase in LIVE]
            require(not live, "an array ends with its last task", f"job {item.job}: tasks {live[:5]}")
            book.phase = item.phase
            self._jobs_touched[item.job] = None
        else:
            sent_back = book.phase == TaskPhase.STOPPING and book.why in _BACK
            require(not sent_back, SENT_BACK, f"job {item.job} ended as {item.phase.name}")
            self._move(item.job, item.phase)
            self._unseat_gang(item.job, book, item.phase == TaskPhase.SUCCEEDED)

    def _requeued(self, item: fact.Requeued) -> None:
        book = self._move(item.job, TaskPhase.QUEUED)
        book.why = item.why
        if book.is_owed_rest(item.why):
            kept = (book.least_leases(), book.spares)
            left = [[(slot, tasks) for slot, tasks, devices in each if self._is_left(slot, devices)] for each in kept]
            self._claims.owe(item.job, *left)
        self._unseat_gang(item.job, book)

    def _scaled(self, item: fact.Scaled) -> None:
        self._book_of(item.job).scale(item)
        self._jobs_touched[item.job] = None

    def _grown(self, item: fact.Grown) -> None:
        book = self._book_of(item.job)
        self._goodput.resize(item.job, book.spec, self._seats_of(book))
        more = list(zip(item.slots, item.tasks, item.devices, strict=True))
        self._check_company(item.job, item.slots)
        self._take(item.job, book.spec, more)
        book.grow(item.job, more)
        self._jobs_touched[item.job] = None

    def _shrink_asked(self, item: fact.ShrinkAsked) -> None:
        self._book_of(item.job).ask_shrink(item)

    def _shrunk(self, item: fact.Shrunk | fact.RanksLost) -> None:
        book = self._book_of(item.job)
        self._goodput.resize(item.job, book.spec, self._seats_of(book))
        gone = book.shrink(item) if isinstance(item, fact.Shrunk) else book.lose(item)
        self._give_back(item.job, book.spec, gone)
        self._jobs_touched[item.job] = None

    def _spares(self, item: fact.SparesGiven | fact.SparesUsed | fact.SparesDropped) -> None:
        book = self._book_of(item.job)
        if isinstance(item, fact.SparesGiven):
            more = list(zip(item.slots, item.tasks, item.devices, strict=True))
            self._take(item.job, book.spec, more)
            book.give_spares(item.job, more)
        elif isinstance(item, fact.SparesUsed):
            self._goodput.resize(item.job, book.spec, self._seats_of(book))
            book.use_spares(item)
        else:
            self._give_back(item.job, book.spec, book.drop_spares(item))
        self._set_spares(item.job, book)

    def _set_spares(self, number: int, book: JobBook) -> None:
        """A gang has other spares than before."""
        places = [(slot, tasks) for slot, tasks, _ in book.spares]
        self._goodput.set_spares(number, book.spec, seats_of(book.spec, self._fleet.nodes, places))
        self._jobs_touched[number] = None
        self._spared.pop(number, None)
        if places:
            self._spared[number] = None

    def _check_spares(self) -> None:
        """A spare is where something could start, and is one gang's: of all that is held, nothing is held twice."""
        for number in self._spared:
            changed = [each for each in self._jobs[number].spares if each[0] in self._fleet.touched]
            shut = [slot for slot, _, devices in changed if not self._is_left(slot, devices)]
            require(not shut, "a spare is where work may go", f"job {number}: slots {shut}")

    def _is_left(self, slot: int, devices: int) -> bool:
        """Whether a place is still there and is no booking's."""
        return self._fleet.is_open(slot, devices) and not self._bookings.has(slot)

    def _job_held(self, item: fact.JobHeld | fact.JobReleased) -> None:
        self._book_of(item.job).held = isinstance(item, fact.JobHeld)
        self._jobs_touched[item.job] = None

    def _claimed(self, item: fact.Claimed) -> None:
        book = self._book_of(item.job)
        require(not book.held, _HELD, f"job {item.job} claims places")
        self._claims.check(item, self._at, self._jobs)
        ranks = sum(item.tasks) - self._claims.spares_owed(item.job)
        keeps = book.is_moving or (self._claims.is_owed(item.job) and book.why in RESIZED and ranks == book.spec.gang)
        ticket = self._tickets.claim_tasks(item, book) or self._tickets.claim(item.job, item.ticket, keeps=keeps)
        claim = Claim(item.leases, item.until, ticket, 0, 0, tuple(item.movers), tuple(item.tickets))
        self._claims.claim(item.job, book.spec, claim, self._fleet.plots_at)
        for slot in item.slots:
            self._fleet.touch(slot)

    def _moves_planned(self, item: fact.MovesPlanned) -> None:
        self._moved.plan(item, self._at, self._jobs, self._settings.tiers)

    def _claim_dropped(self, item: fact.ClaimDropped) -> None:
        if item.cause == SERVED:
            self._claims.serve(item.job)
            if self._claims.is_whole(item.job):
                self._tickets.serve(item.job, self._claims.claims[item.job].width)
        for slot in self._claims.drop(item.job):
            self._fleet.touch(slot)

    def _booking(self, item: BookingFact) -> None:
        for slot in self._bookings.book(item, self._at):
            self._fleet.nodes[slot].is_kept = self._bookings.is_kept(slot)
            self._fleet.touch(slot)
        if isinstance(item, fact.WindowOpened):
            self._bookings.check_left(item.booking, self._jobs)

    def _tasks_placed(self, item: fact.TasksPlaced) -> None:
        book = self._book_of(item.job)
        require(not book.held, _HELD, f"job {item.job}, tasks from {item.first}")
        self._after.start(item.job)
        task = item.first
        self._move_tasks(item.job, item.first, sum(item.counts), TaskPhase.STARTING)
        self._check_company(item.job, item.slots)
        for slot, count, devices in zip(item.slots, item.counts, item.devices, strict=True):
            self._bookings.check_seat(item.job, book.spec, slot, self._at)
            self._seat(item.job, book.spec.ask, slot, count, devices)
            for mine in range(task, task + count):
                self._goodput.place(item.job, book.epochs[mine] + 1, mine)
                devices = book.seat_task(mine, slot, devices)
            task += count
        book.check_throttle(item.job)
        self._tickets.start(item.job, book, item.first, sum(item.counts), item.ticket)
        self._charge(item.job, book.spec, list(zip(item.slots, item.counts, strict=True)), item.ticket)

    def _tasks_moved(self, item: fact.TasksMoved) -> None:
        if item.phase == TaskPhase.QUEUED:
            self._after.follow(item, self._jobs)
        elif item.phase == TaskPhase.BLOCKED:
            bounded = self._book_of(item.job).spec.at_most > 0
            require(bounded, "a task is blocked until its like is over", f"job {item.job}, tasks from {item.first}")
        else:
            require(item.phase in HOLDING, _TABLE, f"job {item.job}: {item.phase.name} gives no place back")
        for first, count in item.spans:
            self._move_tasks(item.job, first, count, item.phase)
            if item.phase == TaskPhase.STOPPING:
                self._book_of(item.job).stop_tasks(item.job, first, count, item.why or Why.DRAIN, self._at)
            elif item.phase == TaskPhase.RUNNING:
                self._book_of(item.job).begin_tasks(first, count, self._at)

    def _tasks_ended(self, item: fact.TasksEnded) -> None:
        book = self._book_of(item.job)
        if book.phases[item.first] == TaskPhase.BLOCKED:
            self._after.give_up(item, self._jobs)
            for span in item.spans:
                self._move_tasks(item.job, *span, item.phase)
            return
        for first, count in item.spans:
            self._end_tasks(item.job, book, first, count, item.phase, item.why)

    def _end_tasks(self, job: int, book: JobBook, first: int, count: int, after: TaskPhase, why: Why) -> None:
        book.end_tasks(job, first, count, after, why)
        self._move_tasks(job, first, count, after)
        self._give_back(
            job, book.spec, [(book.slots[task], 1, book.devices[task]) for task in range(first, first + count)]
        )
        for task in range(first, first + count):
            book.slots[task], book.devices[task] = NOWHERE, 0

    def _array_cancelled(self, item: fact.ArrayCancelled) -> None:
        book = self._book_of(item.job)
        self._after.cancel(item.job)
        for phase in (TaskPhase.QUEUED, TaskPhase.BLOCKED):
            book.phases = book.phases.replace(bytes([phase]), bytes([TaskPhase.CANCELLED]))
        self._spans_touched.append((item.job, 0, len(book.phases)))
        self._jobs_touched[item.job] = None

    def _retired(self, item: fact.Retired) -> None:
        for number in item.jobs:
            book = self._jobs.pop(number, None)
            known = book is not None and book.phase in OVER
            require(known, "no job vanishes", f"job {number} retires and is not over")
            self._jobs_touched[number] = None
            self._tickets.forget(number)
            self._claims.forget(number)
        self.retired += len(item.jobs)

    # -- the pieces ----------------------------------------------------------------------------------------------

    def _book_of(self, number: int) -> JobBook:
        book = self._jobs.get(number)
        if book is None:
            raise InvariantError("no job vanishes", f"a fact speaks of job {number}, which is not here")
        require(book.phase not in OVER, FINAL, f"a fact speaks of job {number}, which is over")
        return book

    def _find_stage(self, number: int) -> TaskPhase | None:
        """How far a job is, as far as others care who wait for it."""
        book = self._jobs.get(number)
        return None if book is None else book.stage()

    def _move(self, number: int, to: TaskPhase) -> JobBook:
        book = self._book_of(number)
        if self._moves is not None:
            listed = to in self._moves[TaskPhase(book.phase)]
            require(listed, _TABLE, f"job {number}: {TaskPhase(book.phase).name} to {to.name}")
        book.phase = to
        self._jobs_touched[number] = None
        return book

    def _move_tasks(self, number: int, first: int, count: int, to: TaskPhase) -> None:
        book = self._book_of(number)
        inside = first >= 0 and count > 0 and first + count <= len(book.phases)
        require(inside, "a range lies inside its array", f"job {number}: {first} and {count} of {len(book.phases)}")
        window = book.phases[first : first + count]
        has_places = to not in (TaskPhase.STARTING, TaskPhase.BLOCKED) and TaskPhase.BLOCKED not in window
        for task in range(first, first + count) if has_places else ():
            self._goodput.move_task(number, task, book.spec, self._seat_of(book, task), to)
        for phase in TaskPhase:
            if phase in window:
                require(phase not in OVER, FINAL, f"job {number}, tasks from {first}: {phase.name} to {to.name}")
                if self._moves is not None:
                    require(to in self._moves[phase], _TABLE, f"job {number}: {phase.name} to {to.name}")
        book.phases[first : first + count] = bytes([to]) * count
        self._jobs_touched[number] = None
        self._spans_touched.append((number, first, count))

    def _take(self, number: int, spec: Spec, seats: Iterable[tuple[int, int, int]], claim: int = 0) -> None:
        """Work takes places, by a claim or without."""
        places: list[tuple[int, int]] = []
        for slot, tasks, devices in seats:
            self._bookings.check_seat(number, spec, slot, self._at)
            self._seat(number, spec.ask, slot, tasks, devices)
            places.append((slot, tasks))
        self._charge(number, spec, places, claim)

    def _give_back(self, number: int, spec: Spec, seats: Iterable[tuple[int, int, int]]) -> None:
        """Work gives places back."""
        places: list[tuple[int, int]] = []
        for slot, tasks, devices in seats:
            require(slot != NOWHERE, "only what is held is given back", f"job {number} holds no place")
            self._fleet.nodes[slot].held.add(spec.ask, -tasks, devices)
            self.gpus_in_use -= spec.ask.gpus * tasks
            self._fleet.touch(slot)
            places.append((slot, tasks))
        self._costs.stop(number, spec, places)

    def _seat(self, number: int, ask: Resources, slot: int, tasks: int, devices: int) -> None:
        node = self._fleet.nodes[slot]
        require(node.phase == NodePhase.UP, "only nodes that are up get work", f"job {number} on {node.name}")
        self._claims.check_seat(number, ask, slot, tasks, devices)
        require(not node.bars, "a barred node gets no work", f"job {number} on {node.name}: {list(node.bars)}")
        named = check_cut(number, self._jobs[number].spec, ask, self._settings.flavors.get(node.flavor()), devices)
        exact = named.bit_count() == (1 if ask.gpu_milli else ask.gpus * tasks)
        require(exact, "a lease has the devices it asked for", f"job {number} on {node.name}: {devices:b}")
        whole = node.held.add(ask, tasks, devices)
        require(whole, "no device is in two leases", f"job {number} on {node.name}: {devices:b}")
        fits = min(node.held.left_of(node.capacity)) >= 0 and not named >> node.capacity.gpus
        require(fits, "allocations fit their node", f"job {number} on {node.name}: {ask} x {tasks}")
        there = not named & node.lack.devices
        require(there, "no work goes to a device that is not there", f"job {number} on {node.name}: {devices:b}")
        self._settings.overlays.check_seat(number, ask, slot, self._fleet.nodes)
        self.gpus_in_use += ask.gpus * tasks
        self._fleet.touch(slot)

    def _check_company(self, number: int, slots: Iterable[int]) -> None:
        if self._jobs[number].spec.needs.has_company:
            check_company(number, slots, self._jobs, [node.traits.place for node in self._fleet.nodes])

    def _unseat_gang(self, number: int, book: JobBook, is_useful: bool = False) -> None:
        if not book.leases:
            return
        self._goodput.end(number, book.spec, self._seats_of(book), is_useful)
        for spec, seats in cut(number, book.spec, book.places()):
            self._give_back(number, spec, seats)
        book.leases.clear()
        if book.spares:
            book.spares.clear()
            self._set_spares(number, book)

    def _seats_of(self, book: JobBook) -> Seats:
        parts = [(spec, [(slot, n) for slot, n, _ in seats]) for spec, seats in cut(0, book.spec, book.leases)]
        return [each for spec, places in parts for each in seats_of(spec, self._fleet.nodes, places)]

    def _seat_of(self, book: JobBook, task: int) -> Seats:
        return seats_of(book.spec, self._fleet.nodes, [(book.slots[task], 1)])

    def _charge(self, number: int, spec: Spec, places: list[tuple[int, int]], claim: int) -> None:
        find_later = partial(self._find_later, claim) if claim else None
        self._costs.start(number, spec, places, find_later, is_covered=self._bookings.covers(spec))

    def _find_later(self, ticket: int) -> list[Held]:
        """What is held or claimed by later tickets: whoever was granted it counted on those before."""
        held = [*self._tickets.find_after(self._jobs, ticket), *self._claims.movers_after(ticket)]
        return [*self._claims.after(ticket), *((spec, self._fleet.plots_at(places)) for spec, places in held)]

    def _goes_on(self, number: int, slot: int) -> bool:
        """Whether a job has tasks on a slot that nobody told to stop, and that were promised in no booking."""
        book = self._jobs[number]
        return book.goes_on(slot) and not self._bookings.covers(book.spec)

    # -- comparing -----------------------------------------------------------------------------------------------

    def _compare(self, world: World) -> None:
        self._after.settle()
        for slot in self._fleet.settle():
            node = self._fleet.nodes[slot]
            missing = self._claims.missing(slot, node.lack)
            compare_slot(world, slot, node, missing, self._at)
            self._goodput.set_node(slot, node.flavor(), node.parts(missing))
        self._goodput.compare(world.goodput, world.arrays)
        self._costs.compare(world, self._goes_on)
        for number in self._jobs_touched:
            self._compare_job(world, number)
        for span in self._spans_touched:
            self._compare_span(world, *span)
        self._settings.compare(world, self._fleet.nodes)
        self._advice.compare(world.advice, self._at)
        require_same(world.claims, self._claims.claims, "claims are what the facts say")
        self._tickets.compare(world)
        self._bookings.compare(world)
        self._moved.compare(world, self._jobs)
        self._claims.check_claimants(self._jobs)
        self._check_spares()
        here = (world.accepted, world.retired, len(world.jobs))
        booked = (self.accepted, self.retired, self.accepted - self.retired)
        require_same(here, booked, "accepted jobs are queued, active, over or retired")
        for touched in (self._fleet.touched, self._jobs_touched, self._spans_touched):
            touched.clear()

    def _compare_job(self, world: World, number: int) -> None:
        book, job = self._jobs.get(number), world.jobs.get(number)
        if book is None or job is None:
            require(book is None and job is None, "no job vanishes", f"job {number}: kept {job}, booked {book}")
            return
        compare_job(world, job, book, self._after.waits_of(number))
        if book.leases:
            self._tickets.compare_job(world, number)

    def _compare_span(self, world: World, number: int, first: int, count: int) -> None:
        book, tasks = self._jobs.get(number), world.arrays.get(number)
        if book is not None and tasks is not None:
            compare_span(tasks, number, book, first, first + count)
            self._tickets.compare_span(world, number, first, first + count)


_BOOK: Final[dict[type, Callable[[Auditor, Any], None]]] = {
    **dict.fromkeys(get_args(CostFact), Auditor._cost),
    fact.FlavorSet: Auditor._flavor_set,
    **dict.fromkeys(get_args(SettingFact), Auditor._setting),
    **dict.fromkeys((fact.Advised, fact.AdviceDropped), Auditor._advised),
    **dict.fromkeys(get_args(NodeFact), Auditor._node),
    **dict.fromkeys(get_args(BookingFact), Auditor._booking),
    fact.Accepted: Auditor._accepted,
    fact.AfterMet: Auditor._after_met,
    fact.Placed: Auditor._placed,
    fact.Began: Auditor._began,
    fact.Progressed: Auditor._progressed,
    fact.Metered: Auditor._metered,
    fact.RanksOver: Auditor._ranks_over,
    fact.StopAsked: Auditor._stop_asked,
    fact.Ended: Auditor._ended,
    fact.Requeued: Auditor._requeued,
    fact.Scaled: Auditor._scaled,
    fact.Grown: Auditor._grown,
    fact.ShrinkAsked: Auditor._shrink_asked,
    **dict.fromkeys((fact.Shrunk, fact.RanksLost), Auditor._shrunk),
    **dict.fromkeys((fact.SparesGiven, fact.SparesUsed, fact.SparesDropped), Auditor._spares),
    **dict.fromkeys((fact.JobHeld, fact.JobReleased), Auditor._job_held),
    fact.Claimed: Auditor._claimed,
    fact.MovesPlanned: Auditor._moves_planned,
    fact.ClaimDropped: Auditor._claim_dropped,
    fact.TasksPlaced: Auditor._tasks_placed,
    fact.TasksMoved: Auditor._tasks_moved,
    fact.TasksEnded: Auditor._tasks_ended,
    fact.TasksProgressed: Auditor._tasks_progressed,
    fact.ArrayCancelled: Auditor._array_cancelled,
    fact.Retired: Auditor._retired,
}
