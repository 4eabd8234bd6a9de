"""`muster run`: hand in a job, follow it, and leave with its exit code. Ctrl-C lets go of it; the job goes on."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import click

from muster.cli.failing import INTERRUPTED
from muster.cli.following import follow_output, follow_progress
from muster.cli.jobs import exit_code_of
from muster.cli.printing import show_end
from muster.model.after import After, When
from muster.model.spec import Needs, Spec
from muster.model.tier import STANDARD
from muster.sdk.client import Client
from muster.units import (
    Resources,
    parse_bytes,
    parse_count,
    parse_cpus,
    parse_duration,
    parse_gpus,
    parse_instant,
    parse_sides,
)
from muster.wire.views import Submitted


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--gpus", default="0", metavar="N", help="GPUs per task: 8, or 0.5 for a share of one.")
@click.option("--cpus", default="1", metavar="N", help="CPUs per task: 2, 0.5 or 500m.  [default: 1]")
@click.option("--memory", default="0", metavar="SIZE", help="Memory per task: 64Gi or 500M.")
@click.option(
    "--gang", metavar="N", help="So many tasks, all at once or not at all.  [default: 1, or what fills --shape]"
)
@click.option("--array", default="0", metavar="N", help="So many independent tasks.")
@click.option(
    "--flavor", "flavors", multiple=True, metavar="NAME", help="On this kind of node; say it again for a second choice."
)
@click.option("--within", default="", metavar="LEVEL", help="The whole gang in one rack, block, cluster or region.")
@click.option("--spread", default="", metavar="LEVEL", help="No two tasks of the gang in one node, rack or block.")
@click.option("--shape", default="", metavar="AxBxC", help="The gang in a box of a torus, one task on each node.")
@click.option("--apart", multiple=True, metavar="NAME", help="On no node where the tenant's job NAME is.")
@click.option("--apart-level", default="node", metavar="LEVEL", help="... in no rack, block or cluster.")
@click.option("--beside", multiple=True, metavar="NAME", help="Only on nodes where the tenant's job NAME is.")
@click.option("--beside-level", default="node", metavar="LEVEL", help="... in one rack, block or cluster with it.")
@click.option("--label", "labels", multiple=True, metavar="K=V", help="Only on nodes with this label: K=V, K!=V or K.")
@click.option("--tolerate", "tolerates", multiple=True, metavar="TAINT", help="May use nodes with this taint.")
@click.option("--name", default="", help="A name to find it by.")
@click.option("--tenant", default="default", show_default=True, help="Who pays.")
@click.option("--tier", default=STANDARD, show_default=True, help="Its class of service: see `muster tiers`.")
@click.option("--priority", default=0, metavar="N", help="Before the tenant's other jobs: -1000 to 1000.")
@click.option("--limit", metavar="TIME", help="End it after 90s, 1h30m or 2d.")
@click.option("--due", metavar="TIME", help="Be over by then: 2h (from now), or 2026-11-15 14:05 (UTC unless it says).")
@click.option("--retries", default="0", metavar="N", help="Try again so often if it fails.")
@click.option("--no-evict", is_flag=True, help="Never evict it: it starts only inside its tenant's guarantee.")
@click.option("--after", "after", multiple=True, metavar="JOBS", help="After these jobs got a place: 12 or 12,13.")
@click.option("--afterok", multiple=True, metavar="JOBS", help="After these jobs succeeded; if one does not, it ends.")
@click.option("--afterany", multiple=True, metavar="JOBS", help="After these jobs are over.")
@click.option("--afternotok", multiple=True, metavar="JOBS", help="After these jobs failed or were cancelled.")
@click.option("--hold", is_flag=True, help="Do not start it before `muster release`.")
@click.option("--env", multiple=True, metavar="K=V", help="Set a variable; K alone hands yours on.")
@click.option("--workdir", type=click.Path(path_type=Path), help="Where it runs.  [default: here]")
@click.option("--key", default="", help="The same key never makes a second job.")
@click.option("-d", "--detach", is_flag=True, help="Print its number and leave.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(detach: bool, key: str, **options: Any) -> int:
    """Run a command as a job and follow it: muster run --gpus 8 -- python train.py"""
    spec = make_spec(**options)
    with Client() as client:
        done = _submit(client, spec, key)
        if detach:
            client.settle()  # the next command may ask about the job at once
            click.echo(done.job)
            return 0
        try:
            click.echo(f"job {done.job}", err=True)
            return _follow(client, done.job, spec)
        except KeyboardInterrupt:
            again = f"muster logs -f {done.job} · muster cancel {done.job}"
            click.echo(f"\ndetached; job {done.job} goes on: {again}", err=True)
            return INTERRUPTED


def make_spec(
    command: tuple[str, ...],
    gpus: str,
    cpus: str,
    memory: str,
    gang: str | None,
    shape: str,
    array: str,
    name: str,
    tenant: str,
    tier: str,
    priority: int,
    limit: str | None,
    due: str | None,
    retries: str,
    no_evict: bool,
    hold: bool,
    env: tuple[str, ...],
    workdir: Path | None,
    after: tuple[str, ...],
    afterok: tuple[str, ...],
    afterany: tuple[str, ...],
    afternotok: tuple[str, ...],
    apart: tuple[str, ...],
    beside: tuple[str, ...],
    **needs: Any,
) -> Spec:
    """The options as a spec; an amount that cannot be read raises."""
    whole, share = parse_gpus(gpus)
    sides: tuple[int, ...] = parse_sides(shape) if shape else ()
    needs["apart"], needs["beside"] = (tuple(_qualify(tenant, name) for name in names) for names in (apart, beside))
    return Spec(
        command=command,
        name=name,
        tenant=tenant,
        gang=prod(sides) if gang is None else parse_count(gang, "gang"),
        array=parse_count(array, "array"),
        ask=Resources(whole, parse_cpus(cpus), parse_bytes(memory), share),
        env=dict(_parse_variable(text) for text in env),
        workdir=str((workdir or Path.cwd()).absolute()),
        limit_ms=None if limit is None else parse_duration(limit),
        due_at=None if due is None else parse_instant(due, int(time.time() * 1000)),
        retries=parse_count(retries, "retries"),
        needs=Needs(shape=sides, **needs),
        evictable=not no_evict,
        tier=tier,
        priority=priority,
        held=hold,
        after=(
            *_parse_jobs(after, When.STARTED),
            *_parse_jobs(afterok, When.SUCCEEDED),
            *_parse_jobs(afterany, When.OVER),
            *_parse_jobs(afternotok, When.NOT_SUCCEEDED),
        ),
    )


def _parse_jobs(texts: tuple[str, ...], when: When) -> Iterator[After]:
    for number in ",".join(texts).split(",") if texts else ():
        yield After(parse_count(number, when.value), when)


def _qualify(tenant: str, name: str) -> str:
    """A job as needs name it."""
    return name if name.startswith(f"{tenant}/") else f"{tenant}/{name}"


def _parse_variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if equals:
        return name, value
    if name not in os.environ:
        raise click.UsageError(f"--env {name}: there is no such variable here; write {name}=VALUE")
    return name, os.environ[name]


def _submit(client: Client, spec: Spec, key: str) -> Submitted:
    try:
        return client.submit(spec, key)
    except KeyboardInterrupt:
        click.echo("\ninterrupted before the answer came; see `muster ls` for whether the job was accepted", err=True)
        raise


def _follow(client: Client, job: int, spec: Spec) -> int:
    view = follow_progress(client, job) if spec.array else follow_output(client, job)
    code = exit_code_of(view)
    if code:
        click.echo(f"job {job} {show_end(view)}", err=True)
    return code


COMMANDS = {"run": run}
