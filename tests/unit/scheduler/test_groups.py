"""Gangs of several groups: placed as one, charged as their sum, given back as they were; and the worked example."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muster.control.views import view_why
from muster.kernel.kernel import Kernel
from muster.model import event
from muster.model.group import Group, group_at, parts_of
from muster.model.instruction import Start
from muster.model.node import Place, Traits
from muster.model.phase import Lease
from muster.model.reason import Code, Refused
from muster.model.spec import Needs, Spec, find_fault
from muster.model.tenant import GPU, Line, gpu_amount
from muster.scheduler.options import find_options
from muster.scheduler.placing import groups as search
from muster.sdk.jobfile import JobFile, make_spec
from muster.testing.rig import Rig
from muster.units import Resources
from muster.world.laws.invariants import check_world
from muster.world.snapshot import digest, restore, snapshot

GIB = 2**30
PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "placement.md"
DRIVER = Group("driver", 1, Resources(0, 4000, GIB))


def workers(tasks: int, gpus: int = 8, cpu_milli: int = 8000) -> Group:
    return Group("worker", tasks, Resources(gpus, cpu_milli, GIB))


def spec_of(*groups: Group, **fields: object) -> Spec:
    needs = Needs(groups=groups, **fields)  # type: ignore[arg-type]  # fields of needs
    return Spec(("train",), tenant="lab", gang=sum(group.tasks for group in groups), needs=needs)


def submit(rig: Rig, *groups: Group, **fields: object) -> int:
    answer = rig.answer(event.Submit(spec_of(*groups, **fields)))
    assert not isinstance(answer, Refused), answer
    return answer.job


def places(rig: Rig, number: int) -> list[tuple[str, str, int]]:
    """Which group has how many tasks where."""
    leases, spec = rig.run(number).leases, rig.job(number).spec
    pairs = zip(spec.needs.groups, spec.parts(leases), strict=True)
    return [(group.name, rig.world.fleet.names[x.slot], x.tasks) for group, (_, part) in pairs for x in part]


def test_all_groups_start_together_and_the_quota_is_charged_for_their_sum() -> None:
    rig = Rig(nodes=2)
    rig.tenant("lab", gpus=16, cpu_milli=20_000)
    job = submit(rig, DRIVER, workers(2))
    assert places(rig, job) == [("driver", "node-0", 1), ("worker", "node-0", 1), ("worker", "node-1", 1)]
    used = {
        family: amount
        for (name, family, scope), amount in rig.world.ledger.holdings().items()
        if name == "lab" and not scope
    }
    assert (used["gpu"], used["cpu"], used["memory"]) == (16_000_000, 20_000, 3 * GIB)
    assert [node.gpus for node in (rig.world.fleet.free(0), rig.world.fleet.free(1))] == [0, 0]
    check_world(rig.world)
    assert digest(restore(snapshot(rig.world))) == digest(rig.world)
    rig.start(job)
    rig.exit(job)
    assert [rig.world.fleet.free(slot) for slot in range(2)] == rig.world.fleet.capacities
    assert not any(name == "lab" for name, _, _ in rig.world.ledger.holdings())
    check_world(rig.world)


def test_none_starts_if_one_does_not_fit_and_the_reason_names_it() -> None:
    rig = Rig(nodes=2)
    rig.submit(8, tenant="other", evictable=False)
    job = submit(rig, DRIVER, workers(2))
    why = view_why(rig.world, rig.job(job))
    assert (why.code, why.needed, why.available) == ("M210", 2, 1)
    assert why.words == "waiting for room: of group worker, 2 tasks must start together, 1 would fit now"
    assert find_options(rig.world, rig.job(job)) == []


def test_groups_that_fit_only_alone_wait_for_all() -> None:
    rig = Rig(nodes=1)
    rig.submit(1, tenant="other", ask=Resources(cpu_milli=50_000), evictable=False)
    job = submit(rig, Group("driver", 1, Resources(cpu_milli=10_000)), workers(1))
    why = view_why(rig.world, rig.job(job))
    assert (why.code, why.words.endswith("(each group would fit alone)")) == ("M201", True)


def crossed() -> tuple[Rig, Spec]:
    """Whoever has the most cores goes to the first node, and only there is the memory for the other."""
    rig = Rig()
    rig.feed(event.NodeSeen("a", Resources(0, 10_000, 9 * GIB)), event.NodeSeen("b", Resources(0, 10_000, 4 * GIB)))
    big, wide = Group("big", 1, Resources(0, 6000, 3 * GIB)), Group("wide", 1, Resources(0, 5000, 8 * GIB))
    return rig, spec_of(Group("thin", 2, Resources(0, 2000, GIB // 2)), big, wide)


def test_a_division_is_found_where_one_group_after_the_other_would_fail() -> None:
    rig, spec = crossed()
    answer = rig.answer(event.Submit(spec))
    assert not isinstance(answer, Refused)
    assert [(name, node) for name, node, _ in places(rig, answer.job)][-2:] == [("big", "b"), ("wide", "a")]


def test_the_limit_of_tries_ends_a_search_and_refuses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "TRIES_MAX", 0)
    rig, spec = crossed()
    answer = rig.answer(event.Submit(spec))
    assert not isinstance(answer, Refused)
    assert rig.phase(answer.job) == "Queued"


def test_devices_are_of_one_flavor_and_the_driver_goes_where_it_may() -> None:
    rig = Rig()
    rack = Place(cluster="one")
    rig.feed(event.NodeSeen("cpu", Resources(0, 64_000, 64 * GIB), traits=Traits("", rack)))
    for name, flavor in (("a", "a100"), ("h1", "h100"), ("h2", "h100")):
        rig.feed(event.NodeSeen(name, Resources(8, 8000, 64 * GIB), traits=Traits(flavor, rack)))
    assert places(rig, submit(rig, DRIVER, workers(2))) == [
        ("driver", "cpu", 1),
        ("worker", "h1", 1),
        ("worker", "h2", 1),
    ]


def test_each_task_starts_with_what_its_group_has() -> None:
    rig = Rig(nodes=1)
    outcome = rig.feed(event.Submit(spec_of(DRIVER, workers(2, gpus=4))))
    (order,) = [item for item in outcome.instructions if isinstance(item, Start)]
    assert list(zip(order.counts, order.devices, strict=True)) == [(1, 0), (2, 0b1111_1111)]
    assert [group_at(order.spec.needs.groups, rank)[0].name for rank in range(3)] == ["driver", "worker", "worker"]


def team(rig: Rig, *groups: Group, **fields: Any) -> int:
    gang = sum(group.tasks for group in groups)
    return rig.submit(ask=Spec(("train",)).ask, gang=gang, needs=Needs(groups=groups), **fields)


def test_it_takes_places_for_all_its_groups_and_from_nobody_else() -> None:
    rig = Rig(nodes=2)
    low = [rig.submit(gpus, tenant="lab") for gpus in (8, 4, 4)]
    for number in low:
        rig.start(number)
    small = Group("small", 1, Resources(4, 8000, GIB))
    high = team(rig, DRIVER, workers(1), small, tenant="lab", tier="critical")
    stopped = [number for number in low if rig.phase(number) == "Stopping"]
    assert (len(stopped), stopped[0]) == (2, low[0]), "one of the smaller ones is enough"
    for number in stopped:
        rig.exit(number, 143)
    assert [name for name, _, _ in places(rig, high)] == ["driver", "worker", "small"]
    check_world(rig.world)


def test_its_owner_gets_back_what_was_lent_for_all_of_its_groups() -> None:
    rig = Rig(nodes=2)
    rig.tenant("lab", Line(GPU, guaranteed=gpu_amount(16)))
    guest = rig.submit(8, gang=2, tenant="guest")
    rig.start(guest)
    owner = team(rig, DRIVER, workers(2), tenant="lab")
    assert rig.phase(guest) == "Stopping"
    rig.exit(guest, 143)
    assert [name for name, _, _ in places(rig, owner)] == ["driver", "worker", "worker"]
    check_world(rig.world)


def test_its_places_are_taken_together() -> None:
    rig = Rig(nodes=1)
    held = submit(rig, DRIVER, workers(1))
    rig.start(held)
    rig.submit(8, tenant="lab", tier="critical")
    assert rig.phase(held) == "Stopping"
    rig.exit(held, 143)
    check_world(rig.world)


@pytest.mark.parametrize(
    ("spec", "subject"),
    [
        (spec_of(DRIVER, DRIVER), "needs.groups"),
        (spec_of(*(Group(f"g{n}", 1, Resources(1)) for n in range(9))), "needs.groups"),
        (spec_of(Group("a b", 1, Resources(1))), "needs.groups"),
        (spec_of(Group("none", 0, Resources(1)), DRIVER), "needs.groups"),
        (spec_of(DRIVER, workers(2), spread="node"), "needs"),
        (Spec(("x",), gang=4, needs=Needs(groups=(DRIVER, workers(2)))), "gang"),
        (Spec(("x",), gang=3, ask=Resources(1), needs=Needs(groups=(DRIVER, workers(2)))), "ask"),
        (Spec(("x",), gang=3, gang_most=5, needs=Needs(groups=(DRIVER, workers(2)))), "gang"),
        (Spec(("x",), array=5, needs=Needs(groups=(DRIVER,))), "array"),
        (Spec(("x",), commands={"driver": ("y",)}), "commands"),
        (Spec(("x",), gang=3, commands={"boss": ("y",)}, needs=Needs(groups=(DRIVER, workers(2)))), "commands"),
    ],
)
def test_groups_that_make_no_sense_are_refused(spec: Spec, subject: str) -> None:
    fault = find_fault(spec)
    assert fault is not None
    assert (fault.code, fault.subject) == (Code.BAD_GROUP, subject)


def test_a_group_asks_for_whole_devices_and_for_something() -> None:
    for ask, code in ((Resources(gpu_milli=500), Code.BAD_SPEC), (Resources(), Code.ASKS_NOTHING)):
        fault = find_fault(spec_of(Group("odd", 2, ask)))
        assert fault is not None
        assert (fault.code, fault.subject) == (code, "needs.groups.odd")


def test_what_can_never_fit_names_the_group() -> None:
    answer = Rig(nodes=2).answer(event.Submit(spec_of(DRIVER, workers(3))))
    assert isinstance(answer, Refused)
    assert (answer.reason.code, answer.reason.needed, answer.reason.available) == (Code.NEVER_FITS, 3, 2)
    assert answer.reason.detail == "group worker"


def test_leases_are_cut_where_groups_end() -> None:
    leases = [Lease(0, 1), Lease(1, 2), Lease(2, 1)]
    assert parts_of((DRIVER, workers(3)), leases) == [(DRIVER.ask, leases[:1]), (workers(3).ask, leases[1:])]


def test_the_worked_example_of_the_page() -> None:
    """The table under `Groups` in docs/concepts/placement.md, gang by gang."""
    lines = PAGE.read_text().partition("## Groups")[2].partition("## A box")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| driver")]
    rig = Rig()
    for number in range(3):
        rig.feed(event.NodeSeen(f"node-{number}", Resources(8, 16_000, 64 * GIB)))
    assert len(rows) == 3
    for text, gets, _ in rows:
        spec = make_spec(JobFile(["train"], tenant="lab", group=text.split()), here="/", now_ms=0)
        answer = Kernel(rig.world).handle([event.Submit(spec)], rig.world.now).answers[0]
        assert not isinstance(answer, Refused)
        phase = rig.job(answer.job).phase
        found = [] if type(phase).__name__ == "Queued" else places(rig, answer.job)
        nodes = {name: [node for group, node, _ in found if group == name] for name in ("driver", "worker")}
        shown = {
            "nothing": {"driver": [], "worker": []},
            "both on node-2": {"driver": ["node-2"], "worker": ["node-2"]},
        }.get(gets, {"driver": ["node-0"], "worker": ["node-0", "node-1"]})
        assert nodes == shown, text
