"""The API's description, OpenAPI 3.1, generated from the wire types. `SHAPES` has a row for every route: what it takes
and what it gives.

Who may use a route is in the gate's table; what a route does is its handler's docstring. The document is committed as
`docs/reference/openapi.json`, and a test says when it is stale.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster import __version__
from muster.api.advice import AdviceBody
from muster.api.bars import KINDS, BarBody
from muster.api.bookings import BookingBody
from muster.api.bulk import BulkBody
from muster.api.fleet import FlavorBody
from muster.api.gate import RIGHTS, Where
from muster.api.jobs import WAIT_MAX_MS, MigrateBody, ProgressBody, RequeueBody, ScaleBody
from muster.api.overlays import OverlayBody
from muster.api.pages import ROWS_MAX
from muster.api.params import DIGITS_MAX
from muster.api.problems import JsonResponse
from muster.api.profiles import ProfileBody
from muster.api.tenants import TenantBody
from muster.api.tiers import TierBody
from muster.api.tokens import TokenBody
from muster.api.users import UserBody
from muster.control.fleet import FILTERS
from muster.control.listing import ORDERS, PHASES, STATES
from muster.model.spec import Spec
from muster.units import INSTANT_MAX
from muster.wire import access_views, forecast_views, views

TEXT: Final = {"type": "string"}
BYTES: Final = "application/octet-stream"
EVENTS: Final = "text/event-stream"
PLAIN: Final = "text/plain"


class Shape(NamedTuple):
    """What a route takes and gives. `media` is set where the answer is not JSON; `tagged` where it has, or a change may
    name, a tag; `fresh` where a reader may name the tag of what they have; `keyed` where a key makes a repeat harmless,
    `bare` where nothing needs to be said."""

    gives: Any = None
    takes: Any = None
    query: Mapping[str, Mapping[str, Any]] = {}
    status: int = 200
    media: str = ""
    tagged: bool = False
    keyed: bool = False
    bare: bool = False
    fresh: bool = False


def _number(least: int = 0, most: int = 10**DIGITS_MAX) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most}


def _one_of(words: Iterable[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


LIMIT: Final = {"limit": _number(1, ROWS_MAX)}
BY_NUMBER: Final = {"after": _number(), **LIMIT}
BY_NAME: Final = {"after": TEXT, **LIMIT}
WAIT: Final = {"wait_ms": _number(most=WAIT_MAX_MS)}
TENANT: Final = {"tenant": TEXT}
LOG: Final = {"task": _number(), "epoch": _number(), "offset": _number()}
SINCE: Final = {"since": _number(most=INSTANT_MAX)}
UNTIL: Final = {"until": _number(most=INSTANT_MAX)}
JOBS: Final = {"state": _one_of(STATES), "phase": _one_of(PHASES), "order": _one_of(ORDERS), **TENANT, **BY_NUMBER}

SHAPES: Final[dict[str, Shape]] = {
    "GET /v1/health": Shape(views.Health),
    "GET /v1/ready": Shape(views.Health),
    "GET /v1/openapi.json": Shape(dict[str, Any]),
    "GET /v1/metrics": Shape(media=PLAIN),
    "GET /v1/watch": Shape(media=EVENTS, query={"after": _number(), "job": _number(1), **TENANT}),
    "GET /v1/me": Shape(access_views.Me),
    "POST /v1/jobs": Shape(views.Submitted, Spec, status=201, keyed=True),
    "POST /v1/jobs/bulk": Shape(views.BulkAnswer, BulkBody),
    "GET /v1/jobs": Shape(views.JobPage, query={**JOBS, **SINCE}),
    "GET /v1/jobs/{job}": Shape(views.JobView, query=WAIT, tagged=True, fresh=True),
    "GET /v1/jobs/{job}/why": Shape(views.WhyView),
    "GET /v1/jobs/{job}/forecast": Shape(forecast_views.ForecastView),
    "GET /v1/jobs/{job}/story": Shape(views.Story, query=BY_NUMBER),
    "GET /v1/jobs/{job}/logs": Shape(media=BYTES, query={**LOG, **WAIT}),
    "GET /v1/jobs/{job}/logs/follow": Shape(media=EVENTS, query=LOG),
    "POST /v1/jobs/{job}/cancel": Shape(views.Submitted, status=202, tagged=True),
    "POST /v1/jobs/{job}/hold": Shape(views.Submitted, tagged=True),
    "POST /v1/jobs/{job}/release": Shape(views.Submitted, tagged=True),
    "POST /v1/jobs/{job}/requeue": Shape(views.Submitted, RequeueBody, status=202, keyed=True, bare=True, tagged=True),
    "POST /v1/jobs/{job}/scale": Shape(views.Submitted, ScaleBody, status=202, tagged=True),
    "POST /v1/jobs/{job}/migrate": Shape(views.Submitted, MigrateBody, status=202, tagged=True),
    "POST /v1/jobs/{job}/progress": Shape(views.Submitted, ProgressBody),
    "GET /v1/nodes": Shape(list[views.NodeView], query={**dict.fromkeys(FILTERS, TEXT), **BY_NUMBER}),
    "GET /v1/nodes/{name:path}": Shape(views.NodeView, tagged=True),
    "PUT /v1/nodes/{name:path}/bars/{kind}": Shape(views.Changed, BarBody, tagged=True),
    "DELETE /v1/nodes/{name:path}/bars/{kind}": Shape(views.Changed, tagged=True),
    "GET /v1/flavors": Shape(list[views.FlavorView], query=BY_NAME),
    "GET /v1/flavors/{name:path}": Shape(views.FlavorView, tagged=True),
    "PUT /v1/flavors/{name:path}": Shape(views.Changed, FlavorBody, tagged=True),
    "GET /v1/tenants": Shape(list[views.TenantView], query=BY_NAME),
    "GET /v1/tenants/{name:path}": Shape(views.TenantView, tagged=True),
    "PUT /v1/tenants/{name:path}": Shape(views.Changed, TenantBody, tagged=True),
    "DELETE /v1/tenants/{name:path}": Shape(views.Changed, tagged=True),
    "GET /v1/avail": Shape(views.AvailView, query=TENANT),
    "GET /v1/goodput": Shape(views.GoodputView, query=TENANT),
    "GET /v1/usage": Shape(views.UsageView, query={"by": TEXT, **SINCE, **UNTIL, **TENANT, **BY_NUMBER}),
    "GET /v1/bookings": Shape(list[views.BookingView], query=BY_NAME),
    "GET /v1/bookings/{name:path}": Shape(views.BookingView, tagged=True),
    "PUT /v1/bookings/{name:path}": Shape(views.Changed, BookingBody, tagged=True),
    "DELETE /v1/bookings/{name:path}": Shape(views.Changed, tagged=True),
    "GET /v1/tiers": Shape(list[views.TierView], query=BY_NAME),
    "GET /v1/tiers/{name:path}": Shape(views.TierView, tagged=True),
    "PUT /v1/tiers/{name:path}": Shape(views.TierView, TierBody, tagged=True),
    "GET /v1/overlays": Shape(list[views.OverlayView], query=BY_NAME),
    "GET /v1/overlays/{name:path}": Shape(views.OverlayView, tagged=True),
    "PUT /v1/overlays/{name:path}": Shape(views.Changed, OverlayBody, tagged=True),
    "DELETE /v1/overlays/{name:path}": Shape(views.Changed, tagged=True),
    "GET /v1/profiles": Shape(list[views.ProfileView], query=BY_NAME),
    "GET /v1/profiles/{name:path}": Shape(views.ProfileView, tagged=True),
    "PUT /v1/profiles/{name:path}": Shape(views.Changed, ProfileBody, tagged=True),
    "POST /v1/profiles/{name:path}/use": Shape(views.Changed, tagged=True),
    "GET /v1/notify": Shape(list[views.RouteView], query=BY_NAME),
    "POST /v1/trials/notify/{name:path}": Shape(views.DeliveryView),
    "GET /v1/users": Shape(access_views.UserPage, query=BY_NAME),
    "GET /v1/users/{name:path}": Shape(access_views.UserView, tagged=True),
    "PUT /v1/users/{name:path}": Shape(views.Changed, UserBody, tagged=True),
    "DELETE /v1/users/{name:path}": Shape(views.Changed, tagged=True),
    "GET /v1/tokens": Shape(access_views.TokenPage, query={"user": TEXT, **BY_NAME}),
    "POST /v1/tokens": Shape(access_views.FreshTokenView, TokenBody, status=201),
    "DELETE /v1/tokens/{id}": Shape(views.Changed),
    "GET /v1/audit": Shape(access_views.AuditPage, query=BY_NUMBER),
    "GET /v1/audit/verify": Shape(access_views.AuditVerdict),
    "GET /v1/advice": Shape(list[views.AdviceView], query=BY_NAME),
    "PUT /v1/advice/{name:path}": Shape(views.Changed, AdviceBody),
    "GET /v1/past/{at}/jobs": Shape(views.JobPage, query=JOBS),
    "GET /v1/past/{at}/jobs/{job}": Shape(views.JobView),
    "GET /v1/past/{at}/jobs/{job}/why": Shape(views.WhyView),
    "GET /v1/past/{at}/nodes": Shape(list[views.NodeView], query={**dict.fromkeys(FILTERS, TEXT), **BY_NUMBER}),
    "GET /v1/past/{at}/tenants": Shape(list[views.TenantView], query=BY_NAME),
    "GET /v1/past/{at}/bookings": Shape(list[views.BookingView], query=BY_NAME),
    "GET /v1/past/{at}/goodput": Shape(views.GoodputView, query=TENANT),
    "GET /v1/past/{at}/flavors": Shape(list[views.FlavorView], query=BY_NAME),
    "GET /v1/past/{at}/tiers": Shape(list[views.TierView], query=BY_NAME),
    "GET /v1/past/{at}/overlays": Shape(list[views.OverlayView], query=BY_NAME),
    "POST /v1/trials/jobs": Shape(forecast_views.TrialView, Spec),
    **{
        f"POST /v1/trials/jobs/{{job}}/{verb}": Shape(forecast_views.TrialView)
        for verb in ("cancel", "hold", "release", "requeue")
    },
    "POST /v1/trials/jobs/{job}/scale": Shape(forecast_views.TrialView, ScaleBody),
    "POST /v1/trials/jobs/{job}/migrate": Shape(forecast_views.TrialView, MigrateBody),
    "PUT /v1/trials/bookings/{name:path}": Shape(forecast_views.TrialView, BookingBody),
    "PUT /v1/trials/nodes/{name:path}/bars/{kind}": Shape(forecast_views.TrialView, BarBody),
    "DELETE /v1/trials/nodes/{name:path}/bars": Shape(forecast_views.TrialView),
    "PUT /v1/trials/tenants/{name:path}": Shape(forecast_views.TrialView, TenantBody),
    "PUT /v1/trials/tiers/{name:path}": Shape(forecast_views.TrialView, TierBody),
}

PATH_SCHEMAS: Final = {"job": _number(1), "at": _number(most=INSTANT_MAX), "kind": _one_of(KINDS)}
SEEN_LATER: Final = {
    "name": "Muster-At-Least",
    "in": "header",
    "schema": _number(),
    "description": "The entry that the answer must rest on at least.",
}
MATCH: Final = {
    "name": "If-Match",
    "in": "header",
    "schema": TEXT,
    "description": "The tag of what this is a change of.",
}
KNOWN: Final = {
    "name": "If-None-Match",
    "in": "header",
    "schema": TEXT,
    "description": "The tag of what the reader has: the answer is 304 if it is still that.",
}
KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "maxLength": 128},
    "description": "The same key never makes two jobs.",
}


class OpenApi:
    """The route /v1/openapi.json. The document is made when somebody first asks for it: it is most of what making all
    the routes costs."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = [Route("/v1/openapi.json", self.document, methods=["GET"])]
        self._described = [*routes, *self.routes]

    @functools.cached_property
    def _document(self) -> dict[str, Any]:
        return describe(self._described)

    async def document(self, request: Request) -> Response:  # noqa: ARG002 - Starlette's signature
        """This description."""
        return JsonResponse(self._document)


def describe(routes: Iterable[Route]) -> dict[str, Any]:
    """The whole document."""
    kinds = [kind for shape in SHAPES.values() for kind in (shape.gives, shape.takes) if kind is not None]
    schemas, components = msgspec.json.schema_components(
        [*kinds, views.Problem], ref_template="#/components/schemas/{name}"
    )
    for component in components.values():  # before Python 3.13 the words of a class are indented as its source is
        component["description"] = inspect.cleandoc(component.get("description", ""))
    named = dict(zip(map(repr, [*kinds, views.Problem]), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        [method] = (route.methods or set()) - {"HEAD"}
        key = f"{method} {route.path}"
        paths.setdefault(re.sub(r":\w+\}", "}", route.path), {})[method.lower()] = _operation(key, route, named)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Muster", "version": __version__, "summary": "One queue over every accelerator"},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {
                "Problem": _content("application/problem+json", named[repr(views.Problem)], "What was wrong")
            },
        },
        "security": [{"token": []}],
    }


def _operation(key: str, route: Route, named: Mapping[str, Any]) -> dict[str, Any]:
    shape, need, method = SHAPES[key], RIGHTS[key], key.split()[0]
    words = " ".join((route.endpoint.__doc__ or "").split())
    media = shape.media or "application/json"
    answer = _content(media, TEXT if shape.media else named[repr(shape.gives)], "What was asked for")
    operation: dict[str, Any] = {
        "operationId": f"{method.lower()}_{re.sub(r'[^a-z]+', '_', route.path.removeprefix('/v1/'))}".rstrip("_"),
        "summary": words,
        "parameters": list(_parameters(route.path, method, shape)),
        "responses": {
            str(shape.status): answer,
            "4XX": {"$ref": "#/components/responses/Problem"},
            "503": {"$ref": "#/components/responses/Problem"},
        },
    }
    if shape.fresh:
        operation["responses"]["304"] = {"description": "What the reader has is what there is"}
    if shape.takes is not None:
        operation["requestBody"] = {
            "required": not shape.bare,
            **_content("application/json", named[repr(shape.takes)], ""),
        }
    if need.where is Where.NOWHERE:
        operation["security"] = []
    else:
        operation["description"] = f"Needs the role {need.role.value}, {need.where.value}."
    return operation


def _parameters(path: str, method: str, shape: Shape) -> Iterable[Mapping[str, Any]]:
    for name in re.findall(r"\{(\w+)", path):
        within = PATH_SCHEMAS.get(name, {"type": "string", "minLength": 1})
        yield {"name": name, "in": "path", "required": True, "schema": within}
    for name, schema in shape.query.items():
        yield {"name": name, "in": "query", "schema": schema}
    if method == "GET":
        yield SEEN_LATER
        if shape.fresh:
            yield KNOWN
    elif shape.tagged:
        yield MATCH
    if shape.keyed:
        yield KEY


def _content(media: str, schema: Any, words: str) -> dict[str, Any]:
    described = {"description": words} if words else {}
    return {**described, "content": {media: {"schema": schema}}}
