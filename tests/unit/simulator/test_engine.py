"""The simulated engine keeps the contract of the port: idempotent, repeating, fencing; and it is the ground truth."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from muster.model.errors import InvariantError
from muster.model.event import Event, Exited, Held, NodeGone, NodeSeen, NodeSilent, Started
from muster.model.instruction import Forget, Start, Stop
from muster.ports import Clock, Engine
from muster.simulator.agenda import Agenda
from muster.simulator.cohort import Cohort, gaps, part_of_devices
from muster.simulator.engine import LATENCY_MS, STOPPED, Fate, Network, SimulatedEngine
from muster.testing.rig import spec
from muster.units import HOUR_MS, MINUTE_MS, SECOND_MS, Resources

NODE = Resources(8, 8000, 2**33)


class Bench:
    """An engine, its time, and all that it said."""

    def __init__(self, network: Network | None = None, run_ms: int = MINUTE_MS) -> None:
        self.agenda = Agenda()
        fate = Fate(SECOND_MS, run_ms)
        self.engine = SimulatedEngine(self.agenda, lambda *_: fate, random.Random(1), network)
        self.engine.add_node("n0", NODE)
        self.engine.add_node("n1", NODE)
        self.said: list[Event] = []
        self.engine.open(self.hear)

    def hear(self, events: Sequence[Event]) -> None:
        self.said.extend(events)

    def tell(self, *instructions: Start | Stop | Forget, wait_ms: int = 0) -> list[Event]:
        """Give instructions, wait, and take what was said meanwhile."""
        self.said.clear()
        self.engine.carry_out(instructions)
        self.agenda.jump(self.agenda.now + wait_ms + 2 * LATENCY_MS)
        return self.said.copy()


def start(job: int = 1, epoch: int = 1, first: int = 0, count: int = 2, devices: int = 0b11) -> Start:
    return Start(job, epoch, spec(1, array=9), first, ["n0"], [count], [devices])


def test_it_is_an_engine_and_virtual_time_is_a_clock() -> None:
    bench = Bench()
    engine: Engine = bench.engine
    clock: Clock = bench.agenda
    assert engine is bench.engine
    assert clock.now_ms() == 0


def test_every_node_reports_itself() -> None:
    bench = Bench()
    bench.agenda.jump(LATENCY_MS)
    assert [type(item) for item in bench.said] == [NodeSeen, NodeSeen]


def test_a_task_starts_runs_and_ends() -> None:
    said = Bench().tell(start(), wait_ms=2 * MINUTE_MS)
    assert said[2:] == [Started(1, 1, 0, 2, "n0"), Exited(1, 1, 0, 0, 2, cause="n0")]


def test_the_same_start_twice_starts_once() -> None:
    bench = Bench()
    bench.tell(start(), start(), wait_ms=5 * SECOND_MS)
    assert bench.engine.count_live() == 2
    assert bench.tell(start()) == [Started(1, 1, 0, 2, "n0")]
    assert bench.engine.count_live() == 2


def test_a_start_of_more_starts_what_is_new() -> None:
    bench = Bench()
    bench.tell(start(count=2, devices=0b11), wait_ms=2 * SECOND_MS)
    bench.tell(start(first=1, count=2, devices=0b110), wait_ms=2 * SECOND_MS)
    assert bench.engine.count_live() == 3


def test_an_end_is_repeated_until_it_is_forgotten() -> None:
    bench = Bench()
    bench.tell(start(), wait_ms=2 * MINUTE_MS)
    over = Exited(1, 1, 0, 0, 2, cause="n0")
    assert bench.tell(start()) == [over]
    assert bench.tell(Stop(1, 1, 0, 2, 0)) == [over]
    assert bench.tell(Forget(1, 1, 0, 2)) == []
    assert bench.tell(Stop(1, 1, 0, 2, 0)) == [Exited(1, 1, STOPPED, 0, 2, cause="never started")]


def test_a_stop_for_what_was_never_seen_fences_it() -> None:
    bench = Bench()
    said = bench.tell(Stop(1, 1, 0, 2, 0), start(), wait_ms=MINUTE_MS)
    assert [type(item) for item in said if not isinstance(item, NodeSeen)] == [Exited, Exited]
    assert bench.engine.count_live() == 0


def test_a_stop_of_a_part_leaves_the_rest_alone() -> None:
    bench = Bench(run_ms=HOUR_MS)
    bench.tell(start(count=4, devices=0b1111), wait_ms=2 * SECOND_MS)
    said = bench.tell(Stop(1, 1, 1, 2, 50), wait_ms=100)
    assert said == [Exited(1, 1, STOPPED, 1, 2, cause="n0")]
    assert bench.engine.count_live() == 2
    assert bench.engine.find_live(1, 1, 2) is None
    assert bench.engine.find_live(1, 3, 1) is not None


def test_two_live_tasks_on_one_device_are_the_end_of_the_run() -> None:
    bench = Bench()
    bench.tell(start(), wait_ms=2 * SECOND_MS)
    with pytest.raises(InvariantError, match="no device runs two tasks"):
        bench.tell(start(job=2))


def test_a_cut_off_node_hears_nothing_and_says_all_later() -> None:
    bench = Bench()
    bench.tell(start(), wait_ms=2 * SECOND_MS)
    bench.engine.cut_off("n0")
    assert bench.tell(start(job=2, devices=0b1100), wait_ms=3 * MINUTE_MS) == [NodeSilent("n0", "n0 silent")]
    bench.engine.bring_back("n0")
    said = bench.tell()
    assert said[0] == NodeSeen("n0", NODE, (Held(1, 1, 0, 2),), "n0 reports")
    assert said[1:] == [Exited(1, 1, 0, 0, 2, cause="n0")]


def test_a_crashed_node_comes_back_with_nothing() -> None:
    bench = Bench()
    bench.tell(start(), wait_ms=2 * SECOND_MS)
    bench.engine.crash("n0")
    assert bench.engine.count_live() == 0
    assert bench.tell(Stop(1, 1, 0, 2, 0), wait_ms=SECOND_MS) == [], "nobody knows what became of it"
    bench.engine.bring_back("n0")
    assert bench.tell() == [NodeSeen("n0", NODE, (), "n0 reports")]


def test_a_fence_kills_and_the_node_still_remembers_what_it_killed() -> None:
    bench = Bench()
    bench.tell(start(), wait_ms=2 * SECOND_MS)
    trouble = bench.engine.cut_off("n0")
    assert bench.engine.is_same_trouble("n0", trouble)
    bench.engine.fence("n0")
    assert bench.tell() == [NodeGone("n0", "n0 fenced")]
    assert bench.engine.count_live() == 0
    bench.engine.bring_back("n0")
    assert not bench.engine.is_same_trouble("n0", trouble)
    assert bench.tell()[0] == NodeSeen("n0", NODE, (Held(1, 1, 0, 2),), "n0 reports")


def test_a_start_that_is_on_its_way_when_its_node_is_fenced_never_reaches_it() -> None:
    bench = Bench()
    bench.engine.carry_out([start()])
    bench.engine.fence("n0")
    bench.engine.bring_back("n0")
    bench.tell()
    assert bench.engine.count_live() == 0
    bench.tell(start(epoch=2))
    assert bench.engine.count_live() == 2


def test_what_is_lost_on_the_way_is_said_again() -> None:
    bench = Bench(Network(lost=700, doubled=0))
    said = bench.tell(start(), wait_ms=20 * MINUTE_MS)
    assert Exited(1, 1, 0, 0, 2, cause="n0") in said


def test_a_doubled_message_comes_late() -> None:
    said = Bench(Network(doubled=1000, late_ms=MINUTE_MS)).tell(start(), wait_ms=5 * MINUTE_MS)
    assert said.count(Started(1, 1, 0, 2, "n0")) == 2
    assert said.count(Exited(1, 1, 0, 0, 2, cause="n0")) == 2


def test_a_closed_engine_says_nothing() -> None:
    bench = Bench()
    bench.engine.close()
    assert bench.tell(start(), wait_ms=MINUTE_MS) == []


def test_cutting_a_cohort_deals_its_devices() -> None:
    cohort = Cohort(1, 1, 10, 4, "n0", 2, 0b11111111)
    inside, outside = cohort.cut(11, 2)
    assert (inside.first, inside.count, inside.devices) == (11, 2, 0b00111100)
    assert [(part.first, part.count, part.devices) for part in outside] == [(10, 1, 0b11), (13, 1, 0b11000000)]


def test_gaps() -> None:
    assert list(gaps(0, 10, [(2, 3), (7, 9)])) == [(0, 2), (5, 2)]
    assert list(gaps(5, 5, [])) == [(5, 5)]
    assert list(gaps(5, 5, [(0, 20)])) == []
    assert list(gaps(0, 4, [(8, 2)])) == [(0, 4)]
    assert part_of_devices(0b101101, 1, 1, 2) == 0b001100


def test_the_agenda_keeps_the_order_in_which_things_were_planned() -> None:
    agenda = Agenda(100)
    done: list[str] = []
    agenda.after(10, done.append, "b")
    agenda.after(5, lambda: agenda.after(0, done.append, "nested"))
    agenda.after(10, done.append, "c")
    agenda.after(-5, done.append, "a")
    assert agenda.find_next() == 100
    agenda.jump(120)
    assert done == ["a", "nested", "b", "c"]
    assert agenda.now_ms() == 120
    assert agenda.find_next() is None
