"""`muster version`: which Muster this is. It asks nobody."""

from __future__ import annotations

import click

from muster import __version__


@click.command()
def version() -> None:
    """Print the version."""
    click.echo(f"muster {__version__}")


COMMANDS = {"version": version}
