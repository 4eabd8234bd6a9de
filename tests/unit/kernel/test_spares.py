"""A gang with hot spares: they are leased with it, idle, and take a lost rank's place in the batch of the loss."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from stage_kit import STAGES, lose, settled, slots_of

from muster.model import event, fact
from muster.model.booking import Booking, Window
from muster.model.errors import InvariantError
from muster.model.goodput import Bucket
from muster.model.instruction import Start
from muster.model.job import BarKind
from muster.model.node import Place, Traits
from muster.model.reason import Code, Done, Refused
from muster.model.spec import Needs
from muster.scheduler.reasons import explain
from muster.testing.planted.widths import spare_on_a_closed_node
from muster.testing.rig import Rig, spec
from muster.units import HOUR_MS, MINUTE_MS, Resources
from muster.world.accounting import read_account
from muster.world.snapshot import digest, restore, snapshot

NODE = Resources(8, 64_000, 2**38)


def spares_of(rig: Rig, job: int = 1) -> list[int]:
    return [lease.slot for lease in rig.run(job).spares]


def running(nodes: int, gang: int = 3, spares: int = 1, **fields: object) -> Rig:
    """A gang with a node for each task and spare, on the first nodes."""
    rig = Rig(nodes)
    rig.submit(8, gang=gang, spares=spares, **fields)
    rig.start(1, 0, gang)
    settled(rig)
    return rig


def in_place(nodes: int, gang: int = 3, spares: int = 1, most: int = 0) -> Rig:
    return running(nodes, gang, spares, gang_most=most or gang, in_place=True)


def over(rig: Rig, job: int = 1) -> None:
    """What is left of a run that was told to stop is over."""
    if rig.phase(job) == "Stopping":
        rig.exit(job, 143, 0, len(rig.world.ranks[job]))
    settled(rig)


def starts(rig: Rig) -> list[Start]:
    return [each for each in rig.outcomes[-1].instructions if isinstance(each, Start)]


def spare_time(rig: Rig) -> int:
    """In GPU-milliseconds."""
    return sum(times[Bucket.SPARE] for times in read_account(rig.world, rig.now).values()) // 1000


# -- it gets them with its places ------------------------------------------------------------------------------------


def test_it_gets_all_places_or_none() -> None:
    rig = Rig(3)
    assert isinstance(rig.answer(event.Submit(spec(8, gang=3, spares=1))), Refused), "no fleet of three could hold it"
    rig.feed(event.NodeSeen("node-3", NODE), event.BarNode("node-0", BarKind.CORDON, "op"))
    gang = rig.submit(8, gang=3, spares=1)
    assert rig.phase(gang) == "Queued", "there is room for the ranks, and not for the spare"
    waiting = explain(rig.world, rig.job(gang))
    assert waiting is not None
    reason = waiting.reason
    assert (reason.code, reason.needed, reason.available) == (Code.NO_ROOM_FOR_SPARES, 4, 3)
    rig.feed(event.UnbarNode("node-0", BarKind.CORDON, "op"))
    assert rig.phase(gang) == "Starting"
    assert (len(slots_of(rig, gang)), len(spares_of(rig, gang))) == (3, 1)
    settled(rig)


def test_no_engine_hears_of_a_spare() -> None:
    rig = Rig(4)
    rig.submit(8, gang=3, spares=1)
    (start,) = starts(rig)
    assert (start.nodes, start.counts) == (["node-0", "node-1", "node-2"], [1, 1, 1])
    assert spares_of(rig) == [3]
    rig.start(1, 0, 3)
    assert rig.phase(1) == "Running", "all ranks are up; a spare never is"


def test_spares_are_held_and_count_in_the_quota() -> None:
    rig = Rig(5)
    rig.tenant("lab", gpus=32)
    rig.submit(8, gang=3, spares=1, tenant="lab")
    other = rig.submit(8, tenant="lab")
    assert rig.phase(other) == "Queued", "four nodes are its limit, and it holds them"
    waiting = explain(rig.world, rig.job(other))
    assert waiting is not None
    assert waiting.reason.code == Code.OVER_QUOTA
    settled(rig)


def test_spares_are_on_nodes_of_their_own_where_possible() -> None:
    rig = Rig(3)
    rig.submit(1, gang=4, spares=2)
    assert not set(slots_of(rig)) & set(spares_of(rig)), "all six would fit on one node, and would be lost with it"
    settled(rig)
    rig = Rig(1)
    rig.submit(1, gang=4, spares=2)
    assert (slots_of(rig), spares_of(rig)) == ([0], [0]), "on the only one there is"
    settled(rig)
    rig = Rig(2, gpus=4)
    rig.submit(2, gang=2, spares=2)
    assert not set(slots_of(rig)) & set(spares_of(rig))
    settled(rig)


def test_spares_stay_in_its_domain() -> None:
    rig = Rig()
    for number in range(6):
        rig.feed(event.NodeSeen(f"node-{number}", NODE, traits=Traits(place=Place(rack=f"r{number // 3}"))))
    rig.submit(8, gang=2, spares=1, needs=Needs(within="rack"))
    assert len({slot // 3 for slot in (*slots_of(rig), *spares_of(rig))}) == 1
    other = rig.submit(1, gang=2, spares=1, needs=Needs(within="rack"))
    assert len({slot // 3 for slot in (*slots_of(rig, other), *spares_of(rig, other))}) == 1
    settled(rig)


def test_idle_spares_are_an_account_of_their_own() -> None:
    rig = running(nodes=5)
    rig.feed(after_ms=MINUTE_MS)
    since = rig.now - rig.run(1).since
    assert spare_time(rig) == 8 * since
    rig.exit(1, 0, 0, 3)
    settled(rig)
    assert (rig.phase(1), spare_time(rig)) == ("Succeeded", 8 * (since + 1))
    rig.feed(after_ms=MINUTE_MS)
    assert spare_time(rig) == 8 * (since + 1), "with the gang they are given back"


# -- a rank is lost --------------------------------------------------------------------------------------------------


def test_in_place_a_spare_is_a_rank_at_once() -> None:
    rig = in_place(nodes=4)
    rival = rig.submit(8, tenant="rival")
    lose(rig, "node-1")
    (start,) = starts(rig)
    assert (start.first, start.nodes, start.epoch, start.width) == (3, ["node-3"], 1, 3), "a rank that nobody had"
    assert (rig.phase(1), slots_of(rig), spares_of(rig)) == ("Running", [0, 2, 3], [])
    assert not rig.world.widths.mending
    assert rig.phase(rival) == "Queued"
    rig.start(1, 3, 1)
    for rank in (0, 2, 3):
        rig.exit(1, 0, rank, 1)
    assert rig.phase(1) == "Succeeded"
    settled(rig)


def test_otherwise_it_starts_again_in_the_batch_in_which_the_old_run_is_over() -> None:
    rig = running(nodes=4)
    asked = rig.job(1).spec
    rival = rig.submit(8, tenant="rival")
    lose(rig, "node-1")
    assert rig.phase(1) == "Stopping"
    over(rig)
    assert (rig.phase(1), rig.run(1).epoch, rig.job(1).spec) == ("Starting", 2, asked)
    assert (sorted(slots_of(rig)), spares_of(rig)) == ([0, 2, 3], [])
    assert not rig.world.claims
    assert rig.phase(rival) == "Queued"
    assert rig.job(1).failures == 0
    settled(rig)


def test_a_spare_that_is_not_needed_stays_one() -> None:
    rig = running(nodes=5, spares=2)
    lose(rig, "node-1")
    over(rig)
    assert (rig.phase(1), sorted(slots_of(rig)), spares_of(rig)) == ("Starting", [0, 2, 3], [4])
    rig = in_place(nodes=5, spares=2)
    lose(rig, "node-1")
    assert (slots_of(rig), spares_of(rig)) == ([0, 2, 3], [4])


def test_two_at_once_take_two_spares() -> None:
    rig = in_place(nodes=5, spares=2)
    lose(rig, "node-0", "node-1")
    assert (slots_of(rig), spares_of(rig)) == ([2, 3, 4], [])
    assert rig.phase(1) == "Running"


def test_with_too_few_spares_those_that_there_are_are_used_and_the_rest_mends() -> None:
    rig = in_place(nodes=4)
    lose(rig, "node-0", "node-1")
    assert (rig.phase(1), slots_of(rig), spares_of(rig)) == ("Running", [2, 3], [])
    assert list(rig.world.widths.mending) == [1]
    rig.feed(event.NodeSeen("node-1", NODE))
    assert slots_of(rig) == [2, 3, 1]
    settled(rig)
    rig = running(nodes=4)
    lose(rig, "node-0", "node-1")
    over(rig)
    assert sorted(lease.slot for lease in rig.world.claims[1].leases) == [2, 3], "what is left, and the spare"
    rig.feed(event.NodeSeen("node-1", NODE))
    assert sorted(slots_of(rig)) == [1, 2, 3]
    settled(rig)


def test_a_joining_spare_may_be_lost_as_well() -> None:
    rig = in_place(nodes=5, spares=2)
    lose(rig, "node-1")
    lose(rig, "node-3")
    assert (slots_of(rig), spares_of(rig)) == ([0, 2, 4], [])
    rig.start(1, 4, 1)
    rig.exit(1, 0, 0, 5)
    assert rig.phase(1) == "Succeeded"
    settled(rig)


def test_an_elastic_gang_uses_a_spare_for_what_it_cannot_do_without() -> None:
    rig = in_place(nodes=4, gang=2, spares=1, most=3)
    rig.feed(after_ms=MINUTE_MS)
    rig.start(1, 0, len(rig.world.ranks[1]))
    assert (len(slots_of(rig)), len(spares_of(rig))) == (3, 1)
    lose(rig, rig.world.fleet.names[slots_of(rig)[0]])
    assert (len(slots_of(rig)), len(spares_of(rig))) == (2, 1), "it has all that it needs"
    lose(rig, rig.world.fleet.names[slots_of(rig)[0]])
    assert (len(slots_of(rig)), len(spares_of(rig))) == (2, 0)
    assert rig.phase(1) == "Running"


# -- spares that are lost, and made up for ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "closing",
    [
        event.NodeGone("node-3", "fenced"),
        event.NodeSilent("node-3"),
        event.BarNode("node-3", BarKind.CORDON, "op"),
        event.BarNode("node-3", BarKind.DRAIN, "op", lets_finish=False),
        event.NodeSeen("node-3", Resources(7, 64_000, 2**38)),
    ],
    ids=["gone", "silent", "cordoned", "drained", "a device less"],
)
def test_a_spare_whose_node_closes_is_let_go_and_the_gang_goes_on(closing: event.Event) -> None:
    rig = running(nodes=4)
    rig.feed(closing)
    assert (rig.phase(1), slots_of(rig), spares_of(rig)) == ("Running", [0, 1, 2], [])
    settled(rig)
    rig.feed(event.NodeSeen("node-4", NODE))
    assert spares_of(rig) == [4], "as soon as there is room, it has another"
    settled(rig)


def test_a_spare_that_is_kept_on_a_closed_node_is_found() -> None:
    rig = running(nodes=4)
    with spare_on_a_closed_node(), pytest.raises(InvariantError, match="a spare is where work may go"):
        rig.feed(event.BarNode("node-3", BarKind.CORDON, "op"))


def test_a_booked_node_is_nobodys_spare() -> None:
    rig = running(nodes=4)
    window = Window(rig.now + HOUR_MS, rig.now + 2 * HOUR_MS)
    booked = rig.answer(event.Reserve(Booking("week", "default", 4, (window,), gpus=8)))
    assert isinstance(booked, Done), booked
    assert spares_of(rig) == []
    settled(rig)


def test_what_was_used_is_made_up_for_when_nobody_else_wants_it() -> None:
    rig = in_place(nodes=4)
    rival = rig.submit(8, tenant="rival")
    lose(rig, "node-1")
    rig.feed(event.NodeSeen("node-1", NODE))
    assert (rig.phase(rival), spares_of(rig)) == ("Starting", []), "who waits comes first"
    rig.exit(rival)
    assert spares_of(rig) == [1]
    settled(rig)


def test_while_somebody_waits_who_could_use_the_node_it_stays_free() -> None:
    rig = in_place(nodes=4)
    wide = rig.submit(8, gang=4, tenant="rival")
    lose(rig, "node-1")
    rig.feed(event.NodeSeen("node-1", NODE))
    assert (rig.phase(wide), spares_of(rig)) == ("Queued", []), "a spare here would make the gang wait longer"
    rig.feed(event.Cancel(wide))
    assert spares_of(rig) == [1]
    settled(rig)


def test_who_is_over_its_quota_keeps_nobody_from_a_spare() -> None:
    rig = in_place(nodes=4)
    rig.tenant("poor", gpus=0)
    rig.tenant("lab", gpus=8)
    first, second = rig.submit(8, tenant="lab"), 0
    assert rig.phase(first) == "Queued"
    lose(rig, "node-1")
    rig.feed(event.NodeSeen("node-1", NODE))
    second = rig.submit(8, tenant="lab")
    assert (rig.phase(first), rig.phase(second)) == ("Starting", "Queued")
    rig.feed(event.NodeSeen("node-5", NODE))
    assert spares_of(rig) == [4]
    settled(rig)


def test_it_gets_no_more_than_its_quota_has() -> None:
    rig = Rig(5)
    rig.tenant("lab", gpus=32)
    rig.submit(8, gang=3, spares=1, tenant="lab")
    rig.start(1, 0, 3)
    rig.tenant("lab", gpus=24)
    lose(rig, "node-3")
    assert spares_of(rig) == [], "its limit is three nodes now"
    rig.tenant("lab", gpus=32)
    assert spares_of(rig) == [4]
    settled(rig)


def test_who_is_held_gets_no_spare() -> None:
    rig = running(nodes=5)
    rig.feed(event.HoldJob(1))
    lose(rig, "node-3")
    assert spares_of(rig) == []
    rig.feed(event.ReleaseJob(1))
    assert spares_of(rig) == [4]


def test_who_is_evicted_gives_its_spares_back_too() -> None:
    rig = Rig(4)
    gang = rig.submit(8, gang=3, spares=1, tier="opportunistic")
    rig.start(gang, 0, 3)
    rig.feed(after_ms=HOUR_MS)
    urgent = rig.submit(8, gang=4, tier="critical")
    assert rig.phase(gang) == "Stopping"
    rig.exit(gang, 143, 0, 3)
    assert (rig.phase(urgent), rig.phase(gang)) == ("Starting", "Queued")
    settled(rig)


def test_it_moves_with_its_spares() -> None:
    rig = running(nodes=8)
    assert isinstance(rig.answer(event.MigrateJob(1)), Done)
    over(rig)
    assert (sorted(slots_of(rig)), spares_of(rig)) == ([4, 5, 6], [7])
    settled(rig)


# -- whatever happens, it ends whole ---------------------------------------------------------------------------------


@pytest.mark.parametrize("bears", [False, True], ids=["begun anew", "in place"])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("lost", ["node-0", "node-1", "node-2", "node-3"])
def test_whenever_it_loses_a_node_it_ends_whole(stage: Callable[[Rig], None], lost: str, bears: bool) -> None:
    rig = Rig(4)
    gang = rig.submit(8, gang=3, spares=1, gang_most=3 if bears else 0, in_place=bears)
    stage(rig)
    asked = rig.job(gang).spec
    lose(rig, lost)
    over(rig, gang)
    assert rig.job(gang).failures == 0
    rig.feed(event.UnbarNode("node-0", BarKind.DRAIN, "op"), event.NodeSeen(lost, NODE))
    rig.feed(after_ms=MINUTE_MS)
    assert rig.phase(gang) in ("Starting", "Running")
    assert rig.job(gang).spec == asked
    rig.start(gang, 0, len(rig.world.ranks[gang]))
    rig.exit(gang, 0, 0, len(rig.world.ranks[gang]))
    assert rig.phase(gang) == "Succeeded"
    settled(rig)


def test_two_broken_gangs_never_wait_for_each_other_for_ever() -> None:
    rig = Rig(8)
    one, two = rig.submit(8, gang=3, spares=1), rig.submit(8, gang=3, spares=1)
    for job in (one, two):
        rig.start(job, 0, 3)
    lose(rig, *(rig.world.fleet.names[slot] for job in (one, two) for slot in slots_of(rig, job)[:2]))
    for job in (one, two):
        over(rig, job)
    assert sorted(rig.world.claims) == [one, two], "each has two of three places, and none is free"
    rig.feed(after_ms=11 * MINUTE_MS)
    assert not rig.world.claims
    rig.feed(*(event.NodeSeen(f"late-{number}", NODE) for number in range(2)))
    assert [rig.phase(job) for job in (one, two)].count("Starting") == 1
    settled(rig)


def test_a_restored_world_uses_and_refills_spares_alike() -> None:
    rig = in_place(nodes=5)
    twin = type(rig.kernel)(restore(snapshot(rig.world)))
    batch = [event.NodeGone("node-1", "fenced")]
    mine, its = rig.kernel.handle(batch, rig.now + 5), twin.handle(batch, rig.now + 5)
    assert mine.facts == its.facts
    assert [type(item) for item in mine.facts] == [
        *(fact.NodePhased, fact.RanksLost, fact.SparesUsed, fact.SparesGiven)
    ]
    assert mine.instructions == its.instructions


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"gang": 1}, Code.NO_SPARES),
        ({"array": 4}, Code.NO_SPARES),
        ({"gang": 4, "needs": Needs(spread="rack")}, Code.NO_SPARES),
        ({"gang": 4, "needs": Needs(slice="rack", slice_tasks=2)}, Code.NO_SPARES),
        ({"gang": 4, "needs": Needs(shape=(2, 2, 1))}, Code.NO_SPARES),
        ({"gang": 4, "needs": Needs(booking="week")}, Code.NO_SPARES),
        ({"gang": 4, "needs": Needs(apart=("default/web",))}, Code.NO_SPARES),
        ({"gang": 4, "spares": -1}, Code.BAD_AMOUNT),
        ({"gang": 4, "spares": 10**9}, Code.BAD_AMOUNT),
        ({"gang": 4, "spares": 5}, Code.NEVER_FITS),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_have_spares_is_refused_and_changes_nothing(fields: dict[str, object], code: Code) -> None:
    rig = Rig(8)
    before = digest(rig.world)
    answer = rig.answer(event.Submit(spec(8, **({"spares": 1} | fields))))
    assert isinstance(answer, Refused)
    assert answer.reason.code == code
    assert digest(rig.world) == before


def test_a_node_that_is_empty_without_its_spare_is_what_it_said_in_the_same_batch() -> None:
    rig = running(4)
    rig.feed(event.NodeSeen("node-3", Resources(7, 64_000, 2**39)))
    assert spares_of(rig) == []
    assert not rig.world.fleet.said
    assert rig.world.fleet.capacities[3] == Resources(7, 64_000, 2**39)
    settled(rig)


def test_so_it_is_if_the_node_is_booked_instead_of_another() -> None:
    rig, larger = running(5), Resources(8, 64_000, 2**39)
    window = Window(rig.now + 2 * HOUR_MS, rig.now + 3 * HOUR_MS)
    rig.feed(event.Reserve(Booking("b", "lab", 1, (window,))), event.NodeSeen("node-3", larger))
    rig.feed(*(event.BarNode(f"node-{number}", BarKind.DRAIN, "op") for number in range(3)))
    assert rig.world.fleet.said
    rig.feed(event.NodeGone("node-4"))
    assert (rig.world.bookings["b"].windows[0].slots, spares_of(rig)) == ((3,), [])
    assert not rig.world.fleet.said
    assert rig.world.fleet.capacities[3] == larger
    settled(rig)
