"""The load: who submits what and when, how long it runs and how it ends. All of it from one seed.

The mix follows what large research clusters report: most jobs are small, most GPU time is in gangs. Rates are derived
from the fleet, so that `load` is the offered share of its GPU time. Or sizes, run times and ends are drawn like those
of a published cluster. Nothing here knows what the kernel does with it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from muster.model.after import After, When
from muster.model.budget import GPU_HOURS, MONEY, Budget
from muster.model.event import DropTenant, Event, SetFlavor, SetTenant, SetTier, Submit
from muster.model.group import Group
from muster.model.instruction import Start
from muster.model.node import Flavor, Place, Sides, Spot, Traits
from muster.model.partition import Partition
from muster.model.spec import ANYWHERE, Needs, Spec, find_fault
from muster.model.tenant import GPU, ROOT, Line, Tenant, gpu_amount
from muster.model.tier import STANDARD, Promise, Tier
from muster.simulator.engine import Fate
from muster.simulator.like import SUCCEEDED, get_model
from muster.simulator.options import SimOptions
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Resources

CPU_PER_GPU: Final = 12_000
MEMORY_PER_GPU: Final = 120 * 2**30
RACK: Final = 8
TORUS: Final[Sides] = (2, 2, 2)
"""The nodes of a rack, as a torus."""
SHAPES: Final[dict[int, Sides]] = {2: (1, 1, 2), 4: (2, 1, 2), 8: (2, 2, 2)}
"""The box that a gang of so many wants, if it wants one."""
LAB: Final = "lab"
VISITOR: Final = "visitor"
PRICE_MICROS: Final = 2_000_000
PERIOD_MS: Final = 6 * HOUR_MS
GROUP_SHARE: Final = 0.3
"""How many of the gangs that want nothing else have a driver beside their workers, and some of them helpers too."""
FIRM_SHARE: Final = 0.2
"""How many of the jobs may not be evicted; of a team that owns nothing, they are refused."""


HELD_SHARE: Final = 0.01
"""How many of the jobs their owners hold for a while."""
AFTER_SHARE: Final = 0.04
"""How many of the jobs are to run after others, of the last few."""
AFTER_REACH: Final = 12
AFTER_MIX: Final = (When.SUCCEEDED, When.SUCCEEDED, When.OVER, When.STARTED, When.NOT_SUCCEEDED)
FOLLOW_SHARE: Final = 0.25
"""How many of the arrays follow the one before them task by task."""
THROTTLE_SHARE: Final = 0.2
"""How many of the arrays say that only a few of their tasks may be at it at once."""
LIMIT_SHARE: Final = 0.3
"""How many of the arrays have a limit."""
EXPECT_SHARE: Final = 0.3
"""How many of the gangs say for how long they expect to run."""
YIELD_SHARE: Final = 0.5
"""How many of those who have no limit give way then to whoever is due."""
DUE_SHARE: Final = 0.1
"""How many of the jobs have a due time."""
CUT: Final = "cut"
CUT_EVERY: Final = 16
CUT_SLOTS: Final = 8
CUT_SHARE: Final = 0.6
"""The flavor whose devices are cut, how rare its nodes are, and how many of those who want less than a device want a
partition of it."""
PARTITIONS: Final = (
    Partition("1g", 1, (0, 1, 2, 3, 4, 5, 6)),
    Partition("2g", 2, (0, 2, 4)),
    Partition("3g", 4, (0, 4)),
    Partition("4g", 4, (0,)),
    Partition("7g", 8, (0,)),
)
ELASTIC_SHARE: Final = 0.2
"""How many of the gangs and of the jobs on whole nodes are elastic, where they can be; half of those in place."""
GRACES: Final = (10 * SECOND_MS, 10 * SECOND_MS, 10 * SECOND_MS, MINUTE_MS, 5 * MINUTE_MS)
"""How long jobs are given to stop."""
SLOW_SHARE: Final = 0.2
"""How many of those who are told to stop use all of that."""
MENDED_SHARE: Final = 0.4
"""How many of the other gangs have one width and are in place all the same, for the sake of repair alone."""
SPARE_SHARE: Final = 0.2
"""How many of the gangs that may have spares ask for one or two."""
MOVES_MAX: Final = 4
"""How often in a day runs may be moved so that others fit, where they may."""
TIER_MIX: Final = (("standard", "critical", "urgent", "opportunistic"), (80, 3, 5, 12))


class Kind(NamedTuple):
    """A kind of job: its weight in the mix, the share of a node per task, and its mean run."""

    name: str
    weight: int
    gpu_share: int  # sixteenths of a node's GPUs per task, rounded up; 0 is none
    gang: int
    array: int
    mean_ms: int
    gpus: int = 0  # of each task, if its size is drawn and no share of a node
    gpu_milli: int = 0


MIX: Final = (
    Kind("debug", 240, 1, 1, 0, 20 * MINUTE_MS),
    Kind("single", 260, 1, 1, 0, 3 * HOUR_MS),
    Kind("pair", 120, 4, 1, 0, 3 * HOUR_MS),
    Kind("half", 80, 8, 1, 0, 4 * HOUR_MS),
    Kind("node", 160, 16, 1, 0, 4 * HOUR_MS),
    Kind("gang-2", 50, 16, 2, 0, 4 * HOUR_MS),
    Kind("gang-4", 30, 16, 4, 0, 6 * HOUR_MS),
    Kind("gang-16", 9, 16, 16, 0, 6 * HOUR_MS),
    Kind("gang-64", 1, 16, 64, 0, 8 * HOUR_MS),
    Kind("ranks", 10, 4, 12, 0, 2 * HOUR_MS),
    Kind("sweep", 20, 1, 1, 48, HOUR_MS),
    Kind("prepare", 20, 0, 1, 96, 15 * MINUTE_MS),
)


class Load:
    """The jobs of one run, and the fate of each of their tries."""

    def __init__(self, options: SimOptions) -> None:
        self._options = options
        self._dice = random.Random(f"{options.seed}/load")  # noqa: S311 - a simulation wants seeded dice
        most = max(1, options.nodes // 4)
        mix = [kind._replace(mean_ms=max(1, kind.mean_ms // options.pace)) for kind in MIX]
        self._kinds = [kind for kind in mix if kind.gang <= most and (options.gpus or not kind.gpu_share)]
        self._weights = [kind.weight for kind in self._kinds]
        self._tenants = [f"team-{number}" for number in range(options.tenants)]
        self._model = get_model(options.like) if options.like else None
        self._submitted = 0
        self._due_dice = random.Random(f"{options.seed}/due")  # noqa: S311 - a simulation wants seeded dice
        self._width_dice = random.Random(f"{options.seed}/width")  # noqa: S311 - a simulation wants seeded dice
        self._group_dice = random.Random(f"{options.seed}/group")  # noqa: S311 - a simulation wants seeded dice
        self._cut_dice = random.Random(f"{options.seed}/cut")  # noqa: S311 - a simulation wants seeded dice
        self._spare_dice = random.Random(f"{options.seed}/spare")  # noqa: S311 - a simulation wants seeded dice
        self._after_dice = random.Random(f"{options.seed}/after")  # noqa: S311 - a simulation wants seeded dice
        self._follow_dice = random.Random(f"{options.seed}/follow")  # noqa: S311 - a simulation wants seeded dice
        self._throttle_dice = random.Random(f"{options.seed}/throttle")  # noqa: S311 - a simulation wants seeded dice
        self._yield_dice = random.Random(f"{options.seed}/yield")  # noqa: S311 - a simulation wants seeded dice
        self._limit_dice = random.Random(f"{options.seed}/limits")  # noqa: S311 - a simulation wants seeded dice
        self._expect_dice = random.Random(f"{options.seed}/expect")  # noqa: S311 - a simulation wants seeded dice
        self._grace_dice = random.Random(f"{options.seed}/grace")  # noqa: S311 - a simulation wants seeded dice
        self._latest_array = (0, 0)

    def node_capacity(self) -> Resources:
        """What each node has."""
        gpus = self._options.gpus
        return Resources(gpus, (gpus + 2) * CPU_PER_GPU, (gpus + 1) * MEMORY_PER_GPU)

    def node_traits(self, number: int) -> Traits:
        """Racks of 8 in blocks of 32, all in one cluster; every fourth rack is in the other zone. A rack is a torus.
        The last node of every other rack has devices that are cut."""
        rack = number // RACK
        place = Place("eu", "alpha", f"block-{rack // 4:03d}", f"rack-{rack:04d}")
        at = number % RACK
        spot = Spot(place.rack, TORUS, (at // 4, at // 2 % 2, at % 2))
        flavor = CUT if self._options.gpus and number % CUT_EVERY == CUT_EVERY - 1 else ""
        return Traits(flavor, place, (("zone", "b" if rack % 4 == 3 else "a"),), spot=spot)

    def opening(self) -> Iterator[Event]:
        """What an admin says before anybody comes: what a GPU costs; and every team but the first has a limit, which
        together are more than there is. Every other team is part of the lab, which owns a third of the fleet: three
        quarters of that is its teams', who lend half of what they do not use. The lab has a soft budget of half its
        part, the last team a hard one of what is left when everybody else is served. Who only visited is gone again.
        Nobody should wait for hours: then it is due. In every other run those of the standard tier may be moved."""
        yield SetFlavor(GPU, Flavor(GPU, price_micros=PRICE_MICROS), cause="admin")
        if self._options.nodes >= CUT_EVERY:
            cut = Flavor(GPU, price_micros=PRICE_MICROS, slots=CUT_SLOTS, partitions=PARTITIONS)
            yield SetFlavor(CUT, cut, cause="admin")
        total = self._options.nodes * self._options.gpus
        soft = Budget(MONEY, total * PRICE_MICROS, soft=True, period_ms=PERIOD_MS)
        lab = Tenant(lines=(Line(GPU, guaranteed=gpu_amount(total // 3)),), budgets=(soft,))
        yield SetTenant(LAB, lab, cause="admin")
        hard = Budget(GPU_HOURS, gpu_amount(total), period_ms=PERIOD_MS)
        last = len(self._tenants) - 1
        yield from (self._set_team(number, (hard,) if number == last else ()) for number in range(last + 1))
        yield SetTenant(VISITOR, Tenant(), cause="admin")
        yield DropTenant(VISITOR, cause="admin")
        promise = Promise(share_milli=300, window_ms=6 * HOUR_MS)
        yield SetTier("urgent", Tier(150, HOUR_MS, shadows=2, promise=promise), cause="admin")
        yield SetTier(STANDARD, Tier(200, 2 * HOUR_MS, moves_max=MOVES_MAX * (self._options.seed % 2)), cause="admin")

    def closing(self) -> SetTenant:
        """What an admin says in the end. Some jobs need more than any period of the hard budget has, and lose all that
        they did whenever it is used up: it is lifted, or they would never end."""
        return self._set_team(len(self._tenants) - 1, ())

    def _set_team(self, number: int, budgets: tuple[Budget, ...]) -> SetTenant:
        total, parts = self._options.nodes * self._options.gpus, max(1, len(self._tenants) // 2)
        limit = None if number == 0 else gpu_amount(max(self._options.gpus, 2 * total // (number + 2)))
        own = gpu_amount(total // 4 // parts) if number % 2 else 0
        line = Line(GPU, guaranteed=min(own, limit or own), limit=limit, lend=own // 2 if own else None)
        team = Tenant(LAB if own else ROOT, lines=(line,), budgets=budgets)
        return SetTenant(self._tenants[number], team, cause="admin")

    def next_gap_ms(self) -> int:
        """How long until the next submit."""
        return 1 + int(self._dice.expovariate(1 / self._mean_gap_ms()))

    def next_submit(self, newest: int = 0, now: int = 0) -> Submit:
        """The next job; some carry a key, some are to run after others of those up to the newest, some are due."""
        kind = self._draw_kind()
        self._submitted += 1
        tenant = self._tenants[min(int(self._dice.expovariate(0.5)), len(self._tenants) - 1)]
        key = f"key-{self._submitted}" if self._dice.random() < 0.1 else ""
        spec = self._spared(self._cut(self._divide(self._widened(self._spec(kind, tenant), kind))))
        spec = msgspec.structs.replace(
            spec,
            after=self._after(newest),
            due_at=self._due_at(now + kind.mean_ms),
            grace_ms=self._grace_dice.choice(GRACES),
        )
        is_array = bool(spec.array)
        spec = self._follow(self._limited(spec, kind), newest + 1) if is_array else self._expecting(spec, kind)
        return Submit(spec, key, cause=f"user of {tenant}")

    def is_sent_twice(self) -> bool:
        """Whether the client repeats its submit because it did not hear the answer."""
        return self._dice.random() < 0.5

    def find_cancel_ms(self) -> int | None:
        """When the owner gives up on a job, if ever."""
        if self._dice.random() >= self._options.cancels:
            return None
        return int(self._dice.expovariate(1 / HOUR_MS))

    def find_hold_ms(self) -> int | None:
        """For how long the owner holds a job, if at all."""
        if self._dice.random() >= HELD_SHARE:
            return None
        return int(self._dice.expovariate(1 / HOUR_MS))

    def fate(self, start: Start, first: int) -> Fate:
        """How a cohort goes: from its spec, and dice of its own, so that no other job's turn changes it."""
        dice = random.Random(f"{self._options.seed}/{start.job}/{start.epoch}/{first}")  # noqa: S311 - seeded on purpose
        whole = random.Random(f"{self._options.seed}/{start.job}")  # noqa: S311 - seeded on purpose
        mean_ms = int(start.spec.command[1])
        if self._model is not None:
            code = 0 if start.spec.name == SUCCEEDED else 1
            return Fate(dice.randrange(SECOND_MS, 30 * SECOND_MS), mean_ms, code)
        run_ms = min(int(whole.expovariate(1 / mean_ms)), 7 * DAY_MS) + dice.randrange(2 * SECOND_MS)
        fails = dice.random() < self._options.failures / max(1, len(start.nodes))
        code = dice.choice((1, 2, 134, 139)) if fails else 0
        start_ms, ends_ms = dice.randrange(SECOND_MS, 30 * SECOND_MS), dice.randrange(run_ms) if fails else run_ms
        return Fate(start_ms, ends_ms, code, start.spec.grace_ms if dice.random() < SLOW_SHARE else None)

    def _draw_kind(self) -> Kind:
        """What comes next: of the mix, or like a job of the cluster that was named, no wider than a quarter of ours."""
        if self._model is None:
            return self._dice.choices(self._kinds, self._weights)[0]
        job = self._model.draw(self._dice)
        milli = min(job.gpu_milli, self._widest_milli())
        run_ms = max(1, job.run_ms // self._options.pace)
        width = max(1, min(milli // 1000, self._options.gpus))
        gang = max(1, milli // 1000 // width)
        return Kind(job.status, 0, 0, gang, 0, run_ms, gpus=width if milli >= 1000 else 0, gpu_milli=milli % 1000)

    def _widest_milli(self) -> int:
        return 1000 * max(1, self._options.gpus * max(1, self._options.nodes // 4))

    def _spec(self, kind: Kind, tenant: str) -> Spec:
        dice = self._dice
        ask, needs = self._ask(kind), self._needs(kind, tenant)
        return Spec(
            command=("simulate", str(kind.mean_ms)),
            name=kind.name,
            tenant=tenant,
            gang=kind.gang,
            array=dice.randrange(2, 2 * kind.array) if kind.array else 0,
            ask=ask,
            limit_ms=3 * kind.mean_ms if not kind.array and dice.random() < 0.3 else None,
            retries=0 if self._model is not None else dice.choice((0, 0, 1, 3)),
            tier=dice.choices(*TIER_MIX)[0],
            priority=dice.choice((0, 0, 0, 0, 10, -10)),
            needs=needs,
            evictable=dice.random() >= FIRM_SHARE,
        )

    def _widened(self, spec: Spec, kind: Kind) -> Spec:
        """Some gangs have a width from half to twice what others of their kind have."""
        dice, needs = self._width_dice, spec.needs
        is_wanted, in_place = dice.random() < ELASTIC_SHARE, dice.random() < 0.5
        can_vary = not (needs.shape or needs.spread or needs.slice)
        if not (is_wanted and can_vary and kind.gpu_share >= 4 and spec.evictable):
            is_mended = spec.gang > 1 and can_vary and dice.random() < MENDED_SHARE
            return msgspec.structs.replace(spec, gang_most=spec.gang, in_place=True) if is_mended else spec
        least, most = max(1, kind.gang // 2), min(2 * kind.gang + 1, max(2, self._options.nodes // 2))
        return msgspec.structs.replace(spec, gang=least, gang_most=max(least, most), in_place=in_place)

    def _divide(self, spec: Spec) -> Spec:
        """Some gangs are of several groups: workers, a driver without devices, and some helpers on few cores."""
        dice = self._group_dice
        if spec.gang == 1 or spec.gang_most or spec.needs is not ANYWHERE or dice.random() >= GROUP_SHARE:
            return spec
        driver = Group("driver", 1, Resources(cpu_milli=4000, memory_bytes=16 * 2**30))
        helpers = (Group("helper", dice.randint(1, 6), Resources(cpu_milli=3000, memory_bytes=2**30)),)
        groups = (driver, Group("worker", spec.gang, spec.ask), *(helpers if dice.random() < 0.5 else ()))
        gang = sum(group.tasks for group in groups)
        needs = Needs(groups=groups, within="block" if spec.gang <= RACK and dice.random() < 0.2 else "")
        return msgspec.structs.replace(spec, gang=gang, ask=Spec(("any",)).ask, needs=needs)

    def _cut(self, spec: Spec) -> Spec:
        """Some of the jobs that want less than a device want a partition."""
        if not spec.ask.gpu_milli or self._options.nodes < CUT_EVERY or self._cut_dice.random() >= CUT_SHARE:
            return spec
        needs = msgspec.structs.replace(spec.needs, partition=self._cut_dice.choice(PARTITIONS).name)
        ask = msgspec.structs.replace(spec.ask, gpus=1, gpu_milli=0)
        return msgspec.structs.replace(spec, ask=ask, needs=needs)

    def _spared(self, spec: Spec) -> Spec:
        """Some gangs ask for spares, where they may."""
        if spec.gang == 1 or self._spare_dice.random() >= SPARE_SHARE:
            return spec
        spared = msgspec.structs.replace(spec, spares=self._spare_dice.choice((1, 1, 2)))
        return spared if find_fault(spared) is None else spec

    def _after(self, newest: int) -> tuple[After, ...]:
        dice = self._after_dice
        if dice.random() >= AFTER_SHARE:
            return ()
        jobs = range(max(1, newest - AFTER_REACH), newest + 1)
        chosen = dice.sample(jobs, min(len(jobs), dice.choice((1, 1, 2))))
        return tuple(After(job, dice.choice(AFTER_MIX)) for job in chosen)

    def _follow(self, spec: Spec, number: int) -> Spec:
        """Some arrays follow the one before task by task, and are as long as it then; of some only a few tasks may be
        at it at once."""
        other, tasks = self._latest_array
        if other and not spec.after and self._follow_dice.random() < FOLLOW_SHARE:
            spec = msgspec.structs.replace(spec, array=tasks, after=(After(other, When.TASK_BY_TASK),))
        self._latest_array = number, spec.array
        most = self._throttle_dice.randrange(1, 4) if self._throttle_dice.random() < THROTTLE_SHARE else 0
        return msgspec.structs.replace(spec, at_most=most) if most else spec

    def _limited(self, spec: Spec, kind: Kind) -> Spec:
        """Some arrays have a limit, which some of their tasks do not keep."""
        is_limited = self._limit_dice.random() < LIMIT_SHARE
        return msgspec.structs.replace(spec, limit_ms=2 * kind.mean_ms) if is_limited else spec

    def _expecting(self, spec: Spec, kind: Kind) -> Spec:
        """Some know about how long they run, or think so."""
        expect_ms = max(1, kind.mean_ms * self._expect_dice.choice((1, 2, 4)) // 2)
        is_told = self._expect_dice.random() < EXPECT_SHARE
        yields = spec.evictable and spec.limit_ms is None and self._yield_dice.random() < YIELD_SHARE
        return msgspec.structs.replace(spec, expect_ms=expect_ms, yields=yields) if is_told else spec

    def _due_at(self, least: int) -> int | None:
        """Some are due on one of the next full hours, so that many are due together."""
        dice = self._due_dice
        return None if dice.random() >= DUE_SHARE else (least // HOUR_MS + dice.randrange(1, 9)) * HOUR_MS

    def _needs(self, kind: Kind, tenant: str) -> Needs:
        """Some gangs must stay close, some are spread or want a box, some jobs want a zone, or to be apart from others;
        never what no fleet has."""
        roll = self._dice.randrange(100)
        if 1 < kind.gang <= RACK and self._options.nodes >= 4 * RACK:
            if roll < 10:
                return Needs(within="rack")
            if roll < 20:
                return Needs(spread="node", spread_most=2)
        if kind.gang in SHAPES and self._options.nodes >= RACK and roll >= 85:
            return Needs(shape=SHAPES[kind.gang])
        if kind.gang == 1 and roll < 8:
            return Needs(labels=("zone=a",))
        if roll in (82, 83):
            return Needs(like=kind.name, data=("corpus",) if roll == 83 else ())
        if not kind.array and roll in (80, 81):
            return Needs(apart=(f"{tenant}/single", f"{tenant}/debug"), apart_level="rack" if roll == 81 else "node")
        return ANYWHERE

    def _ask(self, kind: Kind) -> Resources:
        gpus = kind.gpus or -(-kind.gpu_share * self._options.gpus // 16)
        if kind.gpu_milli:
            return Resources(cpu_milli=2000, memory_bytes=8 * 2**30, gpu_milli=kind.gpu_milli)
        if gpus and kind.name == "debug" and self._dice.random() < 0.3:
            return Resources(cpu_milli=2000, memory_bytes=8 * 2**30, gpu_milli=self._dice.choice((250, 300, 500)))
        if gpus:
            return Resources(gpus, gpus * CPU_PER_GPU, gpus * MEMORY_PER_GPU)
        return Resources(cpu_milli=2000, memory_bytes=8 * 2**30)

    def _mean_gap_ms(self) -> float:
        total = self._options.nodes * max(1, self._options.gpus)
        if self._model is not None:
            return self._model.mean_gpu_ms(self._widest_milli()) / self._options.pace / (total * self._options.load)
        work = sum(kind.weight * _gpu_ms(kind, self._options.gpus) for kind in self._kinds) / sum(self._weights)
        return work / (total * self._options.load)


def _gpu_ms(kind: Kind, gpus: int) -> int:
    each = -(-kind.gpu_share * gpus // 16) or 1
    return each * max(kind.gang, kind.array) * kind.mean_ms
