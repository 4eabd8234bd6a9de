"""What a user asks for: a job's spec, and the one check of it.

A job is one gang of `gang` tasks that start together, or an array of `array` one-task gangs. `ask` is per task. An
elastic gang has at least `gang` tasks and at most `gang_most`.
The check knows the spec alone; whether the fleet or the quota could ever hold it is the kernel's question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod
from operator import attrgetter
from typing import Final

import msgspec

from muster.model.after import After, When, find_after_fault
from muster.model.again import Again, find_again_fault
from muster.model.bounds import find_due_fault, find_estimate_fault, find_text_fault, find_time_fault
from muster.model.group import GROUPS_MAX, Group, Part, parts_of, total_of
from muster.model.node import LEVELS, TORUS_SPOTS_MAX
from muster.model.origin import Origin, find_origin_fault
from muster.model.partition import DEVICE
from muster.model.phase import Lease
from muster.model.reason import Code, Reason
from muster.model.tier import PRIORITY_MAX, STANDARD
from muster.units import AMOUNT_MAX, SECOND_MS, Limit, Resources, show_cpus, show_sides

GANG_MAX: Final = 100_000
ARRAY_MAX: Final = 1_000_000
COMMAND_BYTES_MAX: Final = 128 * 1024
ENV_BYTES_MAX: Final = 64 * 1024
PATH_BYTES_MAX: Final = 4096
RETRIES_MAX: Final = 100  # an array counts failures in one byte per task
KEY_CHARS_MAX: Final = 128
WISHES_MAX: Final = 16
AXES: Final = 3

ROUTES_MAX: Final = 8
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@/-]{0,127}")
_WISH: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@/-]{0,127}(!?=[A-Za-z0-9._@/-]{0,128})?")
_IMAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,255}")
_NOTHING: Final = Resources()
_OWN_CPU: Final = Resources(cpu_milli=1000)
_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")


class Needs(msgspec.Struct, frozen=True, gc=False, cache_hash=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where a job may run and would rather; levels are `node`, `rack`, `block`, `cluster`, `region` and `fleet`.

    `flavors` are tried in their order, or as equals with `any_flavor`; none named is any. The whole gang must fit in
    one domain of the level `within` (one cluster, unless said otherwise); it gets the tightest, from `near` up. No
    domain of the level `spread` gets more than `spread_most` tasks; every `slice_tasks` tasks stay together in one
    domain of the level `slice`. `labels` are wishes such as `zone=a`, `zone!=b` or `zone`. A gang with a `shape` gets a
    box of a torus with these sides, in nodes, turned as it fits, and each of its nodes for one task.

    No task goes to a domain of `apart_level` in which a job named in `apart` has a place; every task goes to a domain
    of `beside_level` in which every job named in `beside` has one. Jobs are named with their tenant: `vision/web`. With
    a `booking`, it runs on the nodes of that one and in its windows, as long as there is such a booking.

    Work that is `like` some other goes where that is fastest, among flavors that are equals otherwise; and then near to
    the `data` that it reads. What is fast and what is near is told by tables (`muster.world.tables`).

    With a `partition` each task has one of that name, of one device that is cut so (`muster.model.partition`).

    A gang of several `groups` has tasks that ask for different things; the spec's own `ask` says nothing then.
    """

    flavors: tuple[str, ...] = ()
    any_flavor: bool = False
    within: str = ""
    near: str = ""
    spread: str = ""
    spread_most: int = 1
    slice: str = ""
    slice_tasks: int = 1
    labels: tuple[str, ...] = ()
    tolerates: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    apart: tuple[str, ...] = ()
    apart_level: str = "node"
    beside: tuple[str, ...] = ()
    beside_level: str = "node"
    like: str = ""
    data: tuple[str, ...] = ()
    booking: str = ""
    groups: tuple[Group, ...] = ()
    partition: str = ""

    @property
    def has_company(self) -> bool:
        """Whether it matters where other jobs are."""
        return bool(self.apart or self.beside)


STOP_SIGNALS: Final = ("", "TERM", "INT", "HUP", "USR1", "USR2")
"""What a job may be told to stop by; the first is as if nothing was said."""
ANYWHERE: Final = Needs()


DEFAULT_TENANT: Final = "default"


class Spec(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A job as its owner describes it; journaled as a map, so that fields may come and go by name.

    One that is submitted `held` waits until it is released, and one that is to run `after` others until each of them
    is as far as it says. One that should be over by the instant `due_at` goes before the tenant's others that need not
    be. What is not `evictable` is never stopped for somebody else's sake, so it starts only inside
    its tenant's guarantee. A gang that is `in_place` can bear that tasks join and leave while it runs; the run of any
    other is begun anew for that. One with `spares` has so many places more, which wait for a rank that loses its own.
    The tasks of a group that is named in `commands` run that instead. A gang will run for `expect_ms` from when it gets
    its place, as far as its owner knows: nobody is stopped by that, unless it `yields` then to whoever is due. Of an
    array `at_most` so many tasks are at it at once; 0 is as many as there is room for; and `limit_ms` is that of each
    task. One with a `stop_signal` is told to stop by that, instead of SIGTERM. An array may be there to run tasks of
    another `again`.
    """

    command: tuple[str, ...]
    name: str = ""
    tenant: str = DEFAULT_TENANT
    gang: int = 1
    array: int = 0
    ask: Resources = _OWN_CPU
    env: dict[str, str] = {}
    workdir: str = ""
    limit_ms: Limit = None
    grace_ms: int = 10 * SECOND_MS
    retries: int = 0
    needs: Needs = ANYWHERE
    evictable: bool = True
    tier: str = STANDARD
    priority: int = 0
    held: bool = False
    after: tuple[After, ...] = ()
    due_at: Limit = None
    origin: Origin | None = None
    image: str = ""
    gang_most: int = 0
    in_place: bool = False
    notify: tuple[str, ...] = ()
    commands: dict[str, tuple[str, ...]] = {}
    spares: int = 0
    at_most: int = 0
    expect_ms: Limit = None
    stop_signal: str = ""
    yields: bool = False
    again: Again | None = None

    @property
    def is_elastic(self) -> bool:
        """Whether it may have more tasks than it needs to start."""
        return self.gang_most > self.gang

    @property
    def likes(self) -> tuple[int, ...]:
        """The arrays that it follows task by task."""
        return tuple(each.job for each in self.after if each.when is When.TASK_BY_TASK)

    @property
    def tasks(self) -> int:
        """How many tasks the job has in all."""
        return self.array or self.gang

    @property
    def total(self) -> int:
        """How many tasks there were when these got their indexes: more than it has, if it runs some of them again."""
        return self.tasks if self.again is None else self.again.total

    @property
    def places(self) -> int:
        """How many places a gang, or a task of an array, needs to start: its spares among them."""
        return self.gang + self.spares

    @property
    def whole(self) -> tuple[Resources, int]:
        """All that it asks for at once: an ask, and how many times."""
        return self.asked_by(self.gang + self.spares)

    def asked_by(self, tasks: int) -> tuple[Resources, int]:
        """The same for so many tasks. Of several groups it is their sum, once: they are never fewer than all."""
        groups = self.needs.groups
        return (total_of(groups), 1) if groups else (self.ask, tasks)

    @property
    def leaves_ms(self) -> Limit:
        """For how long each of its places is held at most, if somebody who is due needs it: as it expects if it yields
        then, and else by its limit."""
        return self.expect_ms if self.yields else self.limit_ms

    def parts(self, leases: Sequence[Lease]) -> Sequence[Part]:
        """Leases of a gang by what a task on them asks for."""
        groups = self.needs.groups
        return parts_of(groups, leases) if groups else ((self.ask, leases),)


_SELDOM: Final = attrgetter(
    *("gang_most", "in_place", "spares", "at_most", "expect_ms", "yields", "stop_signal"),
    *("due_at", "commands", "after", "origin", "again"),
)
_UNSAID: Final = _SELDOM(Spec(()))
"""What most specs leave as it is."""


def give_tenant(spec: Spec, tenant: str) -> Spec:
    """The same job of a tenant, for one that names none: of the jobs that it minds, too, no tenant is named then."""
    needs = spec.needs
    if needs.has_company:
        apart, beside = (
            tuple(f"{tenant}{name}" if name.startswith("/") else name for name in names)
            for names in (needs.apart, needs.beside)
        )
        needs = msgspec.structs.replace(needs, apart=apart, beside=beside)
    elif spec.tenant == tenant:
        return spec
    return msgspec.structs.replace(spec, tenant=tenant, needs=needs)


def is_varied(spec: Spec) -> bool:
    """Whether tier or priority tell it from a plain job."""
    return spec.priority != 0 or spec.tier != STANDARD


def has_devices(spec: Spec) -> bool:
    """Whether any of its tasks asks for a device, or a share of one."""
    groups = spec.needs.groups
    return any(group.ask.gpus for group in groups) if groups else bool(spec.ask.gpus or spec.ask.gpu_milli)


def is_name(text: str) -> bool:
    """Whether `text` may name a tenant, a node or a job."""
    return _NAME.fullmatch(text) is not None


_is_tenant: Final = lru_cache(maxsize=4096)(is_name)
"""Few tenants submit most jobs, so the answer is kept."""


def is_wish(text: str) -> bool:
    """Whether `text` may say something of labels: `zone=a`, `zone!=b` or `zone`."""
    return _WISH.fullmatch(text) is not None


def find_fault(spec: Spec) -> Reason | None:
    """The first thing wrong with a spec by itself, or None."""
    fault = _find_class_fault(spec.gang, spec.array, spec.retries, spec.ask, spec.limit_ms, spec.grace_ms, spec.needs)
    if fault is None and _SELDOM(spec) == _UNSAID and spec.needs is ANYWHERE:
        return _find_tier_fault(spec.tier, spec.priority) or _find_name_fault(spec) or _find_size_fault(spec)
    return fault or _find_special_fault(spec)


def _find_special_fault(spec: Spec) -> Reason | None:
    """The first thing wrong with what a job says for itself alone."""
    return (
        (_find_width_fault(spec) if spec.gang_most or spec.in_place else None)
        or (_find_spare_fault(spec) if spec.spares else None)
        or (_find_throttle_fault(spec) if spec.at_most else None)
        or (None if spec.expect_ms is None else find_estimate_fault(spec.array, spec.expect_ms))
        or (_find_yield_fault(spec) if spec.yields else None)
        or (None if spec.stop_signal in STOP_SIGNALS else _unknown_signal(spec.stop_signal))
        or (_find_tier_fault(spec.tier, spec.priority) if is_varied(spec) else None)
        or (None if spec.due_at is None else find_due_fault(spec.due_at))
        or _find_name_fault(spec)
        or (_find_company_fault(spec) if spec.needs is not ANYWHERE and spec.needs.has_company else None)
        or (_find_command_fault(spec) if spec.commands else None)
        or _find_size_fault(spec)
        or (find_after_fault(spec.after) if spec.after else None)
        or (None if spec.origin is None else find_origin_fault(spec.origin))
        or (None if spec.again is None else find_again_fault(spec.again, spec.array))
    )


@lru_cache(maxsize=4096)
def _find_class_fault(
    gang: int, array: int, retries: int, ask: Resources, limit_ms: Limit, grace_ms: int, needs: Needs
) -> Reason | None:
    """What is wrong with all jobs alike that ask for this. Few kinds of asks are made often, so the answer is kept."""
    return (
        _find_count_fault(gang, array, retries)
        or (_find_group_fault(gang, array, ask, needs) if needs.groups else None)
        or _find_amount_fault(ask, gang, AMOUNT_MAX // (array or gang))
        or (_find_partition_fault(gang, ask, needs) if needs.partition else None)
        or find_time_fault(limit_ms, grace_ms)
        or _find_need_fault(gang, array, needs)
    )


def _find_count_fault(gang: int, array: int, retries: int) -> Reason | None:
    for field, value, least, most in (
        ("gang", gang, 1, GANG_MAX),
        ("array", array, 0, ARRAY_MAX),
        ("retries", retries, 0, RETRIES_MAX),
    ):
        if not least <= value <= most:
            return Reason(Code.BAD_AMOUNT, field, needed=value, available=most, detail=f"between {least} and {most}")
    if array and gang != 1:
        return Reason(Code.BAD_SPEC, "gang", detail="an array's tasks are gangs of one; leave `gang` out")
    return None


def _find_amount_fault(ask: Resources, gang: int, most: int) -> Reason | None:
    """What is wrong with an ask of which `most` is the most of anything."""
    if ask.gpu_milli and gang > 1:
        return Reason(Code.BAD_SPEC, "ask.gpu_milli", detail="the tasks of a gang take whole devices")
    if not 0 <= ask.gpu_milli <= (0 if ask.gpus else 999):
        detail = "from 1 to 999 thousandths of one device, and no whole ones beside it"
        return Reason(Code.BAD_AMOUNT, "ask.gpu_milli", needed=ask.gpu_milli, available=999, detail=detail)
    for field in Resources.__struct_fields__:
        amount = getattr(ask, field)
        if not 0 <= amount <= most:
            return Reason(
                Code.BAD_AMOUNT, f"ask.{field}", needed=amount, available=most, detail="from 0 to 2^62 in all"
            )
    return Reason(Code.ASKS_NOTHING, "ask") if ask == _NOTHING else None


def _find_partition_fault(gang: int, ask: Resources, needs: Needs) -> Reason | None:
    """What is wrong with an ask for a partition; whether there is such a one is not known here."""
    subject = "needs.partition"
    if not _NAME.fullmatch(needs.partition):
        return Reason(Code.BAD_NAME, subject, needed=len(needs.partition), available=128, detail=needs.partition[:40])
    if ask.gpu_milli or ask.gpus != 1:
        detail = f"a task has a partition of one device, not of {ask.gpus or show_cpus(ask.gpu_milli)}"
        return Reason(Code.BAD_PARTITION, subject, ask.gpus, 1, detail)
    if gang > 1 or needs.groups or needs.shape:
        return Reason(Code.BAD_PARTITION, subject, gang, 1, "the tasks of a gang take whole devices")
    return None


def resolve(spec: Spec, milli: int) -> Spec:
    """A spec that asks for a partition of one device, as it is counted: that much of it, or all."""
    share = (0, milli) if milli < DEVICE else (1, 0)
    return msgspec.structs.replace(spec, ask=msgspec.structs.replace(spec.ask, gpus=share[0], gpu_milli=share[1]))


def as_asked(spec: Spec) -> Spec:
    """The inverse of `resolve`: a spec as its owner wrote it."""
    return resolve(spec, DEVICE) if spec.needs.partition else spec


def bring_back(spec: Spec, job: int, tasks: Iterable[int]) -> Spec:
    """An array that runs tasks of that job again, by ranges of their indexes: at once, for whatever it waited for came
    about."""
    again = Again(job, tuple(tasks), spec.total)
    return msgspec.structs.replace(as_asked(spec), array=sum(again.tasks[1::2]), again=again, after=(), held=False)


def _find_group_fault(gang: int, array: int, ask: Resources, needs: Needs) -> Reason | None:
    """What is wrong with groups, alone and together."""
    if array:
        return Reason(Code.BAD_GROUP, "array", detail="the tasks of an array ask for the same; groups are for a gang")
    names = [group.name for group in needs.groups]
    for group in needs.groups:
        if not _NAME.fullmatch(group.name) or names.count(group.name) > 1:
            detail = f"{group.name[:40]!r} is no name, or that of two"
            return Reason(Code.BAD_GROUP, "needs.groups", len(names), GROUPS_MAX, detail)
        if not 1 <= group.tasks <= GANG_MAX:
            detail = f"{group.name} has between 1 and {GANG_MAX} tasks"
            return Reason(Code.BAD_GROUP, "needs.groups", group.tasks, GANG_MAX, detail)
        fault = _find_amount_fault(group.ask, 2, AMOUNT_MAX // (GANG_MAX * GROUPS_MAX))
        if fault is not None:
            return msgspec.structs.replace(fault, subject=f"needs.groups.{group.name}")
    if len(names) > GROUPS_MAX:
        return Reason(Code.BAD_GROUP, "needs.groups", len(names), GROUPS_MAX, f"at most {GROUPS_MAX} groups")
    tasks = sum(group.tasks for group in needs.groups)
    if tasks != gang:
        return Reason(Code.BAD_GROUP, "gang", gang, tasks, f"the groups have {tasks} tasks together, the gang {gang}")
    if ask != _OWN_CPU:
        return Reason(Code.BAD_GROUP, "ask", detail="each group says what its tasks ask for; leave `ask` out")
    if needs.spread or needs.slice or needs.shape:
        detail = "groups are placed in the tightest domain; spread, slice and shape are for gangs of one kind"
        return Reason(Code.BAD_GROUP, "needs", detail=detail)
    return None


def _find_command_fault(spec: Spec) -> Reason | None:
    """Commands are of groups that are there, and each is as a command has to be."""
    names = [group.name for group in spec.needs.groups]
    for name, command in spec.commands.items():
        if name not in names:
            detail = f"{name[:40]!r} is none of its groups: {', '.join(names) or 'it has none'}"
            return Reason(Code.BAD_GROUP, "commands", detail=detail)
        if not command or not command[0]:
            return Reason(Code.BAD_SPEC, "commands", detail=f"the command of {name} is empty")
        fault = find_text_fault("commands", " ".join(command), COMMAND_BYTES_MAX)
        if fault is not None:
            return fault
    return None


def _find_width_fault(spec: Spec) -> Reason | None:
    """What is wrong with how many tasks a gang may have, or with their joining and leaving."""
    if spec.array:
        return Reason(Code.NO_WIDTH, "gang", detail="an array is no gang")
    if spec.needs.groups:
        return Reason(
            Code.BAD_GROUP, "gang", detail="a gang of several groups has the tasks that they have; it is not elastic"
        )
    if not spec.gang_most:
        return None
    if spec.needs.partition:
        return Reason(
            Code.BAD_PARTITION, "needs.partition", spec.gang_most, 1, "the tasks of a gang take whole devices"
        )
    if not spec.gang <= spec.gang_most <= GANG_MAX:
        return Reason(Code.BAD_WIDTH, "gang", spec.gang, spec.gang_most, f"from 1 to {GANG_MAX}, the least first")
    if spec.needs.shape or spec.needs.slice or spec.needs.spread or spec.needs.groups:
        return Reason(Code.NO_WIDTH, "gang", detail="a gang with a shape, slices, spread or groups has one width")
    if not spec.evictable and spec.gang_most > spec.gang:
        return Reason(Code.BAD_SPEC, "evictable", detail="what an elastic gang has beyond its least may be taken")
    return _find_amount_fault(spec.ask, spec.gang_most, AMOUNT_MAX // spec.gang_most)


def _find_spare_fault(spec: Spec) -> Reason | None:
    """What is wrong with spares: how many, and of what they would be."""
    if not 0 <= spec.spares <= GANG_MAX:
        detail = f"between 0 and {GANG_MAX}"
        return Reason(Code.BAD_AMOUNT, "spares", needed=spec.spares, available=GANG_MAX, detail=detail)
    needs = spec.needs
    others = {
        "an array has none: a task that loses its place waits for another": spec.array > 0,
        "one task alone has none; they are for gangs": spec.gang == 1 and not spec.gang_most,
        "a gang of several groups has none: its places are not alike": bool(needs.groups),
        "a gang with a shape, slices or spread has none: where each task is matters": bool(
            needs.shape or needs.slice or needs.spread
        ),
        "a job in a booking has none: book more nodes": bool(needs.booking),
        "a job that minds who is beside it has none": needs.has_company,
    }
    why = next((words for words, is_so in others.items() if is_so), "")
    if why:
        return Reason(Code.NO_SPARES, "spares", needed=spec.spares, detail=why)
    return _find_amount_fault(spec.ask, spec.places, AMOUNT_MAX // spec.places)


def _find_throttle_fault(spec: Spec) -> Reason | None:
    """What is wrong with how many tasks of an array may be at it at once."""
    if not 0 <= spec.at_most <= ARRAY_MAX:
        detail = f"between 1 and {ARRAY_MAX}, or 0 for no bound"
        return Reason(Code.BAD_AMOUNT, "at_most", needed=spec.at_most, available=ARRAY_MAX, detail=detail)
    if not spec.array:
        return Reason(Code.BAD_SPEC, "at_most", detail="only the tasks of an array are counted; a gang has a width")
    return None


def _find_yield_fault(spec: Spec) -> Reason | None:
    """What is wrong with giving way at an expected end."""
    if spec.expect_ms is None or (spec.limit_ms is not None and spec.expect_ms >= spec.limit_ms):
        detail = "it gives way when it is expected to end: say `expect`, less than its limit"
        return Reason(Code.BAD_SPEC, "yields", detail=detail)
    if not spec.evictable:
        return Reason(Code.BAD_SPEC, "yields", detail="what is never evicted gives way to nobody")
    return None


def _unknown_signal(name: str) -> Reason:
    known = ", ".join(filter(None, STOP_SIGNALS))
    return Reason(Code.BAD_SPEC, "stop_signal", detail=f"{name[:40]!r} is none of {known}")


@lru_cache(maxsize=4096)
def _find_tier_fault(tier: str, priority: int) -> Reason | None:
    """What is wrong with where a job wants to stand; whether there is such a tier is not known here."""
    if not _NAME.fullmatch(tier):
        return Reason(Code.BAD_NAME, "tier", needed=len(tier), available=128, detail=tier[:40])
    if not -PRIORITY_MAX <= priority <= PRIORITY_MAX:
        detail = f"between {-PRIORITY_MAX} and {PRIORITY_MAX}"
        return Reason(Code.BAD_AMOUNT, "priority", needed=priority, available=PRIORITY_MAX, detail=detail)
    return None


def _find_name_fault(spec: Spec) -> Reason | None:
    if spec.name and not _NAME.fullmatch(spec.name):
        return Reason(Code.BAD_NAME, "name", needed=len(spec.name), available=128, detail=spec.name[:40])
    if spec.image and not _IMAGE.fullmatch(spec.image):
        return Reason(Code.BAD_NAME, "image", needed=len(spec.image), available=256, detail=spec.image[:40])
    if spec.notify and len(spec.notify) > ROUTES_MAX:
        return Reason(Code.TOO_LARGE, "notify", needed=len(spec.notify), available=ROUTES_MAX)
    for route in spec.notify:
        if not _NAME.fullmatch(route):
            return Reason(Code.BAD_NAME, "notify", needed=len(route), available=128, detail=route[:40])
    if not _is_tenant(spec.tenant):
        return Reason(Code.BAD_NAME, "tenant", needed=len(spec.tenant), available=128, detail=spec.tenant[:40])
    for name in spec.env:
        if not _ENV_NAME.fullmatch(name):
            return Reason(Code.BAD_NAME, "env", needed=len(name), available=255, detail=name[:40])
    return None


def _find_need_fault(gang: int, array: int, needs: Needs) -> Reason | None:
    """The first thing wrong with where a job wants to run."""
    for field in ("within", "near", "spread", "slice", "apart_level", "beside_level"):
        name = getattr(needs, field)
        if name and name not in LEVELS:
            return Reason(Code.BAD_SPEC, f"needs.{field}", detail=f"{name[:40]!r} is not one of {', '.join(LEVELS)}")
    if needs.like and not _NAME.fullmatch(needs.like):
        return Reason(Code.BAD_NAME, "needs.like", needed=len(needs.like), available=128, detail=needs.like[:40])
    for field in ("flavors", "tolerates", "labels", "apart", "beside", "data"):
        names = getattr(needs, field)
        if len(names) > WISHES_MAX:
            return Reason(Code.TOO_LARGE, f"needs.{field}", needed=len(names), available=WISHES_MAX)
        for name in names:
            if not (_WISH if field == "labels" else _NAME).fullmatch(name):
                return Reason(Code.BAD_NAME, f"needs.{field}", needed=len(name), available=128, detail=name[:40])
    if needs.booking and not _NAME.fullmatch(needs.booking):
        return Reason(
            Code.BAD_NAME, "needs.booking", needed=len(needs.booking), available=128, detail=needs.booking[:40]
        )
    return _find_level_fault(gang, array, needs) or (_find_box_fault(gang, needs) if needs.shape else None)


def _find_box_fault(gang: int, needs: Needs) -> Reason | None:
    """A box has as many spots as the gang has tasks, and lies where it lies: levels have no say in it."""
    shown = show_sides(needs.shape)
    if len(needs.shape) != AXES or min(needs.shape) < 1 or prod(needs.shape) > TORUS_SPOTS_MAX:
        detail = f"{shown[:40]} is no box such as 4x4x2"
        return Reason(Code.BAD_AMOUNT, "needs.shape", prod(needs.shape), TORUS_SPOTS_MAX, detail)
    if prod(needs.shape) != gang:
        return Reason(Code.BAD_SPEC, "gang", detail=f"{gang} tasks do not fill a box of {shown}, one on each node")
    if needs.within or needs.near or needs.spread or needs.slice:
        return Reason(Code.BAD_SPEC, "needs.shape", detail="a box of a torus has no levels; leave them out")
    return None


def _find_level_fault(gang: int, array: int, needs: Needs) -> Reason | None:
    """Levels that contradict each other, or the size of the gang."""
    within = LEVELS[needs.within or "cluster"]
    if needs.near and LEVELS[needs.near] > within:
        return Reason(Code.BAD_SPEC, "needs.near", detail=f"{needs.near} is wider than {within.name.lower()}")
    if needs.spread and not 1 <= needs.spread_most <= GANG_MAX:
        return Reason(Code.BAD_AMOUNT, "needs.spread_most", needs.spread_most, GANG_MAX, f"between 1 and {GANG_MAX}")
    if needs.spread and LEVELS[needs.spread] >= within and needs.spread_most < gang:
        detail = f"spread over {needs.spread}s, but all within one {within.name.lower()}"
        return Reason(Code.BAD_SPEC, "needs.spread", detail=detail)
    if needs.slice and (needs.slice_tasks < 1 or gang % needs.slice_tasks):
        detail = f"a gang of {gang} cannot be cut into slices of {needs.slice_tasks}"
        return Reason(Code.BAD_SPEC, "needs.slice_tasks", detail=detail)
    if array and (needs.within or needs.near or needs.spread or needs.slice or needs.shape):
        return Reason(
            Code.BAD_SPEC,
            "needs",
            detail="the tasks of an array are placed one by one; levels and shapes are for gangs",
        )
    return None


def _find_company_fault(spec: Spec) -> Reason | None:
    """A job minds jobs of its own tenant, and not itself: an array is placed in parts, and the first has nobody."""
    own = f"{spec.tenant}/{spec.name}"
    for field, names in (("apart", spec.needs.apart), ("beside", spec.needs.beside)):
        for name in names:
            if not name.startswith(f"{spec.tenant}/"):
                detail = f"{name[:40]!r} is not a job of the same tenant, such as {spec.tenant}/web"
                return Reason(Code.BAD_SPEC, f"needs.{field}", detail=detail)
        if own in names and (spec.array or field == "beside"):
            detail = f"{own[:40]!r} is its own name; use `spread` or `within` for the tasks of one job"
            return Reason(Code.BAD_SPEC, f"needs.{field}", detail=detail)
    return None


def _find_size_fault(spec: Spec) -> Reason | None:
    if not spec.command or not spec.command[0]:
        return Reason(Code.BAD_SPEC, "command", detail="a job needs a command to run")
    return (
        find_text_fault("command", " ".join(spec.command), COMMAND_BYTES_MAX)
        or (spec.env and find_text_fault("env", " ".join((*spec.env, *spec.env.values())), ENV_BYTES_MAX))
        or (spec.workdir and find_text_fault("workdir", spec.workdir, PATH_BYTES_MAX))
        or None
    )
