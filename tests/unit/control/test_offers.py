"""What would start now, as a reader sees it."""

from __future__ import annotations

from muster.control.offers import view_avail, view_options
from muster.control.views import view_why
from muster.testing.rig import Rig
from muster.units import DAY_MS, HOUR_MS, Resources
from muster.wire.views import OpeningView, OptionView


def test_why_offers_what_would_start_the_job() -> None:
    rig = Rig(nodes=2)
    rig.submit(1, evictable=False)
    why = view_why(rig.world, rig.job(rig.submit(8, gang=2)))
    assert why.offer == "starts now if: --gang 1 (asked 2) · --gpus 7 (asked 8)"
    assert why.options[0] == OptionView("gang", 2, 1, "--gang 1", "tasks at once: 1 instead of 2")


def test_why_says_so_if_nothing_would() -> None:
    rig = Rig(nodes=1)
    rig.submit(8, evictable=False)
    why = view_why(rig.world, rig.job(rig.submit(8)))
    assert (why.options, why.offer) == ([], "no single change of its size, place or tier would start it now")


def test_why_offers_a_tier_and_says_who_would_stop_for_it() -> None:
    rig = Rig(nodes=1)
    rig.submit(4)
    rig.submit(4)
    why = view_why(rig.world, rig.job(rig.submit(8)))
    assert why.offer == "starts now if: --tier critical (asked standard; 2 jobs would stop for it first)"
    words = "tier: critical instead of standard, 2 jobs would stop for it first"
    assert why.options == [OptionView("tier", "standard", "critical", "--tier critical", words, 2)]


def test_a_job_in_somebody_s_shadow_is_offered_the_tier_that_goes_before_it() -> None:
    """Four of eight GPUs are taken; who has waited for all of them for a day keeps later ones off the others."""
    rig = Rig(nodes=1)
    rig.submit(4, limit_ms=DAY_MS + 2 * HOUR_MS)
    rig.submit(8)
    rig.now += DAY_MS
    kept = rig.submit(4)
    why = view_why(rig.world, rig.job(kept))
    assert why.code == "M213"
    assert why.offer == "starts now if: --tier critical (asked standard)"


def test_an_array_speaks_of_its_first_task_and_the_next_in_line_of_the_next_cycle() -> None:
    rig = Rig(nodes=1)
    rig.submit(5, evictable=False)
    array = rig.submit(4, array=9)
    assert view_options(rig.world, rig.job(array).spec)[1] == "its first task starts now if: --gpus 3 (asked 4)"
    rig.world.fleet.join(1, "node-1", Resources(8, 64_000, 2**38))
    assert view_options(rig.world, rig.job(array).spec) == ([], "its first task starts with the next cycle, as it is")


def test_whoever_does_not_wait_is_offered_nothing() -> None:
    rig = Rig(nodes=1)
    why = view_why(rig.world, rig.job(rig.submit(8)))
    assert (why.options, why.offer) == ([], "")


def test_avail_says_how_to_ask_for_it() -> None:
    rig = Rig(nodes=1, gpus=1, cpu_milli=16_000, memory_bytes=2**35)
    rig.tenant("lab", cpu_milli=4000)
    view = view_avail(rig.world, "lab")
    assert (view.tenant, view.openings) == (
        "lab",
        [
            OpeningView(Resources(0, 1000, 2**31), "--cpus 1 --memory 2Gi", 4, 4, "quota"),
            OpeningView(Resources(1, 16_000, 2**35), "--gpus 1 --cpus 16 --memory 32Gi", 0, 0, "quota"),
        ],
    )
