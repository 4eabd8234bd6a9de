"""The rest of the API: nodes, tenants and the health check."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster import __version__
from muster.api.jobs import CAUSE, answer_response, read_response, read_world
from muster.api.params import read_body
from muster.api.problems import JsonResponse
from muster.control.follower import Follower
from muster.control.views import view_nodes, view_tenants
from muster.model.event import SetTenant
from muster.model.job import Quota
from muster.model.reason import Refused
from muster.units import AMOUNT_MAX
from muster.wire.views import Health, TenantView

Amount: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX)] | None


class QuotaBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A quota as a client sends it: what is null or left out is unlimited."""

    gpus: Amount = None
    cpu_milli: Amount = None
    memory_bytes: Amount = None


_quota_decoder: Final = msgspec.json.Decoder(QuotaBody)


class Fleet:
    """The routes that are not about a job."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.routes = [
            Route("/v1/health", self.health, methods=["GET"]),
            Route("/v1/nodes", self.nodes, methods=["GET"]),
            Route("/v1/tenants", self.tenants, methods=["GET"]),
            Route("/v1/tenants/{name:path}", self.set_tenant, methods=["PUT"]),
        ]

    async def health(self, request: Request) -> Response:  # noqa: ARG002 - Starlette's signature
        """Whether reads are answered (they are) and whether changes get through."""
        follower = self._follower
        status = "ok" if follower.is_led else "no leader"
        return JsonResponse(Health(status, follower.is_led, follower.world.seq, follower.lag_p99_ms(), __version__))

    async def nodes(self, request: Request) -> Response:
        """Every node."""
        world = await read_world(request, self._follower)
        return read_response(world, view_nodes(world))

    async def tenants(self, request: Request) -> Response:
        """Every tenant."""
        world = await read_world(request, self._follower)
        return read_response(world, view_tenants(world))

    async def set_tenant(self, request: Request) -> Response:
        """Name a tenant, or change what it may hold."""
        body = await read_body(request, _quota_decoder, "quota")
        name = request.path_params["name"]
        quota = Quota(body.gpus, body.cpu_milli, body.memory_bytes)
        answer = await self._follower.ask(SetTenant(name, quota, CAUSE))
        if isinstance(answer.reply, Refused):
            return answer_response(answer, 200)
        used = self._follower.world.ledger.used(name)
        view = TenantView(name, body.gpus, body.cpu_milli, body.memory_bytes, used)
        return JsonResponse(view, headers={"Muster-Seq": str(answer.seq)})
