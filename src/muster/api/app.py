"""The ASGI application: the guard and the routes. It is all that a server must know."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

from starlette.routing import Route
from starlette.types import ASGIApp

from muster.api.advice import AdviceRoutes
from muster.api.audit import Audit
from muster.api.avail import Avail
from muster.api.bars import Bars
from muster.api.bookings import Bookings
from muster.api.bulk import Bulk
from muster.api.counting import Counting
from muster.api.fleet import Fleet
from muster.api.forecasts import Forecasts
from muster.api.gate import Gate
from muster.api.goodput import Goodput
from muster.api.guard import Guard
from muster.api.jobs import Jobs
from muster.api.metrics import Metrics
from muster.api.notify import Notify
from muster.api.openapi import SHAPES, OpenApi
from muster.api.overlays import Overlays
from muster.api.past import PastRoutes
from muster.api.profiles import Profiles
from muster.api.rates import Rates
from muster.api.router import Router
from muster.api.tenants import Tenants
from muster.api.tiers import Tiers
from muster.api.tokens import Tokens
from muster.api.trials import Trials
from muster.api.usage import Usage
from muster.api.users import Users
from muster.api.watch import Watch
from muster.control.desk import Desk
from muster.control.follower import Follower
from muster.model.access import Principal
from muster.model.reason import Reason
from muster.ports import Logs

Identify: TypeAlias = Callable[[str, int], Principal | Reason]
"""Who holds a token of an identity provider's now, or why it is not taken."""


def make_app(
    follower: Follower,
    logs: Logs,
    token: str,
    hosts: Collection[str] = (),
    oidc: Identify | None = None,
    desk: Desk | None = None,
) -> ASGIApp:
    """The API of one follower: the guard, then the router, then the gate, then a handler. The desk has the routes for
    notices that a job may name."""
    metrics, desk = Metrics(follower), desk or Desk(follower)
    queries = {key: tuple(shape.query) for key, shape in SHAPES.items()}
    app = Router(Gate(follower, desk).guard(make_routes(follower, logs, metrics, desk)), queries)
    rates = Rates()

    def identify(text: str) -> Principal | Reason:
        now = follower.now_ms()
        if oidc is not None and text.count(".") == 2:  # three parts: none of our own tokens has that form
            found = oidc(text, now)
        else:
            found = follower.roster.identify(text, now, follower.parent_of)
        excess = rates.find_excess(found.token, now) if isinstance(found, Principal) else None
        return excess or found

    metrics.counting = Counting(Guard(app, token, identify, hosts))
    return metrics.counting


def make_routes(follower: Follower, logs: Logs, metrics: Metrics, desk: Desk) -> list[Route]:
    """Every route, in the order in which they are tried, and the one that describes them all."""
    jobs, forecasts = Jobs(follower, logs), Forecasts(follower)
    routes = [
        *jobs.routes,
        *Bulk(follower).routes,
        *Watch(follower, jobs).routes,
        *forecasts.routes,
        *metrics.routes,
        *Fleet(follower).routes,
        *Tenants(follower).routes,
        *Bars(follower).routes,
        *Bookings(follower).routes,
        *Avail(follower).routes,
        *Goodput(follower).routes,
        *Usage(follower).routes,
        *Tiers(follower).routes,
        *Overlays(follower).routes,
        *Profiles(follower).routes,
        *AdviceRoutes(follower).routes,
        *Notify(follower, desk).routes,
        *Users(follower).routes,
        *Tokens(follower).routes,
        *Audit(follower).routes,
        *PastRoutes(follower).routes,
        *Trials(follower, forecasts).routes,
    ]
    return [*routes, *OpenApi(routes).routes]
