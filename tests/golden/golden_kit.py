"""How the golden files are made and read. They are made once per version and then only read.

    python tests/golden/golden_kit.py journals   writes the journal of the version in JOURNAL, if there is none
    python tests/golden/golden_kit.py decisions  writes the decisions of the scenes again; read the diff

A journal is a list of entries, each after its length as four bytes, most significant first. Its digest is the first
line of the file beside it.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from muster.kernel.kernel import Kernel
from muster.model import event
from muster.model.job import BarKind
from muster.model.node import Traits
from muster.model.reason import Code
from muster.model.spec import Needs, Spec
from muster.model.tenant import Line, Tenant, gpu_amount
from muster.model.tier import Tier
from muster.simulator.options import SimOptions
from muster.simulator.simulation import run_simulation
from muster.testing.scene import Scene
from muster.units import MINUTE_MS, Resources
from muster.wire.bundle import decode_bundle
from muster.wire.codec import encode_entry
from muster.world.laws.invariants import fold
from muster.world.snapshot import digest

HERE = Path(__file__).parent
JOURNAL = HERE / "journals" / "v5.journal"


def pack(entries: Iterable[bytes]) -> bytes:
    """Entries as one file."""
    return b"".join(struct.pack(">I", len(data)) + data for data in entries)


def unpack(data: bytes) -> list[bytes]:
    """The entries of a file."""
    entries, place = [], 0
    while place < len(data):
        (size,) = struct.unpack_from(">I", data, place)
        entries.append(data[place + 4 : place + 4 + size])
        place += 4 + size
    return entries


def make_journal() -> list[bytes]:
    """A stormy day of a small fleet that ends in the middle of things: every kind of fact is in it."""
    options = SimOptions(
        nodes=8, days=0.8, seed=3, load=1.2, pace=4, faults=6000, maintenance=6000, device_faults=6000, lost=100,
        doubled=200, failures=0.3, cancels=0.5, tenants=3, drain=False, record=True, bookings=20_000,
    )  # fmt: skip
    bundle = run_simulation(options).bundle
    assert bundle is not None
    entries = decode_bundle(bundle).entries
    entries = [*entries, *outlive(entries)]
    entries = [*entries, *spare(entries)]
    entries = [*entries, *gather(entries)]
    entries = [*entries, *say(entries)]
    return [*entries, *change(entries)]


def outlive(entries: list[bytes]) -> list[bytes]:
    """How the day goes on, for what a storm hardly shows: a gang in place outlives a node."""
    node, spec = (
        Resources(0, 4000, 2**50 - 1),
        Spec(("late",), gang=2, gang_most=2, in_place=True, ask=Resources(0, 1, 2**49)),
    )
    seen = (event.NodeSeen(f"late-{number}", node) for number in range(2))
    return _tell(
        entries, spec, lambda number: ((*seen,), (event.Started(number, 1, 0, 2),), (event.NodeGone("late-0"),))
    )


def spare(entries: list[bytes]) -> list[bytes]:
    """And on: a gang gets a spare, loses it, gets another, and that one takes the place of a rank."""
    node = Resources(0, 4000, 2**38, disk_bytes=2**40)
    ask = Resources(0, 1, 1, disk_bytes=2**40)
    spec = Spec(("later",), gang=2, gang_most=2, in_place=True, spares=1, ask=ask, needs=Needs(tolerates=("later",)))
    seen = [event.NodeSeen(f"later-{number}", node, traits=Traits(taints=("later",))) for number in range(4)]
    return _tell(
        entries,
        spec,
        lambda number: (
            (*seen[:3],),
            (event.Started(number, 1, 0, 2), event.BarNode("later-2", BarKind.CORDON, "op")),
            (seen[3],),
            (event.NodeGone("later-0"),),
        ),
    )


def _tell(entries: list[bytes], spec: Spec, batches: Callable[[int], Sequence[Sequence[event.Event]]]) -> list[bytes]:
    """What happens after some entries: a job comes with the first batch, whose number the batches are told."""
    kernel, told = Kernel(fold(entries)), list[bytes]()
    for index, batch in enumerate(batches(kernel.world.next_job)):
        events = [*batch, event.Submit(spec)] if not index else batch
        outcome = kernel.handle(events, kernel.world.now + 1000)
        if outcome.facts:
            told.append(encode_entry(outcome.seq, outcome.at, outcome.facts))
    return told


def gather(entries: list[bytes]) -> list[bytes]:
    """One is moved so that another fits."""
    kernel, told = Kernel(fold(entries)), list[bytes]()

    def happen(*events: event.Event, after_ms: int = 1000) -> int:
        outcome = kernel.handle(events, kernel.world.now + after_ms)
        if outcome.facts:
            told.append(encode_entry(outcome.seq, outcome.at, outcome.facts))
        return kernel.world.next_job - 1

    owner = Tenant(lines=(Line("scarce", guaranteed=gpu_amount(4)),))
    node, traits = Resources(2, 4000, 2**33), Traits("scarce", taints=("scarce",))
    happen(event.SetTenant("late", owner), event.SetTier("late", Tier(0, 0, moves_max=1)))
    happen(*(event.NodeSeen(f"scarce-{number}", node, traits=traits) for number in range(2)))
    ask, needs = Resources(1, 1000, 2**30), Needs(tolerates=("scarce",), flavors=("scarce",))
    spec = Spec(("late",), tenant="late", tier="late", ask=ask, needs=needs)
    jobs = [happen(event.Submit(spec)) for _ in range(3)]
    happen(*(event.Started(number, 1, 0, 1) for number in jobs))
    happen(event.Exited(jobs[0], 1, 0, 0, 1))
    happen(event.Submit(replace(spec, ask=Resources(2, 2000, 2**31))))
    happen(after_ms=MINUTE_MS)
    return told


def say(entries: list[bytes]) -> list[bytes]:
    """Tasks of an array say how far they are; one of them begins to write a checkpoint, and some have one."""
    node, needs = Resources(4, 4000, 2**33), Needs(tolerates=("told",), flavors=("told",))
    spec = Spec(("told",), array=4, ask=Resources(1, 1, 1), needs=needs)
    seen = event.NodeSeen("told", node, traits=Traits("told", taints=("told",)))
    return _tell(
        entries,
        spec,
        lambda number: (
            (seen,),
            (event.Started(number, 1, 0, 4),),
            (event.Progressed(number, 1, 7, checkpointed=True, count=3),),
            (event.Progressed(number, 1, 8, checkpointing=True, first=1),),
            (event.Progressed(number, 1, 9, first=1, more=[3, 1]),),
        ),
    )


def change(entries: list[bytes]) -> list[bytes]:
    """A node where work is says that it is another one, and is that when the work is over."""
    node, needs = Resources(1, 4000, 2**33), Needs(tolerates=("changed",))
    spec = Spec(("changed",), ask=Resources(1, 1, 1), needs=needs)
    seen = event.NodeSeen("changed", node, traits=Traits("changed", taints=("changed",)))
    other = replace(seen, capacity=Resources(2, 4000, 2**33), traits=Traits("other", taints=("changed", "other")))
    return _tell(
        entries,
        spec,
        lambda number: (
            (seen,),
            (event.Started(number, 1, 0, 1), replace(other, held=(event.Held(number, 1, 0, 1),))),
            (event.Exited(number, 1, 0, 0, 1),),
        ),
    )


def packing() -> Scene:
    """Best fit for one, the fewest nodes for a gang, the fullest nodes first for an array."""
    scene = Scene().cluster(nodes=4, gpus=8)
    scene.job("three", gpus=3).job("five", gpus=5).job("two", gpus=2).job("gang", gpus=2, gang=10)
    scene.job("sweep", gpus=1, array=12, minutes=5).run().advance(minutes=6)
    return scene.cancel("gang").run()


def quota_and_order() -> Scene:
    """Two tenants with quotas and one without; a blocked gang, and what goes past it."""
    scene = Scene().cluster(nodes=2, gpus=8).tenant("a", gpus=8).tenant("b", gpus=4)
    scene.job("a1", gpus=8, tenant="a", minutes=10).job("a2", gpus=4, tenant="a", minutes=10)
    scene.job("b1", gpus=4, tenant="b").job("b2", gpus=1, tenant="b").job("c1", gpus=8, gang=2)
    scene.job("c2", gpus=4, minutes=3).run().expect(reason={"a2": Code.OVER_QUOTA})
    return scene.tenant("b", gpus=5).advance(minutes=11)


def losses() -> Scene:
    """A gang loses a node, an array loses tasks, a node comes back with what nobody wants."""
    scene = Scene(seed=3).cluster(nodes=3, gpus=4)
    scene.job("gang", gpus=4, gang=2, minutes=30).job("sweep", gpus=1, array=6, minutes=20, retries=1).run()
    scene.cut_off("node-1").advance(minutes=2).fence("node-1").run().bring_back("node-1").run()
    return scene.fail("node-2").advance(minutes=1).bring_back("node-2").advance(minutes=25)


SCENES: dict[str, Callable[[], Scene]] = {scene.__name__: scene for scene in (packing, quota_and_order, losses)}


def decisions_of(name: str) -> str:
    """What a scene decides, without the events and the facts that only repeat what they say."""
    lines = SCENES[name]().story().splitlines()
    return "".join(f"{line}\n" for line in lines if not any(mark in line for mark in ("  > ", "Accepted(", "Joined(")))


def decisions_file(name: str) -> Path:
    """Where the decisions of a scene are pinned."""
    return HERE / "decisions" / f"{name}.txt"


def main(word: str) -> None:
    """Write the golden files of one kind."""
    if word == "decisions":
        for name in SCENES:
            decisions_file(name).parent.mkdir(exist_ok=True)
            decisions_file(name).write_text(decisions_of(name), encoding="utf-8")
    elif word == "journals" and not JOURNAL.exists():
        entries = make_journal()
        JOURNAL.parent.mkdir(exist_ok=True)
        JOURNAL.write_bytes(pack(entries))
        JOURNAL.with_suffix(".digest").write_text(f"{digest(fold(entries))}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
