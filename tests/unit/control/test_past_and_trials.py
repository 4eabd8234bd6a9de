"""The past is the fold of the journal up to an instant; a trial is what the kernel would do, in a world thrown away."""

from __future__ import annotations

import asyncio

import pytest

from muster.control import past as past_module
from muster.control.batches import Item, make_batch
from muster.control.past import Past, load_past
from muster.control.trial import try_out
from muster.kernel.kernel import Kernel
from muster.model.booking import Booking, Window
from muster.model.errors import RejectedError
from muster.model.event import (
    BarNode,
    Event,
    Exited,
    MigrateJob,
    NodeSeen,
    Reserve,
    ScaleJob,
    SetFlavor,
    SetTenant,
    SetTier,
    Started,
    Submit,
    UnbarNode,
)
from muster.model.history import Chapter, Finished
from muster.model.job import BarKind
from muster.model.node import Flavor, Traits
from muster.model.reason import Code
from muster.model.spec import Spec
from muster.model.tenant import Line, Tenant
from muster.model.tier import Tier
from muster.ports.store import Commit
from muster.stores.memory import MemoryStore
from muster.units import Resources
from muster.wire.forecast_views import TrialView
from muster.world.snapshot import digest, snapshot
from muster.world.world import World

NODE = NodeSeen("node-1", Resources(gpus=8, cpu_milli=64_000, memory_bytes=2**36), traits=Traits("h100"))


class History:
    """A journal with an entry every ten seconds, and the digest of the world after each."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.kernel = Kernel(World())
        self.at = 0
        self.digests = {0: digest(World())}

    def happen(self, *events: Event) -> None:
        self.at += 10_000
        batch = make_batch([Item(event) for event in events], self.kernel.handle(events, self.at))
        assert batch.commit is not None
        self.store.append([batch.commit])
        self.digests[self.at] = digest(self.kernel.world)


def submit(gpus: int, tenant: str = "default") -> Submit:
    return Submit(Spec(("train",), tenant=tenant, ask=Resources(gpus=gpus)))


def save_snapshots(history: History, *instants: int) -> None:
    for at in instants:
        world = load_past(history.store, at)
        history.store.save_snapshot(world.seq, snapshot(world))


@pytest.fixture
def history() -> History:
    told = History()
    for events in ((NODE,), (submit(6),), (Started(1, 1, 0),), (submit(6),), (Exited(1, 1, 0),), (submit(1),)):
        told.happen(*events)
    return told


@pytest.mark.parametrize("snapshots_after", [(), (30_000,), (20_000, 30_000, 50_000)])
def test_every_instant_of_the_past_is_as_it_was(history: History, snapshots_after: tuple[int, ...]) -> None:
    save_snapshots(history, *snapshots_after)
    for at, expected in history.digests.items():
        assert digest(load_past(history.store, at)) == expected
        assert digest(load_past(history.store, at + 9_999)) == expected


def test_the_past_behind_a_cut_is_read_from_an_older_snapshot(history: History) -> None:
    save_snapshots(history, 20_000, 50_000)
    ended = Finished(9, "default", 5, 1000, "", b"")
    history.store.append([Commit(7, b"", b"", chapter=Chapter(finished=(ended,)))])
    history.store.append([Commit(8, b"", b"")])
    history.store._story[9] = [2]  # a job of long ago, told of last in the second entry
    assert history.store.purge(before=2000, most=10) == 1
    assert history.store.trimmed_seq() == 2
    for at in (20_000, 30_000, 40_000, 50_000):
        assert digest(load_past(history.store, at)) == history.digests[at]
    with pytest.raises(RejectedError) as caught:
        load_past(history.store, 19_999)
    assert caught.value.reason.code == Code.NO_PAST


def test_what_is_too_far_from_anything_kept_is_refused(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past_module, "ENTRIES_MAX", 3)
    assert load_past(history.store, 20_000).seq == 2
    with pytest.raises(RejectedError) as caught:
        load_past(history.store, 60_000)
    assert caught.value.reason.code == Code.NO_PAST


def test_a_world_of_the_past_is_kept_for_the_next_question_but_not_after_it_was_used_up(history: History) -> None:
    past = Past(history.store)

    async def ask() -> list[bool]:
        first, second = [await past.ask(20_000, lambda world: world) for _ in range(2)]
        free = await past.ask_freely(20_000, lambda world: world)
        return [first is second, free is first]

    assert asyncio.run(ask()) == [True, False]


def test_a_job_that_would_start_says_where_and_for_how_much(history: History) -> None:
    history.happen(SetFlavor("h100", Flavor("h100", 1000, 2_500_000)))
    view = try_out(load_past(history.store, history.at), submit(1), history.at)
    assert view.job is not None
    assert ([place.node for place in view.job.places], view.price_micros, view.why) == (["node-1"], 2_500_000, None)
    assert view.job.price_micros == view.price_micros


def test_a_job_that_would_wait_says_why_and_changes_nothing(history: History) -> None:
    before = history.digests[history.at]
    view = try_out(load_past(history.store, history.at), submit(4), history.at)
    assert view.why is not None
    assert (view.why.code, view.started, view.stopped) == (Code.NO_ROOM, 0, 0)
    assert digest(load_past(history.store, history.at)) == before


def test_what_would_be_refused_is_refused(history: History) -> None:
    with pytest.raises(RejectedError) as caught:
        try_out(load_past(history.store, history.at), submit(9), history.at)
    assert caught.value.reason.code == Code.NEVER_FITS


def test_a_quota_says_who_would_start_and_who_would_wait_for_another_reason() -> None:
    told = History()
    told.happen(NODE, SetTenant("lab", Tenant(lines=(Line("h100", limit=2_000_000),))))
    told.happen(submit(2, "lab"), submit(2, "lab"), submit(2, "lab"))
    raised = SetTenant("lab", Tenant(lines=(Line("h100", limit=4_000_000),)))
    view = try_out(load_past(told.store, told.at), raised, told.at)
    assert ([job.job for job in view.starts], view.waiting) == ([2], 0)
    told.happen(submit(6))
    lifted = try_out(load_past(told.store, told.at), SetTenant("lab", Tenant()), told.at)
    assert [job.job for job in lifted.waits] == [2, 3]
    assert lifted.waits[0].what.startswith("waiting for room")


def test_a_guarantee_says_who_would_be_told_to_stop() -> None:
    told = History()
    told.happen(NODE, SetTenant("lab", Tenant()))
    told.happen(submit(8))
    told.happen(Started(1, 1, 0), submit(8, "lab"))
    owner = SetTenant("lab", Tenant(lines=(Line("h100", guaranteed=8_000_000),)))
    view = try_out(load_past(told.store, told.at), owner, told.at)
    assert ([job.job for job in view.stops], view.started) == ([1], 0)


def test_a_tier_alone_moves_nobody(history: History) -> None:
    view = try_out(load_past(history.store, history.at), SetTier("gold", Tier(10, 1000)), history.at)
    assert (view.started, view.stopped, view.waiting) == (0, 0, 0)


OTHER_NODE = NodeSeen("node-2", Resources(gpus=8, cpu_milli=64_000, memory_bytes=2**36), traits=Traits("h100"))


@pytest.fixture
def running() -> History:
    """A job that runs on the first of two nodes, and may have up to four tasks."""
    told = History()
    told.happen(NODE)
    told.happen(Submit(Spec(("train",), gang=1, gang_most=2, ask=Resources(gpus=4))))
    told.happen(Started(1, 1, 0), Started(1, 1, 1))
    told.happen(OTHER_NODE)
    return told


def try_on(told: History, asked: Event, *more: Event) -> TrialView:
    return try_out(load_past(told.store, told.at), asked, told.at, *more)


def test_a_move_says_where_the_job_would_go_on(running: History) -> None:
    view = try_on(running, MigrateJob(1))
    assert [job.job for job in view.stops] == [1]
    assert [(place.node, place.tasks) for place in view.places] == [("node-2", 1)], "its least"
    assert try_on(running, MigrateJob(1, ("node-1",))).places == []


def test_tasks_of_an_array_that_would_move_are_told_and_are_counted_by_node(running: History) -> None:
    running.happen(Submit(Spec(("sweep",), array=2, ask=Resources(gpus=4))))
    running.happen(Started(2, 1, 0), Started(2, 1, 1))
    running.happen(NodeSeen("node-3", Resources(gpus=8, cpu_milli=64_000, memory_bytes=2**36), traits=Traits("h100")))
    view = try_on(running, MigrateJob(2))
    assert [job.job for job in view.stops] == [2]
    assert [(place.node, place.tasks) for place in view.places] == [("node-3", 2)]


def test_other_bounds_say_how_many_tasks_it_would_have(running: History) -> None:
    running.happen(Submit(Spec(("train",), gang=1, gang_most=2, in_place=True, ask=Resources(gpus=2))))
    running.happen(Started(2, 1, 0), Started(2, 1, 1))
    views = [try_on(running, ScaleJob(2, most)) for most in (1, 2)]
    assert [(view.tasks, view.stopped) for view in views] == [(1, 0), (2, 0)]
    assert [job.job for job in try_on(running, ScaleJob(1, 1)).stops] == [1], "it cannot shrink while it runs"


def test_a_booking_says_which_nodes_it_would_get_and_makes_none(running: History) -> None:
    booking = Booking("night", "default", 1, (Window(running.at + 10_000, running.at + 20_000),))
    view = try_on(running, Reserve(booking))
    assert view.booking is not None
    assert [(window.nodes, window.short) for window in view.booking.windows] == [(["node-2"], 0)]
    assert load_past(running.store, running.at).bookings == {}


def test_bars_that_would_be_lifted_together_say_who_would_start(running: History) -> None:
    bars = [BarNode("node-2", kind, "operator") for kind in BarKind]
    running.happen(*bars, submit(8))
    lifted = [UnbarNode("node-2", kind, "operator") for kind in BarKind]
    assert [job.job for job in try_on(running, *lifted).starts] == [2]
    assert try_on(running, lifted[0]).started == 0, "the other still stands"


def test_a_cordon_says_who_would_wait_for_another_reason(running: History) -> None:
    running.happen(submit(8), submit(8))
    view = try_on(running, BarNode("node-2", BarKind.CORDON, "operator"))
    assert (view.started, view.stopped) == (0, 0)
