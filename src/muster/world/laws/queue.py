"""The laws of the queue: who waits is in it once, in the line, the band and the leaf that the facts give."""

from __future__ import annotations

from bisect import insort

from muster.model.job import Job
from muster.model.phase import Queued, TaskPhase
from muster.units import INSTANT_MAX
from muster.world.audit.group import shape_of
from muster.world.claiming import spoken_for
from muster.world.laws.law import first_change, require
from muster.world.line import BandKey, Leaf, LeafKey, Line, job_of
from muster.world.promises import due_of
from muster.world.queue import INSIDE, Shape, ShapeKey
from muster.world.world import World


def check_queue(world: World) -> None:
    """The queue is everybody who waits, and each stands where it belongs."""
    waiting: dict[ShapeKey, dict[tuple[str, str], list[int]]] = {}
    for job in sorted(world.jobs.values(), key=lambda job: (-job.spec.priority, job.id)):
        if _waits(world, job):
            spec = job.spec
            lines = waiting.setdefault((*shape_of(spec), spec.needs, spec.evictable), {})
            lines.setdefault((spec.tenant, spec.tier), []).append(job.id)
    queue, law = world.queue, "the queue is everybody who waits"
    kept = {key: {name: line.ids() for name, line in shape.lines.items()} for key, shape in queue.shapes.items()}
    require(kept == waiting, law, first_change(kept, waiting))
    everybody = sorted(number for lines in waiting.values() for line in lines.values() for number in line)
    require(queue.waiting() == everybody, law, f"{len(queue)} of {len(everybody)}")
    strangers = [shape.key for shape in queue.awake if queue.shapes.get(shape.key) is not shape]
    require(not strangers, law, f"awake and empty: {strangers[:3]}")
    for shape in queue.shapes.values():
        _check_lines(world, shape)
    _check_leaves(world)


def _check_leaves(world: World) -> None:
    """Of the lines of a tenant and tier, the first is that of the job which the order's table says, before anybody is
    due and now; and those of one band stand in this order."""
    leaves: dict[tuple[str, str], list[Line]] = {}
    places: dict[BandKey, dict[str, list[tuple[LeafKey, Shape, Line]]]] = {}
    for shape in world.queue.shapes.values():
        for name, line in shape.lines.items():
            leaves.setdefault(name, []).append(line)
            insort(places.setdefault(line.band, {}).setdefault(name[0], []), (line.first(-1), shape, line))
    for band, here in places.items():
        stand = {tenant: _standing_in(leaf) for tenant, leaf in world.queue.leaves(band).items()}
        require(stand == here, "lines stand where their heads do", f"band {band}")
    for (tenant, tier), lines in leaves.items():
        for since in (-1, world.now - world.tiers[tier].longest_wait_ms):
            wanted = min((_leaf_key(world, line, number, since), number) for line in lines for number in line.jobs())
            first = job_of(min(line.first(since) for line in lines))
            require(first == wanted[1], "the leaf goes by its table", f"{tenant}, {tier}: {first}, wanted {wanted}")


def _standing_in(leaf: Leaf) -> list[tuple[LeafKey, Shape, Line]]:
    return [(place, line.shape, line) for place, line in zip(leaf.places, leaf.lines, strict=True)]


def _leaf_key(world: World, line: Line, number: int, since: int) -> tuple[int, bool, int, int]:
    """Priority, whether one is due, due time, size; whoever is due goes by its number alone."""
    job = world.jobs[number]
    spec, ask = job.spec, line.shape.ask
    if job.accepted_at <= since:
        return -spec.priority, False, 0, 0
    size = line.shape.gang * ((1000 * ask.gpus + ask.gpu_milli) * 1000 or ask.cpu_milli)
    due_at = due_of(job, world.tiers[spec.tier])
    return -spec.priority, True, INSTANT_MAX + 1 if due_at is None else due_at, size


def _check_lines(world: World, shape: Shape) -> None:
    """A line offers its first, stands in its band, and on some site no better than its band says: whether there is room
    on the others is not known here."""
    bands: dict[BandKey, dict[str, Line]] = {}
    sites = world.sites.inhabited(shape.ask)
    for (tenant, tier), line in shape.lines.items():
        ids, first = line.ids(), job_of(line.first(world.now))
        require(first == ids[0], "a line offers its first", f"{tenant}: {first} of {ids[:5]}")
        bands.setdefault((line.band[0], world.tiers[tier].rank, tier), {})[tenant] = line
        stuck = line.band[0] > max((world.standing_on(site, line) for site in sites), default=INSIDE)
        require(not stuck, "a line stands no worse than its quota says", f"{tenant}: {shape.key}")
        listed = (line.band[0] != INSIDE) == ((shape.key, tier) in world.queue.outside.get(tenant, {}))
        require(listed, "who stands outside can be woken", f"{tenant}, band {line.band}: {shape.key}")
    kept = {key: band.lines for key, band in shape.bands.items()}
    require(kept == bands, "lines stand in their bands", f"{shape.key}: {list(kept)}, {list(bands)}")


def _waits(world: World, job: Job) -> bool:
    """Whether a job has a place in the queue."""
    if job.held or job.stands_back:
        return False
    if job.spec.array:
        return world.arrays[job.id].counts[TaskPhase.QUEUED] > spoken_for(world, job.id)
    return isinstance(job.phase, Queued)
