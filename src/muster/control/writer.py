"""The writer: one thread that makes batches durable, in order, everything queued in one transaction.

It tells what is durable and, once, that the store refused; after that it writes nothing more. It never knows what a
batch means or whom to answer.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from muster.control.batches import Batch
from muster.control.registrar import Errand
from muster.ports import Store
from muster.ports.failpoint import failpoint
from muster.units import INSTANT_MAX

INPUTS_KEPT: Final = 100_000
INPUTS_BYTES_MAX: Final = 256 * 1024 * 1024
"""How much the recorder keeps: so many batches, or less if they are large."""
PURGED_AT_ONCE: Final = 20_000
"""How many jobs are forgotten with one snapshot: more than become old meanwhile, and too few to hold anybody up."""


class Picture(NamedTuple):
    """A snapshot that may be saved once entry `seq` is durable; it is of the instant `at`."""

    seq: int
    at: int
    data: bytes


Work: TypeAlias = Batch | Errand | Picture


class Writer:
    """The only caller of a store's writing side. The callbacks run in its thread."""

    def __init__(
        self,
        store: Store,
        on_durable: Callable[[list[Batch]], None],
        on_kept: Callable[[list[Errand]], None],
        on_refused: Callable[[Exception], None],
        history_ms: int = INSTANT_MAX,
    ) -> None:
        self._store = store
        self._history_ms = history_ms
        self._on_durable = on_durable
        self._on_kept = on_kept
        self._on_refused = on_refused
        # Bounded by its caller, who holds back while too many batches are in flight.
        self._queue: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def put(self, work: Work) -> None:
        """Join the line."""
        self._queue.put(work)

    def finish(self) -> None:
        """Write what is queued, and end."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            while self._write(self._take()):
                pass
        except Exception as error:  # noqa: BLE001 - of whatever kind: if it died unheard, every client would hang
            self._on_refused(error)

    def _take(self) -> list[Work | None]:
        """Wait for work, then take all there is."""
        taken = [self._queue.get()]
        while not self._queue.empty():
            taken.append(self._queue.get())
        return taken

    def _write(self, taken: list[Work | None]) -> bool:
        """Write a group; False if it was the last."""
        batches = [work for work in taken if isinstance(work, Batch)]
        commits = [batch.commit for batch in batches if batch.commit is not None]
        if commits:
            self._store.append(commits)
            failpoint("leader.after_commit")
        if batches:
            self._on_durable(batches)
        errands = [work for work in taken if isinstance(work, Errand)]
        if errands:
            self._store.keep([errand.change for errand in errands])
            self._on_kept(errands)
        for work in taken:
            if isinstance(work, Picture):
                self._save(work)
        return None not in taken

    def _save(self, picture: Picture) -> None:
        self._store.save_snapshot(picture.seq, picture.data)
        self._store.trim_inputs(INPUTS_KEPT, INPUTS_BYTES_MAX)
        self._store.purge(picture.at - self._history_ms, PURGED_AT_ONCE)
        failpoint("leader.after_snapshot")
