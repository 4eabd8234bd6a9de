"""Law: any sequence of calls gives the same readings on every store, also after the durable one was opened anew."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.errors import StoreError
from muster.ports.store import Commit, Store
from muster.stores.memory import MemoryStore
from muster.stores.sqlite import SqliteStore

JOBS = st.integers(0, 5)
KEYS = st.tuples(st.sampled_from(["", "a", "é\0"]), st.text(max_size=2), JOBS)
# A commit's first field is its offset from the number that is due: mostly 0, sometimes a gap or a repeat.
COMMITS = st.builds(
    Commit,
    seq=st.sampled_from([0] * 12 + [1, -1]),
    entry=st.binary(max_size=8),
    inputs=st.binary(max_size=8),
    jobs=st.lists(JOBS, max_size=3).map(tuple),
    keys=st.lists(KEYS, max_size=1).map(tuple),
)
Step: TypeAlias = tuple[str, Any]
STEPS = st.one_of(
    st.tuples(st.just("append"), st.lists(COMMITS, max_size=4)),
    st.tuples(st.just("save_snapshot"), st.tuples(st.integers(-1, 12), st.binary(max_size=8))),
    st.tuples(st.just("trim_inputs"), st.integers(0, 6)),
    st.tuples(st.just("reopen"), st.none()),
)


def numbered(store: Store, commits: list[Commit]) -> list[Commit]:
    """Turn offsets into numbers."""
    due = store.last_seq() + 1
    return [Commit(due + i + c.seq, c.entry, c.inputs, c.jobs, c.keys) for i, c in enumerate(commits)]


def take(store: Store, step: Step) -> str:
    """Take one step; a refusal's code is part of what must agree."""
    name, value = step
    act: dict[str, Callable[[], None]] = {
        "append": lambda: store.append(numbered(store, value)),
        "save_snapshot": lambda: store.save_snapshot(*value),
        "trim_inputs": lambda: store.trim_inputs(value),
        "reopen": lambda: None,
    }
    try:
        act[name]()
    except StoreError as error:
        return error.reason.code
    return "taken"


def readings(store: Store, keys: set[tuple[str, str]]) -> list[Any]:
    """All that can be read."""
    return [
        store.last_seq(),
        store.find_snapshot(),
        store.read_entries(0),
        [store.read_entries(after, limit=2) for after in range(-1, 14)],
        [list(store.read_inputs(after)) for after in range(-1, 14)],
        [store.read_story(job) for job in range(7)],
        store.find_jobs(sorted(keys)),
    ]


@given(steps=st.lists(STEPS, max_size=12))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_memory_and_sqlite_give_the_same_readings(steps: list[Step]) -> None:
    keys = {key[:2] for name, value in steps if name == "append" for commit in value for key in commit.keys}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "journal.db"
        memory, sqlite = MemoryStore(), SqliteStore(path)
        for step in steps:
            if step[0] == "reopen":
                sqlite.close()
                sqlite = SqliteStore(path)
            assert take(memory, step) == take(sqlite, step)
            assert readings(memory, keys) == readings(sqlite, keys)
        sqlite.close()
