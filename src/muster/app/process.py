"""What both processes of a server share: a note of who they are, their log, their garbage collector, their signals."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from muster.engines.local.detaching import find_lock
from muster.model.errors import ConflictError
from muster.model.reason import Code, Reason
from muster.sdk.home import Home
from muster.sdk.processes import Note, find_start_time

T = TypeVar("T")

GC_THRESHOLDS: Final = (10_000, 250, 1000)
"""With the defaults, full collections over a large world were most of the slowest percent of requests; and everybody
waits while the youngest are looked at, up to 15 ms for 50,000 of them."""

FILES: Final = 65_536


class WallClock:
    """The clock of this machine."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000


def write_note(path: Path) -> None:
    """Say that this process plays the role that `path` is named after."""
    fresh, pid = path.with_suffix(".new"), os.getpid()
    fresh.write_bytes(msgspec.json.encode(Note(pid, find_start_time(pid) or 0)))
    fresh.replace(path)


@contextmanager
def only_follower(home: Home) -> Iterator[None]:
    """Be the one follower of a home, and say so before anything slow is begun: two would serve at two addresses, and
    only the last to write its note would ever be told to end."""
    lock = find_lock(home.follower_lock_file)
    if lock is None:
        raise ConflictError(Reason(Code.ALREADY_SERVED, str(home.root), detail="another follower serves it"))
    try:
        write_note(home.process_file("follower"))
        yield
    finally:
        os.close(lock)


def settle_memory() -> None:
    """What was loaded stays: the collector need not look at it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def allow_connections() -> None:
    """Have enough open files for whoever watches: each connection is one, and most systems begin a process with 1,024.
    Not for the leader, from which tasks would have it."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if most == resource.RLIM_INFINITY else min(FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(now, wanted), most))


def run_http(serving: Coroutine[object, object, T]) -> T:
    """Run what serves HTTP, to its end, in a loop with which a submit costs a fifth less. The leader keeps the standard
    one, whose answers have left when the next line runs: its failpoints rest on that."""
    import uvloop  # the leader need not load it

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serving)


def stop_on_signals() -> asyncio.Event:
    """An event that is set when this process is told to end."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop
