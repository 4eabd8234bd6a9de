"""Records as Parquet, for those who have the optional dependency; nobody else pays for it (decision 4)."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.simulator.traces.record import Record

ROWS: Final = 100_000
"""Rows of a group: as many are in columns at a time."""
_TEXTS: Final = ("id", "tenant", "user", "name", "tier", "status")


def check_parquet() -> None:
    """Refuse (M353) before any work is done, if nobody here can write Parquet."""
    try:
        importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise RejectedError(Reason(Code.NO_PARQUET, "pyarrow")) from None


def write_parquet(records: Sequence[Record], path: Path) -> None:
    """The records as one table, a column for each field: text, whole numbers, and a list of models."""
    check_parquet()
    arrow: Any = importlib.import_module("pyarrow")
    parquet: Any = importlib.import_module("pyarrow.parquet")
    schema = arrow.schema([(name, _kind(arrow, name)) for name in Record.__struct_fields__])
    with parquet.ParquetWriter(path, schema) as writer:
        for first in range(0, len(records), ROWS):
            part = records[first : first + ROWS]
            columns = {name: [getattr(record, name) for record in part] for name in Record.__struct_fields__}
            writer.write_table(arrow.table(columns, schema=schema))


def _kind(arrow: Any, name: str) -> Any:
    if name in _TEXTS:
        return arrow.string()
    return arrow.list_(arrow.string()) if name == "models" else arrow.int64()
