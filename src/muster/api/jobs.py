"""Jobs over HTTP: submit, list, show, explain, tell, cancel, and read what they wrote.

Reads are answered from the follower's world, and from the journal for what retired; changes are asked of the leader. A
log is opened through the Logs port alone, by numbers and never by a name that somebody sent.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.api.answers import answer_response, fresh_response, read_response
from muster.api.gate import Gate, cause_of, gate_of, principal_of, sees_of
from muster.api.logs import Piece, read_piece
from muster.api.pages import fit_jobs, read_limit
from muster.api.params import read_body, read_choice, read_job, read_key, read_match, read_number, read_world
from muster.api.problems import STATUS, bad_field, unknown_job
from muster.control.again import find_failures, make_again
from muster.control.failed_tasks import add_failures
from muster.control.follower import Follower
from muster.control.listing import ORDERS, PHASES, STATES, Asked
from muster.control.remembering import merge, view_account, view_remembered, want
from muster.control.story import cut_story, find_tries, get_beginning, tell
from muster.control.tags import changed_meanwhile, find_standing, fits, tag_of
from muster.control.views import (
    complete_reason,
    find_reason,
    find_try,
    hide_others,
    is_over,
    view_job,
    why_not_waiting,
)
from muster.model.access import Principal, Role
from muster.model.again import find_place
from muster.model.errors import RejectedError
from muster.model.event import NODES_MAX, Cancel, HoldJob, MigrateJob, Progressed, ReleaseJob, RequeueJob, ScaleJob
from muster.model.job import Job
from muster.model.phase import Failed, Why
from muster.model.reason import Code, Done, Reason
from muster.model.spec import DEFAULT_TENANT, Spec, find_fault, give_tenant
from muster.ports import Logs
from muster.units import AMOUNT_MAX, INSTANT_MAX
from muster.wire.link import Answer, OfJob
from muster.wire.views import JobAccount, JobView
from muster.world.world import World

LIMIT_DEFAULT: Final = 100
WAIT_MAX_MS: Final = 60_000
LOG_LOOK_FIRST_S: Final = 0.005
LOG_LOOK_S: Final = 0.1
"""How soon, and how often at the end, a log is looked at while somebody waits for more: files do not call."""

_SUBMITS: Final = Role.USER
_UNKNOWN_TENANT: Final = STATUS[Code.UNKNOWN_TENANT]  # here, since members are slow to look up
_spec_decoder: Final = msgspec.json.Decoder(Spec)


class ProgressBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a run is, as it says itself; of an array, which of its tasks."""

    epoch: Annotated[int, msgspec.Meta(ge=1, le=AMOUNT_MAX)]
    step: Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX)]
    checkpointed: bool = False
    checkpointing: bool = False
    task: Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX)] = 0


class RequeueBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What of a job is to wait again: what runs of it; or of an array what `failed`, as a job of its own."""

    failed: bool = False


class ScaleBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many tasks a gang may have at most; with `least`, at least as well."""

    most: Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX)]
    least: Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX)] = 0


class MigrateBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """On which nodes a gang is to go on, or off which; if neither is said, off those that it has."""

    to: Annotated[tuple[str, ...], msgspec.Meta(max_length=NODES_MAX)] = ()
    off: Annotated[tuple[str, ...], msgspec.Meta(max_length=NODES_MAX)] = ()


_requeue_decoder: Final = msgspec.json.Decoder(RequeueBody)
_migrate_decoder: Final = msgspec.json.Decoder(MigrateBody)
_scale_decoder: Final = msgspec.json.Decoder(ScaleBody)
_progress_decoder: Final = msgspec.json.Decoder(ProgressBody)


class Try(NamedTuple):
    """One try of the task in that place: its epoch, and whether nothing more will be written by it."""

    place: int
    epoch: int
    is_over: bool


class Jobs:
    """The routes below /v1/jobs."""

    def __init__(self, follower: Follower, logs: Logs) -> None:
        self._follower = follower
        self._logs = logs
        self.routes = [
            Route("/v1/jobs", self.submit, methods=["POST"]),
            Route("/v1/jobs", self.page, methods=["GET"]),
            Route("/v1/jobs/{job}", self.show, methods=["GET"]),
            Route("/v1/jobs/{job}/why", self.why, methods=["GET"]),
            Route("/v1/jobs/{job}/story", self.story, methods=["GET"]),
            Route("/v1/jobs/{job}/logs", self.logs, methods=["GET"]),
            Route("/v1/jobs/{job}/cancel", self.cancel, methods=["POST"]),
            Route("/v1/jobs/{job}/hold", self.hold, methods=["POST"]),
            Route("/v1/jobs/{job}/release", self.release, methods=["POST"]),
            Route("/v1/jobs/{job}/requeue", self.requeue, methods=["POST"]),
            Route("/v1/jobs/{job}/scale", self.scale, methods=["POST"]),
            Route("/v1/jobs/{job}/migrate", self.migrate, methods=["POST"]),
            Route("/v1/jobs/{job}/progress", self.progress, methods=["POST"]),
        ]

    async def submit(self, request: Request) -> Response:
        """A new job, or the one that the same key made before."""
        spec = await check_submit(request, await read_spec(request))
        key = read_key(request)
        return answer_response(await self._follower.submit(spec, key, cause_of(request)), 201)

    async def page(self, request: Request) -> Response:
        """A page of jobs, the newest first; who asks for a phase means all jobs in it, over or not."""
        asked = read_asked(request)
        world = await read_world(request, self._follower)
        wanted = want(asked, gate_of(request).find_tenants(principal_of(request)))
        # History first: whoever leaves the world meanwhile is in it since long.
        remembered = [] if wanted is None else await self._follower.read_finished(wanted)
        seen = [found for found in remembered if asked.sees is None or asked.sees(found.finished.tenant)]
        page = self._follower.listing.page(asked)
        return read_response(world, fit_jobs(merge(page, seen, asked, world.jobs.__contains__)))

    async def show(self, request: Request) -> Response:
        """One job; `wait_ms` waits for its end."""
        number = read_job(request)
        wait_ms = read_number(request.query_params.get("wait_ms"), "wait_ms", default=0, most=WAIT_MAX_MS)
        world = await read_world(request, self._follower)
        if wait_ms and number in world.jobs:
            await self._follower.until(lambda seen: _is_done(seen, number), wait_ms / 1000)
        standing = find_standing(self._follower.world, number)  # before the view: that may be newer than its tag
        view = await self._view(number)
        return fresh_response(request, world, view, tag_of(standing or view))

    async def why(self, request: Request) -> Response:
        """Why a job waits."""
        number = read_job(request)
        await read_world(request, self._follower)
        world, view = await self._follower.study(
            partial(find_reason, number=number, now=self._follower.now_ms()), complete_reason
        )
        if view is not None:
            view = hide_others(view, sees_of(request))
        return read_response(world, view or why_not_waiting(number, (await self._view(number)).phase))

    async def story(self, request: Request) -> Response:
        """A job's life, in pages: `after` is an entry, and all that an entry tells of the job is on one page."""
        number = read_job(request)
        after = read_number(request.query_params.get("after"), "after", default=0)
        limit = read_limit(request)
        world = await read_world(request, self._follower)
        entries = [entry for entry in await self._follower.read_story(number) if entry.seq <= world.seq]
        if not entries:
            raise unknown_job(number)
        return read_response(world, cut_story(tell(entries, number, world.fleet.shown()), after, limit))

    async def cancel(self, request: Request) -> Response:
        """End a job; that it is asked for is durable, not that it is done."""
        return await self._change(request, Cancel(read_job(request), cause_of(request)), 202)

    async def hold(self, request: Request) -> Response:
        """Keep a job from starting."""
        return await self._change(request, HoldJob(read_job(request), cause_of(request)), 200)

    async def release(self, request: Request) -> Response:
        """Let a held job start again."""
        return await self._change(request, ReleaseJob(read_job(request), cause_of(request)), 200)

    async def progress(self, request: Request) -> Response:
        """A run says how far it is, or a task of an array."""
        body, number = await read_body(request, _progress_decoder, "progress"), read_job(request)
        about = (body.epoch, body.step, body.checkpointed, cause_of(request), body.checkpointing)
        job = self._follower.world.jobs.get(number)
        asked = Progressed(number, *about, _get_place(body.task, job.spec) if job is not None and job.spec.array else 0)
        return answer_response(await self._follower.ask_of_job(asked), 200)

    async def scale(self, request: Request) -> Response:
        """Let a gang have more tasks, or fewer, or an array so many at once; that it is asked for is durable, not that
        it is done."""
        return await self._change(request, await read_scale(request), 202)

    async def migrate(self, request: Request) -> Response:
        """Let a gang go on elsewhere, or tasks of an array; that it is asked for is durable, not that it is done."""
        return await self._change(request, await read_migrate(request), 202)

    async def requeue(self, request: Request) -> Response:
        """Stop a job's run and let it wait again; that it is asked for is durable, not that it is done. Or have the
        tasks of an array that failed run again: as a new one, and as one with the same key."""
        body = await read_body(request, _requeue_decoder, "requeue", if_empty=RequeueBody())
        if body.failed:
            return answer_response(await self._bring_back(request, read_job(request)), 202)
        return await self._change(request, RequeueJob(read_job(request), cause_of(request)), 202)

    async def _bring_back(self, request: Request, number: int) -> Answer:
        follower, key = self._follower, read_key(request)
        world = await read_world(request, follower)
        entries = await follower.read_story(number)
        if not entries:
            raise unknown_job(number)
        await follower.reach(entries[-1].seq)  # whoever runs them again already is known here too
        match = read_match(request)
        if match and not fits(match, find_standing(world, number) or await self._view(number)):
            raise RejectedError(changed_meanwhile(f"job {number}", match))
        found = await find_failures(follower.read_story, number, entries)
        for taker, made_by in found.takers.items():
            if key and key == made_by:
                return Answer(0, world.seq, Done(taker))
        spec = make_again(found, number, follower.now_ms())
        _check_own(gate_of(request), spec, principal_of(request))
        await _check_after(request, spec)
        return await follower.submit(spec, key, cause_of(request))

    async def logs(self, request: Request) -> Response:
        """A piece of what a task wrote; `wait_ms` waits for more of it."""
        number, query = read_job(request), request.query_params
        task = read_task(request)
        epoch = read_number(query.get("epoch"), "epoch", default=0)
        offset = read_number(query.get("offset"), "offset", default=0)
        wait_ms = read_number(query.get("wait_ms"), "wait_ms", default=0, most=WAIT_MAX_MS)
        await read_world(request, self._follower)
        look_s, left_s = LOG_LOOK_FIRST_S, wait_ms / 1000
        while True:
            # Before the file is read: what is over by now has written all that it ever will.
            found = await self.find_try(number, task, epoch)
            piece = await self.read_piece(number, found, offset)
            if piece.data or found.is_over or left_s <= 0:
                break
            await self._follower.until(lambda world: _is_done(world, number), min(look_s, left_s))
            left_s -= look_s
            look_s = min(2 * look_s, LOG_LOOK_S)
        headers = {
            "Muster-Next-Offset": str(piece.next_offset),
            "Muster-Log-Epoch": str(found.epoch),
            "Muster-Log-Over": "1" if found.is_over and piece.is_last else "0",
        }
        return Response(piece.data, headers=headers, media_type="application/octet-stream")

    async def _change(self, request: Request, event: OfJob, status: int) -> Response:
        """Ask for a change of a job, and only if it is as the request says that it was seen."""
        return answer_response(await self._follower.ask_of_job(event, read_match(request)), status)

    async def _view(self, number: int) -> JobView:
        follower = self._follower
        job = follower.world.jobs.get(number)
        if job is None:
            found = await follower.find_finished(number)
            if found is None:
                raise unknown_job(number)
            entries = await follower.read_story(number)
            return add_failures(view_remembered(found, get_beginning(entries, number)[1]), entries)
        account = await self._find_account(job)
        view = replace(view_job(follower.world, job, now=follower.now_ms()), account=account)
        has_failed = view.counts.failed > 0 if view.counts else isinstance(job.phase, Failed) and view.why == Why.EXIT
        return add_failures(view, await follower.read_story(number)) if has_failed else view

    async def _find_account(self, job: Job) -> JobAccount | None:
        found = await self._follower.find_finished(job.id) if is_over(job) else None
        if found is not None:
            return view_remembered(found).account
        user, amounts = await self._follower.find_account(job.id)
        return view_account(amounts, user)

    async def read_piece(self, number: int, found: Try, offset: int) -> Piece:
        """What a try of a task has written from an offset on, as much as fits an answer."""
        return await asyncio.to_thread(read_piece, self._logs.find_log(number, found.place, found.epoch), offset)

    async def find_try(self, number: int, task: int | None, epoch: int) -> Try:
        """The try that is meant: the asked-for one, else the latest of that task, or of the first. One before the
        latest is surely over."""
        job = self._follower.world.jobs.get(number)
        if job is not None:
            place = _get_place(task, job.spec)
            latest, is_last_over = find_try(self._follower.world, job, place)
        else:
            entries = await self._follower.read_story(number)
            if not entries:
                raise unknown_job(number)
            place = _get_place(task, get_beginning(entries, number)[1])
            latest, is_last_over = find_tries(entries, number, place), True
        return Try(place, epoch or latest, is_last_over or 0 < epoch < latest)


async def read_spec(request: Request) -> Spec:
    """The job that a request brings."""
    return await read_body(request, _spec_decoder, "spec")


async def read_scale(request: Request) -> ScaleJob:
    """How many tasks a job may have, as a request says it."""
    body = await read_body(request, _scale_decoder, "scale")
    return ScaleJob(read_job(request), body.most, body.least, cause_of(request))


async def read_migrate(request: Request) -> MigrateJob:
    """Where a job is to go on, as a request says it."""
    body = await read_body(request, _migrate_decoder, "migrate")
    return MigrateJob(read_job(request), body.to, body.off, cause_of(request))


def read_asked(request: Request) -> Asked:
    """Which jobs a listing is to show, the newest first unless it says otherwise. Whoever asks for a phase means all
    jobs in it, over or not."""
    query = request.query_params
    phase = read_choice(query.get("phase"), "phase", PHASES, default="")
    return Asked(
        state=read_choice(query.get("state"), "state", STATES, default="all" if phase else "live"),
        tenant=query.get("tenant", ""),
        phase=phase,
        after=read_number(query.get("after"), "after", default=0),
        limit=read_limit(request, LIMIT_DEFAULT),
        sees=sees_of(request),
        since=read_number(query.get("since"), "since", default=0, most=INSTANT_MAX),
        newest=read_choice(query.get("order"), "order", ORDERS, default=ORDERS[0]) == ORDERS[0],
    )


async def check_submit(request: Request, spec: Spec) -> Spec:
    """The job as it is submitted: of the tenant that is meant if it names none. Raise if it is wrong by itself, or not
    for whoever asks to submit, or says what is not for people to say."""
    if spec.again is not None:
        raise RejectedError(Reason(Code.BAD_SPEC, "again", detail="it is what `muster requeue --failed` makes"))
    gate, who = gate_of(request), principal_of(request)
    # The decoder leaves the default itself where nothing was said; a `default` that somebody wrote is another string.
    is_named = bool(spec.tenant) and spec.tenant is not DEFAULT_TENANT
    if not is_named:
        spec = give_tenant(spec, gate.choose_tenant(who, _SUBMITS))
    _check_own(gate, spec, who if is_named else None)
    if spec.after:
        await _check_after(request, spec)
    return spec


def _check_own(gate: Gate, spec: Spec, who: Principal | None) -> None:
    """Raise if a job is wrong by itself, or of a tenant in which whoever asks may not submit; None if that is known."""
    fault = find_fault(spec)
    if fault is not None:
        raise RejectedError(fault)
    if who is not None:
        gate.check_tenant(who, _SUBMITS, spec.tenant, _UNKNOWN_TENANT)
    if spec.notify:
        gate.check_notified(spec.notify)


async def _check_after(request: Request, spec: Spec) -> None:
    """Raise if a job is to run after one that whoever asks may not see: it is not there."""
    gate, is_seen = gate_of(request), sees_of(request)
    for each in spec.after:
        tenant = await gate.find_tenant(each.job)
        if tenant is not None and not is_seen(tenant):
            raise RejectedError(Reason(Code.UNKNOWN_PREDECESSOR, "after", needed=each.job))


def _is_done(world: World, number: int) -> bool:
    job = world.jobs.get(number)
    return job is None or is_over(job)


def read_task(request: Request) -> int | None:
    """The task that is asked for, if one is named."""
    text = request.query_params.get("task")
    return None if text is None else read_number(text, "task", default=0)


def _get_place(task: int | None, spec: Spec) -> int:
    """The place of the task that is meant; what runs again has the numbers that it had before."""
    place = 0 if task is None else find_place(spec.again, spec.tasks, task)
    if place is None:
        which = "counted from 0" if spec.again is None else f"some of job {spec.again.of}, with the same numbers"
        raise bad_field("task", f"the job has {spec.tasks}, {which}", 404)
    return place
