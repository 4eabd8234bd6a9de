"""The worked examples of docs/concepts/quota.md, row by row."""

from __future__ import annotations

from pathlib import Path

from muster.control.tenants import view_tenants
from muster.model.event import NodeSilent
from muster.model.tenant import GPU, Line, gpu_amount, show_amount
from muster.scheduler.reasons import explain
from muster.testing.rig import Rig
from muster.units import Resources
from muster.world.quota import Standing

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "quota.md"


def rows(first: str) -> list[list[str]]:
    """The rows of the table whose heading begins with a word."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {first} |"))
    table: list[list[str]] = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            return table
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    return table


def make_rig() -> Rig:
    rig = Rig(nodes=4, gpus=8)
    for name, parent, *cells in rows("tenant"):
        guaranteed, limit, lend = (gpu_amount(int(cell)) if cell else None for cell in cells)
        rig.tenant(name, Line(GPU, "", guaranteed or 0, limit, lend), parent=parent)
    return rig


def test_the_worked_example_is_true() -> None:
    rig = make_rig()
    assert len(rows("who")) == 10
    for tenant, job, stands, _ in rows("who"):
        count, stays = int(job.split()[0]), job.endswith("stays")
        standing = rig.world.quotas.standing(tenant, rig.world.site_of(0), Resources(1), count)
        number = rig.submit(1, gang=count, tenant=tenant, evictable=not stays)
        waiting = explain(rig.world, rig.job(number))
        found = Standing(standing).name.lower() if waiting is None else f"waits, {waiting.reason.code.value}"
        assert found == stands, (tenant, job)


def test_the_impaired_guarantees_are_those_on_the_page() -> None:
    rig = make_rig()
    rig.feed(NodeSilent("node-0"), NodeSilent("node-3"))
    shown = [
        [
            view.name,
            *(show_amount(GPU, each) for each in (line.guaranteed, line.guaranteed - line.impaired, line.impaired)),
        ]
        for view in view_tenants(rig.world)
        for line in view.lines
        if line.guaranteed
    ]
    assert shown == rows("owner")
