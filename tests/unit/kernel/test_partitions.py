"""Partitions: a device is cut as its flavor says; whoever asks for one gets one, and nobody gets a slot of it too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muster.model.errors import RejectedError
from muster.model.event import SetFlavor
from muster.model.node import Flavor
from muster.model.partition import Partition, parse_partition, show_partition, slots_in
from muster.model.phase import ACTIVE
from muster.model.reason import Code, Refused
from muster.model.spec import Needs
from muster.model.tenant import GPU
from muster.scheduler.reasons import explain
from muster.testing.scene import Scene
from muster.units import Resources
from muster.wire.words import put_in_words

MIG = tuple(
    Partition(name, size, starts)
    for name, size, starts in (
        ("1g.10gb", 1, tuple(range(7))),
        ("2g.20gb", 2, (0, 2, 4)),
        ("3g.40gb", 4, (0, 4)),
        ("4g.40gb", 4, (0,)),
        ("7g.80gb", 8, (0,)),
    )
)
PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "placement.md"
CUT = Flavor("gpu", slots=8, partitions=MIG)


def scene(nodes: int = 1, gpus: int = 1) -> Scene:
    return Scene().cluster(nodes=nodes, gpus=gpus).send(SetFlavor("gpu", CUT))


def asks(made: Scene, name: str, partition: str, **fields: Any) -> Scene:
    return made.job(name, gpus=1, needs=Needs(partition=partition), **fields)


def slots_of(made: Scene, name: str) -> list[int]:
    job = made.find_job(name)
    assert job is not None
    assert isinstance(job.phase, ACTIVE)
    return [slots_in(lease.devices) for lease in job.phase.run.leases]


def test_partitions_share_a_device_and_keep_the_largest_placeable() -> None:
    made = scene()
    for name, partition in (("a", "1g.10gb"), ("b", "2g.20gb"), ("c", "3g.40gb")):
        asks(made, name, partition)
    made.run().expect(running=["a", "b", "c"])
    # the small one begins where no 3g could any more: a 4g needs 0, a 3g 0 or 4, so it sits in the upper half
    assert slots_of(made, "a") == [0b0100_0000]
    assert slots_of(made, "b") == [0b0011_0000]
    assert slots_of(made, "c") == [0b0000_1111]


def test_the_worked_example_of_the_page() -> None:
    """The table under `Partitions` in docs/concepts/placement.md, job by job."""
    page = PAGE.read_text().partition("## Partitions")[2].partition("## A box")[0].splitlines()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page
        if line.startswith(("| 1g", "| 2g", "| 3g"))
    ]
    made = scene()
    assert len(rows) == 4
    for number, (partition, gets, _) in enumerate(rows):
        asks(made, f"job-{number}", partition).run()
        if gets == "nothing":
            made.expect(waiting=f"job-{number}")
        else:
            first, _, last = gets.partition("-")
            assert slots_of(made, f"job-{number}") == [sum(1 << at for at in range(int(first), int(last or first) + 1))]


def test_free_slots_without_a_legal_start_are_said_with_numbers() -> None:
    made = scene()
    for name in ("a", "b", "c"):
        asks(made, name, "2g.20gb")
    asks(made, "d", "2g.20gb").run().expect(running=["a", "b", "c"], waiting="d", reason={"d": Code.NO_ROOM})
    job = made.find_job("d")
    assert job is not None
    waiting = explain(made.body.world, job)
    assert waiting is not None
    assert "2 of 8 slots are free" in put_in_words(waiting.reason).what
    asks(made, "e", "1g.10gb").run().expect(running=["a", "b", "c", "e"], waiting="d")
    made.cancel("a").run().expect(running=["b", "c", "d", "e"])


def test_a_whole_partition_is_a_whole_device() -> None:
    made = asks(scene(gpus=2), "a", "7g.80gb")
    asks(made, "b", "1g.10gb").job("c", gpus=1).run().expect(running=["a", "b"], waiting="c")


def test_shares_are_had_of_uncut_devices_only() -> None:
    scene().job("a", ask=Resources(cpu_milli=1000, gpu_milli=500)).expect(refused={"a": Code.NEVER_FITS})


def test_the_tasks_of_an_array_have_one_each() -> None:
    made = asks(scene(nodes=2), "a", "3g.40gb", array=5).run()
    made.expect(tasks={"a": {"running": 4, "waiting": 1}})
    made.advance(minutes=70).expect(tasks={"a": {"running": 1, "succeeded": 4}})


def test_quota_counts_slots() -> None:
    made = scene(nodes=2).tenant("lab", gpus=1)
    for name in ("a", "b", "c"):
        asks(made, name, "3g.40gb", tenant="lab")
    made.run().expect(running=["a", "b"], waiting="c", reason={"c": Code.OVER_QUOTA})


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"needs": Needs(partition="9g")}, Code.UNKNOWN_PARTITION),
        ({"needs": Needs(partition="1g.10gb", flavors=("tpu",))}, Code.UNKNOWN_PARTITION),
        ({"needs": Needs(partition="1g.10gb"), "ask": Resources(2, 1000)}, Code.BAD_PARTITION),
        ({"needs": Needs(partition="1g.10gb"), "ask": Resources(0, 1000)}, Code.BAD_PARTITION),
        ({"needs": Needs(partition="1g.10gb"), "ask": Resources(0, 1000, 0, 250)}, Code.BAD_PARTITION),
        ({"needs": Needs(partition="1g.10gb"), "gang": 2}, Code.BAD_PARTITION),
        ({"needs": Needs(partition="1g.10gb"), "gang_most": 2}, Code.BAD_PARTITION),
        ({"needs": Needs(partition="no name")}, Code.BAD_NAME),
    ],
)
def test_bad_asks_are_refused(fields: dict[str, Any], code: Code) -> None:
    scene().job("a", **fields).expect(refused={"a": code})


@pytest.mark.parametrize(
    ("slots", "partitions"),
    [
        (8, (Partition("1g", 1, (0,)), Partition("1g", 2, (0,)))),
        (8, (Partition("3g", 4, (0, 6)),)),
        (8, (Partition("3g", 4, ()),)),
        (8, (Partition("3g", 4, (4, 0)),)),
        (8, (Partition("3g", 0, (0,)),)),
        (8, (Partition("3g", 4, (-1,)),)),
        (17, (Partition("3g", 4, (0,)),)),
        (0, (Partition("3g", 4, (0,)),)),
        (8, ()),
    ],
)
def test_bad_tables_are_refused(slots: int, partitions: tuple[Partition, ...]) -> None:
    made = Scene().cluster(gpus=1)
    answer = made.body.ask(SetFlavor("gpu", Flavor("gpu", slots=slots, partitions=partitions))).answers[-1]
    assert isinstance(answer, Refused)
    assert answer.reason.code == Code.BAD_TABLE
    assert GPU not in made.body.world.flavors


def test_a_name_means_one_thing_in_all_flavors() -> None:
    made = scene()
    other = Flavor("old", slots=8, partitions=(Partition("1g.10gb", 2, (0, 2)),))
    answer = made.body.ask(SetFlavor("old", other)).answers[-1]
    assert isinstance(answer, Refused)
    assert answer.reason.code == Code.BAD_TABLE


def test_partitions_do_not_change_under_work() -> None:
    made = asks(scene(), "a", "3g.40gb").run()
    answer = made.body.ask(SetFlavor("gpu", Flavor("gpu"))).answers[-1]
    assert isinstance(answer, Refused)
    assert answer.reason.code == Code.FLAVOR_IN_USE


def test_partitions_do_not_change_for_who_waits() -> None:
    made = asks(scene(), "a", "3g.40gb", held=True)
    other = Flavor("gpu", slots=8, partitions=(Partition("3g.40gb", 2, (0,)),))
    answer = made.body.ask(SetFlavor("gpu", other)).answers[-1]
    assert isinstance(answer, Refused)
    assert answer.reason.code == Code.PARTITION_IN_USE


def test_the_same_key_is_the_same_job() -> None:
    made = scene()
    for _ in range(2):
        asks(made, "a", "2g.20gb", key="once")
    assert len(made.body.world.jobs) == 1


@pytest.mark.parametrize("text", ["1g.10gb=1@0-6", "3g.40gb=4@0,4", "7g.80gb=8@0", "x=1@0-2,4,5,7-9"])
def test_partitions_are_written_as_they_are_read(text: str) -> None:
    assert show_partition(parse_partition(text)) == text


@pytest.mark.parametrize("text", ["", "a", "a=1", "a=x@0", "a=1@", "a=1@-3", "a=1@3-", "a=1@1-2-3", "=1@0", "a b=1@0"])
def test_other_texts_are_no_partitions(text: str) -> None:
    with pytest.raises(RejectedError, match="M135"):
        parse_partition(text)
