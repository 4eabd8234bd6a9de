"""Tenants as an admin says them: what contradicts itself or the tree is refused, and nothing is changed."""

from __future__ import annotations

import pytest

from muster.model import fact
from muster.model.event import DropTenant, NodeSeen, SetTenant, Submit
from muster.model.node import Place, Traits
from muster.model.reason import DONE, Code, Refused
from muster.model.tenant import GPU, GPU_ONE, Line, Tenant, limits
from muster.testing.rig import Rig, spec
from muster.units import Resources
from muster.world.snapshot import digest, restore, snapshot


def gpus(guaranteed: int = 0, limit: int | None = None, lend: int | None = None) -> Line:
    most, lent = (None if number is None else number * GPU_ONE for number in (limit, lend))
    return Line(GPU, "", guaranteed * GPU_ONE, most, lent)


def family() -> Rig:
    """org owns 16; a owns 8 of them, and b none."""
    rig = Rig(nodes=4)
    rig.tenant("org", gpus(16, limit=24))
    rig.tenant("a", gpus(8), parent="org")
    rig.tenant("b", parent="org")
    return rig


@pytest.mark.parametrize(
    ("name", "tenant", "code"),
    [
        ("no such name\n", Tenant(), Code.BAD_NAME),
        ("c", Tenant(weight=0), Code.BAD_AMOUNT),
        ("c", Tenant(weight=1_000_001), Code.BAD_AMOUNT),
        ("c", Tenant(lines=tuple(Line(f"f{number}") for number in range(65))), Code.TOO_LARGE),
        ("c", Tenant(lines=(Line("no family\n"),)), Code.BAD_NAME),
        ("c", Tenant(lines=(Line(GPU, "no scope\n"),)), Code.BAD_NAME),
        ("c", Tenant(lines=(Line(GPU, "/"),)), Code.BAD_NAME),
        ("c", Tenant(lines=(Line(GPU, guaranteed=-1),)), Code.BAD_AMOUNT),
        ("c", Tenant(lines=(Line(GPU, limit=2**62 + 1),)), Code.BAD_AMOUNT),
        ("c", Tenant(lines=(Line(GPU, lend=-1),)), Code.BAD_AMOUNT),
        ("c", Tenant(lines=(gpus(3, limit=2),)), Code.BAD_QUOTA),
        ("c", Tenant(lines=(gpus(), Line("cpu"), gpus())), Code.BAD_QUOTA),
        ("c", Tenant("nobody"), Code.UNKNOWN_TENANT),
        ("c", Tenant("c"), Code.TENANT_LOOP),
        ("org", Tenant("b"), Code.TENANT_LOOP),
        ("b", Tenant("org", lines=(gpus(9),)), Code.OVERPROMISED),
        ("org", Tenant(lines=(gpus(7),)), Code.OVERPROMISED),
        ("org", Tenant(lines=(gpus(limit=7),)), Code.OVERPROMISED),
    ],
)
def test_what_contradicts_itself_is_refused(name: str, tenant: Tenant, code: Code) -> None:
    rig = family()
    before = digest(rig.world)
    answer = rig.answer(SetTenant(name, tenant))
    assert isinstance(answer, Refused)
    assert answer.reason.code == code
    assert digest(rig.world) == before


def test_an_overpromise_names_whose_it_is() -> None:
    answer = family().answer(SetTenant("b", Tenant("org", lines=(gpus(9),))))
    assert isinstance(answer, Refused)
    reason = answer.reason
    assert (reason.subject, reason.detail, reason.needed, reason.available) == (GPU, "org", 17 * GPU_ONE, 16 * GPU_ONE)


def test_a_promise_is_seen_through_a_parent_without_one() -> None:
    rig = family()
    rig.tenant("deep", gpus(8), parent="b")
    answer = rig.answer(SetTenant("deep", Tenant("b", lines=(gpus(9),))))
    assert isinstance(answer, Refused)
    assert (answer.reason.code, answer.reason.detail) == (Code.OVERPROMISED, "org")


def test_the_tree_has_eight_levels_and_no_more() -> None:
    rig = Rig()
    for level in range(1, 9):
        rig.tenant(f"t{level}", parent=f"t{level - 1}" if level > 1 else "")
    answer = rig.answer(SetTenant("t9", Tenant("t8")))
    assert isinstance(answer, Refused)
    assert (answer.reason.code, answer.reason.subject, answer.reason.needed) == (Code.TOO_LARGE, "depth", 9)
    rig.tenant("top")
    assert isinstance(rig.answer(SetTenant("t1", Tenant("top"))), Refused), "what is below counts too"


def test_lines_are_kept_in_order_and_said_once() -> None:
    rig = Rig()
    lines = (Line("memory", limit=1), Line(GPU, "eu"), Line(GPU))
    tidy = Tenant(lines=tuple(sorted(lines, key=lambda line: (line.family, line.scope))))
    assert rig.feed(SetTenant("a", Tenant(lines=lines))).facts == [fact.TenantSet("a", tidy)]
    assert rig.feed(SetTenant("a", tidy)).facts == []
    assert digest(restore(snapshot(rig.world))) == digest(rig.world)


def test_a_tenant_is_dropped_when_nothing_of_it_is_left() -> None:
    rig = family()
    job = rig.submit(1, tenant="b")

    def drop(name: str) -> tuple[Code, int] | None:
        answer = rig.answer(DropTenant(name))
        return (answer.reason.code, answer.reason.needed) if isinstance(answer, Refused) else None

    assert drop("nobody") == (Code.UNKNOWN_TENANT, 0)
    assert drop("org") == (Code.TENANT_IN_USE, 2)
    assert drop("b") == (Code.TENANT_IN_USE, 1)
    rig.exit(job)
    assert drop("b") is None
    assert drop("a") is None
    assert drop("org") is None
    assert rig.world.tenants == {}


def test_a_job_that_must_stay_starts_only_inside_the_guarantee() -> None:
    rig = family()
    first = rig.submit(8, tenant="a", evictable=False)
    second = rig.submit(8, tenant="a", evictable=False)
    third = rig.submit(8, tenant="a", evictable=False)
    assert [rig.phase(job) for job in (first, second, third)] == ["Starting", "Starting", "Queued"]
    loan = rig.submit(8, tenant="a")
    assert rig.phase(loan) == "Starting", "what may be evicted may borrow, and is not held up by what may not"
    rig.exit(first)
    assert rig.phase(third) == "Queued", "what was borrowed weighs on the guarantee"
    rig.exit(loan)
    assert rig.phase(third) == "Starting"


def test_a_job_that_could_never_stay_is_refused() -> None:
    rig = family()
    answer = rig.answer(Submit(spec(8, gang=3, tenant="a", evictable=False)))
    assert isinstance(answer, Refused)
    assert (answer.reason.code, answer.reason.available) == (Code.NEVER_INSIDE, 16 * GPU_ONE)
    answer = rig.answer(Submit(spec(1, tenant="x", evictable=False)))
    assert isinstance(answer, Refused)
    assert answer.reason.code == Code.NEVER_INSIDE, "who owns nothing where others do has nothing to stay on"


def test_room_on_a_site_that_is_closed_to_it_does_not_count() -> None:
    """The quota lets it onto the small node alone: then it can never start, and says so at once."""
    rig = Rig()
    rig.feed(NodeSeen("small", Resources(2, 64_000, 2**36), traits=Traits("a100")))
    rig.feed(NodeSeen("large", Resources(8, 64_000, 2**36), traits=Traits("h100")))
    rig.tenant("owner", Line("h100", guaranteed=GPU_ONE))
    rig.tenant("poor", Line("h100", limit=0))
    for asked in (spec(4, tenant="x", evictable=False), spec(4, tenant="poor")):
        answer = rig.answer(Submit(asked))
        assert isinstance(answer, Refused)
        assert answer.reason.subject == "h100"
    assert rig.phase(rig.submit(2, tenant="x", evictable=False)) == "Starting"
    rig.tenant("poor", Line("h100", limit=4 * GPU_ONE))
    assert rig.phase(rig.submit(4, tenant="poor")) == "Starting", "what was found is forgotten with the lines"


def test_without_guarantees_anybody_may_stay() -> None:
    rig = Rig(nodes=1)
    rig.tenant("a", gpus=4)
    assert rig.phase(rig.submit(4, tenant="a", evictable=False)) == "Starting"


def test_a_parent_s_limit_holds_up_its_children_and_wakes_them() -> None:
    rig = Rig(nodes=2)
    rig.tenant("org", gpus(limit=8))
    rig.tenant("a", parent="org")
    rig.tenant("b", parent="org")
    first, second = rig.submit(6, tenant="a"), rig.submit(6, tenant="b")
    assert (rig.phase(first), rig.phase(second)) == ("Starting", "Queued")
    rig.exit(first)
    assert rig.phase(second) == "Starting", "a sibling gave back what the parent may hold"


def test_moving_a_tenant_moves_what_it_holds_and_wakes_who_waited() -> None:
    rig = Rig(nodes=2)
    rig.tenant("org", gpus(limit=8))
    rig.tenant("a", parent="org")
    rig.tenant("b", parent="org")
    rig.submit(6, tenant="a")
    second = rig.submit(6, tenant="b")
    rig.tenant("a")
    assert rig.phase(second) == "Starting"
    assert rig.world.ledger.held("org", GPU) == 6 * GPU_ONE


def test_a_job_goes_where_its_quota_lets_it() -> None:
    """The best place is on a site where the tenant may hold nothing more: the next best is taken."""
    rig = Rig()
    capacity = Resources(8, 64_000, 2**36)
    rig.feed(NodeSeen("fast", Resources(4, 64_000, 2**36), traits=Traits("h100", Place("eu"))))
    rig.feed(NodeSeen("slow", capacity, traits=Traits("a100", Place("us"))))
    rig.tenant("a", Line("h100", limit=0))
    assert rig.run(rig.submit(4, tenant="b")).leases[0].slot == 0
    assert rig.run(rig.submit(4, tenant="a")).leases[0].slot == 1
    array = rig.submit(1, tenant="a", array=6)
    assert rig.world.arrays[array].slot[:4].tolist() == [1, 1, 1, 1]
    assert rig.world.arrays[array].slot[4:].tolist() == [-1, -1]


def test_setting_a_tenant_answers_done() -> None:
    assert Rig().answer(SetTenant("a", Tenant(lines=limits(gpus=4)))) == DONE
