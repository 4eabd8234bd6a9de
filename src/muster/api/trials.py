"""Trials over HTTP: what a job, a tenant, a tier, a booking or a bar would do, or something done to a job, without
doing it. Asked as the change itself would be."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.api.bars import OPERATOR, read_bar
from muster.api.bookings import read_reserve
from muster.api.forecasts import Forecasts
from muster.api.gate import Sees, cause_of, check_tenant, sees_of
from muster.api.jobs import check_submit, read_migrate, read_scale, read_spec
from muster.api.params import read_job, read_world
from muster.api.problems import JsonResponse
from muster.api.tenants import check_above, read_tenant
from muster.api.tiers import read_tier
from muster.control.follower import Follower
from muster.control.trial import try_out
from muster.model.access import Role
from muster.model.errors import RejectedError
from muster.model.event import Cancel, Event, HoldJob, ReleaseJob, RequeueJob, SetTenant, SetTier, Submit, UnbarNode
from muster.model.job import BarKind
from muster.model.reason import Code, Reason
from muster.wire.forecast_views import TrialJob, TrialView
from muster.wire.link import OfJob
from muster.world.world import World


class Trials:
    """The routes below /v1/trials."""

    def __init__(self, follower: Follower, forecasts: Forecasts) -> None:
        self._follower = follower
        self._forecasts = forecasts
        self.routes = [
            Route("/v1/trials/jobs", self.submit, methods=["POST"]),
            Route("/v1/trials/jobs/{job}/cancel", self.cancel, methods=["POST"]),
            Route("/v1/trials/jobs/{job}/hold", self.hold, methods=["POST"]),
            Route("/v1/trials/jobs/{job}/release", self.release, methods=["POST"]),
            Route("/v1/trials/jobs/{job}/requeue", self.requeue, methods=["POST"]),
            Route("/v1/trials/jobs/{job}/scale", self.scale, methods=["POST"]),
            Route("/v1/trials/jobs/{job}/migrate", self.migrate, methods=["POST"]),
            Route("/v1/trials/bookings/{name:path}", self.reserve, methods=["PUT"]),
            Route("/v1/trials/nodes/{name:path}/bars/{kind}", self.bar, methods=["PUT"]),
            Route("/v1/trials/nodes/{name:path}/bars", self.unbar, methods=["DELETE"]),
            Route("/v1/trials/tenants/{name:path}", self.set_tenant, methods=["PUT"]),
            Route("/v1/trials/tiers/{name:path}", self.set_tier, methods=["PUT"]),
        ]

    async def submit(self, request: Request) -> Response:
        """A job that is not submitted."""
        spec = await check_submit(request, await read_spec(request))
        return JsonResponse(await self._try(request, Submit(spec, "", cause_of(request))))

    async def cancel(self, request: Request) -> Response:
        """A job that is not cancelled."""
        return await self._try_job(request, Cancel(read_job(request), cause_of(request)))

    async def hold(self, request: Request) -> Response:
        """A job that is not held."""
        return await self._try_job(request, HoldJob(read_job(request), cause_of(request)))

    async def release(self, request: Request) -> Response:
        """A job that is not released."""
        return await self._try_job(request, ReleaseJob(read_job(request), cause_of(request)))

    async def requeue(self, request: Request) -> Response:
        """A job that goes on."""
        return await self._try_job(request, RequeueJob(read_job(request), cause_of(request)))

    async def scale(self, request: Request) -> Response:
        """A job that keeps its bounds."""
        return await self._try_job(request, await read_scale(request))

    async def migrate(self, request: Request) -> Response:
        """A job that goes on where it is."""
        return await self._try_job(request, await read_migrate(request))

    async def reserve(self, request: Request) -> Response:
        """A booking that is not made, with the nodes that it would get."""
        return JsonResponse(await self._try(request, await read_reserve(request)))

    async def bar(self, request: Request) -> Response:
        """A bar that is not set."""
        return JsonResponse(await self._try(request, await read_bar(request)))

    async def unbar(self, request: Request) -> Response:
        """Bars of the operators that are not lifted, all of a node's."""
        name, cause = request.path_params["name"], cause_of(request)
        return JsonResponse(await self._try(request, *(UnbarNode(name, kind, OPERATOR, cause) for kind in BarKind)))

    async def set_tenant(self, request: Request) -> Response:
        """A tenant that is not set."""
        tenant, name = await read_tenant(request), request.path_params["name"]
        check_above(request, self._follower, name)
        check_tenant(request, Role.ADMIN, tenant.parent)
        return await self._try_rule(request, SetTenant(name, tenant, cause_of(request)))

    async def set_tier(self, request: Request) -> Response:
        """A tier that is not set."""
        tier = await read_tier(request)
        return await self._try_rule(request, SetTier(request.path_params["name"], tier, cause_of(request)))

    async def _try_rule(self, request: Request, event: SetTenant | SetTier) -> Response:
        """Rules change what comes, so a day is run ahead with them."""
        view = await self._try(request, event)
        day, sees = await self._forecasts.compare(event), sees_of(request)
        if day is not None:
            day = msgspec.structs.replace(day, tenants=[row for row in day.tenants if sees(row.tenant)])
        return JsonResponse(msgspec.structs.replace(view, day=day))

    async def _try_job(self, request: Request, event: OfJob) -> Response:
        """One that was, and has left the world, is over."""
        world = await read_world(request, self._follower)
        if event.job not in world.jobs and 0 < event.job < world.next_job:
            raise RejectedError(Reason(Code.ALREADY_OVER, "job", needed=event.job))
        return JsonResponse(await self._try(request, event))

    async def _try(self, request: Request, event: Event, *more: Event) -> TrialView:
        await read_world(request, self._follower)
        now, sees = self._follower.now_ms(), sees_of(request)

        def play(world: World) -> TrialView:
            return try_out(world, event, now, *more)

        view = await self._follower.past.ask_freely(max(now, self._follower.world.now), play)
        return _hide_others(view, sees)


def _hide_others(view: TrialView, sees: Sees) -> TrialView:
    """The same for a reader who may not see everybody: how many they are stays, who they are goes."""

    def seen(jobs: list[TrialJob]) -> list[TrialJob]:
        return [each for each in jobs if sees(each.tenant)]

    return msgspec.structs.replace(view, starts=seen(view.starts), stops=seen(view.stops), waits=seen(view.waits))
