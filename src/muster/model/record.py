"""The one base of journaled values: frozen, without garbage-collector overhead, encoded as a compact array.

Fields may only be appended, each with a default: old journals are read by position.
"""

from __future__ import annotations

import msgspec


class Record(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A frozen value that the journal, the recorder or a snapshot may hold."""
