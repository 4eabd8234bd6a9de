"""The goodput account as a reader sees it, built on read. Nothing is stored and nothing decided here."""

from __future__ import annotations

from muster.wire.views import FlavorGoodput, GoodputView
from muster.world.accounting import read_account
from muster.world.world import World


def view_goodput(world: World, now: int, tenant: str = "") -> GoodputView:
    """What every moment was spent on: of the whole fleet, or of what one tenant held."""
    at = max(world.now, now)
    account = read_account(world, at, tenant)
    flavors = [
        FlavorGoodput(flavor, {bucket.value: time for bucket, time in times.items()})
        for flavor, times in account.items()
    ]
    return GoodputView(at, flavors, tenant, world.goodput.since)
