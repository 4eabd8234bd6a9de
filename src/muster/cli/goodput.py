"""`muster goodput`: what every moment of every accelerator was spent on, as a small chart."""

from __future__ import annotations

from typing import Final

import click

from muster.cli.printing import print_json, print_table
from muster.sdk.client import Client
from muster.units import HOUR_MS, show_instant
from muster.wire.views import FlavorGoodput

HOUR: Final = 1000 * HOUR_MS
"""What the account counts as one hour of a device."""
BAR: Final = 40


@click.command()
@click.option("--tenant", default="", help="Only what this tenant held.")
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", help="The format.")
def goodput(tenant: str, output: str) -> None:
    """Say what the time of every GPU was spent on."""
    with Client() as client:
        view = client.goodput(tenant)
    if output == "json":
        print_json(view)
        return
    if not view.flavors:
        click.echo("no GPU time yet" if not tenant else f"tenant {tenant} held no GPU yet")
        return
    if view.since_ms:
        click.echo(f"since {show_instant(view.since_ms)}")
    rows = [row for flavor in view.flavors for row in _rows(flavor)]
    print_table(("FLAVOR", "BUCKET", "GPU-HOURS", "SHARE", ""), rows)


def _rows(flavor: FlavorGoodput) -> list[tuple[str, ...]]:
    """A line per bucket that has something, and their sum; shares are cut to tenths of a per cent."""
    total = sum(flavor.time.values())
    rows = [
        (flavor.flavor, bucket, _show_hours(time), _show_share(time, total), "█" * (BAR * time // total))
        for bucket, time in flavor.time.items()
        if time
    ]
    return [*rows, (flavor.flavor, "all", _show_hours(total), "100%", "")]


def _show_hours(time: int) -> str:
    whole, part = divmod(1000 * time // HOUR, 1000)
    return f"{whole}.{part:03d}"


def _show_share(time: int, total: int) -> str:
    whole, tenth = divmod(1000 * time // total, 10)
    return f"{whole}.{tenth}%"


COMMANDS = {"goodput": goodput}
