"""A crowd on a fleet of several kinds: flavors of one family and of two, racks and zones, taints, devices that are cut,
tori, feeds with budgets of power and of the network; tenants who have budgets; jobs that mind all of that.

What is wrong with it besides: devices get lost, overlays and budgets come and go, advisers say this and that, the fleet
is scored by other profiles, and nodes are fenced. Some jobs are held from the beginning, or take all of their grace to
stop; tenants move in the tree or leave it, tiers protect and promise, bookings stand in a row. In the end all devices
are there, nothing is capped for good, tenants who moved may hold what they like, and who waits beside somebody who is
over is sent home: so whoever is left could run.
"""

from __future__ import annotations

import random
from itertools import chain
from math import prod
from typing import Final

from msgspec.structs import replace

from muster.model.advice import DISTANCE, INDEX, RUNTIME, THROUGHPUT, Advice, column_of
from muster.model.after import After, When
from muster.model.booking import Booking, Window
from muster.model.budget import GPU_HOURS, MONEY, Budget
from muster.model.event import (
    Advise,
    BarNode,
    Cancel,
    CancelBooking,
    DropOverlay,
    DropTenant,
    MigrateJob,
    Progressed,
    Reserve,
    ScaleJob,
    SetFlavor,
    SetOverlay,
    SetProfile,
    SetTenant,
    SetTier,
    Submit,
    UseProfile,
)
from muster.model.job import BarKind, Job
from muster.model.node import Flavor, Place, Sides, Spot, Traits
from muster.model.overlay import NETWORK, POWER, Overlay
from muster.model.partition import Partition
from muster.model.phase import TERMINAL, Failed, Running, TaskPhase
from muster.model.profile import TERMS, Profile
from muster.model.sharing import ADVISED, Sharing
from muster.model.spec import bring_back
from muster.model.tenant import GPU, ROOT, Line, Tenant, gpu_amount
from muster.model.tier import Promise, Tier
from muster.testing.crowd import TENANTS, TIERS, Crowd, Fields
from muster.testing.scene import OPERATOR, Scene
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS, Resources
from muster.world.tasks import spans_of

PARTITIONS: Final = (
    Partition("1g", 1, (0, 1, 2, 3, 4, 5, 6)),
    Partition("2g", 2, (0, 2, 4)),
    Partition("3g", 4, (0, 4)),
    Partition("7g", 8, (0,)),
)
FLAVORS: Final = {
    "h100": Flavor(GPU, price_micros=2_000_000, watts=700, core_watts=5),
    "a100": Flavor(GPU, units=450, price_micros=900_000, watts=400),
    "cut": Flavor(GPU, price_micros=1_500_000, watts=600, slots=8, partitions=PARTITIONS),
    "tpu": Flavor("tpu", price_micros=1_000_000, watts=300),
}
TORI: Final[tuple[Sides, ...]] = ((2, 2, 2), (2, 2, 2), (3, 5, 1), (2, 3, 4), (1, 4, 3))
TORUS_NODES: Final = 12
SHAPES: Final = ((1, 1, 2), (2, 1, 1), (1, 2, 2), (2, 2, 2), (1, 1, 1), (1, 3, 1), (3, 2, 1), (1, 1, 4), (5, 1, 1))
GIB: Final = 2**30
FOR_EVER_MS: Final = 10**12
PROTECTED: Final = ("critical", "standard", "opportunistic", "moved")
"""Tiers that protect their own now and then."""
LEVELS: Final = ("node", "rack", "block", "cluster", "fleet")
NO_LEVELS: Final = dict.fromkeys(("within", "near", "spread", "slice"), "")
ADVISED_TIER: Final = "advised"
OVERLAYS: Final = ("feed", "uplink")


class VariedCrowd(Crowd):
    """A crowd with all of that in it."""

    def _add_nodes(self) -> list[str]:
        for name in FLAVORS:
            self.scene.send(SetFlavor(name, FLAVORS[name]))
        self.flavors = sorted(self.dice.sample(sorted(FLAVORS), self.dice.randrange(1, 4)))
        self.gpus: dict[str, int] = {}
        self.ids: dict[str, tuple[str, ...]] = {}
        self._version = 0
        self._torus = self.dice.choice(TORI)
        self._is_regrouped = False
        on_torus = min(TORUS_NODES, prod(self._torus))
        for flavor in self.flavors:
            for number in range(on_torus if flavor == "tpu" else self.dice.randrange(1, 4)):
                self._add_node(flavor, number)
        self.scene.advance(seconds=1)
        return list(self.scene.body.world.fleet.addresses)

    def _add_node(self, flavor: str, number: int) -> None:
        dice = self.dice
        _, y, z = self._torus
        at = (number // (y * z), number // z % y, number % z)
        spot = Spot("pod", self._torus, at) if flavor == "tpu" else None
        cluster = "" if flavor == "tpu" else dice.choice(("", "", "east"))
        place = Place("", cluster, dice.choice(("", "b1")), dice.choice(("r1", "r2")))
        zone = (("zone", dice.choice("ab")),) if dice.random() < 0.8 else ()
        taints = ("odd",) if dice.random() < 0.15 else ()
        gpus = 4 if flavor == "tpu" else 8
        amount = Resources(gpus, 64_000, 512 * GIB, disk_bytes=1024 * GIB, network_mbps=100_000)
        name = f"{flavor}-{number}"
        ids = tuple(f"{name}.{device}" for device in range(gpus)) if dice.random() < 0.7 else ()
        address = self.scene.node(name, amount, Traits(flavor, place, zone, taints, spot), ids)
        self.gpus[address], self.ids[address] = gpus, ids

    def _add_tenants(self) -> None:
        dice, total = self.dice, sum(self.gpus.values())
        own = dice.randrange(total + 1)
        part = dice.randrange(own + 1)
        here = Line(GPU, "/east", guaranteed=gpu_amount(dice.randrange(0, 5)))
        more = (Line("tpu", guaranteed=gpu_amount(dice.randrange(0, 9))),) if dice.random() < 0.3 else ()
        most = gpu_amount(dice.randrange(8, total + 8))
        self.tenants = {
            "org": Tenant(lines=(Line(GPU, guaranteed=gpu_amount(own)), *more)),
            "a": Tenant("org", dice.randrange(1, 4), (Line(GPU, guaranteed=gpu_amount(part)),)),
            "b": Tenant(lines=(Line(GPU, limit=most), *((here,) if dice.random() < 0.3 else ()))),
            "guest": Tenant(),
        }
        for name, tenant in self.tenants.items():
            self.scene.send(SetTenant(name, tenant))
        self.scene.send(SetTier(ADVISED_TIER, Tier(230, DAY_MS, sharing=Sharing(ADVISED, 5 * MINUTE_MS))))

    # -- who comes ------------------------------------------------------------------------------------------------

    def _draw_kind(self) -> Fields:
        dice = self.dice
        roll = dice.random()
        if "cut" in self.flavors and roll < 0.25:
            return _piece(dice)
        if "tpu" in self.flavors and roll > 0.85:
            return _box(dice)
        arrays = [job for job in self.scene.body.world.jobs.values() if job.spec.array]
        if arrays and roll > 0.8:
            liked = dice.choice(arrays)
            return {"gpus": 1, "array": liked.spec.array, "after": (After(liked.id, When.TASK_BY_TASK),)}
        fields = super()._draw_kind()
        if "ask" not in fields and dice.random() < 0.1:
            gpus = fields.get("gpus", 1)
            disk, network = dice.choice((0, 300 * GIB)), dice.choice((0, 20_000))
            fields["ask"] = Resources(gpus, 1000 * gpus, GIB * gpus, 0, disk, network)
        if fields.get("gang", 1) > 1 and "gang_most" not in fields and "needs" not in fields and dice.random() < 0.3:
            fields |= {"gang_most": fields["gang"], "in_place": True}
        return fields | self._habits()

    def _habits(self) -> Fields:
        """What is of any kind: some are held when they come, and many stop only when they have to."""
        found: Fields = {"held": True} if self.dice.random() < 0.05 else {}
        return found | ({"stop_ms": FOR_EVER_MS} if self.dice.random() < 0.5 else {})

    def _wishes(self, tenant: str, *, is_gang: bool) -> Fields:
        dice, found = self.dice, super()._wishes(tenant, is_gang=is_gang)
        if dice.random() < 0.4:
            found["flavors"] = tuple(dice.sample(self.flavors, dice.randrange(1, len(self.flavors) + 1)))
            found["any_flavor"] = dice.random() < 0.5
        if dice.random() < 0.15:
            found["labels"] = (dice.choice(("zone=a", "zone=b", "zone!=a", "zone")),)
        if dice.random() < 0.5:
            found["tolerates"] = ("odd",)
        if dice.random() < 0.3:
            found |= {"like": dice.choice(("bert", "gpt")), "data": dice.choice(((), ("web",), ("web", "books")))}
        if is_gang:
            found |= self._levels()
        return found | self._company(tenant)

    def _levels(self) -> Fields:
        dice = self.dice
        roll = dice.random()
        if roll < 0.1:
            return {"spread": dice.choice(("node", "rack")), "spread_most": dice.choice((1, 2)), "within": "fleet"}
        if roll < 0.2:
            return {"slice": dice.choice(("node", "rack")), "slice_tasks": dice.choice((1, 2))}
        return {"within": dice.choice(LEVELS), "near": dice.choice(("", "node"))} if roll < 0.3 else {}

    def _company(self, tenant: str) -> Fields:
        if not self.names or self.dice.random() < 0.85:
            return {}
        field, other = self.dice.choice(("apart", "apart", "beside")), self.dice.choice(self.names[-4:])
        return {field: (f"{tenant}/{other}",), f"{field}_level": self.dice.choice(LEVELS[:4])}

    # -- what happens ---------------------------------------------------------------------------------------------

    def disturb(self) -> None:
        """Something happens to the fleet, to what is known of it or to what may be spent, and what happens to all."""
        super().disturb()
        if self.dice.random() < 0.5:
            self.dice.choice(DISTURBANCES)(self)

    def _running(self) -> list[Job]:
        return [job for job in self.scene.body.world.jobs.values() if isinstance(job.phase, Running)]

    def cap(self) -> None:
        """A feed or an uplink has a budget from now on."""
        dice, name = self.dice, self.dice.choice(OVERLAYS)
        nodes = tuple(sorted(dice.sample(self.nodes, dice.randrange(1, len(self.nodes) + 1))))
        who = {"labels": ("zone=a",)} if dice.random() < 0.3 else {"nodes": nodes}
        resource, budget = (POWER, dice.randrange(500, 12_000)) if name == "feed" else (NETWORK, 50_000)
        self.scene.send(SetOverlay(name, Overlay(resource, budget, **who)))

    def uncap(self) -> None:
        """It has none any more."""
        self.scene.send(DropOverlay(self.dice.choice(OVERLAYS)))

    def spend(self) -> None:
        """A tenant has a budget from now on, or none; and it lends all that it does not use, or half of that."""
        dice = self.dice
        unit, soft = dice.choice((GPU_HOURS, MONEY)), dice.random() < 0.5
        period_ms = dice.choice((0, 3, 24)) * HOUR_MS
        budget = Budget(unit, dice.randrange(1, 200) * 1_000_000, soft, period_ms)
        name = dice.choice(TENANTS)
        budgets = (budget,) if dice.random() < 0.7 else ()
        halves = dice.random() < 0.3
        lines = [replace(line, lend=line.guaranteed // 2 if halves else None) for line in self.tenants[name].lines]
        self.scene.send(SetTenant(name, replace(self.tenants[name], budgets=budgets, lines=tuple(lines))))

    def advise(self) -> None:
        """An adviser says something new."""
        dice, jobs = self.dice, sorted(self.scene.body.world.jobs)
        self._version += 1
        told = sorted(dice.sample(jobs, dice.randrange(len(jobs) + 1)))
        columns: dict[str, tuple[int, ...]]
        kind = dice.choice((RUNTIME, RUNTIME, THROUGHPUT, DISTANCE, INDEX))
        if kind == RUNTIME:
            columns = {"job": tuple(told), "run_ms": tuple(dice.randrange(1, 600) * MINUTE_MS for _ in told)}
        elif kind == INDEX:
            columns = {"job": tuple(told), "index": tuple(dice.randrange(1000) for _ in told)}
        elif kind == THROUGHPUT:
            pairs = [(work, flavor) for work in ("bert", "gpt") for flavor in self.flavors]
            columns = {column_of(*pair): (dice.randrange(1, 100),) for pair in pairs}
        else:
            pairs = [(data, cluster) for data in ("web", "books") for cluster in ("/", "/east")]
            columns = {column_of(*pair): (dice.randrange(100),) for pair in pairs}
        until = self.now() + dice.randrange(1, 48) * HOUR_MS
        self.scene.send(Advise(kind, Advice(self._version, until, columns)))

    def score(self) -> None:
        """The fleet is scored by other weights."""
        weights = {term: self.dice.choice((0, 0, 10, 1000)) for term in TERMS}
        self.scene.send(SetProfile("other", Profile(**weights)))
        self.scene.send(UseProfile(self.dice.choice(("other", "default"))))

    def lose_device(self) -> None:
        """A device falls off the bus, or all of a node are there again."""
        node = self.dice.choice(self.nodes)
        if self.ids[node] and self.dice.random() < 0.5:
            self.scene.lose_device(node, self.dice.randrange(self.gpus[node]))
        else:
            self.scene.mend_devices(node, *self.ids[node])

    def fence(self) -> None:
        """The authority of a node that is away vouches for it."""
        if self.away:
            self.scene.fence(self.dice.choice(self.away))

    def progress(self) -> None:
        """Somebody who runs says how far it is."""
        if running := self._running():
            job = self.dice.choice(running)
            step, safe = self.dice.randrange(1000), self.dice.random() < 0.5
            self.scene.send(Progressed(job.id, job.epoch, step, safe, checkpointing=not safe))

    def progress_tasks(self) -> None:
        """Some tasks of an array say how far they are, now and then of a try before the latest."""
        dice, world = self.dice, self.scene.body.world
        arrays = [number for number, tasks in world.arrays.items() if tasks.counts[TaskPhase.RUNNING]]
        if arrays:
            number = dice.choice(sorted(arrays))
            tasks = world.arrays[number]
            first = max(tasks.phase.find(TaskPhase.RUNNING, dice.randrange(len(tasks))), 0)
            epoch, count = tasks.epoch[first] - (dice.random() < 0.1), dice.randint(1, len(tasks) - first)
            safe = dice.random() < 0.5
            self.scene.send(Progressed(number, epoch, dice.randrange(100), safe, "", False, first, count))

    def regroup(self) -> None:
        """A tenant stands elsewhere in the tree, and owns or may hold something else; or it leaves the tree."""
        dice, name = self.dice, self.dice.choice(TENANTS)
        self._is_regrouped = True
        if dice.random() < 0.2:
            self.scene.send(DropTenant(name))
            return
        total, parent = sum(self.gpus.values()), dice.choice((ROOT, *TENANTS))
        limit = gpu_amount(dice.randrange(8, total + 8)) if dice.random() < 0.4 else None
        line = Line(GPU, guaranteed=gpu_amount(dice.randrange(total // 2 + 1)), limit=limit)
        self.scene.send(SetTenant(name, Tenant(ROOT if parent == name else parent, dice.randrange(1, 4), (line,))))

    def protect(self) -> None:
        """A tier lets its own alone for a while, or stops them seldom; and it promises something, or no more."""
        dice, name = self.dice, self.dice.choice(PROTECTED)
        tier = replace(
            self.scene.body.world.tiers[name],
            min_run_ms=dice.choice((0, HOUR_MS, 10 * HOUR_MS)),
            evictions_max=dice.choice((None, 0, 1, 3)),
            promise=dice.choice((None, Promise(dice.randrange(1, 900), dice.choice((HOUR_MS, DAY_MS))))),
        )
        self.scene.send(SetTier(name, tier))

    def book_in_a_row(self) -> None:
        """Windows that follow each other closely, or at once, for its tenant alone or for all below it."""
        dice, at = self.dice, self.now() + self.dice.randrange(MINUTE_MS, 5 * HOUR_MS)
        windows: list[Window] = []
        for _ in range(dice.randrange(1, 6)):
            closes_at = at + dice.randrange(1000, 4 * HOUR_MS)
            windows.append(Window(at, closes_at))
            at = closes_at + dice.choice((0, 0, 1, HOUR_MS))
        name, tenant, nodes = f"r{self.now()}", dice.choice(TENANTS), dice.randrange(1, 5)
        kind = (dice.choice((0, 1, 8)), dice.choice(("", *self.flavors)), dice.choice(("", "rack", "node", "fleet")))
        self.scene.send(Reserve(Booking(name, tenant, nodes, tuple(windows), *kind, dice.random() < 0.5)))

    def move(self) -> None:
        """The owner of a gang names nodes for it, or nodes that it should leave."""
        if running := self._running():
            some = tuple(sorted(self.dice.sample(self.nodes, self.dice.randrange(1, len(self.nodes) + 1))))
            to, off = self.dice.choice(((some, ()), ((), some)))
            self.scene.send(MigrateJob(self.dice.choice(running).id, to, off))

    def bar(self) -> None:
        """A node is emptied for a while, at once or as what is there ends."""
        until = self.now() + self.dice.randrange(1, 300) * MINUTE_MS
        kind, lets_finish = self.dice.choice((BarKind.CORDON, BarKind.DRAIN)), self.dice.random() < 0.5
        self.scene.send(BarNode(self.dice.choice(self.nodes), kind, OPERATOR, until=until, lets_finish=lets_finish))

    def book(self) -> None:
        """Nodes of a kind are booked several times, or a booking is given up."""
        dice, known = self.dice, sorted(self.scene.body.world.bookings)
        if known and dice.random() < 0.5:
            self.scene.send(CancelBooking(dice.choice(known)))
            return
        first = self.now() + dice.randrange(1, 10) * HOUR_MS
        opens = [first + at * DAY_MS for at in range(dice.choice((1, 1, 3)))]
        windows = tuple(Window(at, at + dice.randrange(1, 10) * HOUR_MS) for at in opens)
        flexible_ms = dice.choice((0, 5 * HOUR_MS)) if len(windows) == 1 else 0
        flavor, within = dice.choice(("", *self.flavors)), dice.choice(("", "rack"))
        booking = Booking(
            f"w{self.now()}", dice.choice(TENANTS), dice.randrange(1, 3), windows, 1, flavor, within, True
        )
        self.scene.send(Reserve(booking, flexible_ms))

    def join(self) -> None:
        """One more node is there, of a kind that there is."""
        flavor = self.dice.choice([each for each in self.flavors if each != "tpu"] or ["h100"])
        self._add_node(flavor, len(self.nodes) + 10)
        self.scene.advance(seconds=1)
        self.nodes = list(self.scene.body.world.fleet.addresses)

    def rank(self) -> None:
        """A tier is something else from now on."""
        dice, name = self.dice, self.dice.choice(sorted(TIERS))
        tier = replace(TIERS[name], shadows=dice.randrange(3), longest_wait_ms=dice.randrange(1, 48) * HOUR_MS)
        self.scene.send(
            SetTier(name, replace(tier, min_run_ms=dice.choice((0, HOUR_MS)), moves_max=dice.choice((0, 5))))
        )

    def narrow(self) -> None:
        """Somebody wants other bounds for a gang."""
        if jobs := list(self.scene.body.world.jobs):
            least = self.dice.randrange(1, 3)
            self.scene.send(ScaleJob(self.dice.choice(jobs), least + self.dice.randrange(3), least))

    def price(self) -> None:
        """A flavor costs something else, and takes more power or less."""
        name = self.dice.choice(self.flavors)
        micros, watts = self.dice.randrange(3_000_000), self.dice.randrange(1000)
        self.scene.send(SetFlavor(name, replace(FLAVORS[name], price_micros=micros, watts=watts)))

    def bring_back(self) -> None:
        """What failed of an array runs again."""
        world = self.scene.body.world
        failed = [job for job in world.jobs.values() if job.spec.array and isinstance(job.phase, Failed)]
        if failed:
            job = self.dice.choice(failed)
            phases = world.arrays[job.id].phase
            ranges = chain(*spans_of(phases, (TaskPhase.FAILED,), 0, len(phases)))
            self.scene.send(Submit(bring_back(job.spec, job.id, ranges)))

    # -- how it ends ----------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """All devices are there, nothing is capped and nobody has spent too much; in the end those are sent home who
        wait beside somebody who is over."""
        for node in self.nodes:
            self.scene.mend_devices(node, *self.ids[node])
        for name in OVERLAYS:
            self.scene.send(DropOverlay(name))
        for name in PROTECTED:
            self.scene.send(SetTier(name, replace(self.scene.body.world.tiers[name], promise=None)))
        for name in TENANTS * len(TENANTS) if self._is_regrouped else ():  # a parent after those below it
            self.tenants[name] = Tenant()
            self.scene.send(SetTenant(name, Tenant()))
        for name, tenant in self.tenants.items():
            soft = tuple(each for each in self.scene.body.world.tenants[name].budgets if each.soft and each.period_ms)
            self.scene.send(SetTenant(name, replace(tenant, budgets=soft)))
        super().drain()
        self._send_home(self.scene)

    def _send_home(self, scene: Scene) -> None:
        lonely = [job for job in scene.body.world.jobs.values() if job.spec.needs.beside]
        for job in lonely:
            if not isinstance(job.phase, TERMINAL):
                scene.send(Cancel(job.id))
        scene.advance(hours=7 * 24 if lonely else 0)


def _piece(dice: random.Random) -> Fields:
    array = dice.randrange(1, 12) if dice.random() < 0.4 else 0
    return {"gpus": 1, "array": array, "needs": {"partition": dice.choice(PARTITIONS).name}}


def _box(dice: random.Random) -> Fields:
    shape = dice.choice(SHAPES)
    return {"gpus": dice.choice((1, 4)), "gang": shape[0] * shape[1] * shape[2], "needs": {"shape": shape, **NO_LEVELS}}


DISTURBANCES: Final = (
    VariedCrowd.cap, VariedCrowd.uncap, VariedCrowd.spend, VariedCrowd.advise, VariedCrowd.score,
    VariedCrowd.lose_device, VariedCrowd.fence, VariedCrowd.progress, VariedCrowd.move, VariedCrowd.bar,
    VariedCrowd.book, VariedCrowd.join, VariedCrowd.rank, VariedCrowd.narrow, VariedCrowd.price,
    VariedCrowd.bring_back, VariedCrowd.progress_tasks, VariedCrowd.regroup, VariedCrowd.protect,
    VariedCrowd.book_in_a_row,
)  # fmt: skip
