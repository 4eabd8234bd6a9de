"""Loading: the newest snapshot, and the fold of every entry after it. Leader and follower begin alike.

It decides nothing and knows no store by name: whatever a Journal gives is the truth, and what does not follow raises.
"""

from __future__ import annotations

from typing import Final

from muster.ports import Journal
from muster.wire.codec import decode_entry
from muster.world.apply import apply_entry
from muster.world.snapshot import restore
from muster.world.world import World

ENTRIES_AT_ONCE: Final = 1000


def load_world(journal: Journal) -> World:
    """The world as the journal tells it."""
    found = journal.find_snapshot()
    world = World() if found is None else restore(found[1])
    while entries := journal.read_entries(world.seq, ENTRIES_AT_ONCE):
        for data in entries:
            entry = decode_entry(data)
            apply_entry(world, entry.seq, entry.at, entry.facts)
    return world
