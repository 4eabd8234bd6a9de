"""Bookings: nodes are a booking's in its window to the millisecond, guests are gone by then, and what is short is said
before it opens."""

from __future__ import annotations

from typing import Any

import pytest

from muster.control.bookings import view_bookings
from muster.model import event, fact
from muster.model.booking import Booking, Window
from muster.model.goodput import Bucket
from muster.model.job import BarKind
from muster.model.node import Flavor, Place, Traits
from muster.model.reason import DONE, Code, Refused
from muster.model.spec import Needs
from muster.model.tenant import CPU, GPU, Line, gpu_amount
from muster.scheduler.booked import LEAD_MS, TIDY_MS
from muster.scheduler.reasons import explain
from muster.testing.rig import Rig, spec
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Resources, show_instant
from muster.wire.words import put_in_words
from muster.world.accounting import read_account
from muster.world.booking import is_admitted
from muster.world.laws.invariants import check_world
from muster.world.snapshot import digest, restore, snapshot

GRACE_MS = spec().grace_ms
OPENS = 4 * HOUR_MS
CLOSES = 6 * HOUR_MS


def reserve(
    nodes: int = 2, *windows: tuple[int, int], name: str = "b", flexible_ms: int = 0, **fields: Any
) -> event.Reserve:
    made = tuple(Window(*window) for window in windows or [(OPENS, CLOSES)])
    return event.Reserve(Booking(name, fields.pop("tenant", "default"), nodes, made, **fields), flexible_ms)


def booked(nodes: int = 2, of: int = 3, **fields: Any) -> Rig:
    rig = Rig(of)
    assert rig.answer(reserve(nodes, **fields)) == DONE
    return rig


def code_of(rig: Rig, item: event.Event) -> Code | None:
    answer = rig.answer(item)
    return answer.reason.code if isinstance(answer, Refused) else None


def go(rig: Rig, instant: int) -> None:
    """Let time pass as a body would: woken whenever the kernel wants it, and at the instant itself."""
    while (wake_at := rig.outcomes[-1].wake_at) is not None and wake_at < instant:
        rig.feed(after_ms=max(wake_at - rig.now, 1))
        _confirm_stops(rig)
    rig.feed(after_ms=instant - rig.now)
    check_world(rig.world)


def _confirm_stops(rig: Rig) -> None:
    for number in [number for number in rig.world.jobs if rig.phase(number) == "Stopping"]:
        rig.exit(number, 143)


def says(rig: Rig, job: int) -> str:
    waiting = explain(rig.world, rig.job(job))
    assert waiting is not None
    return put_in_words(waiting.reason).what


def slots_of(rig: Rig, job: int) -> list[int]:
    return sorted(lease.slot for lease in rig.run(job).leases)


def own(gang: int = 1, **fields: Any) -> event.Submit:
    return event.Submit(spec(8, gang=gang, needs=Needs(booking="b"), **fields))


def test_a_job_of_a_booking_starts_when_its_window_opens_to_the_millisecond() -> None:
    rig = booked()
    rig.feed(own(2))
    assert rig.phase(1) == "Queued"
    go(rig, OPENS - 1)
    assert rig.phase(1) == "Queued"
    assert rig.outcomes[-1].wake_at == OPENS
    go(rig, OPENS)
    assert rig.run(1).since == OPENS
    assert slots_of(rig, 1) == list(rig.world.bookings["b"].windows[0].slots)


def test_others_get_what_is_not_booked() -> None:
    rig = booked()
    go(rig, OPENS)
    jobs = [rig.submit(8) for _ in range(3)]
    assert [rig.phase(job) for job in jobs] == ["Starting", "Queued", "Queued"]
    assert slots_of(rig, jobs[0]) == [2]


def test_a_guest_ends_by_its_limit_before_the_window_opens() -> None:
    rig = booked(3)
    in_time = OPENS - rig.now - GRACE_MS - TIDY_MS - MINUTE_MS - 10
    late, short = (
        rig.submit(8, limit_ms=in_time + 20, evictable=False),
        rig.submit(8, limit_ms=in_time, evictable=False),
    )
    assert (rig.phase(late), rig.phase(short)) == ("Queued", "Starting")
    waiting = explain(rig.world, rig.job(late))
    assert waiting is not None
    assert (waiting.reason.code, waiting.reason.needed) == (Code.NODES_BOOKED, OPENS)


def test_a_guest_that_accepts_eviction_is_told_in_time_and_waits_again() -> None:
    rig = booked(3)
    guest = rig.submit(8)
    rig.start(guest)
    assert rig.phase(guest) == "Running"
    go(rig, OPENS - GRACE_MS - TIDY_MS)
    assert rig.phase(guest) == "Stopping"
    rig.exit(guest, 143)
    assert rig.phase(guest) == "Queued"
    go(rig, OPENS)
    assert rig.phase(guest) == "Queued"
    go(rig, CLOSES)
    assert rig.phase(guest) == "Starting"


def test_a_turn_that_comes_late_tells_the_guest_before_the_window_opens() -> None:
    rig = booked(3)
    guest = rig.submit(8)
    rig.start(guest)
    told = rig.feed(after_ms=OPENS + 1 - rig.now).facts
    assert [type(item) for item in told if isinstance(item, fact.StopAsked | fact.WindowOpened)] == [
        fact.StopAsked,
        fact.WindowOpened,
    ]
    assert rig.phase(guest) == "Stopping"
    check_world(rig.world)


def test_a_guest_comes_only_where_nothing_else_is_free_and_not_in_the_last_hour() -> None:
    rig = booked(1, of=2)
    assert rig.world.bookings["b"].windows[0].slots == (0,)
    first, second = rig.submit(8), rig.submit(8)
    assert (slots_of(rig, first), slots_of(rig, second)) == ([1], [0])
    rig = booked(1, of=1)
    go(rig, OPENS - LEAD_MS)
    assert rig.phase(rig.submit(8)) == "Queued"
    assert rig.phase(rig.submit(8, limit_ms=MINUTE_MS)) == "Starting", "behind one that may not"


def test_what_still_runs_at_the_end_of_the_window_is_told_in_time() -> None:
    rig = booked(2, of=2)
    rig.feed(own(2))
    go(rig, OPENS)
    rig.start(1)
    go(rig, CLOSES - GRACE_MS - TIDY_MS)
    assert rig.phase(1) == "Stopping"
    rig.exit(1, 143)
    go(rig, CLOSES)
    assert not rig.world.bookings
    assert not rig.world.fleet.booked
    assert rig.phase(1) == "Starting", "its booking is over: it waits like everybody"


def test_windows_recur_and_each_has_its_jobs() -> None:
    rig = booked(1, of=1)
    rig.feed(event.CancelBooking("b"))
    assert rig.answer(reserve(1, (OPENS, CLOSES), (OPENS + DAY_MS, CLOSES + DAY_MS))) == DONE
    go(rig, CLOSES)
    rig.feed(own())
    waiting = explain(rig.world, rig.job(1))
    assert waiting is not None
    assert (waiting.reason.code, waiting.reason.needed) == (Code.WINDOW_TO_OPEN, OPENS + DAY_MS)
    go(rig, OPENS + DAY_MS)
    assert rig.run(1).since == OPENS + DAY_MS


def test_a_lost_node_is_replaced_and_else_the_window_is_short_before_it_opens() -> None:
    rig = booked(2)
    rig.feed(event.NodeGone("node-0"))
    assert rig.world.bookings["b"].windows[0].slots == (1, 2)
    rig.feed(event.BarNode("node-2", BarKind.DRAIN, "op"))
    moved = rig.outcomes[-1].facts[-1]
    assert moved == fact.WindowMoved("b", OPENS, [1], "1 nodes lost")
    view = view_bookings(rig.world)[0].windows[0]
    assert (view.nodes, view.short) == (["node-1"], 1)
    rig.feed(own(2))
    waiting = explain(rig.world, rig.job(1))
    assert waiting is not None
    assert waiting.reason.detail == "1 node short"
    rig.feed(event.UnbarNode("node-2", BarKind.DRAIN, "op"))
    assert rig.world.bookings["b"].windows[0].slots == (1, 2), "as soon as there is one again"
    go(rig, OPENS)
    assert rig.run(1).since == OPENS


def test_a_booking_that_lost_all_its_nodes_still_has_its_jobs() -> None:
    rig = booked(1, of=1)
    rig.feed(own())
    rig.feed(event.NodeGone("node-0"))
    rig.feed(event.NodeSeen("node-9", Resources(8, 64_000, 2**38)), event.BarNode("node-9", BarKind.CORDON, "op"))
    go(rig, OPENS)
    assert rig.world.bookings["b"].windows[0].slots == ()
    assert rig.phase(1) == "Queued"
    assert says(rig, 1).endswith("1 task must start, 0 would fit now (1 node short)"), "its window is open"


def test_who_comes_too_late_for_a_window_is_told_when_it_closes_or_when_the_next_one_opens() -> None:
    rig = booked(1, of=1)
    go(rig, CLOSES - GRACE_MS - TIDY_MS)
    rig.feed(own())
    assert says(rig, 1).endswith(f"0 would fit now (it closes at {show_instant(CLOSES)})")
    rig = Rig(1)
    rig.feed(reserve(1, (OPENS, CLOSES), (OPENS + DAY_MS, CLOSES + DAY_MS)))
    go(rig, CLOSES - GRACE_MS - TIDY_MS)
    rig.feed(own())
    assert says(rig, 1) == f"waiting for its booking: b opens at {show_instant(OPENS + DAY_MS)}"


def test_nodes_are_those_that_will_be_free() -> None:
    rig = Rig(3)
    rig.feed(event.Submit(spec(8, evictable=False)))
    rig.feed(event.Submit(spec(8)))
    rig.feed(event.Submit(spec(8, limit_ms=HOUR_MS, evictable=False)))
    assert [slots_of(rig, job) for job in (1, 2, 3)] == [[0], [1], [2]]
    assert code_of(rig, reserve(3)) == Code.NO_NODES_TO_BOOK
    assert rig.answer(reserve(1)) == DONE
    assert rig.world.bookings["b"].windows[0].slots == (2,), "whoever is there ends in time"
    assert rig.answer(reserve(1, name="c")) == DONE
    assert rig.world.bookings["c"].windows[0].slots == (1,), "whoever is there accepts eviction"


def test_a_flexible_window_opens_as_early_as_it_can() -> None:
    rig = Rig(1)
    rig.feed(event.Submit(spec(8, limit_ms=HOUR_MS, evictable=False)))
    begun = rig.run(1).since
    soon = (rig.now + MINUTE_MS, rig.now + 2 * HOUR_MS)
    assert code_of(rig, reserve(1, soon)) == Code.NO_NODES_TO_BOOK
    assert rig.answer(reserve(1, soon, flexible_ms=2 * HOUR_MS)) == DONE
    window = rig.world.bookings["b"].windows[0]
    assert window.opens_at == begun + HOUR_MS + GRACE_MS + TIDY_MS
    assert window.closes_at - window.opens_at == soon[1] - soon[0]


def test_tasks_of_an_array_are_guests_each_by_its_limit() -> None:
    rig = booked(3)
    in_time = OPENS - rig.now - GRACE_MS - TIDY_MS - MINUTE_MS - 10
    late, short = (
        rig.submit(8, array=2, limit_ms=in_time + 20, evictable=False),
        rig.submit(8, array=2, limit_ms=in_time, evictable=False),
    )
    assert [rig.world.arrays[job].holding for job in (late, short)] == [0, 2]
    assert rig.submit(8, array=1, limit_ms=MINUTE_MS) == 3
    rig.feed(after_ms=OPENS - LEAD_MS - rig.now)
    soon = rig.submit(8, array=1, limit_ms=MINUTE_MS)
    assert rig.world.arrays[3].holding == 1
    rig.exit(3)
    assert rig.world.arrays[soon].holding == 1, "in the last hour, too, if it is gone by its limit"


def test_nodes_are_those_that_tasks_will_have_left() -> None:
    rig = Rig(4)
    rig.submit(8, array=1, evictable=False)
    rig.submit(8, array=2)
    rig.start(2)
    rig.submit(8, array=1, limit_ms=HOUR_MS, evictable=False)
    assert list(rig.world.arrays[3].slot) == [3]
    assert code_of(rig, reserve(4)) == Code.NO_NODES_TO_BOOK
    assert rig.answer(reserve(1)) == DONE
    assert rig.world.bookings["b"].windows[0].slots == (3,), "whoever is there ends in time"
    rig.feed(event.BarNode("node-2", BarKind.DRAIN, "op", lets_finish=False))
    rig.feed(event.UnbarNode("node-2", BarKind.DRAIN, "op"))
    assert rig.answer(reserve(1, name="c")) == DONE
    assert rig.world.bookings["c"].windows[0].slots == (2,), "whoever is there was told to stop"
    assert rig.answer(reserve(1, name="d")) == DONE
    assert rig.world.bookings["d"].windows[0].slots == (1,), "whoever is there accepts eviction"


def test_a_flexible_window_opens_when_tasks_are_gone() -> None:
    rig = Rig(1)
    rig.submit(8, array=1, limit_ms=HOUR_MS, evictable=False)
    rig.start(1)
    begun, soon = rig.now, (rig.now + MINUTE_MS, rig.now + 2 * HOUR_MS)
    assert code_of(rig, reserve(1, soon)) == Code.NO_NODES_TO_BOOK
    assert rig.answer(reserve(1, soon, flexible_ms=2 * HOUR_MS)) == DONE
    assert rig.world.bookings["b"].windows[0].opens_at == begun + HOUR_MS + GRACE_MS + TIDY_MS


def test_all_nodes_are_in_one_domain() -> None:
    rig = Rig()
    for number in range(4):
        traits = Traits(place=Place("eu", "alpha", "one", "abba"[number]))
        rig.feed(event.NodeSeen(f"n{number}", Resources(8, 64_000, 2**38), traits=traits))
    rig.feed(event.Submit(spec(8, evictable=False)))
    assert slots_of(rig, 1) == [0]
    assert rig.answer(reserve(2, within="rack")) == DONE
    assert rig.world.bookings["b"].windows[0].slots == (1, 2)
    assert code_of(rig, reserve(3, name="c", within="rack")) == Code.TOO_FEW_NODES


@pytest.mark.parametrize(
    ("item", "code"),
    [
        (reserve(4), Code.TOO_FEW_NODES),
        (reserve(1, gpus=9), Code.TOO_FEW_NODES),
        (reserve(1, flavor="h100"), Code.TOO_FEW_NODES),
        (reserve(0), Code.BAD_AMOUNT),
        (reserve(1, flexible_ms=-1), Code.BAD_AMOUNT),
        (reserve(1, (CLOSES, OPENS)), Code.BAD_WINDOW),
        (reserve(1, (OPENS, OPENS)), Code.BAD_WINDOW),
        (reserve(1, (1, CLOSES)), Code.BAD_WINDOW),
        (reserve(1, (OPENS, CLOSES), (CLOSES - 1, CLOSES + 1)), Code.BAD_WINDOW),
        (reserve(1, (OPENS, 10**18)), Code.BAD_WINDOW),
        (reserve(1, *[(OPENS + n, OPENS + n + 1) for n in range(65)]), Code.BAD_AMOUNT),
        (reserve(1, (OPENS, CLOSES), (CLOSES, CLOSES + 1), flexible_ms=1), Code.BAD_SPEC),
        (reserve(1, within="galaxy"), Code.BAD_SPEC),
        (reserve(1, name=" "), Code.BAD_NAME),
        (reserve(1, tenant=""), Code.BAD_NAME),
        (event.CancelBooking("nobody"), Code.UNKNOWN_BOOKING),
        (event.Submit(spec(1, needs=Needs(booking="nobody"))), Code.UNKNOWN_BOOKING),
        (event.Submit(spec(1, needs=Needs(booking=" "))), Code.BAD_NAME),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(item: event.Event, code: Code) -> None:
    rig = Rig(3)
    before = digest(rig.world)
    assert code_of(rig, item) == code
    assert digest(rig.world) == before


def test_bookings_do_not_overlap_beyond_the_nodes() -> None:
    rig = booked(2)
    assert code_of(rig, reserve(1)) == Code.BOOKING_TAKEN
    assert code_of(rig, reserve(2, name="c")) == Code.NO_NODES_TO_BOOK
    assert rig.answer(reserve(1, name="c")) == DONE
    assert rig.answer(reserve(3, (CLOSES, CLOSES + 1), name="d")) == DONE, "one window after the other"


def test_a_job_fits_the_booking_that_it_names_and_is_admitted_there() -> None:
    rig = booked(2, of=5)
    assert code_of(rig, own(3)) == Code.NEVER_FITS
    assert code_of(rig, own(1, tenant="others")) == Code.NOT_ITS_BOOKING
    rig.tenant("lab")
    rig.tenant("vision", parent="lab")
    assert rig.answer(reserve(1, name="s", tenant="lab", shared=True)) == DONE
    assert is_admitted(rig.world, "vision", rig.world.bookings["s"])
    assert not is_admitted(rig.world, "default", rig.world.bookings["s"])


def test_a_booking_stays_within_the_quota_of_its_tenant_and_its_jobs_need_not_ask_again() -> None:
    rig = Rig(3)
    rig.tenant("vision", Line(GPU, limit=gpu_amount(16)))
    assert code_of(rig, reserve(3, tenant="vision")) == Code.NEVER_WITHIN_QUOTA
    assert rig.answer(reserve(1, tenant="vision")) == DONE
    assert code_of(rig, reserve(2, name="c", tenant="vision")) == Code.NEVER_WITHIN_QUOTA, "with what it booked"
    go(rig, OPENS)
    others = [rig.submit(8, tenant="vision") for _ in range(2)]
    assert [rig.phase(job) for job in others] == ["Starting", "Starting"]
    rig.feed(own(1, tenant="vision"))
    assert rig.phase(3) == "Starting", "the line has no room; the booking has"
    assert rig.phase(rig.submit(8, tenant="vision")) == "Queued"


def test_what_several_tenants_book_counts_together_on_the_lines_that_they_share() -> None:
    """Each alone is within the line of the one above them; both at once are not, one after the other are."""
    for line in (Line(GPU, limit=gpu_amount(8)), Line(GPU, guaranteed=gpu_amount(8))):
        rig = Rig(3)
        rig.tenant("lab", line)
        for name in ("vision", "speech"):
            rig.tenant(name, parent="lab")
        assert rig.answer(reserve(1, name="v", tenant="vision")) == DONE
        assert code_of(rig, reserve(1, name="s", tenant="speech")) in (Code.NEVER_WITHIN_QUOTA, Code.NEVER_INSIDE)
        assert code_of(rig, reserve(1, name="l", tenant="lab")) in (Code.NEVER_WITHIN_QUOTA, Code.NEVER_INSIDE)
        assert rig.answer(reserve(1, (CLOSES, CLOSES + 1), name="s", tenant="speech")) == DONE


def test_of_many_windows_it_is_said_which_one_finds_too_few_nodes() -> None:
    rig, days = booked(3), range(3)
    windows = [(DAY_MS * day + OPENS - 3 * HOUR_MS, DAY_MS * day + OPENS - 2 * HOUR_MS) for day in days]
    assert rig.answer(reserve(3, windows[1], name="taken")) == DONE
    answer = rig.answer(reserve(1, *windows, name="daily"))
    assert isinstance(answer, Refused)
    assert put_in_words(answer.reason).what.endswith(f"0 would be free for it from {show_instant(windows[1][0])} on")


def test_what_is_booked_one_after_the_other_does_not_count_together() -> None:
    rig = Rig(3)
    rig.tenant("vision", Line(GPU, limit=gpu_amount(16)))
    for name, begin, end in (("one", 1, 3), ("two", 3, 5), ("over-both", 2, 4)):
        assert rig.answer(reserve(1, (begin * HOUR_MS, end * HOUR_MS), name=name, tenant="vision")) == DONE
    answer = rig.answer(reserve(1, (2 * HOUR_MS, 5 * HOUR_MS), name="third", tenant="vision"))
    assert isinstance(answer, Refused)
    assert (answer.reason.needed, answer.reason.available) == (gpu_amount(24), gpu_amount(16))


def test_a_booked_node_counts_as_what_it_is() -> None:
    """A node of another family is on another line, and one without devices is on those of CPU and memory."""
    rig = Rig(2)
    rig.feed(event.SetFlavor("tpu", Flavor("tpu")), event.SetFlavor("cpus", Flavor(GPU)))
    for number in range(2):
        rig.feed(event.NodeSeen(f"tpu-{number}", Resources(8, 64_000, 2**38), traits=Traits("tpu")))
        rig.feed(event.NodeSeen(f"cpus-{number}", Resources(0, 64_000, 2**38), traits=Traits("cpus")))
    rig.tenant("vision", Line(GPU, limit=gpu_amount(8)), Line(CPU, limit=64_000))
    assert rig.answer(reserve(2, name="t", tenant="vision", flavor="tpu")) == DONE
    assert rig.answer(reserve(1, name="g", tenant="vision", flavor="gpu", gpus=8)) == DONE
    assert code_of(rig, reserve(1, name="h", tenant="vision", gpus=8)) == Code.NEVER_WITHIN_QUOTA
    assert code_of(rig, reserve(2, name="c", tenant="vision", flavor="cpus")) == Code.NEVER_WITHIN_QUOTA
    assert rig.answer(reserve(1, name="c", tenant="vision", flavor="cpus")) == DONE


def test_of_a_booking_beyond_the_guarantee_nobody_says_that_it_may_be_evicted() -> None:
    rig = Rig(3)
    rig.tenant("vision", Line(GPU, guaranteed=gpu_amount(8)))
    answer = rig.answer(reserve(2, tenant="vision"))
    assert isinstance(answer, Refused)
    assert answer.reason.code == Code.NEVER_INSIDE
    assert "if it is no booking, let it be evicted" in put_in_words(answer.reason).fix


def test_what_is_booked_and_idle_has_a_bucket_of_its_own() -> None:
    rig = booked(2, of=2)
    go(rig, OPENS)
    rig.feed(own())
    go(rig, OPENS + HOUR_MS)
    account = read_account(rig.world, rig.now)["gpu"]
    assert account[Bucket.BOOKED_IDLE] == 8000 * HOUR_MS + 8000 * 1
    go(rig, CLOSES)
    assert account[Bucket.GONE] == 0


def test_who_waits_for_its_booking_is_no_demand_for_what_is_idle_outside_of_it() -> None:
    rig = booked(1, of=2)
    rig.feed(own())
    go(rig, HOUR_MS)
    account = read_account(rig.world, rig.now)["gpu"]
    assert (account[Bucket.FRAGMENTED], account[Bucket.BLOCKED]) == (0, 0)
    assert account[Bucket.NO_DEMAND] > 0
    rig.submit(8)
    rig.submit(8, gang=2)
    before = rig.now
    go(rig, 2 * HOUR_MS)
    assert read_account(rig.world, rig.now)["gpu"][Bucket.FRAGMENTED] == 8000 * (rig.now - before)


def test_a_cancelled_booking_leaves_its_nodes_to_everybody() -> None:
    rig = booked(3)
    go(rig, OPENS)
    job = rig.submit(8)
    assert rig.phase(job) == "Queued"
    assert rig.answer(event.CancelBooking("b", "its owner")) == DONE
    assert rig.phase(job) == "Starting"
    check_world(rig.world)


def test_a_restored_world_has_the_same_bookings_and_decides_alike() -> None:
    rig = booked(2)
    rig.feed(own(2))
    rig.submit(8)
    rig.submit(8)
    twin = Rig()
    twin.kernel = type(rig.kernel)(restore(snapshot(rig.world)))
    assert digest(twin.world) == digest(rig.world)
    for instant in (OPENS - GRACE_MS - TIDY_MS, OPENS, CLOSES):
        mine, theirs = rig.kernel.handle([], instant), twin.kernel.handle([], instant)
        assert (mine.facts, mine.instructions, mine.wake_at) == (theirs.facts, theirs.instructions, theirs.wake_at)


def test_nobody_takes_from_a_booking() -> None:
    rig = booked(1, of=1)
    rig.feed(own())
    go(rig, OPENS)
    rig.start(1)
    urgent = rig.submit(8, tier="critical")
    go(rig, OPENS + 10 * SECOND_MS)
    assert (rig.phase(1), rig.phase(urgent)) == ("Running", "Queued")
