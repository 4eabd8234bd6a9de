"""`muster quota set` and `muster tenants`: what is typed, what is kept, and what is shown."""

from __future__ import annotations

import pytest
from served import Serve

from muster.cli.main import run_command
from muster.cli.tenants import _budget_cells, _change, _parse_change, _rebudget
from muster.model.budget import GPU_HOURS, MONEY, Budget
from muster.model.tenant import GPU_ONE, Line
from muster.units import DAY_MS
from muster.wire.views import BudgetView, Changed, FlavorView, LineView, TenantView


def test_what_is_not_named_stays_and_what_says_nothing_goes() -> None:
    known = [LineView("gpu", limit=4), LineView("cpu", limit=9, used=3)]
    changes = [_parse_change("limit", "cpus=unlimited"), _parse_change("guaranteed", "h100:eu/alpha=2")]
    assert _change(known, changes) == (Line("gpu", limit=4), Line("h100", "eu/alpha", 2 * GPU_ONE))


def test_a_budget_that_changes_keeps_its_periods_and_the_others_stay() -> None:
    known = [BudgetView(GPU_HOURS, 5, False, DAY_MS, 77, spent=3), BudgetView(MONEY, 8)]
    hours, money = _rebudget(known, ["2h/1d"], soft=False)
    assert (hours, money) == (Budget(GPU_HOURS, 2_000_000, False, DAY_MS, 77), Budget(MONEY, 8))


def test_a_new_period_is_counted_from_now() -> None:
    [budget] = _rebudget([BudgetView(GPU_HOURS, 5, False, DAY_MS, 77)], ["2h/2d"], soft=False)
    assert budget.since_ms > 1_000_000_000_000


def test_a_soft_one_stands_beside_a_hard_one() -> None:
    both = _rebudget([BudgetView(MONEY, 8_000_000)], ["5"], soft=True)
    assert both == (Budget(MONEY, 8_000_000), Budget(MONEY, 5_000_000, soft=True))


@pytest.mark.parametrize(
    ("soft", "spent", "state"),
    [(False, 4, "within"), (False, 5, "spent: starts nothing"), (True, 6, "spent: may not borrow")],
)
def test_a_spent_budget_warns(soft: bool, spent: int, state: str) -> None:
    assert _budget_cells(BudgetView(MONEY, 5, soft, spent=spent))[2] == state


@pytest.mark.parametrize(
    ("limit", "said"),
    [("gpus=4", "it was so before; nothing was changed\n"), ("gpus=5", "muster undo takes it back\n")],
)
def test_what_was_so_before_is_not_offered_to_be_undone(
    serve: Serve, capsys: pytest.CaptureFixture[str], limit: str, said: str
) -> None:
    known = TenantView("lab", lines=[LineView("gpu", limit=4 * GPU_ONE)])
    flavor = FlavorView("gpu", "gpu", 1000)
    serve({"GET /v1/tenants": (known,), "GET /v1/flavors": (flavor,), "PUT /v1/tenants/lab": Changed(5)})
    assert run_command(["quota", "set", "lab", limit]) == 0
    assert capsys.readouterr().err.endswith(said)
