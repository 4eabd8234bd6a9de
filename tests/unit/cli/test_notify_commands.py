"""`muster notify`: what it lists, and what it says of a trial."""

from __future__ import annotations

import pytest
from served import Serve, Told

from muster.wire.views import DeliveryView, RouteView

TEAM = RouteView("team", "webhook", ["job_failed"], ["lab"], 7_200_000, "hooks.example.org")


def test_routes_are_listed(serve: Serve, told: Told) -> None:
    serve({"GET /v1/notify": [[TEAM, RouteView("pager", "command")]]})
    table = told("notify")
    assert table.splitlines()[1].split() == ["team", "webhook", "hooks.example.org", "job_failed", "lab"]
    assert "jobs that name it" in table
    assert told("notify", "-o", "name") == "team\npager\n"


@pytest.mark.parametrize(
    ("delivery", "code", "said"),
    [
        (DeliveryView("trial-1", is_delivered=True), 0, "trial-1 arrived\n"),
        (
            DeliveryView("trial-1", is_delivered=False, words="gone"),
            1,
            "trial-1 did not arrive: gone\n",
        ),
    ],
)
def test_a_trial_says_whether_it_arrived(
    serve: Serve, told: Told, delivery: DeliveryView, code: int, said: str
) -> None:
    seen = serve({"POST /v1/trials/notify/team": delivery})
    assert told("notify", "test", "team", code=code) == said
    assert len(seen) == 1
