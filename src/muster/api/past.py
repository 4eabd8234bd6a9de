"""The past over HTTP: jobs, nodes, tenants and the rest as they were at an instant, in the views of the present."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.api.fleet import nodes_response
from muster.api.gate import check_tenant, sees_of
from muster.api.jobs import read_asked
from muster.api.pages import fit_jobs, page_response
from muster.api.params import read_job, read_number
from muster.api.problems import JsonResponse, unknown_job
from muster.control.bookings import view_bookings
from muster.control.fleet import view_flavors
from muster.control.follower import Follower
from muster.control.goodput import view_goodput
from muster.control.listing import Listing
from muster.control.overlays import view_overlays
from muster.control.tenants import view_tenants
from muster.control.views import (
    complete_reason,
    find_reason,
    hide_others,
    phase_word,
    view_job,
    view_tiers,
    why_not_waiting,
)
from muster.model.access import Role
from muster.model.errors import RejectedError
from muster.model.job import Job
from muster.model.reason import Code, Reason
from muster.units import INSTANT_MAX, show_instant
from muster.wire.views import BookingView, JobPage, JobView, TenantView, View, WhyView
from muster.world.world import World


class PastRoutes:
    """The routes below /v1/past."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.routes = [
            Route("/v1/past/{at}/jobs", self.page, methods=["GET"]),
            Route("/v1/past/{at}/jobs/{job}", self.show, methods=["GET"]),
            Route("/v1/past/{at}/jobs/{job}/why", self.why, methods=["GET"]),
            Route("/v1/past/{at}/nodes", self.nodes, methods=["GET"]),
            Route("/v1/past/{at}/tenants", self.tenants, methods=["GET"]),
            Route("/v1/past/{at}/bookings", self.bookings, methods=["GET"]),
            Route("/v1/past/{at}/goodput", self.goodput, methods=["GET"]),
            Route("/v1/past/{at}/flavors", self.flavors, methods=["GET"]),
            Route("/v1/past/{at}/tiers", self.tiers, methods=["GET"]),
            Route("/v1/past/{at}/overlays", self.overlays, methods=["GET"]),
        ]

    async def page(self, request: Request) -> Response:
        """A page of the jobs that there were, the newest first."""
        asked = read_asked(request)

        def look(world: World) -> JobPage:
            return fit_jobs(Listing(world).page(asked))

        return JsonResponse(await self._follower.past.ask(_instant(request), look))

    async def show(self, request: Request) -> Response:
        """A job as it was."""
        number, at = read_job(request), _instant(request)

        def look(world: World) -> JobView:
            return view_job(world, self._get_job(world, number, at), now=at)

        return JsonResponse(await self._follower.past.ask(at, look))

    async def why(self, request: Request) -> Response:
        """Why a job waited."""
        number, at, sees = read_job(request), _instant(request), sees_of(request)

        def look(world: World) -> WhyView:
            job = self._get_job(world, number, at)
            view = complete_reason(world, find_reason(world, number, at))
            if view is None:
                return why_not_waiting(number, phase_word(world, job))
            return hide_others(view, sees)

        return JsonResponse(await self._follower.past.ask_freely(at, look))

    async def nodes(self, request: Request) -> Response:
        """The nodes as they were: every one, or those of a flavor, a place or a phase."""
        return await self._follower.past.ask(_instant(request), lambda world: nodes_response(world, request))

    async def tenants(self, request: Request) -> Response:
        """The tenants as they were, and what they held."""
        is_seen, at = sees_of(request), _instant(request)

        def look(world: World) -> list[TenantView]:
            present = Listing(world).tenants()
            return [view for view in view_tenants(world, max(world.now, at), present) if is_seen(view.name)]

        return await self._list(request, look)

    async def bookings(self, request: Request) -> Response:
        """The bookings as they were."""
        is_seen = sees_of(request)

        def look(world: World) -> list[BookingView]:
            return [view for view in view_bookings(world) if is_seen(view.tenant)]

        return await self._list(request, look)

    async def goodput(self, request: Request) -> Response:
        """The account up to then, of the fleet or of one `tenant`."""
        tenant, at = request.query_params.get("tenant", ""), _instant(request)
        check_tenant(request, Role.VIEWER, tenant)
        return JsonResponse(await self._follower.past.ask(at, lambda world: view_goodput(world, at, tenant)))

    async def flavors(self, request: Request) -> Response:
        """The flavors as they were, and what there was of them."""
        return await self._list(request, view_flavors)

    async def tiers(self, request: Request) -> Response:
        """The tiers as they were."""
        return await self._list(request, view_tiers)

    async def overlays(self, request: Request) -> Response:
        """The overlays as they were, and what was left of them."""
        return await self._list(request, view_overlays)

    def _get_job(self, world: World, number: int, at: int) -> Job:
        """A job as it was. One that there is by now was to come then, or over for so long that the world had let go."""
        job = world.jobs.get(number)
        if job is not None:
            return job
        if not 0 < number < self._follower.world.next_job:
            raise unknown_job(number)
        words = "it was accepted later" if number >= world.next_job else "it was over, and left the listings"
        raise RejectedError(Reason(Code.NOT_THEN, show_instant(at), needed=number, detail=words))

    async def _list(self, request: Request, look: Callable[[World], Sequence[View]]) -> Response:
        """A page of what there was."""

        def answer(world: World) -> Response:
            return page_response(world, request, look(world))

        return await self._follower.past.ask(_instant(request), answer)


def _instant(request: Request) -> int:
    return read_number(request.path_params["at"], "at", default=0, most=INSTANT_MAX)
