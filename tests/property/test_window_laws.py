"""The law of tasks beside bookings: an array is to a booking what as many gangs of one task would be.

With a limit, a task is gone by it, and so a guest as long as it is gone in time; a booking counts on its end, and on
nobody's who has none. Tasks of one node each are told apart by nothing else, so where they start and which nodes a
booking gets must be the same, however they were handed in.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model import event
from muster.model.booking import Booking, Window
from muster.model.phase import ACTIVE, TaskPhase
from muster.model.reason import Code, Refused
from muster.testing.rig import Rig, spec
from muster.units import HOUR_MS, MINUTE_MS
from muster.world.invariants import check_world
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
