"""The worked examples of the goodput page: two hours with faults at known times, and what a claim keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from muster.model import event
from muster.model.goodput import Bucket
from muster.model.job import BarKind
from muster.model.reason import Done
from muster.model.tenant import Tenant, limits
from muster.testing.rig import Rig, spec
from muster.testing.worked_tables import read_table
from muster.units import MINUTE_MS, Resources
from muster.world.accounting import read_account
from muster.world.laws.invariants import check_world
from muster.world.snapshot import digest, restore, snapshot

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "goodput.md"
GPU_MINUTE = 1000 * MINUTE_MS
NODE = Resources(4, 64_000, 2**38)


class Play:
    """The story of the page; each row's words are one of its scenes."""

    def __init__(self) -> None:
        self.rig = Rig()
        self.jobs: dict[str, int] = {}

    def submit(self, name: str, gpus: int, **fields: Any) -> None:
        answer = self.rig.feed(event.Submit(spec(gpus, **fields)), after_ms=0).answers[0]
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

    def progress(self, name: str, step: int, **words: Any) -> None:
        self.say(event.Progressed(self.jobs[name], self.rig.job(self.jobs[name]).epoch, step, **words))

    def begin(self) -> None:
        self.say(event.NodeSeen("a", NODE), event.NodeSeen("b", NODE))
        self.say(event.SetTenant("lab", Tenant(lines=limits(gpus=2))))
        self.submit("train", 4)
        self.submit("sweep", 2)

    def lose(self) -> None:
        self.lost = self.node_of("train")
        self.say(event.NodeGone(self.lost))

    def begin_low(self) -> None:
        self.say(event.NodeSeen("a", NODE))
        for name in ("one", "other"):
            self.submit(name, 2, tier="opportunistic", grace_ms=10 * MINUTE_MS)

    def scenes_of_claim(self) -> dict[str, Callable[[], None]]:
        return {
            "one and other (2 GPUs each) get their places": self.begin_low,
            "one and other are up": lambda: self.say(self.started("one"), self.started("other")),
            "urgent claims all; one and other are told to stop": lambda: self.submit("urgent", 4, tier="critical"),
            "one has stopped": lambda: self.say(self.exited("one", 143)),
            "other has stopped; urgent gets its places": lambda: self.say(self.exited("other", 143)),
            "urgent is up": lambda: self.say(self.started("urgent")),
            "urgent succeeds": lambda: self.say(self.exited("urgent", 0)),
        }

    def scenes(self) -> dict[str, Callable[[], None]]:
        return {
            "train (4 GPUs) and sweep (2) get their places": self.begin,
            "both are up": lambda: self.say(self.started("train"), self.started("sweep")),
            "train begins to write a checkpoint": lambda: self.progress("train", 100, checkpointing=True),
            "train is checkpointed": lambda: self.progress("train", 100, checkpointed=True),
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
        self.submit("first", 2, tenant="lab")
        self.submit("second", 2, tenant="lab")


BUCKETS_OF_CLAIM = (
    Bucket.USEFUL, Bucket.PROVISIONAL, Bucket.LOST, Bucket.STARTING, Bucket.STOPPING, Bucket.CLAIMED,
)  # fmt: skip


def buckets(rig: Rig, among: Iterable[Bucket] = Bucket) -> list[str]:
    account = read_account(rig.world, rig.now).get("gpu", {})
    found = [divmod(account.get(bucket, 0), GPU_MINUTE) for bucket in among]
    assert all(not rest for _, rest in found)
    return [str(minutes) for minutes, _ in found]


def play_to(play: Play, minute: int, scene: Callable[[], None]) -> None:
    if minute:
        play.rig.feed(after_ms=minute * MINUTE_MS - play.rig.now)
    scene()
    check_world(play.rig.world)
    assert digest(restore(snapshot(play.rig.world))) == digest(play.rig.world)


def test_the_account_is_that_on_the_page() -> None:
    play = Play()
    scenes = play.scenes()
    for minute, what, *wanted in read_table(PAGE, "minute"):
        play_to(play, int(minute), scenes[what])
        assert buckets(play.rig) == wanted, minute
        assert sum(map(int, wanted)) == 8 * int(minute), "what there was, to the minute"
    tenants = [read_account(play.rig.world, play.rig.now, name)["gpu"] for name in ("default", "lab")]
    assert [times[Bucket.LOST] // GPU_MINUTE for times in tenants] == [156, 56]


def test_what_a_claim_keeps_is_that_on_the_page() -> None:
    play = Play()
    scenes = play.scenes_of_claim()
    for minute, what, *wanted in read_table(PAGE, "after"):
        play_to(play, int(minute), scenes[what])
        assert buckets(play.rig, BUCKETS_OF_CLAIM) == wanted, minute
        assert sum(map(int, wanted)) == 4 * int(minute), "what there was, to the minute"
