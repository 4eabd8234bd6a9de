"""Jobs like those of a published cluster: the distribution has the published summary to a thousandth, and what is drawn
from it is near: medians within 3 %, means within 10 % of 60,000 jobs. A mean of device time is made by few jobs."""

from __future__ import annotations

import math

import pytest

from muster.model.errors import RejectedError
from muster.model.reason import Code
from muster.simulator.like import CLUSTERS, SUCCEEDED, get_model, make_jobs
from muster.simulator.load import Load
from muster.simulator.options import SimOptions
from muster.simulator.simulation import run_simulation
from muster.simulator.traces.summary import summarise
from muster.units import DAY_MS

COUNT = 60_000


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_distribution_has_the_published_summary(name: str) -> None:
    model, published = get_model(name), CLUSTERS[name]
    assert sum(model.sizes.values()) == pytest.approx(1)
    assert sum(size * share for size, share in model.sizes.items()) / 1000 == pytest.approx(published.mean_gpus, 1e-3)
    assert max(model.sizes) == 1000 * published.most_gpus
    if published.gpu_s is not None:
        assert model.mean_gpu_ms(10**9) / 1000 == pytest.approx(published.gpu_s, 1e-3)


@pytest.mark.parametrize("name", CLUSTERS)
def test_what_is_drawn_is_near_to_what_was_published(name: str) -> None:
    published = CLUSTERS[name]
    jobs = list(make_jobs(name, COUNT, 30 * DAY_MS, seed=1))
    drawn = summarise(jobs)
    assert drawn.jobs == COUNT
    assert drawn.median_gpus == published.least[-1][0] / 1000
    assert drawn.mean_gpus == pytest.approx(published.mean_gpus, 0.1)
    assert drawn.median_run_ms / 1000 == pytest.approx(published.median_s, 0.03)
    assert drawn.mean_run_ms / 1000 == pytest.approx(published.mean_s, 0.1)
    assert drawn.longest_run_ms <= 1000 * published.longest_s
    assert drawn.statuses[SUCCEEDED] / COUNT == pytest.approx(published.completed, abs=0.01)
    if published.gpu_s is not None:
        each = drawn.gpu_hours * 3600 / COUNT
        assert abs(math.log(each / published.gpu_s)) < math.log(2), "within a factor of two"


def test_the_same_seed_draws_the_same_jobs() -> None:
    first, second, other = (list(make_jobs("kalos", 50, DAY_MS, seed)) for seed in (3, 3, 4))
    assert first == second != other
    assert [job.submit_ms for job in first] == sorted(job.submit_ms for job in first)


def test_a_name_that_nobody_published_is_refused() -> None:
    with pytest.raises(RejectedError) as refusal:
        SimOptions(like="nobody").check()
    assert refusal.value.reason.code == Code.UNKNOWN_CLUSTER


def test_no_job_is_wider_than_a_quarter_of_the_fleet_and_shares_stay_shares() -> None:
    wide, shared = (Load(SimOptions(nodes=16, like=name)) for name in ("kalos", "pai"))
    specs = [wide.next_submit().spec for _ in range(400)]
    assert max(spec.gang * spec.ask.gpus for spec in specs) == 32
    assert {spec.ask.gpu_milli for spec in (shared.next_submit().spec for _ in range(200))} == {0, 250, 500}


def test_a_fleet_under_such_load_keeps_every_law() -> None:
    report = run_simulation(SimOptions(nodes=8, days=0.1, like="seren", seed=2, faults=50.0))
    assert report.accepted > 20
    assert report.outcomes["failed"] > 0
    assert run_simulation(SimOptions(nodes=8, days=0.1, like="seren", seed=2, faults=50.0)).digest == report.digest


def test_a_job_that_is_larger_than_a_hard_budget_ends_when_nobody_comes_any_more() -> None:
    """One of them wants a quarter of the fleet for 31 hours, and its team has an hour of the whole fleet in six."""
    report = run_simulation(SimOptions(nodes=30, days=0.1, like="kalos", bookings=0))
    assert report.accepted == sum(report.outcomes.values())
