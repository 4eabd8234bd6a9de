"""`muster submit`: jobs from files, in YAML, JSON or TOML. All of them are checked before the first is handed in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import click
import msgspec

from muster.cli.failing import OK
from muster.cli.handing import HandingIn, list_items
from muster.cli.here import STANDARD_INPUT, get_here, read_file
from muster.cli.printing import DRY_RUN
from muster.cli.trying import NOTHING_DONE, print_job_trial
from muster.model.spec import Spec
from muster.sdk.client import Client
from muster.sdk.documents import Draft, make_specs, place_of, read_jobs
from muster.sdk.errors import AnsweredError


@click.command()
@click.argument("files", nargs=-1, metavar="FILE...")
@click.option("--key", default="", help="The same key never makes the same job of the file twice.")
@click.option("-o", "output", type=click.Choice(["text", "json", "name"]), default="text", help="The format.")
@DRY_RUN
@click.option("--schema", is_flag=True, help="Print what a job may say, as a JSON schema, and leave.")
def submit(files: tuple[str, ...], key: str, output: str, schema: bool, dry_run: bool) -> int:
    """Submit jobs from files: one or many in YAML, JSON or TOML; - is standard input, in YAML."""
    if schema:
        click.echo(job_schema(), nl=False)
        return OK
    if not files:
        raise click.UsageError("name a file; `muster submit --schema` prints what a job may say")
    batches = [(_folder(name), _read(name)) for name in files]
    # All of them, before anything is handed in.
    drafts = [draft for _, found in batches for draft in found]
    specs = [spec for folder, found in batches for spec in make_specs(found, here=folder, now_ms=_now_ms())]
    with Client() as client:
        if dry_run:
            _try_each(client, drafts, specs)
            return OK
        code = HandingIn(client, list_items(batches), key, output).run()
        client.settle()
        return code


def _try_each(client: Client, drafts: list[Draft], specs: list[Spec]) -> None:
    """Each by itself: those that would come after others are looked at as if they need not wait for them."""
    for draft, spec in zip(drafts, specs, strict=True):
        with _placed(draft):
            view = client.try_submit(msgspec.structs.replace(spec, after=()))
        click.echo(f"{spec.name or spec.command[0][:40]}: ", nl=False)
        print_job_trial(view)
        if spec.after:
            click.echo("  as if those it is to run after were done with: they are not waited for here")
    click.echo(NOTHING_DONE, err=True)


@contextmanager
def _placed(draft: Draft) -> Iterator[None]:
    """What the server refuses is said with the place of the job in its file."""
    try:
        yield
    except AnsweredError as error:
        error.where = place_of(draft)
        raise


def job_schema() -> str:
    """What a job file may say, generated from the type that reads it."""
    from muster.sdk.jobfile import JobFile

    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(JobFile)}
    return msgspec.json.format(msgspec.json.encode(schema)).decode() + "\n"


def _folder(name: str) -> str:
    return str(get_here() if name == STANDARD_INPUT else (get_here() / name).parent)


def _read(name: str) -> list[Draft]:
    text = read_file(name)
    if text.startswith("#!"):
        raise click.UsageError(f"{name} is a script and no job file; `muster sbatch {name}` submits it as it is")
    return read_jobs(text, name)


def _now_ms() -> int:
    return int(time.time() * 1000)


COMMANDS = {"submit": submit}
