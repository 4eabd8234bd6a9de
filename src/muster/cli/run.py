"""`muster run`: hand in a job, follow it, and leave with its exit code. Ctrl-C lets go of it; the job goes on."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource
from msgspec.structs import replace

from muster.cli.failing import INTERRUPTED, UNREAD, stop_printing
from muster.cli.following import follow_output, follow_progress
from muster.cli.here import get_here
from muster.cli.jobs import exit_code_of, show_time, show_used
from muster.cli.printing import DRY_RUN, show_end, show_failed, show_origin
from muster.cli.trying import NOTHING_DONE, print_job_trial
from muster.model.spec import Spec
from muster.model.tier import STANDARD
from muster.sdk.client import Client
from muster.sdk.jobfile import JobFile, make_spec
from muster.units import parse_count, show_duration, show_money
from muster.wire.views import JobView, Submitted

LEFT_OUT_SHOWN: Final = 5


def _read_array(context: click.Context, _: click.Parameter, text: str) -> str:
    """How many tasks; whoever says none has counted wrongly, and does not want a job that is no array."""
    is_said = context.get_parameter_source("array") is not ParameterSource.DEFAULT
    if is_said and parse_count(text, "array") == 0:
        raise click.UsageError("--array 0: an array has a task at least; leave it out for a job that is none", context)
    return text


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--gpus", default="0", metavar="N", help="GPUs per task: 8, or 0.5 for a share of one.")
@click.option("--partition", default="", metavar="NAME", help="A partition of one device: see `muster flavors show`.")
@click.option("--cpus", default="1", metavar="N", help="CPUs per task: 2, 0.5 or 500m.  [default: 1]")
@click.option("--memory", default="0", metavar="SIZE", help="Memory per task: 64Gi or 500M.")
@click.option(
    "--gang", metavar="N", help="So many tasks, all at once or not at all; 2-8 is elastic.  [default: 1, or by --shape]"
)
@click.option("--group", multiple=True, metavar="NAME:N:K=V", help="A group of the gang: worker:4:gpus=8,cpus=16.")
@click.option(
    "--elastic", default="", metavar="HOW", help="It gets another width, or another node, by restart or in-place."
)
@click.option("--spares", default="0", metavar="N", help="Places more, kept idle for tasks that lose their node.")
@click.option("--array", default="0", callback=_read_array, metavar="N", help="So many independent tasks.")
@click.option("--at-most", default="0", metavar="N", help="So many tasks of the array at once.  [default: what fits]")
@click.option("--flavor", multiple=True, metavar="NAME", help="On this kind of node; say it again for a second choice.")
@click.option("--within", default="", metavar="LEVEL", help="The whole gang in one rack, block, cluster or region.")
@click.option("--spread", default="", metavar="LEVEL", help="No two tasks of the gang in one node, rack or block.")
@click.option("--shape", default="", metavar="AxBxC", help="The gang in a box of a torus, one task on each node.")
@click.option("--apart", multiple=True, metavar="NAME", help="On no node where the tenant's job NAME is.")
@click.option("--apart-level", default="node", metavar="LEVEL", help="... in no rack, block or cluster.")
@click.option("--beside", multiple=True, metavar="NAME", help="Only on nodes where the tenant's job NAME is.")
@click.option("--beside-level", default="node", metavar="LEVEL", help="... in one rack, block or cluster with it.")
@click.option("--booking", default="", metavar="NAME", help="On the nodes of a booking, in its windows.")
@click.option("--like", default="", metavar="WORK", help="Where work of this kind is fastest: see `muster advice`.")
@click.option("--data", multiple=True, metavar="NAME", help="Near to this dataset.")
@click.option("--label", multiple=True, metavar="K=V", help="Only on nodes with this label: K=V, K!=V or K.")
@click.option("--tolerate", multiple=True, metavar="TAINT", help="May use nodes with this taint.")
@click.option("--name", default="", help="A name to find it by.")
@click.option("--tenant", default="", help="Who pays.  [default: default, or your only one]")
@click.option("--tier", default=STANDARD, show_default=True, help="Its class of service: see `muster tiers`.")
@click.option("--priority", default=0, metavar="N", help="Before the tenant's other jobs: -1000 to 1000.")
@click.option("--limit", metavar="TIME", help="End it after 90s, 1h30m or 2d; each task of an array.")
@click.option("--expect", metavar="TIME", help="It will take so long, as far as you know; nobody is stopped by that.")
@click.option("--yields", is_flag=True, help="Give way then to who is due; till then it may use places kept for them.")
@click.option("--grace", default="10s", metavar="TIME", help="From being told to stop to being killed.  [default: 10s]")
@click.option("--signal", default="", metavar="NAME", help="Tell it to stop by this one, if it handles it: USR1.")
@click.option("--due", metavar="TIME", help="Be over by then: 2h (from now), or 2026-11-15 14:05 (UTC unless it says).")
@click.option("--retries", default="0", metavar="N", help="Try again so often if it fails.")
@click.option("--no-evict", is_flag=True, help="Never evict it: it starts only inside its tenant's guarantee.")
@click.option("--after", "after", multiple=True, metavar="JOBS", help="After these jobs got a place: 12 or 12,13.")
@click.option("--afterok", multiple=True, metavar="JOBS", help="After these jobs succeeded; if one does not, it ends.")
@click.option("--afterany", multiple=True, metavar="JOBS", help="After these jobs are over.")
@click.option("--afternotok", multiple=True, metavar="JOBS", help="After these jobs failed or were cancelled.")
@click.option(
    "--aftercorr", multiple=True, metavar="JOBS", help="Each task of an array after its like in these succeeded."
)
@click.option("--hold", is_flag=True, help="Do not start it before `muster release`.")
@click.option("--env", multiple=True, metavar="K=V", help="Set a variable; K alone hands yours on.")
@click.option("--workdir", type=click.Path(path_type=Path), help="Where it runs.  [default: here]")
@click.option("--image", default="", metavar="NAME", help="In a container of this image, by podman or docker.")
@click.option("--notify", multiple=True, metavar="ROUTE", help="Tell this route of its end; the admin has named it.")
@click.option("--snapshot", is_flag=True, help="Run a copy of this tree as it is now, changed files and all.")
@click.option("--key", default="", help="The same key never makes a second job.")
@click.option("-d", "--detach", is_flag=True, help="Print its number and leave.")
@DRY_RUN
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(detach: bool, key: str, dry_run: bool, snapshot: bool, **options: Any) -> int:
    """Run a command as a job and follow it: muster run --gpus 8 -- python train.py"""
    workdir: Path | None = options["workdir"]
    here = workdir if workdir is not None and workdir.is_absolute() else get_here()
    spec = make_spec(describe(**options), here=str(here), now_ms=int(time.time() * 1000))
    if snapshot and not dry_run:
        spec = _copy_tree(spec)
    with Client() as client:
        if dry_run:
            print_job_trial(client.try_submit(spec))
            click.echo(NOTHING_DONE, err=True)
            return 0
        done = _submit(client, spec, key)
        if detach:
            client.settle()  # the next command may ask about the job at once
            click.echo(done.job)
            return 0
        try:
            click.echo(f"job {done.job}", err=True)
            return _follow(client, done.job, spec)
        except KeyboardInterrupt:
            _let_go(done.job)
            return INTERRUPTED
        except BrokenPipeError:
            stop_printing()
            _let_go(done.job)
            return UNREAD


def _let_go(job: int) -> None:
    click.echo(f"\ndetached; job {job} goes on: muster logs -f {job} · muster cancel {job}", err=True)


def describe(command: tuple[str, ...], env: tuple[str, ...], workdir: Path | None, **options: Any) -> JobFile:
    """The options as a job file has them: what may be repeated is a list, and numbers of jobs may have commas."""
    words = (*_spell_program(command[0], workdir or get_here()), *command[1:])
    fields: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value for name, value in options.items()
    }
    for when in ("after", "afterok", "afterany", "afternotok", "aftercorr"):
        fields[when] = [number for text in fields[when] for number in text.split(",")]
    variables: dict[str, str | int] = dict(_parse_variable(text) for text in env)
    return JobFile(list(words), env=variables, workdir=str(workdir or ""), **fields)


def _spell_program(word: str, folder: Path) -> tuple[str, ...]:
    """A program that stands in the job's directory is run from there, and one in Python by Python; whatever is found by
    its name alone is left as it is."""
    path = folder / word
    if "/" in word or shutil.which(word) is not None or not path.is_file():
        return (word,)
    if os.access(path, os.X_OK):
        return (f"./{word}",)
    return ("python3", word) if word.endswith(".py") else ("sh", word) if word.endswith(".sh") else (word,)


def _parse_variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if equals:
        return name, value
    if name not in os.environ:
        raise click.UsageError(f"--env {name}: there is no such variable here; write {name}=VALUE")
    return name, os.environ[name]


def _copy_tree(spec: Spec) -> Spec:
    """The same job in a copy of its tree; says what is in it and what stayed behind."""
    from muster.sdk.home import Home  # here: most jobs run where they are submitted
    from muster.sdk.trees import copy_tree

    copied = copy_tree(Path(spec.workdir), Home())
    click.echo(f"snapshot {show_origin(copied.origin)}", err=True)
    for words in copied.left_out[:LEFT_OUT_SHOWN]:
        click.echo(f"  left out: {words}", err=True)
    if len(copied.left_out) > LEFT_OUT_SHOWN:
        click.echo(f"  left out: {len(copied.left_out) - LEFT_OUT_SHOWN} more", err=True)
    return replace(spec, workdir=str(copied.workdir), origin=copied.origin)


def _submit(client: Client, spec: Spec, key: str) -> Submitted:
    try:
        return client.submit(spec, key)
    except KeyboardInterrupt:
        click.echo("\ninterrupted before the answer came; see `muster ls` for whether the job was accepted", err=True)
        raise


def _follow(client: Client, job: int, spec: Spec) -> int:
    view = follow_progress(client, job) if spec.array else follow_output(client, job)
    click.echo(f"job {job} {show_end(view)}{_show_account(view)}", err=True)
    for group in view.failed:
        click.echo(f"  {show_failed(group)}", err=True)
    if view.failed:
        look = f"muster logs {job} --task {view.failed[0].ranges[0][0]}"
        click.echo(f"help: see `{look}`; `muster requeue {job} --failed` runs them again", err=True)
    return exit_code_of(view)


def _show_account(view: JobView) -> str:
    """What it took, used and cost, as far as that is known: ` (took 3m; used 9m of CPU, at most 2Gi of memory)`."""
    cost = 0 if view.account is None else view.account.cost_micros
    parts = (
        f"took {show_duration(max(0, view.since_ms - view.accepted_at_ms))}",
        f"; used {used}" if (used := show_used(view)) else "",
        f"; GPU time {spent}" if (spent := show_time(view)) else "",
        f"; cost {show_money(cost)}" if cost else "",
    )
    return f" ({''.join(parts)})"


COMMANDS = {"run": run}
