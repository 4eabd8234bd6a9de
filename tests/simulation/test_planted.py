"""The harness is only worth something if it finds bugs: each planted one must be found, within a few seeds."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from muster.model.errors import InvariantError
from muster.simulator import simulation
from muster.simulator.options import SimOptions
from muster.simulator.simulation import run_simulation
from muster.testing.planted import PLANTED

SEEDS = 75
"""The rarest of them shows in one seed of fifty."""
DRAIN_DAYS = 10
"""Twice as long as any of these storms takes to end: who waits for an end that does not come waits no longer."""
ELSEWHERE = (
    "limit_not_looked_at", "company_wakes_nobody", "feed_wakes_nobody", "mends_for_ever", "promise_without_order",
    "moved_to_nowhere", "moved_at_any_price", "lost_work_not_counted", "moved_again_and_again", "moved_as_new",
    "tasks_moved_as_one", "groups_moved_as_their_largest", "groups_claimed_alike", "groups_gain_alike",
    "tasks_gain_together", "mover_starts_elsewhere", "spare_on_a_closed_node", "yields_too_early",
)  # fmt: skip
"""Those that hardly any storm shows: scenes of their own do, in tests/unit (shadows, company, rations, mending,
promises, consolidation, spares, yielding)."""
SHOWN_BY = {
    "hold_forgotten": 3, "start_not_repeated": 1, "partitions_overlap": 11, "box_with_a_hole": 4,
    "mix_keeps_the_dead": 2, "guarantee_taken": 2, "budget_ignored": 4, "budget_never_turns": 4,
    "budget_stops_nobody": 4, "budget_stops_gangs_only": 8, "budget_stops_too_early": 4, "quota_never_wakes": 2,
    "tie_by_arrival": 2, "bar_never_ends": 2, "unbar_wakes_nobody": 42, "drained_for_good": 5,
    "dependency_ignored": 2, "dependency_forgotten": 3, "any_end_of_its_like": 59, "likes_forgotten": 6,
    "throttle_lets_on_too_many": 5, "throttled_for_ever": 5, "due_time_ignored": 5, "size_before_due_time": 3,
    "head_unnoticed": 2, "shadow_stays": 25, "guest_stays": 19, "claim_forgotten_by_restore": 2,
    "flapping_job_never_backs_off": 2, "idle_while_held": 2, "advice_forgotten_by_restore": 27,
    "lost_place_still_counts": 5, "shrunk_below_least": 88, "past_its_limit_and_back": 7,
    "task_limit_ignored": 3, "tasks_have_no_end": 3, "brought_back_twice": 24, "phantom_device": 2,
    "any_try_may_say": 2, "quota_kept_after_eviction": 2, "stopped_for_a_drain": 2,
}  # fmt: skip
"""Where to look first: seeds that show it soon. If one no longer does, the others follow, and only time is lost; what
showed each is printed (`pytest -rP`)."""
RARE = ("unbar_wakes_nobody", "advice_forgotten_by_restore")
"""Those that one storm of fifty shows: scenes of their own show them as well, in test_scenes.py, so that `make check`
need not search."""
UNBOOKED = ("gangs_sleep_too_long",)
"""Those that show where nothing is booked: beside bookings, whoever finds no room is looked at more closely."""
WEATHERS: tuple[Mapping[str, float], ...] = (
    {"days": 0.12},
    {"days": 0.12, "nodes": 16},
    {"days": 0.15, "maintenance": 20_000, "faults": 500},
    {"days": 0.2, "maintenance": 300, "faults": 300, "device_faults": 300, "load": 1.6},
    {"days": 0.05, "lost": 500},
)
"""One after the other, because no one weather shows every bug soon: a plain storm, one over more nodes, one of bars, a
crowd that waits for nothing but room, and an engine of which every other word is lost."""


def storm(seed: int) -> SimOptions:
    """A small fleet with more work than it can hold, and more trouble than any real one has."""
    plain = SimOptions(
        nodes=8, seed=seed, load=1.2, pace=4, faults=4000, maintenance=2000, device_faults=4000, lost=100,
        doubled=300, failures=0.25, cancels=0.15, tenants=3, inspect_every=25, bookings=8000,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **WEATHERS[seed % len(WEATHERS)])


RESTORE = "a restored world decides like the living one"
IDLE = "devices are idle for want of quota or of room, if somebody waits who could use them"
FOUND_BY = {
    "shadows_replaced": {"what the kernel looks at is the world's own"},
    "device_given_twice": {"no device is in two leases"},
    "partitions_overlap": {"no device is in two leases", "what is shown is taken back"},
    "partition_begins_anywhere": {"a partition lies where it may"},
    "capacity_overrun": {"allocations fit their node", "a range lies inside its array"},
    "job_lost": {"the queue is everybody who waits", RESTORE},
    "job_forgotten": {"no job vanishes"},
    "hold_forgotten": {"what is held starts nothing", "the queue is everybody who waits", RESTORE},
    "dependency_ignored": {
        "what waits for others starts nothing",
        "the queue is everybody who waits",
        "who waits for others is found by them",
        RESTORE,
    },
    "dependency_forgotten": {"nobody waits for a job that is over"},
    "bucket_counted_twice": {"only what succeeded or was checkpointed is of use", "every moment is in one bucket"},
    "lost_work_is_useful": {"only what succeeded or was checkpointed is of use"},
    "idle_while_held": {"device time is what there was, times how long", "every moment is in one bucket"},
    "claimed_counts_as_idle": {"device time is what there was, times how long", "every moment is in one bucket"},
    "writing_counts_as_work": {"only what succeeded or was checkpointed is of use", "every moment is in one bucket"},
    "checkpoint_of_tasks_ignored": {
        *("only what succeeded or was checkpointed is of use", "every moment is in one bucket"),
        "a task is as far as it said, in the try that said it",
    },
    "marks_outlive_their_try": {
        "a task is as far as it said, in the try that said it",
        "marks are those of tasks that run",
    },
    "nobody_told_where_to_resume": {"whoever starts again is told of its last checkpoint"},
    "any_try_may_say": {"only what runs progresses"},
    "booked_wait_counts_as_demand": {IDLE},
    "shrink_keeps_quota": {"the ledger is the sum of the leases"},
    "shrunk_below_least": {"no run shrinks below its least"},
    "younger_by_width": {"who keeps its places is as old as before"},
    "least_not_kept": {"a broken gang keeps what is left"},
    "width_counted_from_the_start": {
        "only what succeeded or was checkpointed is of use",
        "every moment is in one bucket",
    },
    "mends_for_ever": {"a run that lost places is whole again in time"},
    "lost_place_still_counts": {"the ledger is the sum of the leases"},
    "never_wider_again": {"who has less than it may is kept"},
    "spare_counts_as_work": {"only what succeeded or was checkpointed is of use", "device time is in one bucket"},
    "spare_on_a_closed_node": {"a spare is where work may go"},
    "spares_given_up_with_a_node": {
        *("a broken gang keeps its spares", "a broken gang keeps what is left"),
        "no run lacks a rank while it holds a spare",
    },
    "due_time_ignored": {"the leaf goes by its table"},
    "size_before_due_time": {"the leaf goes by its table"},
    "any_end_is_a_success": {"a job waits until its conditions are met"},
    "any_end_of_its_like": {"a task follows its like", "a task is blocked until its like is over"},
    "likes_forgotten": {"a task is blocked until its like is over", "nobody waits for a job that is over"},
    "throttle_lets_on_too_many": {"no more tasks are at it than may be"},
    "throttled_for_ever": {"a task is blocked until its like is over", "what is accepted ends"},
    "epoch_not_raised": {"epochs strictly rise"},
    "terminal_overwritten": {"terminal is final"},
    "over_and_admitted_again": {RESTORE},
    "ledger_leak": {"the ledger is the sum of the leases"},
    "quota_leak": {"the ledger is the sum of the leases"},
    "charged_twice": {"the ledger is the sum of the leases", "the ledger stays in range"},
    "stays_and_borrows": {"what may not be evicted does not borrow"},
    "guarantee_taken": {"what others keep stays free"},
    "budget_ignored": {"nothing starts on a budget that is spent", "who has spent a soft budget does not borrow"},
    "spending_forgotten": {"spent is the sum over leases of rate times time"},
    "budget_never_turns": {"a budget's next period begins in time"},
    "budget_stops_nobody": {"what spends from a hard budget that is spent is told to stop"},
    "budget_stops_gangs_only": {"what spends from a hard budget that is spent is told to stop"},
    "budget_stops_too_early": {"nothing is stopped for a budget that is not spent"},
    "feed_leak": {"what is taken of an overlay is the sum over its leases"},
    "feed_ignored": {"a start stays within every overlay's budget"},
    "feed_wakes_nobody": {"nobody who could start is asleep", RESTORE},
    "partial_gang": {"a gang holds all its places or none"},
    "box_with_a_hole": {"a gang with a shape holds a box of a torus"},
    "fold_differs": {
        "the world is the fold of its facts",
        "every moment is in one bucket",
        "history is a fold of the journal",
    },
    "index_with_history": {
        RESTORE,
        "in its window a node is its booking's",
        "a guest is gone when the window opens",
    },
    "scores_remembered": {RESTORE, "the crowd is who is there"},
    "mix_keeps_the_dead": {"the mix is that of the live jobs", RESTORE},
    "company_ignored": {"everybody is in the company they want"},
    "company_wakes_nobody": {"nobody who could start is asleep", RESTORE},
    "groups_charged_alike": {"the ledger is the sum of the leases", RESTORE},
    "groups_in_any_order": {"a lease has the devices it asked for", "a lease is of one group"},
    "losses_decay": {"losses are what the facts say", "the world is the fold of its facts"},
    "risk_not_settled": {RESTORE, "the index is what is free"},
    "stale_wakeup": {"nobody who could start is asleep", RESTORE},
    "gangs_sleep_too_long": {"nobody who could start is asleep", RESTORE},
    "quota_never_wakes": {"a line stands no worse than its quota says", RESTORE},
    "quota_ignored": {
        "nothing starts on a budget that is spent",
        "a start stays within its tenant's quota",
        "what others keep stays free",
        "what may not be evicted does not borrow",
    },
    "tie_by_arrival": {RESTORE, "a line offers its first"},
    "stored_decay": {"use is what was held", "the world is the fold of its facts"},
    "use_never_ends": {"use is what was held"},
    "guest_stays": {"a guest is gone when the window opens"},
    "window_open_to_all": {"in its window a node is its booking's", "a guest is gone when the window opens"},
    "nobody_told_to_leave": {"nobody is in the way of a window"},
    "booked_twice": {"no node is in two windows at once"},
    "limit_not_looked_at": {"no start delays a shadow"},
    "yields_too_early": {"who yields is left alone until it expects to end"},
    "tasks_have_no_end": {"tasks with a limit are counted on", RESTORE},
    "shadow_stays": {"the index is what is free", "free is capacity minus what is held", RESTORE},
    "stale_epoch_accepted": {"one accepted attempt per task"},
    "stopped_too_early": {
        "only what is held is given back",
        "free is capacity minus what is held",
        "no device is in two leases",
    },
    "silence_kills": {"one accepted attempt per task"},
    "stop_not_sent": {"what is accepted ends"},
    "stopped_for_a_drain": {"what was told to stop says what it was for"},
    "start_not_repeated": {"what is accepted ends"},
    "limit_ignored": {"every limit and every end has its timer", "no run goes on past its limit"},
    "task_limit_ignored": {"every task with a limit has its deadline", "no task runs past its limit"},
    "past_its_limit_and_back": {"what is sent back to the queue does not end"},
    "key_forgotten": {"a key names one live job"},
    "retired_too_early": {"no job vanishes"},
    "brought_back_twice": {"what runs again failed before, and nobody else runs it"},
    "work_for_a_silent_node": {"free is capacity minus what is held"},
    "work_for_a_barred_node": {
        "what others keep stays free",
        "a barred node gets no work",
        "the index is what is free",
    },
    "bar_never_ends": {"every bar that ends has its timer", "no bar stands past its time"},
    "unbar_wakes_nobody": {"nobody who could start is asleep", RESTORE, "what is accepted ends"},
    "drained_for_good": {"what is sent back to the queue does not end"},
    "device_counted_twice": {"no device is in two nodes"},
    "phantom_device": {"no work goes to a device that is not there"},
    "phantom_comes_free": {"free is capacity minus what is held", "no work goes to a device that is not there"},
    "still_of_its_class": {"runs are counted by their class"},
    "claim_not_kept": {"what is claimed goes to nobody else", "free is capacity minus what is held"},
    "quota_kept_after_eviction": {"the ledger is the sum of the leases"},
    "claim_forgotten_by_restore": {RESTORE},
    "moved_before_it_is_gone": {"only moves that the table lists", "the queue is everybody who waits"},
    "evicted_for_good": {"what is sent back to the queue does not end"},
    "meter_forgets": {"what a job used adds up"},
    "hour_without_end": {"what is remembered of an hour is what was held in it"},
    "advice_never_ends": {"no advice stands past its time", "every wake-up brings something about"},
    "advice_forgotten_by_restore": {RESTORE},
    "broken_gang_keeps_nothing": {"a broken gang keeps what is left"},
    "broken_gangs_wait_for_ever": {"a claim has an end to come, and soon"},
    "flapping_job_never_backs_off": {"a job that takes again and again backs off"},
    "served_as_new": {"who is served is as old as its claim"},
    "promise_without_order": {"the leaf goes by its table"},
    "head_unnoticed": {"lines stand where their heads do"},
    "the_weaker_takes": {"whoever takes is the stronger one"},
    "moved_to_nowhere": {"whoever is moved has a place that is kept for it"},
    "moved_at_any_price": {"a move is worth it"},
    "lost_work_not_counted": {"an account leaves nothing out"},
    "moved_again_and_again": {"nobody is moved more often than its tier allows"},
    "moved_as_new": {"who keeps its places is as old as before"},
    "tasks_moved_as_one": {"an account leaves nothing out"},
    "groups_moved_as_their_largest": {"an account leaves nothing out"},
    "groups_claimed_alike": {"the ledger is the sum of the leases"},
    "groups_gain_alike": {"a move is worth it"},
    "tasks_gain_together": {"a move is worth it"},
    "mover_starts_elsewhere": {"a task that moves leaves, or waits for its new place"},
}


STORMED = [
    pytest.param(name, marks=pytest.mark.slow) if name in RARE else name for name in PLANTED if name not in ELSEWHERE
]


def test_every_plant_has_its_law() -> None:
    assert set(FOUND_BY) == set(PLANTED)


@pytest.mark.parametrize("name", STORMED)
def test_a_planted_bug_is_found(name: str) -> None:
    error = find_error(name)
    assert error is not None, f"{name} was not found in {SEEDS} seeds"
    assert error.law in FOUND_BY[name]
    assert "again: muster sim --nodes " in error.evidence


def find_error(name: str) -> InvariantError | None:
    with PLANTED[name]():
        for seed in dict.fromkeys((SHOWN_BY.get(name, 0), *range(SEEDS))):
            options = storm(seed)
            try:
                run_simulation(msgspec.structs.replace(options, bookings=0) if name in UNBOOKED else options)
            except InvariantError as error:
                print(f"{name} shows in seed {seed}")
                return error
    return None


@pytest.fixture(autouse=True)
def short_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "DRAIN_DAYS_MAX", DRAIN_DAYS)


@pytest.mark.parametrize("first", [0, pytest.param(len(WEATHERS), marks=pytest.mark.slow)])
def test_without_a_plant_no_law_is_broken(first: int) -> None:
    reports = [run_simulation(storm(seed)) for seed in range(first, first + len(WEATHERS))]
    assert all(report.accepted == sum(report.outcomes.values()) for report in reports)
    for trouble in ("node_faults", "node_bars", "device_faults", "restarts"):
        assert sum(getattr(report, trouble) for report in reports) > 0, trouble


def test_plants_are_taken_out_again() -> None:
    for plant in PLANTED.values():
        with plant():
            pass
    assert run_simulation(storm(0)).accepted
