"""The worked example of the goodput page: two hours of two nodes with faults at known times, minute by minute."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from muster.model import event
from muster.model.goodput import Bucket
from muster.model.job import BarKind
from muster.model.reason import Done
from muster.model.tenant import Tenant, limits
from muster.testing.rig import Rig, spec
from muster.testing.worked_tables import read_table
from muster.units import MINUTE_MS, Resources
from muster.world.accounting import read_account
from muster.world.invariants import check_world
from muster.world.snapshot import digest, restore, snapshot

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "goodput.md"
GPU_MINUTE = 1000 * MINUTE_MS
NODE = Resources(4, 64_000, 2**38)


class Play:
    """The story of the page; each row's words are one of its scenes."""

    def __init__(self) -> None:
        self.rig = Rig()
        self.jobs: dict[str, int] = {}

    def submit(self, name: str, gpus: int, tenant: str = "default") -> None:
        answer = self.rig.feed(event.Submit(spec(gpus, tenant=tenant)), after_ms=0).answers[0]
        assert isinstance(answer, Done)
        self.jobs[name] = answer.job

    def node_of(self, name: str) -> str:
        return self.rig.world.fleet.names[self.rig.run(self.jobs[name]).leases[0].slot]

    def say(self, *events: event.Event) -> None:
        self.rig.feed(*events, after_ms=0)

    def started(self, name: str) -> event.Started:
        return event.Started(self.jobs[name], self.rig.job(self.jobs[name]).epoch)

    def exited(self, name: str, code: int) -> event.Exited:
        return event.Exited(self.jobs[name], self.rig.job(self.jobs[name]).epoch, code)

    def begin(self) -> None:
        self.say(event.NodeSeen("a", NODE), event.NodeSeen("b", NODE))
        self.say(event.SetTenant("lab", Tenant(lines=limits(gpus=2))))
        self.submit("train", 4)
        self.submit("sweep", 2)

    def lose(self) -> None:
        self.lost = self.node_of("train")
        self.say(event.NodeGone(self.lost))

    def scenes(self) -> dict[str, Callable[[], None]]:
        return {
            "train (4 GPUs) and sweep (2) get their places": self.begin,
            "both are up": lambda: self.say(self.started("train"), self.started("sweep")),
            "train is checkpointed": lambda: self.say(event.Progressed(self.jobs["train"], 1, 100, True)),
            "the node of train is gone; train waits again": self.lose,
            "the node is back; train gets its place again": lambda: self.say(event.NodeSeen(self.lost, NODE)),
            "train is up": lambda: self.say(self.started("train")),
            "sweep fails; two jobs of lab (2 each), whose limit is 2": self.come,
            "the first of lab is up": lambda: self.say(self.started("first")),
            "the second of lab is cancelled": lambda: self.say(event.Cancel(self.jobs["second"])),
            "the other node is cordoned": lambda: self.say(event.BarNode(self.other, BarKind.CORDON, "op")),
            "the first of lab is cancelled": lambda: self.say(event.Cancel(self.jobs["first"])),
            "and has stopped": lambda: self.say(self.exited("first", 143)),
            "the node is uncordoned": lambda: self.say(event.UnbarNode(self.other, BarKind.CORDON, "op")),
            "train succeeds": lambda: self.say(self.exited("train", 0)),
        }

    def come(self) -> None:
        self.other = self.node_of("sweep")
        self.say(self.exited("sweep", 1))
        self.submit("first", 2, "lab")
        self.submit("second", 2, "lab")


def buckets(rig: Rig) -> list[str]:
    account = read_account(rig.world, rig.now).get("gpu", {})
    found = [divmod(account.get(bucket, 0), GPU_MINUTE) for bucket in Bucket]
    assert all(not rest for _, rest in found)
    return [str(minutes) for minutes, _ in found]


def test_the_account_is_that_on_the_page() -> None:
    play = Play()
    scenes = play.scenes()
    for minute, what, *wanted in read_table(PAGE, "minute"):
        if int(minute):
            play.rig.feed(after_ms=int(minute) * MINUTE_MS - play.rig.now)
        scenes[what]()
        assert buckets(play.rig) == wanted, minute
        assert sum(map(int, wanted)) == 8 * int(minute), "what there was, to the minute"
        check_world(play.rig.world)
        assert digest(restore(snapshot(play.rig.world))) == digest(play.rig.world)
    tenants = [read_account(play.rig.world, play.rig.now, name)["gpu"] for name in ("default", "lab")]
    assert [times[Bucket.LOST] // GPU_MINUTE for times in tenants] == [156, 56]
