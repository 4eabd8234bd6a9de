"""A leader whose tasks only take time: a durable journal, the real socket, and an engine that is a list of alarms.

`python -m bench.timed_leader HOME CPUS` leads until it is ended. A task runs for as many milliseconds as the second
word of its command says; a stop ends it at once. For benchmarks that ask what the service does, not the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from muster.app.process import WallClock, settle_memory, stop_on_signals, write_note
from muster.control.leader import Leader
from muster.control.loading import load_world
from muster.engines.local.log_file import start_log
from muster.kernel.warm import warm_up
from muster.model.event import Exited, NodeSeen, Started
from muster.model.instruction import Instruction, Start, Stop
from muster.ports import Report
from muster.sdk.home import Home
from muster.stores.sqlite import SqliteStore
from muster.units import Resources

STOPPED = 143


class TimedEngine:
    """An Engine of one large node. It forgets what it ran when it ends, so it is for one run of a benchmark."""

    def __init__(self, cpus: int) -> None:
        self._node = NodeSeen("timed", Resources(cpu_milli=1000 * cpus, memory_bytes=1 << 40))
        self._running: dict[tuple[int, int], asyncio.TimerHandle] = {}

    def open(self, report: Report) -> None:
        """Say that there is a node."""
        self._report = report
        self._loop = asyncio.get_running_loop()
        report([self._node])

    def carry_out(self, instructions: Sequence[Instruction]) -> None:
        """Start and stop."""
        for item in instructions:
            if isinstance(item, Start):
                self._start(item)
            elif isinstance(item, Stop):
                self._stop(item)

    def close(self) -> None:
        """Nothing runs that would go on."""
        for alarm in self._running.values():
            alarm.cancel()

    def _start(self, item: Start) -> None:
        self._report([Started(item.job, item.epoch, item.first, sum(item.counts))])
        lasts_s = int(item.spec.command[1]) / 1000
        self._running[item.job, item.epoch] = self._loop.call_later(lasts_s, self._end, item.job, item.epoch, 0)

    def _stop(self, item: Stop) -> None:
        alarm = self._running.get((item.job, item.epoch))
        if alarm is not None:
            alarm.cancel()
            self._end(item.job, item.epoch, STOPPED)

    def _end(self, job: int, epoch: int, code: int) -> None:
        del self._running[job, epoch]
        self._report([Exited(job, epoch, code)])


async def _lead(leader: Leader) -> int:
    return await leader.run(stop_on_signals())


def main(home: Home, cpus: int) -> int:
    """Lead."""
    start_log(home.log_file("leader"), logging.INFO)
    home.prepare()
    with contextlib.closing(SqliteStore(home.journal_file)) as store:
        write_note(home.process_file("leader"))
        warm_up()
        world = load_world(store)
        settle_memory()
        leader = Leader(world, store, TimedEngine(cpus), WallClock(), home.leader_socket, home.root)
        return asyncio.run(_lead(leader))


if __name__ == "__main__":
    sys.exit(main(Home(Path(sys.argv[1])), int(sys.argv[2])))
