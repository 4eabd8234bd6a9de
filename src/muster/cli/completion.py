"""`muster completion`: what a shell must load to complete the words of `muster`. It asks nobody."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what completes commands and options in a shell: eval "$(muster completion bash)" """
    from click.shell_completion import get_completion_class

    from muster.cli.commands import cli  # here: it is the table that names this module

    made = get_completion_class(shell)
    assert made is not None  # noqa: S101 - the three are click's own
    click.echo(made(cli, {}, "muster", "_MUSTER_COMPLETE").source())


COMMANDS = {"completion": completion}
