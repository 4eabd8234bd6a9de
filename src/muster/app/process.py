"""What both processes of a server share: a note of who they are, their log, their garbage collector, their signals."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import Final

import msgspec

GC_THRESHOLDS: Final = (50_000, 50, 1000)
"""With the defaults, full collections over a large world were most of the slowest percent of requests."""


class WallClock:
    """The clock of this machine."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000


class ProcessNote(msgspec.Struct, frozen=True):
    """Which process plays a role: a number may be given to another process, a number with a start time may not."""

    pid: int
    start_time: int


def write_note(path: Path) -> None:
    """Say that this process plays the role that `path` is named after."""
    fresh = path.with_suffix(".new")
    fresh.write_bytes(msgspec.json.encode(ProcessNote(os.getpid(), _start_time())))
    fresh.replace(path)


def start_log() -> None:
    """Log to stderr; whoever starts the process says where that goes."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")


def settle_memory() -> None:
    """What was loaded stays: the collector need not look at it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def stop_on_signals() -> asyncio.Event:
    """An event that is set when this process is told to end."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def _start_time() -> int:
    """Field 22 of /proc/self/stat; the second field is in parentheses and may hold anything."""
    return int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
