"""`muster sbatch` and `muster import`: a Slurm script as it is, or as the job file that it means.

Flags are read by sbatch's own table and not by click's: what people have in their fingers and in their scripts stays.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Final

import click
import msgspec

from muster.cli.following import await_end
from muster.cli.here import STANDARD_INPUT, get_here, read_file
from muster.cli.jobs import exit_code_of
from muster.cli.printing import show_end
from muster.cli.trying import NOTHING_DONE, print_job_trial
from muster.sdk.client import Client
from muster.sdk.jobfile import make_spec
from muster.sdk.slurm.flags import FLAGS, Fate, Said, het_job, read_flags
from muster.sdk.slurm.mapping import Import, import_script, show_notes
from muster.sdk.slurm.script import check_script, read_script

_AS_THEY_ARE: Final = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}
OURS: Final = ("flavor", "label", "tenant", "tier", "within")
"""Flags of `muster run` that sbatch has not, for what a partition or a QOS stands for."""


@click.command(context_settings=_AS_THEY_ARE)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def sbatch(words: tuple[str, ...]) -> int:
    """Submit a Slurm script as it is: muster sbatch [FLAGS OF SBATCH] SCRIPT [ARGS]"""
    said, rest, ours = _read_words(words)
    if any(one.name in ("help", "usage") for one in said):
        _print_help()
        return 0
    found = _import(said, rest, ours)
    for line in show_notes(found.notes):
        click.echo(line, err=True)
    spec = make_spec(found.job, here=str(get_here()), now_ms=int(time.time() * 1000))
    with Client() as client:
        if "test-only" in found.asked:
            print_job_trial(client.try_submit(spec))
            click.echo(NOTHING_DONE, err=True)
            return 0
        job = client.submit(spec).job
        client.settle()
        if "quiet" not in found.asked:
            click.echo(str(job) if "parsable" in found.asked else f"Submitted batch job {job}")
        return _wait(client, job) if "wait" in found.asked else 0


@click.command("import", context_settings=_AS_THEY_ARE)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def import_(words: tuple[str, ...]) -> None:
    """Print the job that a Slurm script means, as a job file, and what of it is left out."""
    said, rest, ours = _read_words(words)
    if any(one.name in ("help", "usage") for one in said):
        _print_help()
        return
    found = _import(said, rest, ours)
    import yaml  # type: ignore[import-untyped]  # the package brings no types; one call is made

    class Plain(yaml.SafeDumper):  # type: ignore[misc]  # untyped, as its package
        """Texts of several lines as such, for people to read."""

    def spell(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    Plain.add_representer(str, spell)
    fields = msgspec.to_builtins(found.plain)
    click.echo(yaml.dump(fields, Dumper=Plain, sort_keys=False, allow_unicode=True, width=1000), nl=False)
    for line in show_notes([*found.notes, *found.plain_notes]):
        click.echo(f"# {line}")
    if any(word in found.plain.script for word in ("SLURM_", "srun")):
        click.echo("# the script speaks to Slurm (SLURM_*, srun): `muster sbatch` gives it what it looks for")


def _read_words(words: tuple[str, ...]) -> tuple[list[Said], list[str], dict[str, str]]:
    """Flags of sbatch and of ours, in any order, and the script with its arguments."""
    said: list[Said] = []
    ours: dict[str, str] = {}
    left = list(words)
    while left and left[0].startswith("-") and left[0] != "-":
        name, equals, value = left[0].removeprefix("--").partition("=")
        if left[0].startswith("--") and name in OURS:
            left.pop(0)
            if not equals and not left:
                raise click.UsageError(f"--{name} needs a value")
            ours[name] = value if equals else left.pop(0)
            continue
        one, rest = read_flags(_one_flag(left), "the command line")
        said += one
        left = rest + left
    if left and left[0] == ":":
        raise het_job("':'", "the command line")
    return said, left, ours


def _one_flag(left: list[str]) -> list[str]:
    """The next flag, with the word after it if that may be its value; what is not is given back."""
    taken = [left.pop(0)]
    if left and not left[0].startswith("-"):
        taken.append(left.pop(0))
    return taken


def _import(said: list[Said], rest: list[str], ours: dict[str, str]) -> Import:
    is_wrap = any(one.name == "wrap" for one in said)
    if not rest and not is_wrap and sys.stdin.isatty():
        raise click.UsageError("name a script, or give it on standard input")
    name = "wrap" if is_wrap else rest[0] if rest else "stdin"
    text = "" if is_wrap else read_file(rest[0] if rest else STANDARD_INPUT)
    if not is_wrap:
        check_script(text, name)
    flags = [*read_script(text, name), *said]
    found = import_script(
        text, name, flags, args=rest if is_wrap else rest[1:], env=dict(os.environ), here=str(get_here())
    )
    changes = {field: [value] if field in ("flavor", "label") else value for field, value in ours.items()}
    job, plain = (msgspec.structs.replace(each, **changes) for each in (found.job, found.plain))
    return found._replace(job=job, plain=plain)


def _wait(client: Client, job: int) -> int:
    view = await_end(client, job)
    click.echo(f"job {job} {show_end(view)}", err=True)
    return exit_code_of(view)


def _print_help() -> None:
    click.echo("Usage: muster sbatch [FLAGS OF SBATCH] SCRIPT [ARGS]\n")
    click.echo(f"Besides, of muster run: {', '.join(f'--{name}' for name in OURS)}. What becomes of each flag:\n")
    for flag in FLAGS:
        mark = "" if flag.fate == Fate.MAPPED else f"{flag.fate.value}: "
        short = f"-{flag.short}, " if flag.short else "    "
        click.echo(f"  {short}--{flag.name:<22} {mark}{flag.words}")


COMMANDS = {"sbatch": sbatch, "import": import_}
