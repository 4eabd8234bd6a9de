"""What is worth a notice: which facts, and what time alone brought about. Pure; nobody is told anything here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from muster.control.story import WHY_WORDS
from muster.model import fact
from muster.model.job import BarKind, NodePhase
from muster.model.phase import TAKEN, TaskPhase, Why
from muster.model.spec import Spec
from muster.units import show_duration
from muster.wire.codec import Entry
from muster.wire.notices import Kind, Notice
from muster.world.world import World

ENDS: Final = {
    TaskPhase.SUCCEEDED: Kind.JOB_ENDED,
    TaskPhase.FAILED: Kind.JOB_FAILED,
    TaskPhase.CANCELLED: Kind.JOB_CANCELLED,
}


def find_job_facts(entry: Entry) -> Iterator[tuple[int, fact.Ended | fact.StopAsked | fact.TasksEnded]]:
    """The facts of an entry that are news of a job, each with its place in the entry."""
    for place, item in enumerate(entry.facts):
        if isinstance(item, fact.Ended) or (isinstance(item, fact.StopAsked | fact.TasksEnded) and item.why in TAKEN):
            yield place, item


def tell_of_job(entry: Entry, place: int, item: fact.Ended | fact.StopAsked | fact.TasksEnded, spec: Spec) -> Notice:
    """One of them as a notice."""
    kind = ENDS[item.phase] if isinstance(item, fact.Ended) else Kind.JOB_PREEMPTED
    code = item.code if isinstance(item, fact.Ended) and not spec.array and kind is not Kind.JOB_CANCELLED else None
    what = {
        Kind.JOB_ENDED: "succeeded",
        Kind.JOB_FAILED: _say_failure(item.why, code),
        Kind.JOB_CANCELLED: "was cancelled",
    }.get(kind, "had to make room and waits again")
    return Notice(
        id=f"{entry.seq}-{place}",
        kind=kind,
        at_ms=entry.at,
        words=f"{_call(item.job, spec)} {what}",
        seq=entry.seq,
        job=item.job,
        name=spec.name,
        tenant=spec.tenant,
        why=item.why.value,
        exit_code=code,
    )


def _say_failure(why: Why, code: int | None) -> str:
    if why is not Why.EXIT:
        return f"failed: {WHY_WORDS[why]}"
    return "failed" if code is None else f"failed with exit code {code}"


def tell_of_fleet(entry: Entry, world: World) -> Iterator[Notice]:
    """What an entry says of nodes that somebody should know."""
    for place, item in enumerate(entry.facts):
        if isinstance(item, fact.NodePhased) and item.phase != NodePhase.UP:
            kind, what = Kind.NODE_LOST, "is gone" if item.phase == NodePhase.GONE else "is silent"
        elif isinstance(item, fact.NodeBarred) and item.bar.kind is BarKind.QUARANTINE:
            kind, what = Kind.NODE_QUARANTINED, f"is in quarantine: {item.bar.reason}"
        else:
            continue
        node = world.fleet.shown()[item.slot]
        words = f"node {node} {what}"
        yield Notice(f"{entry.seq}-{place}", kind, entry.at, words, seq=entry.seq, node=node, why=item.cause)


def tell_of_waiting(world: World, patience_ms: int, after: int, until: int) -> Iterator[Notice]:
    """Jobs whose patience ended between two moments."""
    for job in world.jobs.values():
        ended_at = job.accepted_at + patience_ms
        if after < ended_at <= until and world.is_waiting(job) and not job.held:
            words = f"{_call(job.id, job.spec)} has waited for {show_duration(patience_ms)}"
            name, tenant = job.spec.name, job.spec.tenant
            yield Notice(f"waiting-{job.id}", Kind.JOB_WAITING, ended_at, words, job=job.id, name=name, tenant=tenant)


def tell_of_budgets(world: World, now: int) -> Iterator[Notice]:
    """Budgets of which nothing is left; each has one id in one period."""
    for tenant, accounts in world.budgets.accounts.items():
        for account in accounts:
            if account.is_spent(now):
                manner = "soft" if account.budget.soft else "hard"
                number = f"budget-{tenant}-{account.budget.unit}-{manner}-{account.budget.starts_at(now)}"
                words = f"the {manner} budget of tenant {tenant} ({account.budget.unit}) is spent"
                yield Notice(number, Kind.BUDGET_SPENT, now, words, tenant=tenant)


def _call(job: int, spec: Spec) -> str:
    return f"job {job} ({spec.name}, tenant {spec.tenant})" if spec.name else f"job {job} (tenant {spec.tenant})"
