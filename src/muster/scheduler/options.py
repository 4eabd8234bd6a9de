"""options: what would start now. Which one change to a job that waits, and which asks of a tenant, and how many.

The promise is "if it were submitted now", in the world as it is after a cycle: whoever waits then cannot start, so
nobody goes first. (A cycle that ended at its limit of starts leaves some who can: they go first in the next.)
The search asks the arithmetic of the cycle, room and quota both; what it finds is offered only after it was placed.

It is placed on a draft of a fork, never on the world that was given. A draft places what waits in its world, so the
changed job has to be accepted first, and no inverse takes that back. The fork has places and no jobs, so that it costs
the same however many wait: milliseconds, once per question and only if there is something to prove. A question costs up
to 90 searches of the fleet: whoever has something else to do puts it in a thread. Here are amounts and names and no
words: how a change is said, or typed, is the surface's.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from muster.model.fact import Accepted
from muster.model.job import Job
from muster.model.node import LEVELS
from muster.model.reason import Code
from muster.model.record import Record
from muster.model.spec import ANYWHERE, GANG_MAX, Spec
from muster.scheduler.placing.fit import count_room, find_gang, widest_room
from muster.scheduler.placing.rations import Rations
from muster.scheduler.placing.within import NOWHERE, places_of, pools_for
from muster.units import Resources
from muster.world.apply import apply
from muster.world.draft import Draft
from muster.world.fleet import Fleet
from muster.world.sites import Site
from muster.world.world import World

CPU_STEP_MILLI: Final = 100
MEMORY_STEP_BYTES: Final = 2**20
RELAXATIONS: Final = (("gang", 1), ("gpus", 1), ("cpu_milli", CPU_STEP_MILLI), ("memory_bytes", MEMORY_STEP_BYTES))
"""What may be lowered, one at a time and in this order, and by which step: never to zero, which is another job."""
LOOSER: Final = ("within", "spread", "flavors")
"""Which needs may be loosened, one at a time and in this order."""
DEFAULT_WITHIN: Final = "cluster"
STEPS_MAX: Final = 2**17
"""The finest grid that is searched; where an amount has more steps, they are doubled. So each field takes at most 18
tries, and a job at most 72: each is one search of the fleet."""
FLAVORS_MAX: Final = 8
"""How many other flavors are tried, the cheapest first."""
GPU_COUNTS: Final = (0, 1, 2, 4, 8)
"""The GPUs per task that `available` asks for; 0 is one core and no GPU."""

replace = msgspec.structs.replace


Value: TypeAlias = int | str
"""An amount; or, of a need, the name of a level or a flavor. An empty name is none."""


class Option(Record, frozen=True):
    """The least change of one field of a spec with which the job would start now; of an array, its first task. With
    another tier, so many may have to stop first: see `muster.scheduler.promotion`."""

    field: str
    asked: Value
    to: Value
    stops: int = 0


class Opening(Record, frozen=True):
    """An ask, how many one-task jobs with it would start now, the largest gang that would, and what sets the bound;
    and what the next one would cost in an hour, in millionths, where it would go."""

    ask: Resources
    tasks: int
    gang: int
    bound: Code
    price_micros: int = 0


def find_options(world: World, job: Job) -> list[Option]:
    """For each field the least change that starts a waiting job now; nothing if no single change does."""
    return find_changes(world, job.spec) if world.queue.find_line(job) is not None else []


def find_changes(world: World, spec: Spec) -> list[Option]:
    """The same for whoever waits with this spec. It asks for no job, so a world without jobs will do."""
    if can_start(world, spec):
        return []
    found = _find_fewer_spares(world, spec) if spec.spares else []
    for field, step in RELAXATIONS:
        most = _find_most(world, spec, field, step)
        if most and not (spec.spares and field == "gang" and most == 1):  # one task alone has no spares
            found.append(Option(field, amount_of(spec, field), most))
    for field in LOOSER:
        to = next((to for to in looser(world, spec, field) if can_start(world, relax(spec, field, to))), None)
        if to is not None:
            found.append(Option(field, asked_of(spec, field), to))
    return _keep_proven(world, spec, found) if found else []


def available(world: World, tenant: str) -> list[Opening]:
    """What a tenant could start now, by GPUs per task, as far as the fleet has nodes with so many."""
    asks = [_share(world.fleet, gpus) for gpus in GPU_COUNTS]
    return [_measure(world, tenant, ask) for ask in asks if ask is not None]


def can_start(world: World, spec: Spec) -> bool:
    """Whether there is room and quota now for a gang, or for one task of an array."""
    pools = pools_for(world, spec)
    return pools != NOWHERE and widest_room(world.fleet, spec.ask, spec.places, spec.needs, pools) >= spec.places


def amount_of(spec: Spec, field: str) -> int:
    """The amount that a relaxation would lower."""
    return spec.gang if field == "gang" else int(getattr(spec.ask, field))


def asked_of(spec: Spec, field: str) -> str:
    """What a need says that could be looser."""
    if field == "flavors":
        return ", ".join(spec.needs.flavors)
    return str(getattr(spec.needs, field)) or DEFAULT_WITHIN


def looser(world: World, spec: Spec, field: str) -> list[str]:
    """What a need could say instead, the least change first: a wider domain to stay within, a narrower one to be spread
    over, another flavor, the cheapest first."""
    needs, levels = spec.needs, list(LEVELS)
    if field == "within":
        return levels[LEVELS[needs.within or DEFAULT_WITHIN] + 1 :] if spec.gang > 1 and not needs.shape else []
    if field == "spread":
        return [*reversed(levels[: LEVELS[needs.spread]]), ""] if needs.spread else []
    prices = {pool.flavor: world.fleet.prices.get(pool.flavor, 0) for pool in world.fleet.pools}
    others = [(price, name) for name, price in prices.items() if name not in needs.flavors]
    return [name for _, name in sorted(others)][:FLAVORS_MAX] if needs.flavors else []


def relax(spec: Spec, field: str, to: Value) -> Spec:
    """The spec with one amount or need changed."""
    if field in ("gang", "spares"):
        return replace(spec, **{field: to})
    if field in LOOSER:
        return replace(spec, needs=replace(spec.needs, **{field: (to,) if field == "flavors" else to}))
    return replace(spec, ask=replace(spec.ask, **{field: to}))


def _find_most(world: World, spec: Spec, field: str, step: int) -> int:
    """The most of a field, below what was asked, that starts now; 0 if nothing does. Whoever asks for less fits too."""
    if spec.needs.groups or (field == "gang" and (spec.needs.slice or spec.needs.shape)):
        return 0
    asked = amount_of(spec, field)
    while asked // step >= STEPS_MAX:
        step *= 2
    low, high = 1, (asked - 1) // step
    if high < low or not can_start(world, relax(spec, field, step)):
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        if can_start(world, relax(spec, field, middle * step)):
            low = middle
        else:
            high = middle - 1
    return low * step


def _find_fewer_spares(world: World, spec: Spec) -> list[Option]:
    """As many spares as there is room for beside all tasks, if there is for these."""
    pools = pools_for(world, replace(spec, spares=0))
    room = 0 if pools == NOWHERE else widest_room(world.fleet, spec.ask, spec.places, spec.needs, pools)
    fewer = range(min(room - spec.gang, spec.spares - 1), -1, -1)
    to = next((to for to in fewer if can_start(world, relax(spec, "spares", to))), None)
    return [] if to is None else [Option("spares", spec.spares, to)]


def _keep_proven(world: World, spec: Spec, found: list[Option]) -> list[Option]:
    twin = world.fork_places()
    return [option for option in found if _is_placed(twin, relax(spec, option.field, option.to))]


def _is_placed(twin: World, spec: Spec) -> bool:
    """Whether a draft takes the job; of an array, one task. Afterwards it waits in the twin and holds nothing."""
    number = twin.next_job
    apply(twin, Accepted(number, replace(spec, array=min(spec.array, 1))), twin.now)
    leases = find_gang(twin.fleet, spec.ask, spec.places, spec.needs, pools_for(twin, spec))
    if leases is None:
        return False
    with Draft(twin, twin.now) as draft:
        if spec.array:
            draft.place_tasks(twin.jobs[number], 0, leases)
        else:
            draft.place(twin.jobs[number], leases)
    return True


def _share(fleet: Fleet, gpus: int) -> Resources | None:
    """The ask with so many GPUs: with them goes their share of the node kind that is most common among those that have
    so many, whatever its nodes' phase; of equally common ones the largest. With no GPU it is one core, and that core's
    share of the memory. CPU is rounded down to a tenth of a core, memory to a MiB."""
    cpu_least = 0 if gpus else 1000
    kinds = [(n, kind) for kind, n in fleet.kinds().items() if kind.gpus >= gpus and kind.cpu_milli >= cpu_least]
    if not kinds:
        return None
    kind = max(kinds, key=lambda item: (item[0], item[1].gpus, item[1].cpu_milli, item[1].memory_bytes))[1]
    part, whole = (gpus, kind.gpus) if gpus else (1000, kind.cpu_milli)
    cpu, memory = kind.cpu_milli * part // whole, kind.memory_bytes * part // whole
    return Resources(gpus, cpu - cpu % CPU_STEP_MILLI, memory - memory % MEMORY_STEP_BYTES)


def _measure(world: World, tenant: str, ask: Resources) -> Opening:
    """As many tasks as there is room for on all nodes, and as many together as one cluster has."""
    room, tasks = count_room(world.fleet, ask), _count_tasks(world, tenant, ask)
    gang = _find_most(world, Spec(("any",), tenant=tenant, gang=min(tasks, GANG_MAX) + 1, ask=ask), "gang", 1)
    bound = Code.OVER_QUOTA if tasks < room else Code.NO_ROOM
    return Opening(ask, tasks, gang, bound, _find_price(world, tenant, ask) if tasks else 0)


def _find_price(world: World, tenant: str, ask: Resources) -> int:
    """What one task would cost in an hour, on the node where it would go now."""
    leases = find_gang(world.fleet, ask, 1, ANYWHERE, pools_for(world, Spec(("any",), tenant=tenant, ask=ask)))
    return world.flavor_of(leases[0].slot).price_micros * ask.gpus if leases else 0


def _count_tasks(world: World, tenant: str, ask: Resources) -> int:
    """How many tasks would start, site by site; what is counted on one is charged, and taken from what overlays have
    left, before the next is looked at."""
    total, ledger, rations = 0, world.ledger, Rations(world.fleet)
    counted: list[tuple[Site, int]] = []
    for site, pools in places_of(world, world.fleet, ask, ANYWHERE):
        room = count_room(world.fleet, ask, ANYWHERE, pools, rations=rations.copy())
        tasks = world.quotas.headroom(tenant, site, ask, room, evictable=True)
        count_room(world.fleet, ask, ANYWHERE, pools, tasks, rations)
        ledger.charge(tenant, site, ask, tasks)
        counted.append((site, tasks))
        total += tasks
    for site, tasks in counted:
        ledger.refund(tenant, site, ask, tasks)
    return total
