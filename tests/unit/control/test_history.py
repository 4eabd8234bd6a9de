"""History is a fold of the journal: whoever keeps it as it happens, and whoever makes it again, keep the same."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest
from control_kit import spec

from muster.control.batches import Item, make_batch
from muster.control.history import fill_history, fold_history, write_chapter
from muster.kernel.kernel import Kernel
from muster.model.event import Event, Exited, NodeSeen, Progressed, SetFlavor, Started, Submit
from muster.model.history import AMOUNTS, COST_MICROS, COST_REST, Chapter
from muster.model.node import Flavor, Traits
from muster.model.phase import Running
from muster.ports import Commit, Store
from muster.ports.store import Wanted
from muster.stores.memory import MemoryStore
from muster.stores.sqlite import SqliteStore
from muster.stores.sqlite.history import UNFILLED
from muster.units import HOUR_MS, MICRO, MINUTE_MS, Resources
from muster.world.accounting import keep_diary
from muster.world.world import World

NODE = NodeSeen("node-1", Resources(gpus=8, cpu_milli=8000), traits=Traits(flavor="h100"))
JOBS = 200
GPU = Resources(gpus=1, cpu_milli=100)


class Life:
    """A kernel whose batches go to a store, as a leader's do."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.kernel = Kernel(World())
        self.diary = keep_diary(self.kernel.world)
        self.at = 0

    def happen(self, *events: Event, after_ms: int = 0) -> None:
        self.at += after_ms
        outcome = self.kernel.handle(events, self.at)
        batch = make_batch([Item(e) for e in events], outcome, write_chapter(self.diary, outcome.facts))
        if batch.commit is not None:
            self.store.append([batch.commit])

    def live_at_random(self, seed: int, turns: int = 120) -> None:
        """Jobs of three people and two tenants come, run, are checkpointed, fail, are tried again and end."""
        dice = random.Random(seed)
        self.happen(NODE, SetFlavor("h100", Flavor("h100", price_micros=3 * MICRO)))
        for _ in range(turns):
            events: list[Event] = []
            for job in sorted(self.kernel.world.jobs.values(), key=lambda each: each.id):
                if isinstance(job.phase, Running) and dice.random() < 0.3:
                    events.append(Progressed(job.id, job.epoch, 1, checkpointed=True))
                elif job.epoch and dice.random() < 0.3:
                    events.append(Exited(job.id, job.epoch, dice.choice((0, 0, 1))))
                elif job.epoch:
                    events.append(Started(job.id, job.epoch))
            asked = spec(ask=GPU, tenant=dice.choice(("a", "b")), retries=1)
            events.append(Submit(asked, f"k{dice.random()}", dice.choice(("api", "api:ann", "api:bob"))))
            self.happen(*events, after_ms=dice.choice((1, MINUTE_MS, 20 * MINUTE_MS, 3 * HOUR_MS)))


def everything(store: Store) -> tuple[object, ...]:
    """All of history that a reader can see."""
    jobs = store.read_finished(Wanted(limit=10_000))
    amounts = [store.find_amounts(job) for job in range(1, JOBS)]
    return jobs, store.read_uses(0, 10**6), store.read_uses(0, 10**6, hourly=True), amounts


@pytest.mark.parametrize("seed", range(3))
def test_history_is_the_fold_of_the_journal_in_every_store(seed: int, tmp_path: Path) -> None:
    memory = MemoryStore()
    with closing(SqliteStore(tmp_path / "journal.db")) as file:
        for store in (memory, file):
            Life(store).live_at_random(seed)
            again = MemoryStore()
            again.append([Commit(seq, data, b"") for seq, data in enumerate(store.read_entries(0), 1)])
            again.fill(chapter for _, chapter in fold_history(store, store.last_seq()))
            assert everything(store) == everything(again)
        assert everything(memory) == everything(file)
    assert len(memory.read_finished(Wanted())) > 20
    assert {use.user for use in memory.read_uses(0, 10**6)[1]} == {"", "ann", "bob"}


def test_what_is_remembered_of_hours_is_what_was_held_times_its_price() -> None:
    """One GPU at 3 an hour: placed at 0:00, up at 0:30, checkpointed at 1:30, failed at 2:15 and given up."""
    life = Life(MemoryStore())
    life.happen(NODE, SetFlavor("h100", Flavor("h100", price_micros=3 * MICRO)))
    life.happen(Submit(spec(ask=GPU, tenant="a"), "k", "api:ann"))
    life.happen(Started(1, 1), after_ms=HOUR_MS // 2)
    life.happen(SetFlavor("h100", Flavor("h100", price_micros=9 * MICRO)), after_ms=1)
    life.happen(Progressed(1, 1, 7, checkpointed=True), after_ms=HOUR_MS - 1)
    life.happen(Exited(1, 1, 1), after_ms=HOUR_MS * 3 // 4)
    hours = life.store.read_uses(0, 10, hourly=True)[1]
    seen = [(use.flavor, use.hour, *(amount // (1000 * MINUTE_MS) for amount in use.amounts[:5])) for use in hours]
    assert seen == [
        ("", 2, 0, 0, 0, 0, 0),
        ("h100", 0, 30, 0, 30, 0, 0),
        ("h100", 1, 30, 30, 0, 0, 0),
        ("h100", 2, 0, 15, 0, 0, 0),
    ]
    [found] = life.store.read_finished(Wanted())
    assert (found.user, found.amounts[COST_MICROS], found.amounts[COST_REST]) == ("ann", 6_750_000, 0)


def test_a_journal_from_before_history_is_told_again_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with closing(SqliteStore(path)) as store:
        Life(store).live_at_random(seed=5, turns=40)
        wanted = everything(store)
        last = store.last_seq()
        with store._transaction() as db:  # as a file is whose tables were lifted just now
            for table in ("owners", "finished", "amounts", "uses"):
                db.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
            db.execute("INSERT INTO marks VALUES (?, ?)", (UNFILLED, last))
        assert store.read_finished(Wanted()) == []
        assert fill_history(store) == last
        assert everything(store) == wanted
        assert fill_history(store) == 0


def test_a_batch_without_anything_to_remember_adds_a_blank_chapter() -> None:
    world = World()
    assert write_chapter(keep_diary(world), []) == Chapter()
    assert len(AMOUNTS) == 11
