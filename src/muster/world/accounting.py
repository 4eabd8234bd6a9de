"""The goodput account as a whole: how idle time is split as time passes, what the account says at an instant, and who
used how much of what.

Why devices are idle follows from who waits, what is held and what the quota says, and from nothing that was tried; it
is asked once per entry, before the entry changes anything, and only while somebody waits.
"""

from __future__ import annotations

from muster.model.goodput import HELD, Bucket
from muster.model.job import Job
from muster.model.node import Flavor
from muster.world.diary import Diary, Key
from muster.world.goodput import ALL, BARRED, BOOKED, CLAIMED, GONE, IDLE, KEPT, Stock, Times
from muster.world.line import Line
from muster.world.quota import Standing
from muster.world.world import World

_OVER = Standing.OVER  # members are slow to look up
_NO_DEMAND, _BLOCKED, _FRAGMENTED = Bucket.NO_DEMAND, Bucket.BLOCKED, Bucket.FRAGMENTED
_KINDS = (*BOOKED, Bucket.PROVISIONAL)
_ELSEWHERE = ((CLAIMED, Bucket.CLAIMED), (KEPT, Bucket.BOOKED_IDLE), (BARRED, Bucket.BARRED), (GONE, Bucket.GONE))
"""What nobody holds and is not idle."""


def advance(world: World, at: int) -> None:
    """Time has passed since the last entry, with the world as it is. Whoever asks for it more often than once per entry
    looks first whether any has."""
    goodput = world.goodput
    if world.queue.shapes:
        over: dict[Line, bool] = {}
        for stock in goodput.stocks.values():
            if stock.levels[IDLE]:
                _split_idle(world, stock, at - goodput.at, over)
    goodput.at = at


def read_account(world: World, at: int, tenant: str = "") -> dict[str, Times]:
    """By flavor, what every moment up to an instant was spent on: of the fleet, or of what one tenant held. Nothing
    happened between the newest entry and that instant, as far as the world knows."""
    account = _booked(world, tenant)
    for job in world.jobs.values():
        if not tenant or job.spec.tenant == tenant:
            for flavor, amount, (kind, begin, end) in world.goodput.open_spans(job, world.arrays.get(job.id), at):
                account.setdefault(flavor, dict.fromkeys(HELD, 0))[_KINDS[kind]] += amount * (end - begin)
    if not tenant:
        for flavor, times in _unheld(world, at).items():
            account[flavor] = dict.fromkeys(HELD, 0) | account.get(flavor, {}) | times
    return {flavor: account[flavor] for flavor in sorted(account) if any(account[flavor].values())}


def keep_diary(world: World) -> Diary:
    """Gather from now on what there is to remember."""
    world.goodput.diary = _open_diary(world)
    return world.goodput.diary


def read_open_uses(world: World, at: int, only: Job | None = None) -> dict[Key, list[int]]:
    """What is used in phases that have not ended, up to an instant, by all jobs or by one: what the diary will have
    of it, so far."""
    diary = _open_diary(world)
    for job in world.jobs.values() if only is None else (only,):
        for flavor, amount, span in world.goodput.open_spans(job, world.arrays.get(job.id), at):
            diary.spend(job, flavor, amount, span)
    return diary.take()[0]


def _open_diary(world: World) -> Diary:
    budgets, flavors = world.budgets, world.flavors
    return Diary(lambda job, flavor: budgets.price(job, flavor, flavors.get(flavor) or Flavor(flavor)))


def _booked(world: World, tenant: str) -> dict[str, Times]:
    account: dict[str, Times] = {}
    for (owner, flavor), row in world.goodput.booked.items():
        if not tenant or owner == tenant:
            times = account.setdefault(flavor, dict.fromkeys(HELD, 0))
            for bucket, time in zip(BOOKED, row, strict=True):
                times[bucket] += time
    return account


def _unheld(world: World, at: int) -> dict[str, Times]:
    """What nobody held, by flavor."""
    found: dict[str, Times] = {}
    over: dict[Line, bool] = {}
    want = {stock.flavor: _want_of(world, stock.flavor, over) for stock in world.goodput.stocks.values()}
    for flavor, stock in world.goodput.stocks.items():
        since = stock.levels[IDLE] * (at - world.goodput.at)
        times = {Bucket.BLOCKED: stock.blocked, Bucket.FRAGMENTED: stock.fragmented}
        times[Bucket.NO_DEMAND] = stock.time(IDLE, at) - since - sum(times.values())
        times[want[flavor]] += since
        found[flavor] = times | {bucket: stock.time(part, at) for part, bucket in _ELSEWHERE}
    return found


def capacity_time(world: World, flavor: str, at: int) -> int:
    """All the device time that there was of a flavor: what its buckets add up to."""
    return world.goodput.stocks[flavor].time(ALL, at)


def _split_idle(world: World, stock: Stock, span_ms: int, over: dict[Line, bool]) -> None:
    want = _want_of(world, stock.flavor, over)
    if want is _FRAGMENTED:
        stock.fragmented += stock.levels[IDLE] * span_ms
    elif want is _BLOCKED:
        stock.blocked += stock.levels[IDLE] * span_ms


def _want_of(world: World, flavor: str, over: dict[Line, bool]) -> Bucket:
    """Why devices of a flavor are idle: somebody waits who could use them and is within its quota, so that they did not
    fit; or only such who are over it; or nobody. Who waits for a window of its booking could not use what is idle.
    `over` remembers which lines are over their quota, for the next flavor."""
    found, sites = _NO_DEMAND, None
    for shape in world.queue.shapes.values():
        ask, needs = shape.ask, shape.needs
        if (ask.gpus or ask.gpu_milli) and (not needs.flavors or flavor in needs.flavors):
            if needs.booking and needs.booking in world.bookings:
                continue
            sites = sites or world.sites.inhabited(ask)  # the same for all that ask for devices
            for line in shape.lines.values():
                is_over = over.get(line)
                if is_over is None:
                    is_over = over[line] = world.standing_among(sites, line) is _OVER
                if not is_over:
                    return _FRAGMENTED
            found = _BLOCKED
    return found
