"""The quota algebra, each table under a drawing of its tree. GPUs are whole here: one is one."""

from __future__ import annotations

import pytest

from muster.model.job import Bar, BarKind
from muster.model.node import Place, Traits
from muster.model.reason import Code
from muster.model.tenant import GPU, GPU_ONE, Line, Tenant, limits
from muster.testing.rig import spec
from muster.units import Resources
from muster.world.quota import Bound, Standing, apportion
from muster.world.world import World

INSIDE, BORROWING, OVER = Standing

NODE = Resources(8, 64_000, 2**36)


def gpus(
    guaranteed: int = 0, limit: int | None = None, lend: int | None = None, family: str = GPU, scope: str = ""
) -> Line:
    most, lent = (None if number is None else number * GPU_ONE for number in (limit, lend))
    return Line(family, scope, guaranteed * GPU_ONE, most, lent)


def world_of(tree: dict[str, tuple[str, Line]], held: dict[str, int], nodes: int = 4) -> World:
    """Nodes of 8 GPUs, a tree of tenants with one line each, and what they hold, node after node."""
    world = World()
    for slot in range(nodes):
        world.join(slot, f"n{slot}", NODE)
    for name, (parent, line) in tree.items():
        world.set_tenant(name, Tenant(parent, lines=(line,)))
    free = [slot for slot in range(nodes) for _ in range(8)]
    for name, count in held.items():
        for _ in range(count):
            slot = free.pop(0)
            device = 1 << 7 - free.count(slot)
            world.fleet.occupy(slot, 1, Resources(1), 1, device)
            world.ledger.charge(name, world.site_of(slot), Resources(1), 1)
    return world


def stand(world: World, tenant: str, count: int) -> Standing:
    return world.quotas.standing(tenant, world.site_of(0), Resources(1), count)


# No guarantee anywhere: nobody owns anything, so nothing is borrowed.
#
#         root
#        /    \
#   a limit 4  b (nobody named it)
@pytest.mark.parametrize(
    ("tenant", "held", "more", "where"),
    [("a", 0, 4, INSIDE), ("a", 2, 2, INSIDE), ("a", 2, 3, OVER), ("a", 4, 1, OVER), ("b", 8, 20, INSIDE)],
)
def test_limits_alone_are_as_ever(tenant: str, held: int, more: int, where: Standing) -> None:
    world = world_of({"a": ("", gpus(limit=4))}, {tenant: held})
    assert stand(world, tenant, more) == where


def test_what_is_not_asked_for_cannot_be_over() -> None:
    world = world_of({"a": ("", gpus(limit=0))}, {})
    assert world.quotas.standing("a", world.site_of(0), Resources(cpu_milli=1000), 9) == INSIDE


# Two owners, and one who owns nothing. 32 GPUs in all.
#
#              root
#        /      |       \
#   a 8 of 12   b 16     c (nobody named it)
@pytest.mark.parametrize(
    ("tenant", "held", "more", "where"),
    [
        ("a", {}, 8, INSIDE),
        ("a", {}, 9, BORROWING),
        ("a", {"a": 8}, 4, BORROWING),
        ("a", {"a": 8}, 5, OVER),
        ("a", {"c": 32}, 8, INSIDE),
        ("b", {"b": 16}, 1, BORROWING),
        ("c", {}, 1, BORROWING),
        ("c", {}, 32, BORROWING),
    ],
)
def test_more_than_the_own_guarantee_is_borrowed(tenant: str, held: dict[str, int], more: int, where: Standing) -> None:
    world = world_of({"a": ("", gpus(8, limit=12)), "b": ("", gpus(16))}, held)
    assert stand(world, tenant, more) == where


# An org that owns 16, of which 8 belong to a; b lives in the org and owns nothing itself. 32 GPUs in all.
#
#          root
#        /      \
#     org 16     x
#     /    \
#   a 8     b
@pytest.mark.parametrize(
    ("tenant", "held", "more", "where"),
    [
        ("b", {}, 8, INSIDE),  # the org's own 8
        ("b", {}, 9, BORROWING),  # a's 8 are not the org's to give
        ("a", {}, 16, INSIDE),  # its own, then the org's
        ("a", {}, 17, BORROWING),
        ("a", {"b": 16}, 8, INSIDE),  # b borrowed; a's guarantee is untouched by that
        ("b", {"a": 12}, 4, INSIDE),  # a took 4 of the org's 8
        ("b", {"a": 12}, 5, BORROWING),
        ("org", {"a": 8, "b": 4}, 4, INSIDE),  # jobs of the org itself
        ("x", {}, 1, BORROWING),
    ],
)
def test_children_share_what_their_parent_has_to_spare(
    tenant: str, held: dict[str, int], more: int, where: Standing
) -> None:
    tree = {"org": ("", gpus(16)), "a": ("org", gpus(8)), "b": ("org", gpus(limit=30))}
    assert stand(world_of(tree, held), tenant, more) == where


# A limit above binds everybody below. 32 GPUs in all.
#
#       root
#         |
#     org at most 10
#     /            \
#   a at most 8     b
def test_a_limit_above_binds_below() -> None:
    tree = {"org": ("", gpus(limit=10)), "a": ("org", gpus(limit=8)), "b": ("org", gpus())}
    world = world_of(tree, {"a": 6})
    assert (stand(world, "a", 2), stand(world, "a", 3)) == (INSIDE, OVER)
    assert (stand(world, "b", 4), stand(world, "b", 5)) == (INSIDE, OVER)
    bound = world.quotas.find_bound("b", world.site_of(0), Resources(1), 5, evictable=True)
    assert bound == Bound(Code.OVER_QUOTA, "org", GPU, "", 5 * GPU_ONE, 4 * GPU_ONE)


# What is not lent is kept free. 32 GPUs in all.
#
#              root
#        /               \
#   a 16, lends 4         c
@pytest.mark.parametrize(
    ("tenant", "held", "more", "where"),
    [
        ("c", {}, 20, BORROWING),  # 16 that are nobody's, and 4 that a lends
        ("c", {}, 21, OVER),
        ("c", {"a": 6}, 20, BORROWING),  # a keeps 6 of its unused 10
        ("c", {"a": 6}, 21, OVER),
        ("c", {"a": 12}, 20, BORROWING),  # a uses all that it keeps
        ("c", {"c": 20}, 1, OVER),
        ("a", {"c": 20}, 12, INSIDE),
    ],
)
def test_what_is_not_lent_is_kept(tenant: str, held: dict[str, int], more: int, where: Standing) -> None:
    assert stand(world_of({"a": ("", gpus(16, lend=4))}, held), tenant, more) == where


# A family lends to itself what it does not lend to others. 32 GPUs in all.
#
#                 root
#            /          \
#     org 24, lends 0    x
#      /        \
#   a 12      b 12, lends 2
@pytest.mark.parametrize(
    ("tenant", "more", "where"),
    [
        ("a", 12, INSIDE),
        ("a", 22, BORROWING),
        ("a", 23, OVER),
        ("b", 32, BORROWING),
        ("x", 8, BORROWING),
        ("x", 9, OVER),
    ],
)
def test_keeping_is_seen_from_where_one_stands(tenant: str, more: int, where: Standing) -> None:
    tree = {"org": ("", gpus(24, lend=0)), "a": ("org", gpus(12)), "b": ("org", gpus(12, lend=2))}
    assert stand(world_of(tree, {}), tenant, more) == where


@pytest.mark.parametrize(
    ("total", "claims", "parts"),
    [
        (10, [3, 3], [3, 3]),
        (10, [6, 6], [5, 5]),
        (10, [6, 3, 6], [4, 2, 4]),
        (2, [1, 1, 1], [1, 1, 0]),
        (7, [5, 5, 5], [3, 2, 2]),
        (0, [4, 0], [0, 0]),
        (5, [], []),
    ],
)
def test_parts_by_largest_remainder_ties_to_the_first(total: int, claims: list[int], parts: list[int]) -> None:
    assert apportion(total, claims) == parts
    assert sum(parts) == min(total, sum(claims))


# Half of the fleet is down: 16 GPUs are left for guarantees of 24.
#
#        root
#       /    \
#   org 16    b 8
#    /
#   a 9
def test_guarantees_shrink_with_what_is_healthy_and_add_up() -> None:
    tree = {"org": ("", gpus(16)), "a": ("org", gpus(9)), "b": ("", gpus(8))}
    world = world_of(tree, {}, nodes=2)
    shares = world.quotas.funds()[(GPU, "")].shares
    assert {name: share.whole for name, share in shares.items() if name} == {
        "org": 10_666_667,
        "a": 6_000_000,
        "b": 5_333_333,
    }
    assert shares["org"].own + shares["a"].whole == shares["org"].whole
    assert shares["org"].whole + shares["b"].whole == 16 * GPU_ONE
    world.join(2, "n2", NODE)
    assert all(share.whole == share.claim for share in world.quotas.funds()[(GPU, "")].shares.values())


def test_lines_of_a_scope_count_there_alone() -> None:
    world = World()
    for slot, place in enumerate((Place("eu", "alpha"), Place("eu", "beta"), Place("us"))):
        world.join(slot, f"n{slot}", NODE, Traits("h100", place))
    lines = (gpus(limit=4, family="h100", scope="eu"), gpus(limit=2, family="h100", scope="eu/alpha"))
    world.set_tenant("a", Tenant(lines=lines))
    rooms = [world.quotas.headroom("a", world.site_of(slot), Resources(1), 8, evictable=True) for slot in range(3)]
    assert rooms == [2, 4, 8]
    world.ledger.charge("a", world.site_of(0), Resources(1), 2)
    rooms = [world.quotas.headroom("a", world.site_of(slot), Resources(1), 8, evictable=True) for slot in range(3)]
    assert rooms == [0, 2, 8]


def test_what_may_not_be_evicted_may_not_borrow() -> None:
    world = world_of({"a": ("", gpus(4))}, {"a": 1})
    site = world.site_of(0)
    assert world.quotas.headroom("a", site, Resources(1), 9, evictable=True) == 9
    assert world.quotas.headroom("a", site, Resources(1), 9, evictable=False) == 3
    bound = world.quotas.find_bound("a", site, Resources(1), 4, evictable=False)
    assert bound == Bound(Code.MAY_NOT_BORROW, "a", GPU, "", 4 * GPU_ONE, 3 * GPU_ONE)
    lasting = world.quotas.find_lasting_bound(spec(1, gang=5, tenant="a", evictable=False), site)
    assert lasting == Bound(Code.NEVER_INSIDE, "a", GPU, "", 5 * GPU_ONE, 4 * GPU_ONE)


def test_cpu_and_memory_have_lines_too() -> None:
    world = World()
    world.join(0, "n0", NODE)
    world.set_tenant("a", Tenant(lines=limits(cpu_milli=2000, memory_bytes=2**30)))
    site = world.site_of(0)
    assert world.quotas.standing("a", site, Resources(cpu_milli=1000, memory_bytes=2**29), 2) == INSIDE
    assert world.quotas.standing("a", site, Resources(cpu_milli=1000), 3) == OVER
    assert world.quotas.standing("a", site, Resources(memory_bytes=2**29), 3) == OVER


def test_what_is_left_says_the_same_as_a_question_for_each_ask() -> None:
    tree = {"a": ("", gpus(12, limit=20)), "b": ("", gpus(12, lend=4)), "a1": ("a", gpus(6)), "a2": ("a", gpus(2, 9))}
    world = world_of(tree, {"a1": 5, "a2": 7, "b": 3})
    quotas, site = world.quotas, world.site_of(0)
    for tenant in ("a", "a1", "a2", "b", "guest"):
        for tasks in range(1, 33):
            rooms = quotas.rooms(tenant, site)
            found = quotas.standing_in(rooms, tenant, site, Resources(1), tasks)
            assert found == stand(world, tenant, tasks), (tenant, tasks)


def test_what_is_remembered_of_shares_is_forgotten_when_anybody_holds_more_or_a_node_is_gone() -> None:
    world = world_of({"a": ("", gpus(8)), "b": ("", gpus(8, lend=0))}, {"a": 4})
    assert [stand(world, "a", 4) for _ in range(3)] == [INSIDE] * 3
    world.ledger.charge("a", world.site_of(0), Resources(1), 1)
    assert [stand(world, "a", 4) for _ in range(3)] == [BORROWING] * 3
    assert [stand(world, "a", 19) for _ in range(3)] == [BORROWING] * 3
    world.ledger.charge("b", world.site_of(0), Resources(1), 8)
    assert [stand(world, "a", 19) for _ in range(3)] == [BORROWING] * 3, "what it kept is what it has now"
    world.bar(3, Bar(BarKind.CORDON, "ops", "", 0))
    assert [stand(world, "a", 19) for _ in range(3)] == [OVER] * 3
