"""Forecasts over HTTP: when a job will likely start. And for trials: what a change would do in a day."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.api.answers import read_response
from muster.api.gate import sees_of
from muster.api.params import read_job, read_world
from muster.control.follower import Follower
from muster.forecast.lengths import Lengths
from muster.forecast.saying import LIKES_READ, come_again, find_comers, learn, say_day, say_start
from muster.model.event import Event
from muster.model.history import Remembered
from muster.ports.store import Wanted
from muster.units import DAY_MS
from muster.wire.forecast_views import DayView, ForecastView
from muster.world.world import World


class Forecasts:
    """The route of forecasts, and the question that trials put."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.routes = [Route("/v1/jobs/{job}/forecast", self.show, methods=["GET"])]

    async def show(self, request: Request) -> Response:
        """When a job will likely start."""
        number = read_job(request)
        await read_world(request, self._follower)
        lengths, now, sees = await self._learn(), self._follower.now_ms(), sees_of(request)
        last_day = await self._read_day(now)

        def ask(world: World, _: None) -> ForecastView:
            return say_start(world, number, now, lengths, sees, find_comers(world, last_day, now))

        return read_response(*await self._follower.study(lambda _: None, ask))

    async def compare(self, change: Event) -> DayView | None:
        """What a change, which was found right, would do in a day."""
        now = self._follower.now_ms()
        lengths = await self._learn()
        last_day = await self._read_day(now)
        comers = await asyncio.to_thread(come_again, last_day, now)

        def ask(world: World, _: None) -> DayView | None:
            return say_day(world, change, now, lengths, comers)

        return (await self._follower.study(lambda _: None, ask))[1]

    async def _read_day(self, now: int) -> Sequence[Remembered]:
        return await self._follower.read_finished(Wanted(since=now - DAY_MS, limit=LIKES_READ))

    async def _learn(self) -> Lengths:
        newest = self._follower.world.next_job
        remembered = await self._follower.read_finished(Wanted(after=max(0, newest - LIKES_READ), limit=LIKES_READ))
        return await asyncio.to_thread(learn, remembered)
