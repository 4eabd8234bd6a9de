"""Store: the durable journal, its snapshots and its recorder. Journal: the part of it that only reads.

The contract, checked for every store by `muster.testing.store_conformance`:

- `append` is one durable transaction: after it returns every commit in it survives a crash; if it raises, none is
  there. Sequence numbers follow each other without gaps.
- Nothing is interpreted: blobs come back byte for byte as they were given.
- One writer: opening a second one on the same place raises ConflictError (M303) and changes nothing. Any number of
  readers, in any process, see committed entries only.
- A file of a newer version, or a damaged one, raises StoreError (M301, M302) on open and is left untouched.
- Damage inside a row is found when the row is read (M302 with its number), not on open: opening stays cheap.
- A (tenant, key) given twice, or a snapshot ahead of the journal, is refused (M306) with the whole group.
- `trim_inputs` keeps what the newest snapshot needs for a replay; without a snapshot, only the newest `keep`.
- A commit's chapter goes into history in the same transaction: amounts are added up, by job and by the hour, under the
  name of who submitted the job. `purge` forgets jobs that ended before an instant, with their stories, keys and
  amounts, and then the entries up to their last, as far as the newest snapshot covers them; but an entry that a job
  which is remembered is told of stays for its story, and for nothing else. Use by the hour stays.
- Jobs are numbered in the order in which they were accepted.
- Of older snapshots some are kept, closer to each other the younger they are, for whoever reads the past.
- `keep` is one durable transaction too. Each record that is written gets the next version, without gaps; what was kept
  under the same kind and name goes. Audit lines are numbered from 1 and linked by `link_of`, whoever brings them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from muster.model.history import BLANK, Chapter, Remembered, Used
from muster.model.record import Record
from muster.units import INSTANT_MAX

LINK_BYTES: Final = 32
JOBS_END: Final = 2**63 - 1
"""No job ever has this number."""


class Commit(Record, frozen=True):
    """One batch as the store keeps it.

    `entry` and `inputs` are encoded by `muster.wire.codec`; `jobs` are those whose story the entry belongs to; `keys`
    are (tenant, key, job) of submits that carried an idempotency key; `audit` are the lines of privileged requests; and
    `chapter` is what it adds to history.
    """

    seq: int
    entry: bytes
    inputs: bytes
    jobs: tuple[int, ...] = ()
    keys: tuple[tuple[str, str, int], ...] = ()
    audit: tuple[bytes, ...] = ()
    chapter: Chapter = BLANK


class Kept(Record, frozen=True):
    """A record by its kind and name, beside the journal; without data it is gone."""

    kind: str
    name: str
    data: bytes | None


class Change(Record, frozen=True):
    """Records that change together, and the audit line that says so."""

    records: tuple[Kept, ...]
    audit: bytes


class Version(NamedTuple):
    """A record as it stands, and the version that it came with."""

    number: int
    record: Kept


def span_of(after: int, *, newest: bool) -> tuple[int, int]:
    """The numbers between which jobs lie that come `after` one (0: all), in the order of their numbers or, the newest
    first, in the other. Whoever comes while a listing is read is newer than all of it, so that a cursor stays good."""
    return (0, after or JOBS_END) if newest else (after, JOBS_END)


class Wanted(NamedTuple):
    """Which jobs of history are asked for: of these tenants (None: of all), of these phases (none: any), over since and
    before an instant, with numbers above `after`, as many as fit; the `newest` first, with numbers below it."""

    after: int = 0
    limit: int = 100
    tenants: tuple[str, ...] | None = None
    phases: tuple[int, ...] = ()
    since: int = 0
    until: int = INSTANT_MAX
    newest: bool = False

    @property
    def span(self) -> tuple[int, int]:
        """The numbers between which they lie, neither of them included."""
        return span_of(self.after, newest=self.newest)


class Link(NamedTuple):
    """An audit line in its chain."""

    number: int
    data: bytes
    link: bytes


def link_of(before: bytes, number: int, data: bytes) -> bytes:
    """The link of an audit line: it covers the line, its number and every line before it."""
    return hashlib.sha256(before + number.to_bytes(8, "big") + data).digest()


class Journal(Protocol):
    """The reading side: what a follower holds."""

    def last_seq(self) -> int:
        """The newest committed entry's number; 0 when there is none."""
        ...

    def trimmed_seq(self) -> int:
        """Entries up to this number are gone; 0 if all are there."""
        ...

    def find_snapshot(self, upto: int | None = None) -> tuple[int, bytes] | None:
        """The newest snapshot, or the newest of those not after entry `upto`, with the number of the entry it includes,
        if there is one."""
        ...

    def list_snapshots(self) -> list[int]:
        """The entries of which there are snapshots, in order."""
        ...

    def read_entries(self, after: int, limit: int = 1000) -> list[bytes]:
        """Up to `limit` entries with numbers above `after`, in order; from the first that was never trimmed."""
        ...

    def read_inputs(self, after: int) -> Iterator[bytes]:
        """The recorder's batches with numbers above `after`, in order, as far back as it still has them."""
        ...

    def read_story(self, job: int) -> list[bytes]:
        """Every entry that a job's story belongs to, in order."""
        ...

    def find_jobs(self, keys: Sequence[tuple[str, str]]) -> list[int | None]:
        """The job that was accepted for each (tenant, key), also long after it left the world."""
        ...

    def find_owner(self, job: int) -> str:
        """Who submitted a job; empty if it was the owner of the home, or if there is no such job."""
        ...

    def find_finished(self, job: int) -> Remembered | None:
        """A job that is over, as history has it."""
        ...

    def read_finished(self, wanted: Wanted) -> list[Remembered]:
        """Jobs that are over, in the order of their numbers."""
        ...

    def find_amounts(self, job: int) -> tuple[int, tuple[int, ...]]:
        """What a job used in phases that have ended, over or not; zeros if nothing. And first, the newest entry that
        this includes."""
        ...

    def read_uses(self, first_hour: int, last_hour: int, *, hourly: bool = False) -> tuple[int, list[Used]]:
        """Sums of use in these hours, by tenant, user and flavor, in this order; hour by hour, if asked for. And the
        newest entry that they include."""
        ...

    def read_records(self, after: int, limit: int = 1000) -> list[Version]:
        """Up to `limit` records with versions above `after`, in order: those that changed, also those that went."""
        ...

    def read_audit(self, after: int, limit: int = 1000) -> list[Link]:
        """Up to `limit` audit lines with numbers above `after`, in order, as they are kept: whether the chain holds is
        for the reader to see."""
        ...

    def close(self) -> None:
        """Let go of the file or the connection."""
        ...


class Store(Journal, Protocol):
    """The writing side: what the one leader holds."""

    def append(self, commits: Sequence[Commit]) -> None:
        """Make a group of batches durable in one transaction, or raise StoreError (M306) and keep none of them."""
        ...

    def keep(self, changes: Sequence[Change]) -> None:
        """Make changes of records durable in one transaction, or raise StoreError (M306) and keep none of them."""
        ...

    def save_snapshot(self, seq: int, data: bytes) -> None:
        """Keep a snapshot of the world after entry `seq`; some of the older ones go."""
        ...

    def trim_inputs(self, keep: int, most_bytes: int | None = None) -> None:
        """Bound the recorder: keep the newest `keep` batches, of these no more than `most_bytes`, and whatever the
        newest snapshot needs."""
        ...

    def purge(self, before: int, most: int) -> int:
        """Forget up to `most` jobs that ended before an instant; how many were forgotten."""
        ...

    def find_unfilled(self) -> int:
        """Entries up to this number were written before there was a history, and are not in it; 0 if all are."""
        ...

    def fill(self, chapters: Iterable[Chapter]) -> None:
        """Write the chapters of those entries, in one transaction."""
        ...
