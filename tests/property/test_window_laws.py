"""The law of tasks beside bookings: an array is to a booking what as many gangs of one task would be.

With a limit, a task is gone by it, and so a guest as long as it is gone in time; a booking counts on its end, and on
nobody's who has none. Tasks of one node each are told apart by nothing else, so where they start and which nodes a
booking gets must be the same, however they were handed in.

And the law of bookings beside bookings: to the quota, one is what a job that may not be evicted would be, at every
moment of its window, among as many such jobs as there are other bookings then.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model import event
from muster.model.booking import Booking, Window
from muster.model.phase import ACTIVE, TaskPhase
from muster.model.reason import DONE, Code, Refused
from muster.model.tenant import GPU, Line, Tenant, gpu_amount
from muster.testing.rig import Rig, spec
from muster.units import HOUR_MS, MINUTE_MS
from muster.world.laws.invariants import check_world
from muster.world.seats import seats_on, stayers_on, stays_on
from muster.world.snapshot import digest, restore, snapshot
from muster.world.world import World

NODES = 5


class Work(NamedTuple):
    """Tasks of a node each, that come after a while and are up at once."""

    tasks: int
    minutes: int
    after_min: int
    evictable: bool


WORKS = st.lists(
    st.builds(
        Work,
        st.integers(1, 3),
        st.sampled_from([0, 7, 31, 63, 127, 250]),
        st.sampled_from([1, 17, 45]),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)
WINDOW = st.tuples(st.integers(1, NODES), st.sampled_from([20, 70, 150, 300]), st.sampled_from([40, 100]))


class Trial:
    """One rig with works handed in as arrays, or as gangs of one."""

    def __init__(self, *, as_arrays: bool) -> None:
        self.rig = Rig(NODES)
        self._as_arrays = as_arrays

    def come(self, work: Work) -> None:
        """Tasks come, and those that got places are up."""
        self.rig.feed(after_ms=work.after_min * MINUTE_MS)
        about = {"limit_ms": work.minutes * MINUTE_MS or None, "evictable": work.evictable}
        each = {"array": work.tasks} if self._as_arrays else {}
        for _ in range(1 if self._as_arrays else work.tasks):
            self.rig.feed(event.Submit(spec(8, **about, **each)), after_ms=0)
        for number in self.rig.world.jobs:
            self.rig.feed(event.Started(number, 1, 0, self.rig.job(number).spec.tasks), after_ms=0)

    def book(self, window: tuple[int, int, int]) -> Code | None:
        """Somebody books nodes; the code, if it is refused."""
        nodes, opens_min, for_min = window
        opens_at = self.rig.now + opens_min * MINUTE_MS
        booking = Booking("b", "default", nodes, (Window(opens_at, opens_at + for_min * MINUTE_MS),))
        answer = self.rig.feed(event.Reserve(booking), after_ms=1).answers[0]
        return answer.reason.code if isinstance(answer, Refused) else None

    def seen(self) -> tuple[list[int], list[int], object]:
        """The nodes of those that go on, of those that were told to stop, and the booking's."""
        world, going, leaving = self.rig.world, list[int](), list[int]()
        for number, job in world.jobs.items():
            if job.spec.array:
                for slot, phase in zip(world.arrays[number].slot, world.arrays[number].phase, strict=True):
                    if slot >= 0:
                        (leaving if phase == TaskPhase.STOPPING else going).append(slot)
            elif isinstance(job.phase, ACTIVE):
                is_leaving = self.rig.phase(number) == "Stopping"
                (leaving if is_leaving else going).extend(lease.slot for lease in job.phase.run.leases)
        return sorted(going), sorted(leaving), world.bookings


def check_stayers(world: World) -> None:
    """That somebody stays on a node is known without telling who, and who it is by looking at every task."""
    for slot, here in world.fleet.holders.items():
        stayers, seats = {seat.job for seat in stayers_on(world, slot)}, seats_on(world, slot)
        assert stayers == {number for number in here if stays_on(world, world.jobs[number], slot)}
        for number in here.keys() & world.arrays.keys():
            mine = [(seat.first, seat.count) for seat in seats if seat.job == number]
            seated = [task for first, count in mine for task in range(first, first + count)]
            assert sorted(seated) == [task for task, at in enumerate(world.arrays[number].slot) if at == slot]


@settings(max_examples=80, deadline=None, derandomize=True)
@given(before=WORKS, window=WINDOW, after=WORKS)
def test_an_array_is_to_a_booking_what_as_many_gangs_of_one_are(
    before: list[Work], window: tuple[int, int, int], after: list[Work]
) -> None:
    arrays, gangs = Trial(as_arrays=True), Trial(as_arrays=False)
    codes = []
    for trial in (arrays, gangs):
        for work in before:
            trial.come(work)
        codes.append(trial.book(window))
        for work in after:
            trial.come(work)
            check_world(trial.rig.world)
            check_stayers(trial.rig.world)
        trial.rig.feed(after_ms=HOUR_MS)
        check_stayers(trial.rig.world)
        assert digest(restore(snapshot(trial.rig.world))) == digest(trial.rig.world)
    assert codes[0] == codes[1]
    assert arrays.seen() == gangs.seen()


TREE = {"org": "", "a": "org", "b": "org", "deep": "b", "c": ""}
PLENTY = 16
LINE = st.tuples(st.integers(0, 3), st.none() | st.integers(3, 5))
WANTED = st.tuples(st.sampled_from(sorted(TREE)), st.integers(1, 3), st.integers(1, 6), st.integers(1, 4))


def quota_rig(lines: dict[str, tuple[int, int | None]]) -> Rig:
    """Many nodes, and a tree whose lines may say anything that does not contradict itself: else nothing is said."""
    rig = Rig(PLENTY)
    for name, parent in TREE.items():
        guaranteed, limit = lines.get(name, (0, None))
        most = None if limit is None else gpu_amount(8 * limit)
        line = Line(GPU, guaranteed=gpu_amount(8 * guaranteed), limit=most)
        if isinstance(rig.answer(event.SetTenant(name, Tenant(parent, lines=(line,)))), Refused):
            rig.feed(event.SetTenant(name, Tenant(parent)))
    return rig


def would_all_start(lines: dict[str, tuple[int, int | None]], jobs: list[tuple[str, int]]) -> bool:
    """Whether all of these would start who may not be evicted: a tenant and how many nodes."""
    rig = quota_rig(lines)
    for tenant, nodes in jobs:
        answer = rig.answer(event.Submit(spec(8, tenant=tenant, gang=nodes, evictable=False)))
        if isinstance(answer, Refused) or rig.phase(answer.job) != "Starting":
            return False
    return True


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    lines=st.dictionaries(st.sampled_from(sorted(TREE)), LINE),
    wanted=st.lists(WANTED, min_size=2, max_size=7),
)
def test_to_the_quota_a_booking_is_what_a_job_would_be_that_may_not_be_evicted(
    lines: dict[str, tuple[int, int | None]], wanted: list[tuple[str, int, int, int]]
) -> None:
    rig = quota_rig(lines)
    made: list[tuple[str, int, int, int]] = []
    for number, (tenant, nodes, opens, hours) in enumerate(wanted):
        window = Window(opens * HOUR_MS, (opens + hours) * HOUR_MS)
        answer = rig.answer(event.Reserve(Booking(f"b{number}", tenant, nodes, (window,))))
        beside = [
            [each[:2] for each in made if each[2] <= hour < each[2] + each[3]] for hour in range(opens, opens + hours)
        ]
        if any(sum(count for _, count in each) + nodes > PLENTY for each in beside):
            continue
        assert (answer == DONE) == all(would_all_start(lines, [*each, (tenant, nodes)]) for each in beside)
        made += [(tenant, nodes, opens, hours)] if answer == DONE else []
