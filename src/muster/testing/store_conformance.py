"""What any store must do, as plain checks: each takes an empty place and raises AssertionError on a breach.

A store's own tests run `CHECKS`, and `DURABLE_CHECKS` if it is to survive the process; `check_kill` is for a test to
call at as many moments as it likes. The suite must never know how a store keeps things.
"""
# ruff: noqa: S101 - asserting is what a conformance suite does

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from muster.model.errors import ConflictError, StoreError
from muster.model.history import AMOUNTS, Chapter, Finished, Use
from muster.model.reason import Code
from muster.ports.store import Change, Commit, Journal, Kept, Store, Wanted, link_of

FAILPOINT: Final = "store.in_commit"


class Place(Protocol):
    """Where a store under test keeps its journal; empty when a check gets it."""

    def open_writer(self) -> Store:
        """Open the one writer."""
        ...

    def open_reader(self) -> Journal:
        """Open one more reader; a writer was opened before."""
        ...


class DurablePlace(Place, Protocol):
    """A place that outlives a process."""

    def start_appender(self, failpoint: str = "") -> subprocess.Popen[str]:
        """A process that opens the writer and calls `append_until_killed`, armed with a failpoint, stdout piped."""
        ...


def commit_of(seq: int) -> Commit:
    """The commit with that number: different sizes, every byte value, stories that share jobs, a key each."""
    body = bytes(range(256)) * (seq % 3) + f"#{seq}".encode()
    return Commit(seq, b"entry" + body, b"inputs" + body, jobs=(seq % 5, 100 + seq), keys=(("lab", f"k{seq}", seq),))


def amounts_of(job: int) -> tuple[int, ...]:
    """What that job used in an hour: each amount another, and some of them large."""
    return tuple(job * 10**power for power in range(len(AMOUNTS)))


def use_of(job: int, hour: int | None = None) -> Use:
    """That job's use, in the hour of its own number unless another is named."""
    return Use(job, f"t{job % 2}", "h100", job if hour is None else hour, amounts_of(job))


def finished_of(job: int) -> Finished:
    """That job's end, after as many seconds."""
    return Finished(job, f"t{job % 2}", 4 + (job % 3 == 2), 1000 * job, f"k{job}", b"\0%d" % job)


def commit_with_history(seq: int) -> Commit:
    """The commit of one job that came and went with it; every second one is ann's."""
    owners = ((seq, "ann"),) if seq % 2 == 0 else ()
    chapter = Chapter(owners, (finished_of(seq),), (use_of(seq),))
    key = (f"t{seq % 2}", f"k{seq}", seq)
    return Commit(seq, b"entry %d" % seq, b"", jobs=(seq,), keys=(key,), chapter=chapter)


def commits_of(seqs: Iterable[int]) -> list[Commit]:
    """One commit for each number."""
    return [commit_of(seq) for seq in seqs]


def group_after(seq: int) -> list[Commit]:
    """The group that the appender appends after `seq`: its size varies and follows from `seq` alone."""
    return commits_of(range(seq + 1, seq + 2 + seq * 7 % 5))


def append_until_killed(store: Store) -> None:
    """Append group after group, and say each group's last number once it is durable; ends when nobody listens."""
    last = store.last_seq()
    try:
        while True:
            group = group_after(last)
            store.append(group)
            last = group[-1].seq
            sys.stdout.write(f"{last}\n")
            sys.stdout.flush()
    except BrokenPipeError:
        store.close()


def check_starts_empty(place: Place) -> None:
    store = place.open_writer()
    assert store.last_seq() == 0
    assert store.find_snapshot() is None
    assert store.read_entries(0) == []
    assert list(store.read_inputs(0)) == []
    assert store.read_story(1) == []
    assert store.find_jobs([]) == []
    assert store.find_jobs([("lab", "k1")]) == [None]
    store.append([])
    assert store.last_seq() == 0
    store.close()


def check_blobs_come_back_byte_for_byte(place: Place) -> None:
    store = place.open_writer()
    blobs = [b"", b"\0", bytes(range(256)), b"\xff" * 1_000_000]
    store.append([Commit(seq, blob, blob[::-1]) for seq, blob in enumerate(blobs, 1)])
    store.save_snapshot(1, blobs[-1])
    assert store.read_entries(0) == blobs
    assert list(store.read_inputs(0)) == [blob[::-1] for blob in blobs]
    assert store.find_snapshot() == (1, blobs[-1])
    store.close()


def check_entries_are_read_in_pages(place: Place) -> None:
    store = place.open_writer()
    commits = commits_of(range(1, 1201))
    store.append(commits)
    entries = [commit.entry for commit in commits]
    assert store.last_seq() == 1200
    assert store.read_entries(0) == entries[:1000]
    assert store.read_entries(1000) == entries[1000:]
    assert store.read_entries(7, limit=3) == entries[7:10]
    assert store.read_entries(1200) == store.read_entries(5000) == store.read_entries(0, limit=0) == []
    assert store.read_entries(-1, limit=2) == entries[:2]
    assert list(store.read_inputs(3)) == [commit.inputs for commit in commits[3:]]
    store.close()


def check_a_group_with_a_gap_leaves_nothing(place: Place) -> None:
    store = place.open_writer()
    store.append(commits_of([1, 2]))
    for seqs in ([4], [3, 5], [2], [3, 3], [3, 2], [0], [-1]):
        _check_refused(store, commits_of(seqs))
    store.append(commits_of([3]))
    check_holds(store, 3)
    store.close()


def check_stories_are_told_in_order(place: Place) -> None:
    store = place.open_writer()
    jobs = [(1,), (2,), (1, 2), (), (2, 1, 2)]
    store.append([Commit(seq, b"%d" % seq, b"", jobs=named) for seq, named in enumerate(jobs, 1)])
    assert store.read_story(1) == [b"1", b"3", b"5"]
    assert store.read_story(2) == [b"2", b"3", b"5"]
    assert store.read_story(3) == store.read_story(2**80) == []
    store.close()


def check_a_key_has_one_job(place: Place) -> None:
    store = place.open_writer()
    store.append([Commit(1, b"", b"", keys=(("a", "k", 7), ("b", "k", 8), ("a", "", 9)))])
    assert store.find_jobs([("a", "k"), ("b", "k"), ("a", ""), ("", "k")]) == [7, 8, 9, None]
    assert store.find_jobs([("a", "\ud800"), ("a", "k"), ("a", "k")]) == [None, 7, 7], "one that nobody can have"
    assert store.find_jobs([("a", "k")] * 600) == [7] * 600
    _check_refused(store, [Commit(2, b"", b"", keys=(("c", "k", 10), ("a", "k", 10)))])
    _check_refused(store, [Commit(2, b"", b"", keys=(("c", "k", 10),)), Commit(3, b"", b"", keys=(("c", "k", 11),))])
    assert store.find_jobs([("a", "k"), ("c", "k")]) == [7, None]
    store.close()


def check_the_newest_snapshot_counts(place: Place) -> None:
    store = place.open_writer()
    store.save_snapshot(0, b"nothing yet")
    store.append(commits_of(range(1, 6)))
    for seq, data in ((2, b"two"), (4, b"four"), (4, b"four again"), (3, b"late")):
        store.save_snapshot(seq, data)
    assert store.find_snapshot() == (4, b"four again")
    assert _find_refusal(lambda: store.save_snapshot(6, b"ahead")) is Code.STORE_REFUSED
    assert store.find_snapshot() == (4, b"four again")
    store.close()


def check_the_recorder_is_bounded(place: Place) -> None:
    store = place.open_writer()
    store.append(commits_of(range(1, 11)))
    inputs = [commit_of(seq).inputs for seq in range(1, 11)]
    store.trim_inputs(keep=8)
    assert list(store.read_inputs(0)) == inputs[2:]
    store.save_snapshot(5, b"five")
    store.trim_inputs(keep=2)
    assert list(store.read_inputs(0)) == inputs[5:], "what the snapshot needs was trimmed"
    store.trim_inputs(keep=100)
    assert list(store.read_inputs(7)) == inputs[7:]
    store.save_snapshot(10, b"ten")
    assert len(inputs[-1]) < len(inputs[8]) + len(inputs[9]) <= 1000
    store.trim_inputs(keep=100, most_bytes=len(inputs[8]) + len(inputs[9]))
    assert list(store.read_inputs(0)) == inputs[8:]
    store.trim_inputs(keep=0)
    assert list(store.read_inputs(0)) == []
    assert len(store.read_entries(0)) == 10, "the journal was trimmed with the recorder"
    store.close()


def check_records_are_kept_by_version(place: Place) -> None:
    store = place.open_writer()
    first, second, gone = Kept("user", "ann", b"1"), Kept("user", "bob", b"\0"), Kept("user", "ann", None)
    store.keep([Change((first, second), b"one"), Change((Kept("token", "ann", b""),), b"two")])
    assert store.read_records(0) == [(1, first), (2, second), (3, Kept("token", "ann", b""))]
    store.keep([Change((gone,), b"three")])
    assert store.read_records(0) == [(2, second), (3, Kept("token", "ann", b"")), (4, gone)]
    assert store.read_records(2, limit=1) == [(3, Kept("token", "ann", b""))]
    assert store.read_records(4) == store.read_records(0, limit=0) == []
    assert store.last_seq() == 0
    store.close()


def check_audit_lines_are_linked(place: Place) -> None:
    store = place.open_writer()
    store.append([Commit(1, b"", b"", audit=(b"a", b"b")), Commit(2, b"", b""), Commit(3, b"", b"", audit=(b"",))])
    store.keep([Change((), b"c")])
    link, lines = b"", store.read_audit(0)
    for number, data in enumerate((b"a", b"b", b"", b"c"), 1):
        link = link_of(link, number, data)
        assert lines[number - 1] == (number, data, link)
    assert store.read_audit(1, limit=2) == lines[1:3]
    _check_refused(store, [Commit(9, b"", b"", audit=(b"lost",))])
    assert store.read_audit(0) == lines, "a line was kept without its commit"
    store.close()


def check_history_comes_with_its_commit(place: Place) -> None:
    store = place.open_writer()
    store.append([commit_with_history(1), commit_with_history(2)])
    both = store.read_finished(Wanted())
    assert [found.finished for found in both] == [finished_of(1), finished_of(2)]
    assert [found.user for found in both] == ["", "ann"]
    assert [store.find_owner(job) for job in (1, 2, 3)] == ["", "ann", ""]
    assert store.find_finished(1) == both[0]
    assert store.find_finished(3) is None
    assert store.find_finished(2**80) is None
    _check_refused(store, [commit_with_history(4)])
    assert store.read_finished(Wanted()) == both, "history was kept without its commit"
    store.close()


def check_history_is_found_by_what_is_asked(place: Place) -> None:
    store = place.open_writer()
    store.append([commit_with_history(seq) for seq in range(1, 8)])

    def find(wanted: Wanted) -> list[int]:
        return [found.finished.job for found in store.read_finished(wanted)]

    assert find(Wanted(after=2, limit=3)) == [3, 4, 5]
    assert find(Wanted(limit=3, newest=True)) == [7, 6, 5]
    assert find(Wanted(after=5, limit=3, newest=True)) == [4, 3, 2]
    assert find(Wanted(after=6, tenants=("t1",), newest=True)) == [5, 3, 1]
    assert find(Wanted(since=3000, until=5000)) == [3, 4]
    assert find(Wanted(tenants=("t1",))) == [1, 3, 5, 7]
    assert find(Wanted(tenants=("t0", "t1"), phases=(5,))) == [2, 5]
    assert find(Wanted(tenants=())) == []
    store.close()


def check_amounts_add_up(place: Place) -> None:
    store = place.open_writer()
    store.append([commit_with_history(seq) for seq in range(1, 4)])
    store.append([Commit(4, b"", b"", chapter=Chapter(uses=(use_of(2), use_of(2, hour=9))))])
    assert store.find_amounts(2) == (4, tuple(3 * amount for amount in amounts_of(2)))
    assert store.find_amounts(9) == (4, (0,) * len(AMOUNTS))
    seq, uses = store.read_uses(0, 100)
    assert seq == 4
    assert [(use.tenant, use.user, use.flavor, use.hour) for use in uses] == [
        ("t0", "ann", "h100", None),
        ("t1", "", "h100", None),
    ]
    assert uses[0].amounts == store.find_amounts(2)[1]
    assert uses[1].amounts == tuple(map(sum, zip(amounts_of(1), amounts_of(3), strict=True)))
    assert [use.hour for use in store.read_uses(0, 100, hourly=True)[1]] == [2, 9, 1, 3]
    assert store.read_uses(9, 9)[1][0].amounts == amounts_of(2)
    assert store.read_uses(50, 60) == (4, [])
    store.close()


def check_what_is_old_is_forgotten_behind_a_snapshot(place: Place) -> None:
    store = place.open_writer()
    store.append([commit_with_history(seq) for seq in range(1, 11)])
    uses = store.read_uses(0, 100)
    assert store.purge(before=1, most=100) == 0
    assert store.purge(before=4000, most=2) == 2
    assert store.trimmed_seq() == 0, "entries went that no snapshot has"
    assert store.find_finished(1) is None
    assert store.find_jobs([("t1", "k1"), ("t1", "k3")]) == [None, 3]
    store.save_snapshot(5, b"five")
    assert store.purge(before=4000, most=100) == 1
    assert store.trimmed_seq() == 3, "the oldest job that is remembered begins with entry 4"
    assert store.read_entries(0) == [commit_with_history(seq).entry for seq in range(4, 11)]
    assert store.read_story(3) == []
    assert store.read_story(4) == [commit_with_history(4).entry]
    assert store.purge(before=9000, most=100) == 5
    assert store.trimmed_seq() == 5, "entries went that no snapshot has"
    assert store.last_seq() == 10
    assert store.read_uses(0, 100) == uses, "what was used is forgotten"
    store.append([commit_with_history(11)])
    store.close()


def check_nothing_goes_while_nothing_is_old(place: Place) -> None:
    store = place.open_writer()
    store.append([Commit(1, b"a node", b""), commit_with_history(2)])
    store.save_snapshot(2, b"two")
    assert store.purge(before=1, most=100) == 0
    assert store.trimmed_seq() == 0, "an entry went though nobody was forgotten"
    store.close()


def check_a_job_that_lives_long_keeps_its_story_alone(place: Place) -> None:
    """Job 1 lives on while jobs 3 to 8 come, end and are forgotten: what only they were told of goes all the same."""
    store = place.open_writer()
    of_one = [Commit(seq, b"%d" % seq, b"", jobs=(1,)) for seq in (1, 2)]
    store.append([*of_one, *(commit_with_history(seq) for seq in range(3, 9)), Commit(9, b"9", b"", jobs=(1,))])
    store.save_snapshot(6, b"six")
    store.save_snapshot(9, b"nine")
    assert store.purge(before=9000, most=100) == 6
    assert store.trimmed_seq() == 8, "entries stayed that nobody is told of"
    assert store.read_story(1) == [b"1", b"2", b"9"]
    assert store.read_entries(0) == [b"9"], "what is kept for a story is read as if it were the journal"
    assert store.list_snapshots() == [9], "a snapshot stayed from which no fold leads on"
    ended = Finished(1, "t1", 5, 10_000, "", b"")
    store.append([Commit(10, b"10", b"", jobs=(1,), chapter=Chapter(finished=(ended,)))])
    store.save_snapshot(10, b"ten")
    assert store.purge(before=20_000, most=100) == 1
    assert (store.trimmed_seq(), store.read_story(1)) == (9, [])
    assert store.read_entries(0) == [b"10"], "the last entry went, and the next would follow nothing"
    store.append([Commit(11, b"11", b"")])
    assert store.read_entries(0) == [b"10", b"11"]
    store.close()


def check_some_older_snapshots_are_kept(place: Place) -> None:
    store = place.open_writer()
    store.append(commits_of(range(1, 101)))
    for seq in range(1, 101):
        store.save_snapshot(seq, b"%d" % seq)
    kept = store.list_snapshots()
    assert (6 < len(kept) < 50, kept[0], kept[-1]) == (True, 1, 100)
    gaps = [later - earlier for earlier, later in itertools.pairwise(kept)]
    assert max(gaps[-3:]) < max(gaps[:3]), "the past of yesterday is no nearer than that of a year ago"
    assert store.find_snapshot(kept[3] + 1 if gaps[3] > 1 else kept[3]) == (kept[3], b"%d" % kept[3])
    assert store.find_snapshot(0) is None
    store.close()


def check_a_reader_follows_the_writer(place: Place) -> None:
    store = place.open_writer()
    reader = place.open_reader()
    assert reader.last_seq() == 0
    for last in (1, 2, 5):
        store.append(commits_of(range(store.last_seq() + 1, last + 1)))
        check_holds(reader, last)
    store.save_snapshot(5, b"five")
    assert reader.find_snapshot() == (5, b"five")
    reader.close()
    store.close()


def check_a_new_writer_finds_everything(place: DurablePlace) -> None:
    store = place.open_writer()
    store.append(commits_of(range(1, 4)))
    store.save_snapshot(2, b"two")
    store.close()
    store = place.open_writer()
    check_holds(store, 3)
    assert store.find_snapshot() == (2, b"two")
    store.append(commits_of([4]))
    store.close()
    reader = place.open_reader()
    check_holds(reader, 4)
    reader.close()


def check_a_second_writer_is_refused(place: DurablePlace) -> None:
    store = place.open_writer()
    store.append(commits_of([1]))
    assert _find_refusal(place.open_writer) is Code.ALREADY_SERVED
    store.append(commits_of([2]))
    check_holds(store, 2)
    store.close()
    with place.start_appender() as appender:
        _read_acknowledged(appender, lines=1)
        assert _find_refusal(place.open_writer) is Code.ALREADY_SERVED
        appender.kill()


def check_a_reader_sees_what_another_process_acknowledged(place: DurablePlace) -> None:
    with place.start_appender() as appender:
        acknowledged = _read_acknowledged(appender, lines=1)
        reader = place.open_reader()
        for _ in range(20):
            assert reader.last_seq() >= acknowledged
            assert reader.read_entries(0, limit=acknowledged)[-1] == commit_of(acknowledged).entry
            acknowledged = _read_acknowledged(appender, lines=1)
        appender.kill()
    reader.close()


def check_death_in_commit_leaves_nothing_of_the_group(place: DurablePlace) -> None:
    last = 0
    for passes in (1, 2, 5):
        with place.start_appender(f"{FAILPOINT}:{passes}") as appender:
            acknowledged = _read_acknowledged(appender) or last
        assert appender.returncode == -signal.SIGKILL
        last = _check_after_death(place)
        assert last == acknowledged


def check_kill(place: DurablePlace, last: int, groups: int, pause_s: float) -> int:
    """Kill an appender some time after its nth group; return the journal's end, which was `last` before.

    All that was acknowledged is there, and at most one group more: the one whose answer the kill cut off.
    """
    with place.start_appender() as appender:
        acknowledged = _read_acknowledged(appender, lines=groups) or last
        try:
            appender.wait(pause_s)  # it ends only by the kill: this is a random moment, not a wait for anything
        except subprocess.TimeoutExpired:
            appender.kill()
        acknowledged = _read_acknowledged(appender) or acknowledged
    assert appender.returncode == -signal.SIGKILL
    last = _check_after_death(place)
    assert last in (acknowledged, group_after(acknowledged)[-1].seq), (last, acknowledged)
    return last


def check_holds(journal: Journal, last: int) -> None:
    """Raise unless the journal holds `commit_of` every number up to `last`, whole, and nothing else."""
    commits = commits_of(range(1, last + 1))
    assert journal.last_seq() == last
    assert journal.read_entries(0, limit=last + 1) == [commit.entry for commit in commits]
    assert list(journal.read_inputs(0)) == [commit.inputs for commit in commits]
    for job in (*range(5), 101, 100 + last):
        assert journal.read_story(job) == [commit.entry for commit in commits if job in commit.jobs]
    keys = [key for commit in commits for key in commit.keys]
    assert journal.find_jobs([key[:2] for key in keys]) == [key[2] for key in keys]
    assert journal.find_jobs([("lab", f"k{last + 1}")]) == [None]


def _check_after_death(place: Place) -> int:
    store = place.open_writer()
    last = store.last_seq()
    check_holds(store, last)
    store.close()
    return last


def _read_acknowledged(appender: subprocess.Popen[str], lines: int | None = None) -> int:
    """The last of the next `lines` numbers that the appender said, or of all until its end; 0 if it said none."""
    assert appender.stdout is not None
    said = list(itertools.islice(appender.stdout, lines))
    return int(said[-1]) if said else 0


def _check_refused(store: Store, commits: Sequence[Commit]) -> None:
    before = store.last_seq(), store.read_entries(0), list(store.read_inputs(0))
    assert _find_refusal(lambda: store.append(commits)) is Code.STORE_REFUSED
    assert (store.last_seq(), store.read_entries(0), list(store.read_inputs(0))) == before


def _find_refusal(act: Callable[[], object]) -> Code | None:
    try:
        act()
    except (StoreError, ConflictError) as error:
        return error.reason.code
    return None


CHECKS: Final[tuple[Callable[[Place], None], ...]] = (
    check_starts_empty,
    check_blobs_come_back_byte_for_byte,
    check_entries_are_read_in_pages,
    check_a_group_with_a_gap_leaves_nothing,
    check_stories_are_told_in_order,
    check_a_key_has_one_job,
    check_the_newest_snapshot_counts,
    check_the_recorder_is_bounded,
    check_records_are_kept_by_version,
    check_audit_lines_are_linked,
    check_history_comes_with_its_commit,
    check_history_is_found_by_what_is_asked,
    check_amounts_add_up,
    check_what_is_old_is_forgotten_behind_a_snapshot,
    check_nothing_goes_while_nothing_is_old,
    check_a_job_that_lives_long_keeps_its_story_alone,
    check_some_older_snapshots_are_kept,
    check_a_reader_follows_the_writer,
)
DURABLE_CHECKS: Final[tuple[Callable[[DurablePlace], None], ...]] = (
    check_a_new_writer_finds_everything,
    check_a_second_writer_is_refused,
    check_a_reader_sees_what_another_process_acknowledged,
    check_death_in_commit_leaves_nothing_of_the_group,
)
