"""Keys: by which key of its tenant each live job was handed in, so that none is made twice.

They are kept in many small dicts: one of a hundred thousand entries takes 5 to 10 ms to grow, in which nobody is
answered, and it would do so together with that of the jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias
from zlib import crc32

PARTS: Final = 64

Key: TypeAlias = tuple[str, str]
"""A tenant, and what its client said."""


class Keys:
    """The jobs by their keys; which part a key is in follows from what it says."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[dict[Key, int]] = [{} for _ in range(PARTS)]

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def find(self, tenant: str, key: str) -> int | None:
        """The live job of a key, if there is one."""
        return self._part_of(key).get((tenant, key))

    def add(self, tenant: str, key: str, job: int) -> None:
        """A job was handed in with a key."""
        self._part_of(key)[tenant, key] = job

    def drop(self, tenant: str, key: str) -> None:
        """The job of a key is no longer here."""
        self._part_of(key).pop((tenant, key), None)

    def items(self) -> Iterator[tuple[Key, int]]:
        """All of them, in no order."""
        for part in self._parts:
            yield from part.items()

    def fork(self) -> Keys:
        """An independent copy."""
        twin = Keys()
        twin._parts = [part.copy() for part in self._parts]
        return twin

    def _part_of(self, key: str) -> dict[Key, int]:
        return self._parts[crc32(key.encode("utf-8", "surrogatepass")) % PARTS]
