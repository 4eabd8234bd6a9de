"""Use: what each tenant held, and for how long. Kept exactly, by family and hour; weighted by age only when it is read.

A meter counts amounts times milliseconds. While nothing starts or ends, use grows as a straight line, so a start and
an end are each one step of a slope, exact inverses of each other, and no clock has to tick. Nothing that is stored is
ever decayed: a reader weights the hours by their age, from a table of integers.

A tenant's *charge* is its weighted use, and what its runs are predicted to use still: each is paid for up to its limit,
and never less than to the end of the next hour. So a start is charged at once, its charge stands still while it runs
as predicted, and when it ends only what it really used remains. It changes with a start, an end, and the hour; who is
to be preferred for it is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat, takewhile
from operator import mul
from typing import Final, TypeAlias

from muster.model.node import UNITS_ONE
from muster.model.tenant import device_amount
from muster.units import HOUR_MS, Limit, Resources
from muster.world.decay import WEIGHT_BITS, halve_every

BUCKET_MS: Final = HOUR_MS
HALF_LIFE_BUCKETS: Final = 24
"""A day: long enough that a night's work still counts in the morning, short enough that a week's is forgiven."""
BUCKETS_KEPT: Final = 10 * HALF_LIFE_BUCKETS
"""What is older weighs less than a thousandth, and is dropped."""
PAID_AHEAD: Final = 2
"""Up to the end of which hour a run is paid for if its limit says nothing: 2 is the next one. It is the default
prediction, between one hour and two, so that many starts just before the hour are not for nothing."""
NEVER: Final = -1
Uses: TypeAlias = list[tuple[int, int]]


WEIGHTS: Final = halve_every(HALF_LIFE_BUCKETS, BUCKETS_KEPT)
_WEIGHT_BY_AGE: Final = dict(enumerate(WEIGHTS))


def amount_of(ask: Resources, tasks: int, units: int = UNITS_ONE) -> int:
    """What tasks count as while they hold what they ask for: their devices as a quota counts them, or thousandths of
    cores if they have none. A whole device so counts as a thousand cores."""
    return (device_amount(ask, units) or ask.cpu_milli) * tasks


def paid_until(at: int) -> int:
    """Up to when whatever runs is paid for, at least."""
    return (at // BUCKET_MS + PAID_AHEAD) * BUCKET_MS


class Meter:
    """The use of one tenant and family: `past` by bucket, the oldest first, and in `bucket`, up to an instant t,
    `offset + rate * t`."""

    __slots__ = ("bucket", "offset", "past", "rate")

    def __init__(self, bucket: int) -> None:
        self.bucket = bucket
        self.rate = 0
        self.offset = 0
        self.past: dict[int, int] = {}

    def turn(self, bucket: int) -> None:
        """The meter goes on in a later bucket."""
        oldest = bucket - BUCKETS_KEPT
        self.past.update(self._since(bucket))
        for other in list(takewhile(oldest.__gt__, self.past)):
            del self.past[other]
        self.bucket = bucket
        self.offset = -self.rate * bucket * BUCKET_MS

    def uses(self, at: int) -> Uses:
        """All that counts at an instant, by bucket, up to that instant: whenever the meter was last touched."""
        now = at // BUCKET_MS
        found = [*self.past.items(), *self._since(now), (now, self.line(now, at))]
        return [(bucket, use) for bucket, use in found if use and bucket >= now - BUCKETS_KEPT]

    def weighted(self, bucket: int) -> int:
        """The use of all buckets before one, each by its age then."""
        past = self.past if bucket <= self.bucket else dict(chain(self.past.items(), self._since(bucket)))
        weights = map(_WEIGHT_BY_AGE.get, map(bucket.__sub__, past), repeat(0))
        return sum(map(mul, past.values(), weights))

    def line(self, bucket: int, until: int) -> int:
        """What will have been used in this bucket and after it, until an instant, if nothing starts or ends."""
        return self.rate * until + (self.offset if bucket <= self.bucket else -self.rate * bucket * BUCKET_MS)

    def fork(self) -> Meter:
        """An independent copy."""
        twin = Meter(self.bucket)
        twin.rate, twin.offset, twin.past = self.rate, self.offset, self.past.copy()
        return twin

    def _since(self, bucket: int) -> Iterator[tuple[int, int]]:
        """The buckets from the meter's own up to another one, as if nothing happened in them, where there is use."""
        if bucket > self.bucket:
            use = self.offset + self.rate * (self.bucket + 1) * BUCKET_MS
            if use:
                yield self.bucket, use
            if self.rate:
                for other in range(max(self.bucket + 1, bucket - BUCKETS_KEPT), bucket):
                    yield other, self.rate * BUCKET_MS


class Account:
    """A tenant's meters, and when its runs with a limit are predicted to end.

    The rest is a memory of what was last read, in `bucket`: `charged` is what the buckets before it weigh and all that
    is used or paid for in it and after it, times 2^20, and `until` the instant up to which everything is paid for.
    `running` is that bucket as soon as no meter is in an earlier one.
    """

    __slots__ = ("bucket", "charged", "ends", "meters", "running", "until")

    def __init__(self) -> None:
        self.meters: dict[str, Meter] = {}
        self.ends: dict[int, int] = {}
        self.bucket = self.running = NEVER
        self.charged = 0
        self.until = 0

    def charge(self, bucket: int) -> int:
        """Weighted use and what is paid ahead, times 2^20."""
        if bucket != self.bucket:
            self._weigh(bucket)
        return self.charged

    def turn(self, bucket: int) -> None:
        """The meters go on in a bucket."""
        for meter in self.meters.values():
            if bucket > meter.bucket:
                meter.turn(bucket)
        if bucket != self.bucket:
            self._weigh(bucket)
        self.running = bucket

    def expect(self, amount: int, end: int) -> None:
        """A run is predicted to hold so much until `end`; it does so no longer if the amount is negative."""
        left = self.ends.get(end, 0) + amount
        if left:
            self.ends[end] = left
        else:
            del self.ends[end]
        if end > self.until:
            self.charged += amount * (end - self.until) << WEIGHT_BITS

    def is_idle(self, bucket: int) -> bool:
        """Whether nothing is held and nothing counts any more."""
        return not any(meter.rate or meter.uses(bucket * BUCKET_MS) for meter in self.meters.values())

    def fork(self) -> Account:
        """An independent copy; it weighs for itself."""
        twin = Account()
        twin.meters = {family: meter.fork() for family, meter in self.meters.items()}
        twin.ends = self.ends.copy()
        return twin

    def _weigh(self, bucket: int) -> None:
        until = (bucket + PAID_AHEAD) * BUCKET_MS
        ahead = sum(amount * (end - until) for end, amount in self.ends.items() if end > until) if self.ends else 0
        self.charged = ahead << WEIGHT_BITS
        for meter in self.meters.values():
            self.charged += meter.weighted(bucket) + (meter.line(bucket, until) << WEIGHT_BITS)
        self.bucket, self.until, self.running = bucket, until, NEVER


class Usage:
    """The accounts of all tenants that ever held something that still counts."""

    __slots__ = ("accounts", "trimmed")

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self.trimmed = 0

    def step(self, tenant: str, family: str, amount: int, at: int, end: Limit = None) -> None:
        """A tenant holds so much more from now on, predictably until `end`; its own inverse with the opposite sign."""
        try:
            account = self.accounts[tenant]
            meter = account.meters[family]
        except KeyError:
            account, meter = self._open(tenant, family, at)
        if at // BUCKET_MS != account.running:
            account.turn(at // BUCKET_MS)
        meter.rate += amount
        meter.offset -= amount * at
        account.charged += amount * (account.until - at) << WEIGHT_BITS
        if end is not None and amount:
            account.expect(amount, end)

    def charge(self, tenant: str, at: int) -> int:
        """A tenant's charge. Reading it, however often and whenever, changes nothing."""
        account = self.accounts.get(tenant)
        return 0 if account is None else account.charge(at // BUCKET_MS)

    def decayed(self, tenant: str, at: int) -> int:
        """A tenant's use up to an instant, weighted by age and without what is paid ahead."""
        account = self.accounts.get(tenant)
        if account is None:
            return 0
        now = at // BUCKET_MS
        uses = (pair for meter in account.meters.values() for pair in meter.uses(at))
        return sum(use * WEIGHTS[now - bucket] for bucket, use in uses) >> WEIGHT_BITS

    def book(self, tenant: str, family: str, uses: Uses, at: int) -> None:
        """Take over what was kept elsewhere; what is held now is to be stepped anew."""
        meter = self.accounts.setdefault(tenant, Account()).meters[family] = Meter(at // BUCKET_MS)
        meter.past = dict(uses)
        meter.offset = meter.past.pop(meter.bucket, 0)

    def books(self, at: int) -> Iterator[tuple[str, str, Uses]]:
        """All that counts at an instant, by tenant and family."""
        for tenant in sorted(self.accounts):
            for family in sorted(self.accounts[tenant].meters):
                uses = sorted(self.accounts[tenant].meters[family].uses(at))
                if uses:
                    yield tenant, family, uses

    def trim(self, at: int) -> None:
        """Once in a bucket, drop the accounts in which nothing counts any more."""
        now = at // BUCKET_MS
        if now > self.trimmed:
            self.trimmed = now
            for tenant in [name for name, account in self.accounts.items() if account.is_idle(now)]:
                del self.accounts[tenant]

    def fork(self) -> Usage:
        """An independent copy."""
        twin = Usage()
        twin.trimmed = self.trimmed
        twin.accounts = {tenant: account.fork() for tenant, account in self.accounts.items()}
        return twin

    def _open(self, tenant: str, family: str, at: int) -> tuple[Account, Meter]:
        account = self.accounts.setdefault(tenant, Account())
        return account, account.meters.setdefault(family, Meter(at // BUCKET_MS))
