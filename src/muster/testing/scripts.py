"""Scripts: lists of plain integers that become events, for tests that want any order of anything.

A script is played against a rig. Its numbers are read modulo what there is, so every list means something: reports may
be doubled, late, of the wrong epoch or about nobody. The same script is always the same story.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from muster.model import event
from muster.model.advice import DISTANCE, PACKING, THROUGHPUT, Advice
from muster.model.after import After, When
from muster.model.booking import Booking, Window
from muster.model.budget import GPU_HOURS, MONEY, Budget
from muster.model.job import BarKind
from muster.model.node import PLAIN, Flavor, Place, Spot, Traits, address_of
from muster.model.overlay import NETWORK, POWER, Overlay
from muster.model.profile import Profile
from muster.model.spec import ANYWHERE, Needs
from muster.model.tenant import CPU, GPU, Line, Tenant, gpu_amount
from muster.model.tier import Tier
from muster.testing.rig import Rig, spec
from muster.units import DAY_MS, MINUTE_MS, Resources

Step: TypeAlias = tuple[int, int, int]

TENANTS: Final = ("a", "b", "c")
TIER_NAMES: Final = ("standard", "critical", "opportunistic", "standard", "odd")
_NEEDS: Final = (
    ANYWHERE,
    Needs(within="rack"),
    Needs(spread="node"),
    Needs(within="fleet", labels=("zone!=z0",)),
    Needs(near="rack", within="region", flavors=("gpu",)),
    Needs(shape=(1, 2, 1)),
    Needs(like="train", data=("corpus", "images")),
)
_WHENS: Final = (When.SUCCEEDED, When.STARTED, When.OVER, When.NOT_SUCCEEDED)
_COMPANY: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"apart": "x"},
    {"beside": "x", "beside_level": "rack"},
    {"apart": "y", "apart_level": "cluster"},
    {"apart": "x", "beside": "y", "beside_level": "cluster"},
)
NODES: Final = ("node-0", "node-1", "node-2", "node-3", "node-4")
_GAPS_MS: Final = (0, 1, 1000, 60_000, 20 * MINUTE_MS)


def play(rig: Rig, steps: Sequence[Step]) -> None:
    """Feed every step as a batch of its own."""
    for step in steps:
        rig.feed(*events_of(rig, step), after_ms=gap_of(step))


def gap_of(step: Step) -> int:
    """How long after the step before."""
    return _GAPS_MS[(step[1] // 7 + step[2]) % len(_GAPS_MS)]


def events_of(rig: Rig, step: Step) -> list[event.Event]:
    """The events that a step means to the rig as it is now."""
    kind, x, y = step
    return _KINDS[kind % len(_KINDS)](rig, x, y)


def _submit(rig: Rig, x: int, y: int) -> list[event.Event]:
    share = 100 * (y % 10) if x % 9 == 0 else 0
    ask = Resources(x % 9, 1000 * (y % 9), 2**30 * (x % 5), share)
    shape: dict[str, Any] = {"array": y % 13} if x % 3 == 0 else {"gang": 1 if share else 1 + y % 5}
    shape["needs"] = _NEEDS[(x // 3 + y) % len(_NEEDS)] if shape.get("gang", 1) > 1 else ANYWHERE
    if shape["needs"].shape:
        shape["gang"] = 2
    limit = 30_000 if x % 3 and y % 4 == 0 else None
    shape |= {"tier": TIER_NAMES[y // 3 % 5], "priority": (0, 0, 7, -7)[x // 5 % 4]}
    if x % 4 == 1:
        shape["after"] = (After(_job(rig, y), _WHENS[y % 4]), *((After(_job(rig, y + 3)),) if y % 3 == 0 else ()))
    arrays = [job.id for job in rig.world.jobs.values() if job.spec.array]
    if x % 6 == 3 and arrays:
        other = rig.world.jobs[arrays[y % len(arrays)]]
        shape |= {"array": other.spec.array, "after": (After(other.id, When.TASK_BY_TASK),)}
    if y % 5 == 1:
        shape["due_at"] = rig.now + (0, 1, 60_000, 60_000, 90_000)[x % 5]
    tenant = TENANTS[x // 2 % 3]
    shape |= {"name": ("x", "y", "")[y % 3], "needs": _with_company(shape["needs"], tenant, x + y)}
    asked = spec(ask=ask, tenant=tenant, retries=y % 3, limit_ms=limit, evictable=y % 11 != 5, **shape)
    return [event.Submit(asked, key=f"k{y % 7}" if x % 5 == 0 else "")]


def _with_company(needs: Needs, tenant: str, dice: int) -> Needs:
    """Some jobs mind each other, now and then also themselves."""
    if dice % 5 or needs.shape:
        return needs
    words = _COMPANY[dice // 5 % len(_COMPANY)]
    fields = {field: text if field.endswith("level") else (f"{tenant}/{text}",) for field, text in words.items()}
    return msgspec.structs.replace(needs, **fields)


def _hold(rig: Rig, x: int, y: int) -> list[event.Event]:
    """Hold, release, requeue or move a job."""
    if y % 8 == 7:
        return [event.MigrateJob(_job(rig, x))]
    kind = (event.HoldJob, event.ReleaseJob, event.ReleaseJob, event.RequeueJob)[y % 4]
    return [kind(_job(rig, x))]


def _cancel(rig: Rig, x: int, y: int) -> list[event.Event]:  # noqa: ARG001 - one signature for the table
    return [event.Cancel(_job(rig, x))]


def _quota(rig: Rig, x: int, y: int) -> list[event.Event]:  # noqa: ARG001 - one signature for the table
    """A tree that is often refused: loops, strangers and promises too large are in it."""
    name = (*TENANTS, "org", "org")[x % 5]
    if y % 17 == 0:
        return [event.DropTenant(name)]
    parent = ("", "", "org", *TENANTS)[y // 5 % 6]
    amount, least = gpu_amount(y % 40), gpu_amount(y % 9)
    lines = [
        Line(GPU, "", least if x % 2 else 0, None if y % 4 == 0 else amount, gpu_amount(x % 3) if x % 7 < 3 else None),
        Line("hopper", "eu", gpu_amount(x % 5), None if y % 3 else amount),
        Line(CPU, "", 1000 * (x % 3), None if y % 5 else 1000 * (y % 70)),
    ]
    budgets = [
        Budget(
            (GPU_HOURS, MONEY)[x % 2], 40_000 * (y % 6), soft=x % 5 == 0, period_ms=(0, 60_000, 25 * MINUTE_MS)[x % 3]
        ),
        Budget(GPU_HOURS, 100_000 * (x % 5), soft=x % 5 != 0, period_ms=7 * MINUTE_MS, since_ms=x),
    ]
    tenant = Tenant(parent, 1 + x % 3, tuple(lines[: 1 + y % 3]), tuple(budgets[: max(0, y % 5 - 2)]))
    return [event.SetTenant(name, tenant)]


def _flavor(rig: Rig, x: int, y: int) -> list[event.Event]:  # noqa: ARG001 - one signature for the table
    flavor = Flavor("hopper" if y % 3 else GPU, units=1000 if y % 2 else 450, price_micros=1000 * (x % 7))
    return [event.SetFlavor("h100" if x % 3 else GPU, flavor)]


def _overlay(rig: Rig, x: int, y: int) -> list[event.Event]:  # noqa: ARG001 - one signature for the table
    """Some have no members, some are of no resource, and some are not there to be removed."""
    name = f"feed-{x % 2}"
    if y % 4 == 0:
        return [event.DropOverlay(name)]
    members = tuple(address_of(NODES[at % len(NODES)], _place(at)) for at in range(x, x + y % 4))
    labels = (f"zone=z{y % 2}",) if y % 3 == 0 else ()
    resource = POWER if y % 7 else ("", NETWORK)[x % 2]
    watts = Flavor(GPU, units=1000 if y % 2 else 450, watts=100 * (x % 4), core_watts=y % 3)
    return [event.SetFlavor(GPU, watts), event.SetOverlay(name, Overlay(resource, 900 * (x % 8) - 1, members, labels))]


def _tier(rig: Rig, x: int, y: int) -> list[event.Event]:  # noqa: ARG001 - one signature for the table
    return [event.SetTier(TIER_NAMES[x % 5], Tier(100 * (y % 4), (0, 1, MINUTE_MS, DAY_MS)[x // 5 % 4], y % 3))]


def _profile(rig: Rig, x: int, y: int) -> list[event.Event]:  # noqa: ARG001 - one signature for the table
    """Some weights are out of range, some versions are not the newest, and some names are nobody's."""
    name = ("default", "dense", "loose")[x % 3]
    if y % 3 == 0:
        return [event.UseProfile(name)]
    profile = Profile(packing=1000 * (y % 5) - (y % 13 == 7), sparing=1500 * (x % 4), filling=700 * (y % 2))
    return [event.SetProfile(name, profile, (None, None, 0, 1)[x % 4])]


def _advise(rig: Rig, x: int, y: int) -> list[event.Event]:
    """Some is over already, some is older than what is known, and some is of no kind at all."""
    kind = (PACKING, THROUGHPUT, DISTANCE, "")[x % 4 if y % 7 else 3]
    known = rig.world.advice.get(kind)
    version = (1 if known is None else known.version + 1) - (y % 5 == 0)
    names = {THROUGHPUT: ("train:gpu", "train:h100"), DISTANCE: ("corpus:eu/c0", "images:eu/c1")}.get(kind, ("a", "b"))
    columns = {name: tuple(range(x % 5, 5)) for name in names[: y % 3]}
    return [event.Advise(kind, Advice(version, rig.now + 20_000 * (y % 6), columns))]


def _node_seen(rig: Rig, x: int, y: int) -> list[event.Event]:
    """Two clusters with nodes of the same names; some have fewer devices than last time, some claim each other's."""
    name, place = NODES[x % len(NODES)], msgspec.structs.replace(_place(x), rack=f"r{y % 3}")
    capacity = Resources((8, 8, 8, 7, 4)[y % 5], 32_000 if y % 7 else 12_000, 2**36)
    held = tuple(_held(rig, x + index, y + index) for index in range(y % 3))
    flavor = "h100" if (x + y) % 4 == 0 else ""
    spot = Spot("torus", (2, 3, 1), (x % 2, x % 3, 0))
    traits = Traits(flavor, place, (("zone", f"z{x % 2}"),), spot=spot) if x % len(NODES) else PLAIN
    first = 8 * (x % 10) - (y % 11 == 0)
    devices = tuple(f"d{first + at}" for at in range(8) if at != y % 8 or capacity.gpus == 8)[: capacity.gpus]
    return [event.NodeSeen(name, capacity, held, traits=traits, devices=devices if x % 3 else ())]


def _place(x: int) -> Place:
    return Place("eu", f"c{x % 2}") if x % len(NODES) else Place()


def _node_lost(rig: Rig, x: int, y: int) -> list[event.Event]:  # noqa: ARG001 - one signature for the table
    name = address_of(NODES[x % len(NODES)], _place(x))
    return [event.NodeSilent(name)] if y % 2 else [event.NodeGone(name)]


def _bars(rig: Rig, x: int, y: int) -> list[event.Event]:
    """Some say which node they mean, some only its name, which may be that of two."""
    name = NODES[x % len(NODES)] if y % 4 else address_of(NODES[x % len(NODES)], _place(x))
    kind, owner = BarKind.DRAIN if y % 3 else BarKind.CORDON, TENANTS[x % 2]
    if y % 5 < 2:
        return [event.UnbarNode(name, kind, owner)]
    until = rig.now + 30_000 * (y % 4) if y % 2 else None
    return [event.BarNode(name, kind, owner, f"reason {y % 2}", until, lets_finish=y % 3 != 1)]


def _started(rig: Rig, x: int, y: int) -> list[event.Event]:
    held = _held(rig, x, y)
    return [event.Started(held.job, held.epoch, held.first, held.count, more=_more(rig, held.job, x, y))]


def _exited(rig: Rig, x: int, y: int) -> list[event.Event]:
    held = _held(rig, x, y)
    used = (y % 5 * 1000, x % 3 << 20)
    where, more = (held.first, held.count), _more(rig, held.job, x, y)
    exited = event.Exited(held.job, held.epoch, (0, 0, 1, 143)[y % 4], *where, "", "", *used, more)
    return [exited, exited] if x % 6 == 0 else [exited]


def _more(rig: Rig, number: int, x: int, y: int) -> list[int]:
    """Now and then other ranges of the same tasks: in any order, some twice, some outside, or half of one."""
    job = rig.world.jobs.get(number)
    if job is None or y % 3:
        return []
    more = [word for step in range(1 + x % 5) for word in ((x + y * step) % job.spec.tasks, 1 + step % 2)]
    return more[: len(more) - (x % 23 == 0)]


def _progressed(rig: Rig, x: int, y: int) -> list[event.Event]:
    held = _held(rig, x, 13 if y % 5 else y)
    where, more = (held.first, 1 + x % 3), _more(rig, held.job, x, y)
    return [event.Progressed(held.job, held.epoch, y % 9, y % 2 == 0, "", y % 4 == 1, *where, more)]


def _whole_job(rig: Rig, x: int, y: int) -> list[event.Event]:
    """All tasks of a job come up and, mostly, end."""
    number = _job(rig, x)
    job = rig.world.jobs.get(number)
    if job is None:
        return []
    epoch = job.epoch or 1
    up = event.Started(number, epoch, 0, job.spec.tasks)
    over = event.Exited(number, epoch, y % 3 % 2, 0, job.spec.tasks)
    return [up, over] if y % 4 else [over, up]


def _held(rig: Rig, x: int, y: int) -> event.Held:
    number = _job(rig, x)
    job = rig.world.jobs.get(number)
    tasks = job.spec.tasks if job is not None else 4
    epoch = (job.epoch if job is not None and not job.spec.array else 1) + (-1 if y % 7 == 0 else y % 11 == 0)
    first = y % tasks
    return event.Held(number, epoch, first, 1 + x % (tasks - first) if y % 13 else tasks)


def _booking(rig: Rig, x: int, y: int) -> list[event.Event]:
    """Book nodes for soon, give a booking up, or hand in a job for one."""
    name, tenant = f"b{x % 3}", TENANTS[y % 3]
    if y % 5 == 0:
        return [event.CancelBooking(name)]
    if y % 5 < 3:
        asked = spec(x % 9, gang=1 + y % 2, tenant=tenant, needs=Needs(booking=name), evictable=x % 2 == 0)
        return [event.Submit(asked)]
    opens_at = rig.now + (1, 60_000, 20 * MINUTE_MS, 3 * DAY_MS)[x % 4]
    windows = tuple(Window(at, at + 30 * MINUTE_MS) for at in (opens_at, opens_at + DAY_MS)[: 1 + x % 2])
    booking = Booking(name, tenant, 1 + x % 3, windows, y % 9, shared=y % 2 == 0)
    return [event.Reserve(booking, 0 if x % 2 else DAY_MS * (y % 3))]


def _job(rig: Rig, x: int) -> int:
    """One of the newest jobs, or now and then one that is not there."""
    return max(0, rig.world.next_job - 1 - x % 8) if x % 17 else x


_KINDS: Final[tuple[Callable[[Rig, int, int], list[event.Event]], ...]] = (
    _submit,
    _submit,
    _submit,
    _whole_job,
    _started,
    _progressed,
    _exited,
    _exited,
    _cancel,
    _hold,
    _node_seen,
    _node_lost,
    _quota,
    _bars,
    _flavor,
    _tier,
    _overlay,
    _profile,
    _advise,
    _booking,
)
KINDS: Final = len(_KINDS)
"""How many kinds of steps there are."""
