"""Evidence: from what a foretold run time comes, in words. Whoever learns counts; the words are found on read.

It knows in what jobs may be alike, from the least to the most, and not how that was found out.
"""

from __future__ import annotations

from typing import Final

KINS: Final = ("all", "hour", "limit", "owner", "alike", "named", "like")
"""In what jobs are alike, from the coarsest to the finest; advice names it by its place here, so only append."""
_WORDS: Final = (
    "all",
    "that time of the day",
    "that limit",
    "{owner}",
    "{owner} with a name like it",
    "{owner} with the same name",
    "{owner} with the same name, size and limit",
)


def put_evidence(count: int, kin: int, owner: str) -> str:
    """`from 41 jobs of vision with the same name`: so many that ended, alike in this, of this user or tenant."""
    if not count or not 0 <= kin < len(KINS):
        return "from no job: none has ended yet"
    return f"from {count} job{'s' if count > 1 else ''} of {_WORDS[kin].format(owner=owner or 'all')}"
