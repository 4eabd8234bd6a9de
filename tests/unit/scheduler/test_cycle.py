"""The cycle: whoever's turn it is, held up by nobody who cannot start; reasons by the same arithmetic."""

from __future__ import annotations

from muster.model import event, fact
from muster.model.reason import Code, Reason
from muster.model.tenant import GPU, Line, gpu_amount
from muster.scheduler.cycle import run_cycle
from muster.scheduler.placing.within import quota_room
from muster.scheduler.reasons import explain, never_fits
from muster.testing.rig import Rig, spec


def test_the_smaller_one_goes_first_whatever_its_shape() -> None:
    rig = Rig(nodes=1)
    blocker = rig.submit(8)
    waiting = [rig.submit(4), rig.submit(2), rig.submit(4), rig.submit(1)]
    rig.exit(blocker)
    assert [rig.phase(job) for job in waiting] == ["Starting", "Starting", "Queued", "Starting"]


def test_a_blocked_shape_does_not_hold_up_a_smaller_one() -> None:
    rig = Rig(nodes=2)
    rig.submit(8)
    gang = rig.submit(8, gang=2)
    small = rig.submit(4)
    assert rig.phase(gang) == "Queued"
    assert rig.phase(small) == "Starting"


def test_a_gang_that_failed_starts_with_the_last_node_that_it_needs_and_is_not_tried_before() -> None:
    rig = Rig(nodes=4)
    blockers = [rig.submit(8) for _ in range(3)]
    rig.submit(4)
    gang = rig.submit(4, gang=5)
    (shape,) = rig.world.queue.shapes.values()
    assert shape.short == 4, "one more of five fits beside the small one"
    rig.exit(blockers[0])
    assert not rig.world.queue.awake
    assert rig.phase(gang) == "Queued"
    rig.exit(blockers[1])
    assert rig.phase(gang) == "Starting"


def test_a_tenant_over_its_quota_does_not_hold_up_another() -> None:
    rig = Rig(nodes=2)
    rig.tenant("a", gpus=8)
    first = rig.submit(8, tenant="a")
    parked = rig.submit(8, tenant="a")
    other = rig.submit(8, tenant="b")
    assert [rig.phase(job) for job in (first, parked, other)] == ["Starting", "Queued", "Starting"]


def test_a_quiet_cycle_places_nothing() -> None:
    rig = Rig(nodes=1)
    assert run_cycle(rig.world, rig.now, "quiet") == []


def test_an_array_is_placed_in_one_fact_and_as_far_as_the_quota_goes() -> None:
    rig = Rig(nodes=4)
    rig.tenant("a", gpus=10)
    rig.submit(1, array=100, tenant="a")
    (placed,) = [item for item in rig.outcomes[-1].facts if type(item).__name__ == "TasksPlaced"]
    assert sum(placed.counts) == 10  # type: ignore[union-attr]  # it is a TasksPlaced by its name


def test_arrays_and_jobs_of_one_shape_stand_in_one_line() -> None:
    rig = Rig(nodes=1)
    blocker = rig.submit(8)
    array = rig.submit(8, array=2)
    single = rig.submit(8)
    rig.exit(blocker)
    assert rig.world.arrays[array].counts[:2] == [1, 1]
    rig.feed(event.Exited(array, 1, 0, 0, 1))
    assert rig.phase(single) == "Queued", "the array stays first until it has nobody left"


def test_why_a_job_waits() -> None:
    rig = Rig(nodes=2)
    rig.tenant("a", gpus=8)
    rig.submit(8, tenant="a")
    poor = rig.submit(8, tenant="a")
    rig.submit(8, tenant="b")
    late = rig.submit(8, gang=2, tenant="b")
    why_poor = explain(rig.world, rig.job(poor))
    assert why_poor is not None
    assert why_poor.reason == Reason(Code.OVER_QUOTA, "gpu", 8_000_000, 0, "a")
    why_late = explain(rig.world, rig.job(late))
    assert why_late is not None
    assert (why_late.reason.code, why_late.reason.needed, why_late.reason.available) == (Code.NO_ROOM, 2, 0)
    assert (why_late.position, why_late.ahead) == (1, []), "whoever is over its quota stands behind"
    assert (why_poor.position, why_poor.ahead, why_poor.ahead_total.gpus) == (2, [late], 16)
    assert explain(rig.world, rig.job(1)) is None


def test_why_part_of_an_array_waits() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1, array=9)
    why = explain(rig.world, rig.job(job))
    assert why is not None
    assert why.reason.code == Code.NO_ROOM
    rig.feed(event.Exited(job, 1, 0, 0, 1))
    assert explain(rig.world, rig.job(job)) is None


def test_room_under_a_quota() -> None:
    rig = Rig(nodes=2)
    rig.tenant("a", gpus=7, cpu_milli=100_000)
    rig.submit(2, array=5, tenant="a")
    assert quota_room(rig.world, rig.job(1), rig.world.site_of(0), borrows=True) == 0
    rig.tenant("a", gpus=16)
    assert rig.world.ledger.held("a", "gpu") == 10_000_000
    assert quota_room(rig.world, rig.job(1), rig.world.site_of(0), borrows=True) == 3


def test_what_never_fits_says_how_much_would() -> None:
    rig = Rig(nodes=2)
    reason = never_fits(rig.world, spec(8, gang=3))
    assert reason is not None
    assert (reason.code, reason.needed, reason.available) == (Code.NEVER_FITS, 3, 2)
    assert never_fits(rig.world, spec(8, gang=2)) is None


def test_arrays_of_two_tenants_share_what_is_free_in_a_few_turns_of_one_size() -> None:
    rig = Rig(nodes=40)
    jobs = [spec(1, array=320, tenant=tenant) for tenant in ("a", "b")]
    rig.feed(*map(event.Submit, jobs))
    placed = [item for item in rig.outcomes[-1].facts if isinstance(item, fact.TasksPlaced)]
    sizes = {job: [sum(item.counts) for item in placed if item.job == job] for job in (1, 2)}
    assert {job: sum(found) for job, found in sizes.items()} == {1: 160, 2: 160}
    assert all(len(set(found[:-1])) == 1 for found in sizes.values()), sizes


def test_a_turn_that_borrows_is_not_as_small_as_the_last_one_inside_a_guarantee() -> None:
    rig = Rig(nodes=40)
    rig.tenant("a", Line(GPU, guaranteed=gpu_amount(1)))
    rig.tenant("b", Line(GPU, guaranteed=gpu_amount(1)))
    rig.feed(*(event.Submit(spec(1, array=320, tenant=tenant)) for tenant in ("a", "b")))
    placed = [item for item in rig.outcomes[-1].facts if isinstance(item, fact.TasksPlaced)]
    assert sum(sum(item.counts) for item in placed) == 320
    assert len(placed) < 40, [sum(item.counts) for item in placed]
