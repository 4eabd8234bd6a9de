"""`muster goodput`: what every moment of every accelerator was spent on, or of a job's own, as a small chart."""

from __future__ import annotations

from typing import Final

import click

from muster.cli.moments import AT
from muster.cli.naming import JOB
from muster.cli.printing import Listing, listing_options, show_listing
from muster.sdk.client import Client
from muster.units import HOUR_MS, show_instant
from muster.wire.views import FlavorGoodput, GoodputView, JobView

HOUR: Final = 1000 * HOUR_MS
"""What the account counts as one hour of a device."""
BAR: Final = 40


@click.command()
@click.option("--tenant", default="", help="Only what this tenant held.")
@click.option("--job", type=JOB, metavar="N", help="Only what this job held, in all its runs.")
@AT
@listing_options
def goodput(tenant: str, job: int | None, output: str, watch: bool, at: int | None) -> None:
    """Say what the time of every GPU was spent on."""
    if job is not None and (tenant or at is not None):
        raise click.UsageError("--job goes with neither --tenant nor --at")
    with Client() as client:
        if job is None:
            show_listing(lambda: _list(client.goodput(tenant, at_ms=at)), output, watch)
        else:
            show_listing(lambda: _list_of_job(client.show(job)), output, watch)


def _list(view: GoodputView) -> Listing:
    return Listing(
        heads=("FLAVOR", "BUCKET", "GPU-HOURS", "SHARE", "CHART"),
        rows=[row for flavor in view.flavors for row in _rows(flavor)],
        value=view,
        names=[flavor.flavor for flavor in view.flavors],
        empty="no GPU time yet" if not view.tenant else f"tenant {view.tenant} held no GPU yet",
        note=f"since {show_instant(view.since_ms)}" if view.since_ms else "",
    )


def _list_of_job(view: JobView) -> Listing:
    """The same of one job, whatever flavors it was on."""
    time = {} if view.account is None else view.account.time
    return Listing(
        heads=("BUCKET", "GPU-HOURS", "SHARE", "CHART"),
        rows=[row for _, *row in _rows(FlavorGoodput("", time))] if time else [],
        value=view.account,
        names=[str(view.id)],
        empty=f"job {view.id} held no GPU yet",
    )


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
