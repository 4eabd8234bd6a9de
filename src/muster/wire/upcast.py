"""Upcasters: pure functions that lift a fact of an older version to today's shape. One file, one table.

An upcaster takes the raw array of a fact (`[tag, field, field, ...]`) and returns the next version's. To add one: bump
the tag in `muster.model.fact`, add the step here, and add a golden journal of the old version.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from muster.model import fact
from muster.model.errors import StoreError
from muster.model.reason import Code, Reason
from muster.model.tenant import Tenant, limits

RawFact = list[Any]


def lift_quota(raw: Any) -> Any:
    """A flat quota, `[gpus, cpu_milli, memory_bytes]`, as a tenant under the root with lines that only limit."""
    return msgspec.to_builtins(Tenant(lines=limits(*raw)))


def _lift_tenant_set(item: RawFact) -> RawFact:
    return ["tenant_set.2", item[1], lift_quota(item[2]), *item[3:]]


UPCASTERS: Final[dict[str, Callable[[RawFact], RawFact]]] = {"tenant_set.1": _lift_tenant_set}
KNOWN: Final = frozenset(str(kind.__struct_config__.tag) for kind in fact.Fact.__args__)


def lift_entry(raw: Any) -> list[Any]:
    """Lift every fact of a raw entry; a kind nobody knows is a newer journal, anything else is damage."""
    if not isinstance(raw, list) or len(raw) != 4 or not isinstance(raw[3], list):
        raise StoreError(Reason(Code.JOURNAL_DAMAGED, "journal", detail="an entry is not four fields"))
    return [*raw[:3], [_lift(item) for item in raw[3]]]


def _lift(item: Any) -> RawFact:
    if not isinstance(item, list) or not item or not isinstance(item[0], str):
        raise StoreError(Reason(Code.JOURNAL_DAMAGED, "journal", detail="a fact has no kind"))
    while item[0] in UPCASTERS:
        item = UPCASTERS[item[0]](item)
    if item[0] not in KNOWN:
        raise StoreError(Reason(Code.JOURNAL_NEWER, "journal", detail=f"unknown fact kind {item[0][:40]}"))
    return list(item)
