"""A crowd: jobs that may come in each other's way, on a small fleet to which everything happens.

Gangs, elastic or not, of one kind or several, with spares and without, arrays, shares of devices; owners and borrowers,
tiers that go first, take turns, promise or move; due times, limits, ends that are expected, others to wait for, others
to keep away from; bookings; nodes that die, are cut off, closed and emptied, and people who hold, release, requeue,
scale, migrate and cancel. All of it is thrown by seeded dice. Whoever has a crowd says when it submits and disturbs,
and what has to be true in the end. A fleet with more in it is in `muster.testing.variety`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from muster.model.after import After, When
from muster.model.booking import Booking, Window
from muster.model.event import Reserve, ScaleJob, SetTenant, SetTier
from muster.model.group import Group
from muster.model.sharing import Sharing
from muster.model.spec import Needs
from muster.model.tenant import GPU, Line, Tenant, gpu_amount
from muster.model.tier import Promise, Tier
from muster.simulator.engine import Network
from muster.testing.scene import Scene
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS, Resources

WEEKS: Final = 6
"""So long after the last event everybody is over: jobs run for ten hours at most, and a tier waits for a week."""
TENANTS: Final = ("org", "a", "b", "guest")
TIERS: Final = {
    "alarm": Tier(50, HOUR_MS, emergency=True),
    "sure": Tier(150, DAY_MS, promise=Promise(500, DAY_MS)),
    "turns": Tier(210, DAY_MS, sharing=Sharing(quantum_ms=2 * MINUTE_MS)),
    "moved": Tier(220, DAY_MS, shadows=3, min_run_ms=HOUR_MS, moves_max=5),
}
CHOSEN: Final = ("standard", "standard", "standard", "critical", "opportunistic", *TIERS)
CONDITIONS: Final = (When.STARTED, When.SUCCEEDED, When.OVER, When.NOT_SUCCEEDED)

Fields = dict[str, Any]


class Crowd:
    """A scene with seeded dice, and what is wrong in it now."""

    def __init__(self, seed: int, inspect_every: int) -> None:
        self.dice = random.Random(f"{seed}/drain")  # noqa: S311 - a crowd wants seeded dice
        network = Network(lost=20, doubled=50) if self.dice.random() < 0.3 else None
        self.scene = Scene(seed, network, inspect_every=inspect_every)
        self.names: list[str] = []
        self.away: list[str] = []
        self.nodes = self._add_nodes()
        self._add_tenants()
        for name, tier in TIERS.items():
            self.scene.send(SetTier(name, tier))

    def _add_nodes(self) -> list[str]:
        for cluster in ("", "east")[: self.dice.randrange(1, 3)]:
            self.scene.cluster(nodes=self.dice.randrange(1, 5), name=cluster)
        return list(self.scene.body.world.fleet.addresses)

    def _add_tenants(self) -> None:
        scene, dice, total = self.scene, self.dice, 8 * len(self.nodes)
        own = dice.randrange(total + 1)
        scene.share("org", own)
        scene.share("a", dice.randrange(own + 1), parent="org")
        line = Line(GPU, guaranteed=gpu_amount(min(4, total - own)), limit=gpu_amount(dice.randrange(8, total + 8)))
        scene.send(SetTenant("b", Tenant(lines=(line,))))

    def submit(self) -> None:
        """One more comes, of any kind."""
        dice, name = self.dice, f"j{len(self.names)}"
        fields = self._draw_kind()
        minutes, tenant = dice.randrange(1, 600), dice.choice(TENANTS)
        own = fields.pop("needs", {})
        fields["needs"] = Needs(**{**self._wishes(tenant, is_gang=not fields.get("array")), **own})
        self.scene.job(
            name,
            minutes=minutes,
            tenant=tenant,
            tier=dice.choice(CHOSEN),
            priority=dice.choice((0, 0, 0, 5, -3)),
            grace_ms=1000 * dice.randrange(90),
            retries=dice.choice((0, 1, 3)),
            codes=dice.choice(((0,), (0,), (0,), (1, 0), (1,))),
            **{
                **self._conditions(),
                **self._ends(minutes, is_gang=not fields.get("array"), is_evictable=fields.get("evictable", True)),
                **fields,
            },
        )
        self.names.append(name)

    def _draw_kind(self) -> Fields:
        return self.dice.choices(tuple(KINDS), tuple(KINDS.values()))[0](self.dice)

    def _wishes(self, tenant: str, *, is_gang: bool) -> Fields:
        found: Fields = {}
        if is_gang and self.dice.random() < 0.2:
            found["within"] = self.dice.choice(("node", "cluster", "fleet"))
        if self.names and self.dice.random() < 0.1:
            found["apart"] = (f"{tenant}/{self.dice.choice(self.names)}",)
        booked = [name for name, booking in self.scene.body.world.bookings.items() if booking.tenant == tenant]
        if booked and self.dice.random() < 0.5:
            found["booking"] = self.dice.choice(booked)
        return found

    def _conditions(self) -> Fields:
        known = self.live()
        if known and self.dice.random() < 0.15:
            return {"after": (After(self.scene.number(self.dice.choice(known)), self.dice.choice(CONDITIONS)),)}
        return {"due_at": self.now() + self.dice.randrange(1, 48) * HOUR_MS} if self.dice.random() < 0.15 else {}

    def _ends(self, minutes: int, *, is_gang: bool, is_evictable: bool) -> Fields:
        found: Fields = {}
        if self.dice.random() < 0.3:
            found["limit_ms"] = 1 + self.dice.choice((minutes // 2, minutes, 2 * minutes)) * MINUTE_MS
        if is_gang and self.dice.random() < 0.3:
            found["expect_ms"] = self.dice.choice((minutes // 2, minutes)) * MINUTE_MS + 1
            found["yields"] = is_evictable and found["expect_ms"] < found.get("limit_ms", DAY_MS)
        return found

    def live(self) -> list[str]:
        """Everybody who was accepted and is still known."""
        return [job.spec.name for job in self.scene.body.world.jobs.values()]

    def now(self) -> int:
        """The time of the scene."""
        return self.scene.body.world.now

    def disturb(self) -> None:
        """Something happens to a node, a job or the calendar, or nothing does."""
        dice, live = self.dice, self.live()
        if dice.random() < 0.25:
            dice.choice((self._lose, self._return, self._close, self._reserve))()
        elif live and dice.random() < 0.3:
            scene, name = self.scene, dice.choice(live)
            wider = ScaleJob(scene.number(name), dice.randrange(1, 8))
            dice.choice((scene.hold, scene.release, scene.requeue, scene.migrate, scene.cancel))(name)
            scene.send(wider)

    def _lose(self) -> None:
        node = self.dice.choice(self.nodes)
        if node not in self.away:
            self.dice.choice((self.scene.fail, self.scene.cut_off))(node)
            self.away.append(node)

    def _return(self) -> None:
        if self.away:
            self.scene.bring_back(self.away.pop())

    def _close(self) -> None:
        node = self.dice.choice(self.nodes)
        self.dice.choice((self.scene.uncordon, self.scene.cordon, self.scene.drain))(node)

    def _reserve(self) -> None:
        opens_at = self.now() + self.dice.randrange(1, 20) * HOUR_MS
        window = Window(opens_at, opens_at + self.dice.randrange(1, 10) * HOUR_MS)
        self.scene.send(
            Reserve(Booking(f"b{self.now()}", self.dice.choice(TENANTS), self.dice.randrange(1, 3), (window,)))
        )

    def drain(self) -> None:
        """All nodes are back and open, nothing is held, and nobody comes any more."""
        while self.away:
            self._return()
        self.scene.advance(hours=1)
        for node in self.nodes:
            self.scene.uncordon(node)
        for name in self.live():
            self.scene.release(name)
        self.scene.advance(hours=WEEKS * 7 * 24)


def _gang(dice: random.Random) -> Fields:
    return {"gpus": dice.choice((1, 2, 4, 8)), "gang": dice.choice((1, 1, 2, 3)), "evictable": dice.random() < 0.9}


def _array(dice: random.Random) -> Fields:
    return {"gpus": dice.choice((1, 2, 4)), "array": dice.randrange(1, 20), "at_most": dice.choice((0, 0, 2, 5))}


def _elastic(dice: random.Random) -> Fields:
    gang = dice.randrange(1, 4)
    most = gang + dice.randrange(1, 8)
    return {"gpus": dice.choice((1, 2, 4)), "gang": gang, "gang_most": most, "in_place": dice.random() < 0.5}


def _with_spare(dice: random.Random) -> Fields:
    return {"gpus": dice.choice((2, 4, 8)), "gang": dice.randrange(2, 4), "spares": 1}


def _share(dice: random.Random) -> Fields:
    return {"ask": Resources(0, 1000, 1 << 30, gpu_milli=dice.choice((250, 500)))}


def _groups(dice: random.Random) -> Fields:
    workers = Group("work", 2, Resources(dice.choice((1, 4)), 1000, 1 << 30))
    return {
        "ask": Resources(cpu_milli=1000),
        "gang": 3,
        "needs": {"groups": (workers, Group("serve", 1, Resources(0, 4000)))},
    }


KINDS: Final[dict[Callable[[random.Random], Fields], int]] = {
    _gang: 5, _array: 3, _elastic: 3, _with_spare: 1, _share: 1, _groups: 1,
}  # fmt: skip
