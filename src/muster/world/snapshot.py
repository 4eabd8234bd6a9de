"""Snapshots: the world's content, by name and with a version; never its indexes, its memory layout or its history.

What can be derived is left out and derived again: free columns, the ledger and the rate of use by holding every lease
anew, the queue, the timers and the ends from the jobs' phases. Use is what was used up to `now`. So a restore is also a
proof that they follow from the content. The digest is the hash of these bytes. Where they are kept they are packed:
jobs are much alike, so that leaves a tenth.
"""

from __future__ import annotations

import hashlib
import zlib
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from muster.model.advice import Advice
from muster.model.booking import Booking
from muster.model.claim import Claim
from muster.model.errors import InvariantError, StoreError
from muster.model.goodput import Mark
from muster.model.job import Bar, Job, Meter, NodePhase, Resize
from muster.model.node import PLAIN, Flavor, Lack, Said, Traits
from muster.model.overlay import Overlay
from muster.model.phase import ACTIVE, TERMINAL, Queued, Stopping, TaskPhase
from muster.model.profile import DEFAULT_NAME, PROFILES, Edition
from muster.model.ranges import as_ranges
from muster.model.reason import Code, Reason
from muster.model.spec import is_varied
from muster.model.tenant import Tenant
from muster.model.tier import TIERS, Tier, moves_of
from muster.units import Resources
from muster.wire.upcast import lift_quota
from muster.world.booking import settle_bookings
from muster.world.budgets import SCALE, AccountKey
from muster.world.claiming import put_claim
from muster.world.goodput import BOOKED, SPARE, Carry, trimmed
from muster.world.losses import Days
from muster.world.marks import MarkRow
from muster.world.others import wait_for_others
from muster.world.overlays import put_overlay
from muster.world.promises import count_promised
from muster.world.seating import occupy_all
from muster.world.spending import recount_spending
from muster.world.tables import heed
from muster.world.tasks import HOLDING, Tasks, spans_of
from muster.world.usage import Uses
from muster.world.world import World

FORMAT: Final = 2
JOBS_AT_ONCE: Final = 500
"""How many jobs are encoded in one breath: all who share the interpreter wait for as long."""
PACKED_AT_ONCE: Final = 1 << 16
_PACKED: Final = b"\x78"
"""How packed bytes begin; those of a snapshot begin otherwise."""


class NodeColumns(msgspec.Struct, frozen=True, omit_defaults=True):
    """Nodes by slot; integers are little-endian int64. `bars`, `traits`, `devices`, `lacks`, `losses` and what they
    `said` are of the nodes that have any."""

    names: list[str]
    phase: bytes
    gpus: bytes
    cpu_milli: bytes
    memory_bytes: bytes
    bars: list[tuple[int, tuple[Bar, ...]]] = []
    traits: list[tuple[int, Traits]] = []
    disk_bytes: bytes = b""
    network_mbps: bytes = b""
    devices: list[tuple[int, tuple[str, ...]]] = []
    lacks: list[tuple[int, Lack]] = []
    losses: list[tuple[int, Days]] = []
    said: list[tuple[int, Said]] = []


class TaskColumns(msgspec.Struct, frozen=True, omit_defaults=True):
    """An array's tasks by index; why they are to stop is left out if none is, but for a drain. Of those that said how
    far they are, their marks; at which steps they could resume is left out if none can. When those were `moved` that
    were."""

    phase: bytes
    failures: bytes
    epoch: bytes
    slot: bytes
    devices: bytes
    since: bytes = b""
    ticket: bytes = b""
    why: bytes = b""
    marks: list[MarkRow] = []
    resumes: bytes = b""
    moved: list[tuple[int, tuple[int, ...]]] = []


class Spending(msgspec.Struct, frozen=True, array_like=True):
    """What has been spent of a budget at the snapshot's time, in its amount and in parts of one of it."""

    tenant: str
    unit: str
    soft: bool
    since: int
    whole: int
    part: int


class UseColumns(msgspec.Struct, frozen=True):
    """A tenant's use of one family: buckets, and as many amounts, as text since they may be larger than any word."""

    tenant: str
    family: str
    buckets: list[int]
    amounts: list[str]


class GoodputColumns(msgspec.Struct, frozen=True, omit_defaults=True):
    """The goodput account, from an instant on: by flavor, and by tenant and flavor, as text since amounts may be larger
    than any word; and how far runs said they were."""

    since: int
    spent: dict[str, list[str]]
    booked: list[tuple[str, str, list[str]]]
    marks: list[tuple[int, Mark]] = []
    carries: list[tuple[int, Carry]] = []
    saves: list[tuple[int, int]] = []


class Snapshot(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of a world."""

    format: int
    seq: int
    now: int
    next_job: int
    accepted: int
    retired: int
    tenants: dict[str, Tenant]
    nodes: NodeColumns
    jobs: list[Job]
    arrays: list[tuple[int, TaskColumns]]
    ranks: list[tuple[int, bytes]]
    flavors: dict[str, Flavor] = {}
    mentioned: list[str] = []
    spending: list[Spending] = []
    prices: list[tuple[int, dict[str, int]]] = []
    tiers: dict[str, Tier] = {}
    uses: list[UseColumns] = []
    goodput: GoodputColumns | None = None
    profiles: dict[str, Edition] = {}
    profile_used: str | None = None
    claims: list[tuple[int, Claim]] = []
    advice: dict[str, Advice] = {}
    meters: list[tuple[int, Meter]] = []
    bookings: dict[str, Booking] = {}
    resizes: list[tuple[int, Resize]] = []
    tickets: int = 0
    overlays: dict[str, Overlay] = {}


class _Head(msgspec.Struct, frozen=True):
    """What is read first: a newer format may have any other shape."""

    format: int


_encoder: Final = msgspec.msgpack.Encoder(order="sorted")
_head_decoder: Final = msgspec.msgpack.Decoder(_Head)
_decoder: Final = msgspec.msgpack.Decoder(Snapshot)


def snapshot(world: World, breathe: Callable[[], None] = lambda: None) -> bytes:
    """The world's content as bytes: equal worlds give equal bytes. Whoever has time may `breathe` now and then."""
    fleet = world.fleet
    return _encoder.encode(
        Snapshot(
            format=FORMAT,
            seq=world.seq,
            now=world.now,
            next_job=world.next_job,
            accepted=world.accepted,
            retired=world.retired,
            tenants=world.tenants,
            nodes=NodeColumns(
                fleet.names,
                fleet.phase.tobytes(),
                _column(fleet.capacities, "gpus"),
                _column(fleet.capacities, "cpu_milli"),
                _column(fleet.capacities, "memory_bytes"),
                sorted(fleet.bars.items()),
                [(slot, traits) for slot, traits in enumerate(fleet.traits) if traits != PLAIN],
                _sparse_column(fleet.capacities, "disk_bytes"),
                _sparse_column(fleet.capacities, "network_mbps"),
                sorted(fleet.device_ids.items()),
                sorted(fleet.lacks.items()),
                fleet.losses.kept(world.now),
                sorted(fleet.said.items()),
            ),
            jobs=_encode_jobs(world.jobs, breathe),
            arrays=[(number, _task_columns(world.arrays[number])) for number in sorted(world.arrays)],
            ranks=[(number, bytes(world.ranks[number])) for number in sorted(world.ranks)],
            flavors=world.flavors,
            mentioned=sorted(fleet.mentioned),
            spending=_spending(world),
            prices=sorted(world.budgets.prices.items()),
            tiers={name: tier for name, tier in world.tiers.items() if TIERS.get(name) != tier},
            profiles={name: each for name, each in world.profiles.items() if PROFILES.get(name) != each},
            profile_used=None if world.profile_used == DEFAULT_NAME else world.profile_used,
            uses=[_use_columns(*book) for book in world.usage.books(world.now)],
            claims=sorted(world.claims.items()),
            advice=world.advice,
            meters=sorted(world.meters.items()),
            bookings=world.bookings,
            resizes=sorted(world.widths.resizes.items()),
            tickets=world.tickets,
            overlays=world.fleet.overlays.by_name,
            goodput=_goodput_columns(world),
        )
    )


def pack(data: bytes, breathe: Callable[[], None] = lambda: None) -> bytes:
    """A snapshot as it is kept. While it is packed nobody waits for the interpreter, but perhaps for a processor."""
    packer, packed, view = zlib.compressobj(1), bytearray(), memoryview(data)
    for first in range(0, len(data), PACKED_AT_ONCE):
        packed += packer.compress(view[first : first + PACKED_AT_ONCE])
        breathe()
    return bytes(packed + packer.flush())


def digest(world: World) -> str:
    """A short name for the world's content."""
    return hashlib.blake2b(snapshot(world), digest_size=16).hexdigest()


def restore(data: bytes) -> World:
    """The world that `snapshot` described, packed or not; bytes that cannot be read raise StoreError."""
    content = _decode(data)
    try:
        return _rebuild(content)
    except (ValueError, LookupError, InvariantError) as error:
        raise StoreError(Reason(Code.JOURNAL_DAMAGED, "snapshot", detail=str(error))) from error


def _rebuild(content: Snapshot) -> World:
    world = World()
    world.seq, world.now = content.seq, content.now
    world.budgets.now = content.now
    world.budgets.prices = dict(content.prices)
    world.next_job, world.accepted, world.retired = content.next_job, content.accepted, content.retired
    world.tickets = content.tickets
    for name, flavor in content.flavors.items():
        world.set_flavor(name, flavor)
    for name, overlay in content.overlays.items():
        put_overlay(world, name, overlay)
    for name in sorted(content.tenants):
        world.set_tenant(name, content.tenants[name])
    world.fleet.mention(frozenset(content.mentioned))
    world.tiers |= content.tiers
    world.moves_most = moves_of(world.tiers)
    world.profiles |= content.profiles
    world.meters.update(content.meters)
    world.widths.resizes.update(content.resizes)
    for kind, advice in content.advice.items():
        heed(world, kind, advice)
    world.use_profile(content.profile_used or DEFAULT_NAME)
    _restore_uses(world, content.uses)
    _restore_nodes(world, content.nodes)
    arrays, ranks = dict(content.arrays), dict(content.ranks)
    for each in content.jobs:
        job = replace(each, spec=world.equals.share(each.spec))
        _restore_job(world, job)
        if job.spec.array:
            _restore_tasks(world, job, arrays[job.id])
        elif job.id in ranks:
            world.ranks[job.id] = bytearray(ranks[job.id])
    _restore_closings(world, content.nodes)
    for number, claim in content.claims:
        put_claim(world, number, claim)
    if content.bookings:
        world.bookings = content.bookings
        settle_bookings(world)
    _restore_spending(world, content.spending)
    world.recount_mix()
    world.recount_company()
    world.promised = count_promised(world)
    _restore_goodput(world, content.goodput)
    return world


def _encode_jobs(jobs: Mapping[int, Job], breathe: Callable[[], None]) -> list[Job]:
    """A list of jobs that is encoded already, in the same bytes as in one go. Even to look at all of them in one breath
    would be long: they lie all over the memory."""
    numbers = sorted(jobs)
    encoded = bytearray(_head_of(len(numbers)))
    for first in range(0, len(numbers), JOBS_AT_ONCE):
        some = [jobs[number] for number in numbers[first : first + JOBS_AT_ONCE]]
        encoded += _encoder.encode(some)[len(_head_of(len(some))) :]
        breathe()
    return cast("list[Job]", msgspec.Raw(encoded))


def _head_of(length: int) -> bytes:
    """What comes before the items of a list: a list of nothings is that, and a byte for each."""
    whole = _encoder.encode([None] * length)
    return whole[: len(whole) - length]


def _decode(data: bytes) -> Snapshot:
    try:
        data = zlib.decompress(data) if data.startswith(_PACKED) else data
        found = _head_decoder.decode(data).format
        if found == FORMAT:
            return _decoder.decode(data)
        if found < FORMAT:
            return _lift(msgspec.msgpack.decode(data))
    except (msgspec.MsgspecError, zlib.error, ValueError, TypeError, LookupError, RecursionError) as error:
        raise StoreError(Reason(Code.JOURNAL_DAMAGED, "snapshot", detail=str(error))) from error
    detail = f"its format is {found}, this one reads up to {FORMAT}"
    raise StoreError(Reason(Code.JOURNAL_NEWER, "snapshot", found, FORMAT, detail))


def _lift(raw: Any) -> Snapshot:
    """A snapshot of format 1: tenants had flat quotas."""
    tenants = {name: lift_quota(quota) for name, quota in raw["tenants"].items()}
    return msgspec.convert(raw | {"format": FORMAT, "tenants": tenants}, Snapshot)


def _spending(world: World) -> list[Spending]:
    found = []
    for account in world.budgets.all():
        budget = account.budget
        whole, part = divmod(account.base + account.rate * world.now, SCALE[budget.unit])
        found.append(Spending(account.tenant, budget.unit, budget.soft, account.since, whole, part))
    return sorted(found, key=lambda each: (each.tenant, each.unit, each.soft))


def _restore_spending(world: World, spending: Sequence[Spending]) -> None:
    if spending:
        recount_spending(world)
    for each in spending:
        spent = each.whole * SCALE[each.unit] + each.part
        world.budgets.restore(AccountKey(each.tenant, each.unit, each.soft), each.since, spent)


def _goodput_columns(world: World) -> GoodputColumns:
    goodput = world.goodput
    spent = {flavor: list(map(str, times)) for flavor, times in goodput.spent(world.now).items()}
    booked = [(*key, list(map(str, trimmed(row, SPARE)))) for key, row in sorted(goodput.booked.items())]
    marks, saves = sorted(goodput.marks.items()), sorted(goodput.saves.items())
    return GoodputColumns(goodput.since, spent, booked, marks, sorted(goodput.carries.items()), saves)


def _restore_goodput(world: World, columns: GoodputColumns | None) -> None:
    """A snapshot from before there was an account begins one."""
    kept = GoodputColumns(world.now, {}, []) if columns is None else columns
    goodput = world.goodput
    goodput.since, goodput.marks = kept.since, dict(kept.marks)
    goodput.carries, goodput.saves = dict(kept.carries), dict(kept.saves)
    kinds, later = len(BOOKED), [0] * (len(BOOKED) - SPARE)
    goodput.booked = {(tenant, flavor): [*map(int, row), *later][:kinds] for tenant, flavor, row in kept.booked}
    goodput.restore(world.fleet, {flavor: list(map(int, row)) for flavor, row in kept.spent.items()}, world.now)


def _restore_uses(world: World, uses: list[UseColumns]) -> None:
    for use in uses:
        amounts = map(int, use.amounts)
        world.usage.book(use.tenant, use.family, list(zip(use.buckets, amounts, strict=True)), world.now)


def _restore_nodes(world: World, nodes: NodeColumns) -> None:
    none = bytes(8 * len(nodes.names))
    columns = (nodes.gpus, nodes.cpu_milli, nodes.memory_bytes, none, nodes.disk_bytes, nodes.network_mbps)
    amounts = [array("q", column or none) for column in columns]
    traits, devices = dict(nodes.traits), dict(nodes.devices)
    for slot, name in enumerate(nodes.names):
        capacity = Resources(*(column[slot] for column in amounts))
        world.join(slot, name, capacity, traits.get(slot, PLAIN), devices.get(slot, ()))


def _restore_closings(world: World, nodes: NodeColumns) -> None:
    """What closes nodes, or part of them: after the leases, which may be on any."""
    for slot, phase in enumerate(array("q", nodes.phase)):
        if phase != NodePhase.UP:
            world.set_phase(slot, NodePhase(phase))
    for slot, bars in nodes.bars:
        for bar in bars:
            world.bar(slot, bar)
    world.fleet.losses.restore(nodes.losses)
    for slot, lack in nodes.lacks:
        world.set_lack(slot, lack)
    world.fleet.said.update(nodes.said)


def _column(capacities: Sequence[Resources], field: str) -> bytes:
    return array("q", [getattr(capacity, field) for capacity in capacities]).tobytes()


def _sparse_column(capacities: Sequence[Resources], field: str) -> bytes:
    """A column, or nothing if it is all zero."""
    column = _column(capacities, field)
    return column if any(column) else b""


def _restore_job(world: World, job: Job) -> None:
    world.put(job)
    world.varied += is_varied(job.spec)
    if job.key:
        world.keys.add(job.spec.tenant, job.key, job.id)
    if isinstance(job.phase, Queued):
        world.enqueue(job)
    elif isinstance(job.phase, ACTIVE):
        for ask, leases in job.spec.parts(job.phase.run.places):
            occupy_all(world.fleet, job.id, ask, leases)
        if job.spec.gang_most:
            world.widths.keep(job, job.phase.run)
        if job.spec.spares:
            world.widths.note_spares(job, job.phase.run)
        run, end = job.phase.run, job.phase.run.find_end(job.spec.limit_ms)
        world.charge(job.spec, run.places, world.now, end)
        if end is not None:
            world.ends.add(job.id, end)
        world.ends.foretell(job.id, job.spec, run.since)
        world.queue.floors.seat(job, run.since, world.tiers[job.spec.tier].sharing)
        if isinstance(job.phase, Stopping):
            world.queue.floors.note_stop(job)


def _restore_tasks(world: World, job: Job, columns: TaskColumns) -> None:
    tasks = world.arrays[job.id] = Tasks(0)
    tasks.phase = bytearray(columns.phase)
    tasks.failures = bytearray(columns.failures)
    tasks.why = bytearray(columns.why or bytes(len(tasks.phase)))
    tasks.epoch = array("i", columns.epoch)
    tasks.slot = array("i", columns.slot)
    tasks.devices = array("q", columns.devices)
    tasks.since, tasks.ticket = array("q", columns.since), array("q", columns.ticket or bytes(8 * len(tasks.phase)))
    if not tasks.since:  # written before it was kept
        tasks.since = array("q", [world.now if phase in HOLDING else 0 for phase in tasks.phase])
    if columns.marks:
        tasks.know_marks().restore(columns.marks)
    if columns.resumes:
        tasks.know_marks().resume = array("q", columns.resumes)
    tasks.moved = dict(columns.moved)
    tasks.counts = [tasks.phase.count(phase) for phase in TaskPhase]
    if job.spec.at_most and not isinstance(job.phase, TERMINAL):
        world.widths.throttled[job.id] = None
    for first, count in spans_of(tasks.phase, HOLDING, 0, len(tasks)):
        leases = tasks.leases(as_ranges(first, count), shared=job.spec.ask.gpu_milli > 0)
        occupy_all(world.fleet, job.id, job.spec.ask, leases)
        world.charge(job.spec, leases, world.now)
        if job.spec.limit_ms is not None:
            world.timers.tasks.enter(job.id, job.spec.limit_ms, tasks, as_ranges(first, count))
            world.ends.spread[job.id] = None
    if tasks.counts[TaskPhase.QUEUED]:
        world.enqueue(job)
    else:
        wait_for_others(world, job)


def _task_columns(tasks: Tasks) -> TaskColumns:
    return TaskColumns(
        bytes(tasks.phase),
        bytes(tasks.failures),
        tasks.epoch.tobytes(),
        tasks.slot.tobytes(),
        tasks.devices.tobytes(),
        tasks.since.tobytes(),
        tasks.ticket.tobytes(),
        bytes(tasks.why) if tasks.why.count(0) < len(tasks) else b"",
        [] if tasks.marks is None else tasks.marks.rows(),
        tasks.marks.resume.tobytes() if tasks.marks is not None and tasks.marks.resumes(0, len(tasks)) else b"",
        sorted(tasks.moved.items()),
    )


def _use_columns(tenant: str, family: str, uses: Uses) -> UseColumns:
    return UseColumns(tenant, family, [bucket for bucket, _ in uses], [str(use) for _, use in uses])
