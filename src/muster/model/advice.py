"""Advice: what was learned, solved or priced outside the kernel, as integers with a version and an end.

A kind of advice is known to whoever learns it and to whoever reads it: the names of its columns and what stands in them
are theirs. The kernel stores it, forgets it in time, and works without it.
"""

from __future__ import annotations

from typing import Final

from muster.model.record import Record

PACKING: Final = "packing"
"""What free devices are worth to the classes of jobs that come: see `muster.learning.packing`."""
THROUGHPUT: Final = "throughput"
"""How fast work of a kind is on a device of a flavor, in any unit: a column `work:flavor` with one number each."""
DISTANCE: Final = "distance"
"""How far a dataset is from a cluster, in any unit: a column `dataset:region/cluster` with one number each."""
INDEX: Final = "index"
"""Where jobs stand in tiers that are shared by advice: the columns `job` and `index`; and `patience_ms`, one number, or
none: how long everybody has to wait there before it is owed a turn."""
RUNTIME: Final = "runtime"
"""For how long jobs will run, from when they get their place: the columns `job` and `run_ms`. Whoever learned it may
say more, for readers alone: `least_ms` and `most_ms`, between which it is four times in five; `likes`, how many that
are like it have ended, and `kin`, in what they are (`muster.wire.evidence`)."""
KINDS_MAX: Final = 64
WORDS_MAX: Final = 1_000_000
"""How many integers one kind of advice may hold."""


class Advice(Record, frozen=True):
    """Columns of integers by name, in force until the instant `expires_at`. Every new word of a kind replaces all that
    was said before, and has a higher version."""

    version: int
    expires_at: int
    columns: dict[str, tuple[int, ...]]


def column_of(row: str, column: str) -> str:
    """The name under which a table of two names keeps a number; no name has a colon."""
    return f"{row}:{column}"
