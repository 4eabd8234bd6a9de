"""Client: the HTTP API as Python calls. Every answer is one of the views of `muster.wire.views`.

A client reads its own writes: it remembers the newest entry that an answer rested on and asks for at least that. Each
submit carries a key, so that trying again, also after a crash of the server, never makes a second job.

    from muster.sdk import Client

    with Client() as client:
        job = client.submit(Spec(("python", "train.py"), ask=Resources(gpus=8))).job
        print(client.wait(job).phase)

One client serves one thread.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Unpack

import msgspec

from muster.model.again import indexes_of
from muster.model.errors import RejectedError
from muster.model.partition import show_partition
from muster.model.reason import Code, Reason
from muster.sdk.paths import add_query, job_path, quote
from muster.sdk.spelling import (
    BarWords,
    Wishes,
    ask_bar,
    ask_migrate,
    ask_reserve,
    ask_scale,
    bar_path,
    spell_job,
    spell_tenant,
    spell_tier,
)
from muster.sdk.transport import Request
from muster.sdk.trying import Trying
from muster.wire.access_views import (
    AuditPage,
    AuditVerdict,
    FreshTokenView,
    GrantView,
    Me,
    TokenPage,
    TokenView,
    UserPage,
    UserView,
)
from muster.wire.forecast_views import ForecastView
from muster.wire.views import (
    AdviceView,
    AvailView,
    BookingView,
    BulkAnswer,
    DeliveryView,
    FlavorView,
    GoodputView,
    Health,
    JobPage,
    JobView,
    NodeView,
    OverlayView,
    ProfileView,
    RouteView,
    Story,
    Submitted,
    TenantView,
    TierView,
    UsageView,
    WhyView,
)

if TYPE_CHECKING:  # the caller brings these along; a listing needs none of them
    from muster.model.job import BarKind
    from muster.model.node import Flavor
    from muster.model.overlay import Overlay
    from muster.model.spec import Spec
    from muster.model.tenant import Tenant
    from muster.sdk.bulk import Outcome
    from muster.sdk.jobfile import JobFile

LONG_PATIENCE_S: Final = 300.0
"""Whoever follows a job for hours wants to sit through a restart of the server."""
HEALTH_WITHIN_S: Final = 5.0
"""Whoever asks how a server is wants to know soon that it does not answer."""
WAIT_MS: Final = 30_000
LOG_WAIT_MS: Final = 10_000
WATCH_LEAST_MS: Final = 50


class LogPart(msgspec.Struct, frozen=True):
    """A piece of a task's output: where the next one begins, and whether there will be one."""

    data: bytes
    next_offset: int
    is_over: bool


class Client(Trying):
    """A client of one server; where that is, and how long it waits for it, `Asking` says."""

    # Writes.

    def submit(self, job: Spec | JobFile, key: str = "") -> Submitted:
        """Hand in a job. The same key never makes two jobs; without one, this call makes its own."""
        return self._ask(Submitted, Request("POST", "/v1/jobs", _keyed(key), spell_job(job)))

    def submit_many(self, jobs: Sequence[Spec | JobFile], keys: Sequence[str] = ()) -> tuple[Outcome, ...]:
        """Hand in many jobs, in few requests. What became of each, in their order: one that is refused is told with its
        error, and harms no other. `keys` has one for each job; without them, this call makes its own."""
        from muster.sdk.bulk import spell, submit_many

        made = map(_check_key, keys or [""] * len(jobs))
        spelled = [spell(spell_job(job), key) for job, key in zip(jobs, made, strict=True)]
        return submit_many(partial(self._ask, BulkAnswer), self._transport.patience_s, spelled)

    def map(self, command: list[str] | str, items: Iterable[Any], key: str = "", **fields: Any) -> int:
        """Run a command once for each item, as an array; its number. A task calls `muster.item()` for its own, and
        `outputs` gives what each printed. `fields` are those of `muster.Job`."""
        from muster.sdk.mapping import make_map

        return self.submit(make_map(command, items, fields), key).job

    def outputs(self, job: int) -> Iterator[bytes]:
        """What each task of a job printed, in their order; waits for its end first."""
        view = self.wait(job)
        for task in indexes_of(view.spec.again if view.spec else None, view.tasks):
            yield b"".join(self.logs(job, task))

    def watch(self, job: int, every_s: float = 0.5) -> Iterator[JobView]:
        """A job whenever it has changed, until it is over."""
        seen: JobView | None = None
        while seen is None or not seen.is_over:
            view = self.show(job, wait_ms=min(max(int(every_s * 1000), WATCH_LEAST_MS), WAIT_MS))
            if view != seen:
                yield view
            seen = view

    def cancel(self, job: int) -> Submitted:
        """Ask for a job's end."""
        return self._ask(Submitted, Request("POST", job_path(job, "/cancel")))

    def hold(self, job: int) -> None:
        """Keep a job from starting, until it is released."""
        self._send(Request("POST", job_path(job, "/hold")))

    def release(self, job: int) -> None:
        """Let a held job start again."""
        self._send(Request("POST", job_path(job, "/release")))

    def requeue(self, job: int) -> None:
        """Stop a job's run and let the job wait again."""
        self._send(Request("POST", job_path(job, "/requeue")))

    def requeue_failed(self, job: int, key: str = "") -> Submitted:
        """Have the tasks of an array that failed run again, as a new one: each knows itself by the number it had. The
        same key never makes two of them; without one, this call makes its own."""
        path = job_path(job, "/requeue")
        return self._ask(Submitted, Request("POST", path, _keyed(key), msgspec.json.encode({"failed": True})))

    def scale(self, job: int, most: int, least: int = 0) -> None:
        """Let a gang have at most so many tasks; with `least`, give it these bounds."""
        self._send(ask_scale(job, most, least))

    def migrate(self, job: int, to: Sequence[str] = (), off: Sequence[str] = ()) -> None:
        """Let a gang go on elsewhere: on the nodes of `to`, or off those of `off`; by itself, off those that it has. Of
        an array, the tasks that have to."""
        self._send(ask_migrate(job, to, off))

    def set_tenant(self, name: str, tenant: Tenant) -> None:
        """Say where a tenant stands in the tree and what it may hold at once: all of it, as it shall be."""
        self._send(Request("PUT", f"/v1/tenants/{quote(name)}", body=spell_tenant(tenant)))

    def drop_tenant(self, name: str) -> None:
        """Take a tenant out of the tree."""
        self._send(Request("DELETE", f"/v1/tenants/{quote(name)}"))

    def set_flavor(self, name: str, flavor: Flavor) -> None:
        """Say what a flavor is: all of it, as it shall be."""
        body = msgspec.structs.asdict(flavor) | {"partitions": [show_partition(each) for each in flavor.partitions]}
        self._send(Request("PUT", f"/v1/flavors/{quote(name)}", body=msgspec.json.encode(body)))

    def set_overlay(self, name: str, overlay: Overlay) -> None:
        """Say what a power feed or an uplink is: all of it, as it shall be."""
        body = msgspec.structs.asdict(overlay)
        self._send(Request("PUT", f"/v1/overlays/{quote(name)}", body=msgspec.json.encode(body)))

    def drop_overlay(self, name: str) -> None:
        """Remove an overlay."""
        self._send(Request("DELETE", f"/v1/overlays/{quote(name)}"))

    def set_tier(self, tier: TierView) -> None:
        """Name a tier, or change what it is: all of it, as it shall be."""
        self._send(Request("PUT", f"/v1/tiers/{quote(tier.name)}", body=spell_tier(tier)))

    def set_profile(self, name: str, weights: Mapping[str, int], of_version: int | None = None) -> None:
        """Store a profile; a term that is not named has its usual weight. With `of_version`, only if that is the
        version it has now (0: it is new)."""
        body = {"weights": dict(weights), "of_version": of_version}
        self._send(Request("PUT", f"/v1/profiles/{quote(name)}", body=msgspec.json.encode(body)))

    def use_profile(self, name: str) -> None:
        """Have the fleet scored by a profile."""
        self._send(Request("POST", f"/v1/profiles/{quote(name)}/use"))

    def bar(self, node: str, kind: BarKind, **words: Unpack[BarWords]) -> None:
        """Keep new work off a node: until the instant `until_ms`, or until `unbar`."""
        self._send(ask_bar(node, kind, **words))

    def unbar(self, node: str, kind: BarKind) -> None:
        """Lift your bar of that kind, if there is one."""
        self._send(Request("DELETE", bar_path(node, kind)))

    def reserve(
        self, name: str, tenant: str, nodes: int, windows: Iterable[tuple[int, int]], **wishes: Unpack[Wishes]
    ) -> None:
        """Book whole nodes from one instant up to another, once or several times: see `muster.sdk.windows`."""
        self._send(ask_reserve(name, tenant, nodes, windows, **wishes))

    def cancel_booking(self, name: str) -> None:
        """Give a booking up."""
        self._send(Request("DELETE", f"/v1/bookings/{quote(name)}"))

    def settle(self) -> None:
        """Wait until reads show what this client wrote, also to another client that asks next."""
        self.list(limit=1)

    # Users, tokens and the audit log.

    def me(self) -> Me:
        """As whom this client speaks."""
        return self._get(Me, "/v1/me")

    def users(self) -> tuple[UserView, ...]:
        """Every user whom one may see."""
        page = self._get(UserPage, "/v1/users")
        rows = page.users
        while page.next_after is not None:
            page = self._get(UserPage, "/v1/users", {"after": page.next_after})
            rows += page.users
        return tuple(rows)

    def set_user(
        self, name: str, roles: Sequence[GrantView], *, is_service: bool = False, is_disabled: bool = False
    ) -> None:
        """Add a user, or say what it is from now on."""
        body = {"roles": roles, "is_service": is_service, "is_disabled": is_disabled}
        self._send(Request("PUT", f"/v1/users/{quote(name)}", body=msgspec.json.encode(body)))

    def drop_user(self, name: str) -> None:
        """Let a user go, with all its tokens."""
        self._send(Request("DELETE", f"/v1/users/{quote(name)}"))

    def tokens(self) -> tuple[TokenView, ...]:
        """Every token that one may see, without its secret."""
        page = self._get(TokenPage, "/v1/tokens")
        rows = page.tokens
        while page.next_after is not None:
            page = self._get(TokenPage, "/v1/tokens", {"after": page.next_after})
            rows += page.tokens
        return tuple(rows)

    def make_token(
        self, user: str, life_ms: int, *, most: str = "admin", tenant: str = "", note: str = ""
    ) -> FreshTokenView:
        """A new token; its text is in this answer and nowhere else."""
        body = {"user": user, "life_ms": life_ms, "most": most, "tenant": tenant, "note": note}
        return self._ask(FreshTokenView, Request("POST", "/v1/tokens", body=msgspec.json.encode(body)))

    def drop_token(self, number: str) -> None:
        """Have a token valid no more."""
        self._send(Request("DELETE", f"/v1/tokens/{quote(number)}"))

    def routes(self) -> tuple[RouteView, ...]:
        """The routes for notices."""
        return self._list(tuple[RouteView, ...], "/v1/notify")

    def try_route(self, name: str) -> DeliveryView:
        """Have a trial notice sent by one of them now."""
        return self._ask(DeliveryView, Request("POST", f"/v1/trials/notify/{quote(name)}"))

    def audit(self, after: int = 0, limit: int = 100) -> AuditPage:
        """Lines of the audit log, oldest first."""
        return self._get(AuditPage, "/v1/audit", {"after": str(after), "limit": str(limit)})

    def verify_audit(self) -> AuditVerdict:
        """Whether no line of the audit log was changed."""
        return self._get(AuditVerdict, "/v1/audit/verify")

    # Reads.

    def health(self) -> Health:
        """Whether the server is fit to answer."""
        return self._ask(Health, Request("GET", "/v1/health"))

    def list(
        self,
        *,
        state: str = "live",
        tenant: str = "",
        phase: str = "",
        after: int = 0,
        limit: int = 100,
        since_ms: int = 0,
        at_ms: int | None = None,
        order: str = "newest",
    ) -> JobPage:
        """One page of jobs, the newest first unless the `order` is oldest; `state` is live, over or all; of those that
        are over, only since an instant; or as they were at one. `after` goes on where a page ended (`next_after`)."""
        asked = {"state": state, "tenant": tenant, "phase": phase, "after": after or "", "limit": limit}
        asked["order"] = "" if order == "newest" else order
        asked["since"] = since_ms or ""
        return self._get(
            JobPage, _when(at_ms, "/v1/jobs"), {name: str(value) for name, value in asked.items() if value != ""}
        )

    def show(self, job: int, *, wait_ms: int = 0, at_ms: int | None = None) -> JobView:
        """A job as it is, or as it is after at most `wait_ms` if it is not over before, or as it was at an instant."""
        return self._get(JobView, _when(at_ms, job_path(job)), {"wait_ms": str(wait_ms)} if wait_ms else {})

    def wait(self, job: int, timeout_s: float | None = None) -> JobView:
        """The job once it is over, however long that takes; TimeoutError if it takes longer than `timeout_s`."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left_ms = WAIT_MS if until is None else max(0, int((until - time.monotonic()) * 1000))
            view = self.show(job, wait_ms=min(WAIT_MS, left_ms))
            if view.is_over:
                return view
            if not left_ms:
                raise TimeoutError(f"job {job} is not over after {timeout_s} s: it is {view.phase}")

    def why(self, job: int, *, at_ms: int | None = None) -> WhyView:
        """Why a job waits, or waited at an instant."""
        return self._get(WhyView, _when(at_ms, job_path(job, "/why")))

    def forecast(self, job: int) -> ForecastView:
        """When a job that waits will likely start."""
        return self._get(ForecastView, job_path(job, "/forecast"))

    def avail(self, tenant: str = "") -> AvailView:
        """What a tenant could start now; without a name, the one that a submit would be of."""
        return self._get(AvailView, "/v1/avail", {"tenant": tenant} if tenant else {})

    def story(self, job: int) -> Story:
        """A job's life, also long after its end."""
        story = self._get(Story, job_path(job, "/story"))
        while story.next_after is not None:
            more = self._get(Story, job_path(job, "/story"), {"after": str(story.next_after)})
            story = Story(job, [*story.lines, *more.lines], more.next_after)
        return story

    def nodes(self, *, at_ms: int | None = None, **wanted: str) -> tuple[NodeView, ...]:
        """Every node and what is free there; `flavor`, `region`, `cluster`, `block`, `rack` and `phase` narrow it."""
        return self._list(
            tuple[NodeView, ...], _when(at_ms, "/v1/nodes"), {field: text for field, text in wanted.items() if text}
        )

    def flavors(self, *, at_ms: int | None = None) -> tuple[FlavorView, ...]:
        """Every flavor and what there is of it."""
        return self._list(tuple[FlavorView, ...], _when(at_ms, "/v1/flavors"))

    def overlays(self, *, at_ms: int | None = None) -> tuple[OverlayView, ...]:
        """Every power feed and uplink, and what is left of it."""
        return self._list(tuple[OverlayView, ...], _when(at_ms, "/v1/overlays"))

    def node(self, name: str) -> NodeView:
        """One node, by its address or as much of the end of it as is enough."""
        return self._get(NodeView, f"/v1/nodes/{quote(name)}")

    def tenants(self, *, at_ms: int | None = None) -> tuple[TenantView, ...]:
        """Every tenant, its lines and its use, each before those below it."""
        return self._list(tuple[TenantView, ...], _when(at_ms, "/v1/tenants"))

    def goodput(self, tenant: str = "", *, at_ms: int | None = None) -> GoodputView:
        """What the time of every GPU was spent on: of the fleet, or of what one tenant held."""
        return self._get(GoodputView, add_query(_when(at_ms, "/v1/goodput"), {"tenant": tenant} if tenant else {}))

    def usage(self, *, by: Sequence[str] = ("tenant",), since_ms: int, until_ms: int, tenant: str = "") -> UsageView:
        """Who used how much of what in the hours between two instants, summed by tenant, user, flavor or hour."""
        asked = {"by": ",".join(by), "since": str(since_ms), "until": str(until_ms)}
        asked |= {"tenant": tenant} if tenant else {}
        view = page = self._get(UsageView, "/v1/usage", asked)
        while page.next_after is not None:
            page = self._get(UsageView, "/v1/usage", {**asked, "after": str(page.next_after)})
            view = msgspec.structs.replace(view, rows=view.rows + page.rows, next_after=None)
        return view

    def progress(
        self, job: int, step: int, *, epoch: int, checkpointed: bool = False, checkpointing: bool = False, task: int = 0
    ) -> None:
        """Say how far a run is, or a task of an array, and whether what it did is safe in a checkpoint, or it begins to
        write one."""
        about = {"epoch": epoch, "step": step, "task": task}
        body = about | {"checkpointed": checkpointed, "checkpointing": checkpointing}
        self._send(Request("POST", job_path(job, "/progress"), body=msgspec.json.encode(body)))

    def tiers(self, *, at_ms: int | None = None) -> tuple[TierView, ...]:
        """Every tier, whoever goes first on top."""
        return self._list(tuple[TierView, ...], _when(at_ms, "/v1/tiers"))

    def advice(self) -> tuple[AdviceView, ...]:
        """Every kind of advice that is in force."""
        return self._list(tuple[AdviceView, ...], "/v1/advice")

    def advise(self, kind: str, columns: Mapping[str, Sequence[int]], expires_at_ms: int) -> None:
        """Say what was learned or measured of a kind, in place of all that was said of it before."""
        body = {"columns": dict(columns), "expires_at_ms": expires_at_ms}
        self._send(Request("PUT", f"/v1/advice/{quote(kind)}", body=msgspec.json.encode(body)))

    def bookings(self, *, at_ms: int | None = None) -> tuple[BookingView, ...]:
        """Every booking, whatever opens first on top."""
        return self._list(tuple[BookingView, ...], _when(at_ms, "/v1/bookings"))

    def profiles(self) -> tuple[ProfileView, ...]:
        """Every profile that is stored, and which one is in use."""
        return self._list(tuple[ProfileView, ...], "/v1/profiles")

    def read_log(
        self, job: int, task: int | None = None, *, epoch: int = 0, offset: int = 0, wait_ms: int = 0
    ) -> LogPart:
        """A piece of the output of one try of a task, or of the first; `epoch` 0 is the latest try."""
        asked = {"epoch": epoch, "offset": offset, "wait_ms": wait_ms}
        query = {name: str(value) for name, value in asked.items() if value}
        query |= {} if task is None else {"task": str(task)}
        reply = self._send(Request("GET", add_query(job_path(job, "/logs"), query), wait_s=wait_ms / 1000))
        at = reply.number("Muster-Next-Offset")
        is_over = reply.headers.get("muster-log-over") == "1"
        return LogPart(reply.body, offset + len(reply.body) if at is None else at, is_over)

    def logs(self, job: int, task: int | None = None, *, epoch: int = 0, follow: bool = False) -> Iterator[bytes]:
        """The output of one try of a task, or of the first, piece by piece; `follow` goes on until there will be no
        more."""
        offset = 0
        while True:
            part = self.read_log(job, task, epoch=epoch, offset=offset, wait_ms=LOG_WAIT_MS if follow else 0)
            if part.data:
                yield part.data
            if part.is_over or not (part.data or follow):
                return
            offset = part.next_offset


def _keyed(key: str) -> dict[str, str]:
    """The headers of what is asked for under a key, or under one of its own."""
    return {"Idempotency-Key": _check_key(key)}


def _check_key(key: str) -> str:
    """The same key, if it can travel; or one of its own for what has none."""
    if not (key.isascii() and key.isprintable()):
        raise RejectedError(Reason(Code.BAD_NAME, "key", needed=len(key), available=128, detail=key[:40]))
    return key or os.urandom(16).hex()


def _when(at_ms: int | None, path: str) -> str:
    """Where something is read: as it is, or as it was."""
    return path if at_ms is None else path.replace("/v1/", f"/v1/past/{at_ms}/", 1)
