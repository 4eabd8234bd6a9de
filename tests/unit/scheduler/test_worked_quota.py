"""The worked examples of docs/concepts/quota.md, row by row."""

from __future__ import annotations

from pathlib import Path

from muster.control.tenants import view_tenants
from muster.model.budget import GPU_HOURS, MONEY, Budget
from muster.model.event import Exited, NodeSilent, SetFlavor, SetTenant, Submit
from muster.model.fact import BudgetTurned, StopAsked
from muster.model.node import Flavor
from muster.model.reason import Code, Done
from muster.model.tenant import GPU, Line, Tenant, gpu_amount, show_amount
from muster.scheduler.reasons import explain
from muster.testing.rig import Rig, spec
from muster.testing.worked_tables import read_table
from muster.units import HOUR_MS, MICRO, SECOND_MS, Resources
from muster.world.quota import Standing

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "quota.md"


def rows(heading: str) -> list[list[str]]:
    return read_table(PAGE, heading)


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
        rig.feed(after_ms=SECOND_MS)
        waiting = explain(rig.world, rig.job(number))
        found = Standing(standing).name.lower() if waiting is None else f"waits, {waiting.reason.code.value}"
        assert found == stands, (tenant, job)


def daily(unit: str, amount: int, since_ms: int, *, soft: bool = False) -> Budget:
    return Budget(unit, amount * MICRO, soft, 24 * HOUR_MS, since_ms)


def test_the_worked_spending_is_true() -> None:
    """Jobs start and end on the hour; what waits starts when the day turns, if there is room in the budget, and what
    is told to stop takes an hour for it."""
    rig = Rig(nodes=1, gpus=8)
    hard, soft = daily(GPU_HOURS, 10, rig.now), daily(GPU_HOURS, 10, rig.now, soft=True)
    budgets = (hard, soft, daily(MONEY, 10**6, rig.now))
    line = Line(GPU, guaranteed=gpu_amount(2))
    rig.feed(
        SetFlavor(GPU, Flavor(GPU, price_micros=3_000_000)),
        SetTenant("vision", Tenant(lines=(line,), budgets=budgets)),
        after_ms=0,
    )
    began, jobs = rig.now, {4: 0}
    for hour, does, gpu_hours, money, then in rows("hour"):
        wake = rig.feed(after_ms=began + int(hour) * HOUR_MS - rig.now)
        shown = {(one.unit, one.soft): one.spent for one in view_tenants(rig.world, rig.now)[0].budgets}
        assert shown == {
            (GPU_HOURS, False): int(gpu_hours) * MICRO,
            (GPU_HOURS, True): int(gpu_hours) * MICRO,
            (MONEY, False): int(money) * MICRO,
        }, hour
        told = {item.job for item in wake.facts if isinstance(item, StopAsked)}
        assert ("told to stop" in then) == bool(told), hour
        verb, *count = does.split()
        if verb == "starts":
            outcome = rig.feed(Submit(spec(int(count[0]), tenant="vision")), after_ms=0)
            answer = outcome.answers[0]
            assert isinstance(answer, Done)
            jobs[int(count[0])] = answer.job
            waiting = explain(rig.world, rig.job(answer.job))
            assert ("waits, M206" in then) == (waiting is not None and waiting.reason.code == Code.BUDGET_SPENT)
        elif verb == "ends":
            job = rig.job(jobs[int(count[0])])
            rig.feed(Exited(job.id, job.epoch, 0), after_ms=0)
        elif "the day is over" in then:
            assert any(isinstance(item, BudgetTurned) for item in wake.facts)
            assert {rig.phase(job) for job in jobs.values()} == {"Starting"}
        elif told:
            assert told == {job for job in jobs.values() if job in rig.world.jobs and rig.phase(job) == "Stopping"}
        else:
            stopping = [job for job in jobs.values() if rig.phase(job) == "Stopping"]
            rig.feed(*(Exited(job, rig.job(job).epoch, 143) for job in stopping), after_ms=0)
            assert {rig.phase(job) for job in stopping} == {"Queued"}


def test_the_impaired_guarantees_are_those_on_the_page() -> None:
    rig = make_rig()
    rig.feed(NodeSilent("node-0"), NodeSilent("node-3"))
    shown = [
        [
            view.name,
            *(show_amount(GPU, each) for each in (line.guaranteed, line.guaranteed - line.impaired, line.impaired)),
        ]
        for view in view_tenants(rig.world, rig.now)
        for line in view.lines
        if line.guaranteed
    ]
    assert shown == rows("owner")
