"""The ledger: every cell of the tree is the sum of what is held below it, on every site and in every scope."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muster.model.errors import InvariantError
from muster.model.tenant import GPU_ONE
from muster.units import Resources
from muster.world.ledger import Ledger
from muster.world.sites import Site

PLAIN = Site(0, "gpu", 1000, "", "")
H100 = Site(1, "hopper", 1000, "eu", "alpha")
H200 = Site(2, "hopper", 1400, "eu", "")
CPUS = Site(3, "cpu", 1000, "", "")
ASK = Resources(2, 1000, 64)


def test_a_charge_is_in_every_cell_up_to_the_root() -> None:
    ledger = Ledger()
    ledger.adopt("vision", "research")
    ledger.charge("vision", H100, ASK, 3)
    for tenant in ("vision", "research", ""):
        for scope in ("", "eu", "eu/alpha"):
            assert ledger.held(tenant, "hopper", scope) == 6 * GPU_ONE
            assert (ledger.held(tenant, "cpu", scope), ledger.held(tenant, "memory", scope)) == (3000, 192)
    assert ledger.held("vision", "gpu") == ledger.held("speech", "hopper") == ledger.held("vision", "hopper", "us") == 0


def test_generations_and_shares_add_up_in_units() -> None:
    ledger = Ledger()
    ledger.charge("a", H100, Resources(1), 1)
    ledger.charge("a", H200, Resources(1), 1)
    ledger.charge("a", H200, Resources(gpu_milli=250), 2)
    assert ledger.held("a", "hopper") == 1_000_000 + 1_400_000 + 700_000
    assert ledger.held("a", "hopper", "eu/alpha") == 1_000_000


def test_cpu_and_memory_count_on_nodes_of_every_family() -> None:
    ledger = Ledger()
    for site in (PLAIN, H100, CPUS):
        ledger.charge("a", site, Resources(cpu_milli=500), 1)
    assert ledger.held("a", "cpu") == 1500


@pytest.mark.parametrize("when", range(4))
def test_a_total_is_the_same_whenever_it_is_first_asked_for(when: int) -> None:
    ledger = Ledger()
    steps: list[Callable[[], object]] = [
        lambda: ledger.adopt("vision", "research"),
        lambda: ledger.charge("vision", H100, ASK, 3),
        lambda: ledger.charge("research", H200, ASK, 1),
    ]
    steps.insert(when, lambda: ledger.total("research", "hopper", "eu"))
    for step in steps:
        step()
    total = ledger.total("research", "hopper", "eu")
    assert total.held == 6_000_000 + 2_800_000
    ledger.refund("vision", H100, ASK, 3)
    assert total.held == ledger.fork().held("research", "hopper", "eu") == 2_800_000, "it is kept in step"


def test_a_total_that_went_wrong_is_told_as_it_is_kept() -> None:
    ledger = Ledger()
    ledger.charge("a", PLAIN, ASK, 1)
    before = ledger.holdings()
    ledger.total("a", "gpu", "").held += 1
    assert ledger.holdings() == before | {("a", "gpu", ""): before[("a", "gpu", "")] + 1}


def test_a_refund_takes_exactly_back_what_was_charged() -> None:
    ledger = Ledger()
    ledger.adopt("a", "org")
    ledger.charge("a", H100, ASK, 5)
    before = ledger.holdings()
    ledger.charge("a", H200, ASK, 2)
    ledger.refund("a", H200, ASK, 2)
    assert ledger.holdings() == before
    ledger.refund("a", H100, ASK, 5)
    assert ledger.holdings() == {}


def test_who_moves_in_the_tree_takes_along_what_it_holds() -> None:
    ledger = Ledger()
    ledger.adopt("a", "org")
    ledger.charge("a", PLAIN, ASK, 1)
    ledger.charge("b", PLAIN, ASK, 2)
    ledger.adopt("a", "other")
    assert (ledger.held("org", "gpu"), ledger.held("other", "gpu"), ledger.held("", "gpu")) == (0, 2_000_000, 6_000_000)
    ledger.refund("a", PLAIN, ASK, 1)
    assert ledger.held("other", "gpu") == 0


def test_devices_of_a_family_that_is_called_cpu_have_no_line() -> None:
    ledger = Ledger()
    ledger.charge("a", CPUS, Resources(1, 100), 1)
    assert ledger.holdings() == {("a", "cpu", ""): 100, ("", "cpu", ""): 100}


def test_a_fork_is_independent() -> None:
    ledger = Ledger()
    ledger.adopt("a", "org")
    ledger.charge("a", PLAIN, ASK, 1)
    twin = ledger.fork()
    twin.charge("a", PLAIN, ASK, 1)
    assert (ledger.held("org", "gpu"), twin.held("org", "gpu")) == (2_000_000, 4_000_000)
    assert twin.chain("a") == ledger.chain("a") == ("a", "org", "")


def test_a_loop_is_found_and_not_walked_for_ever() -> None:
    ledger = Ledger()
    ledger._parents = {"a": "b", "b": "a"}
    with pytest.raises(InvariantError, match="ends at its root"):
        ledger.chain("a")
