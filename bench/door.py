"""`bench door`: whole lifecycles through the one door, with the journal's encoding; CPU time on shared cores.

The reference is the floor for the same events in the same minutes: a dict of records, the same facts encoded, and no
scheduling at all.
"""

from __future__ import annotations

from functools import partial

import msgspec

from bench.lag import lag_p99_ms
from bench.load import NODE, Driver, make_kernel, make_submits, pass_through
from bench.report import Metric, Result, cpu_seconds, median
from muster.app.process import settle_memory
from muster.kernel.kernel import Kernel
from muster.model import fact
from muster.model.event import Event, Exited, Started, Submit
from muster.model.instruction import Start
from muster.model.job import Job
from muster.model.phase import Queued, Succeeded, TaskPhase
from muster.model.spec import Spec
from muster.units import Resources
from muster.wire.codec import encode_entry

JOBS = 12_000
ROUNDS = 5


def run(seed: int) -> Result:
    """Measure in interleaved rounds: the metrics are medians, the best rounds stand among the references."""
    settle_memory()
    rounds = [_round(seed + number) for number in range(ROUNDS)]
    middle = {name: median([figures[name] for figures in rounds]) for name in rounds[0]}
    metrics = {
        "job_events_per_s": Metric(middle["batch_256"], "events/s", 60_000, at_least=True),
        "single_events_per_s": Metric(middle["batch_1"], "events/s", 40_000, at_least=True),
        "array_tasks_per_s": Metric(middle["array"], "tasks/s", 1_000_000, at_least=True),
        "fork_ms": Metric(middle["fork_ms"], "ms", 5, at_least=False),
        "lag_p99_ms": Metric(lag_p99_ms(), "ms", 50, at_least=False),
    }
    reference = {
        "best_batch_256": max(figures["batch_256"] for figures in rounds),
        "best_batch_1": max(figures["batch_1"] for figures in rounds),
        "floor_events_per_s": middle["floor"],
        "batch_256_of_floor": middle["batch_256"] / middle["floor"],
        "batch_1_of_floor": middle["batch_1"] / middle["floor"],
    }
    return Result("door", metrics, reference)


def _round(seed: int) -> dict[str, float]:
    figures = {"floor": _floor(make_submits(JOBS, seed))}
    for batch in (256, 1):
        batches = Driver(make_kernel(1_250), batch).run(make_submits(JOBS, seed), ahead=2_000)
        kernel, events = make_kernel(1_250), sum(map(len, batches))
        figures[f"batch_{batch}"] = events / cpu_seconds(partial(pass_through, kernel, batches))
    figures["array"] = _array(1_000_000, 1_000)
    figures["fork_ms"] = _fork_ms(seed)
    return figures


def _floor(submits: list[Event]) -> float:
    """The least that any scheduler would do: remember each job, note its end, encode both facts."""
    jobs: dict[int, Job] = {}

    def work() -> None:
        for number, item in enumerate(submits):
            assert isinstance(item, Submit)
            jobs[number] = Job(number, item.spec, number, Queued(number))
            encode_entry(number, number, [fact.Accepted(number, item.spec, "", item.cause)])
            encode_entry(number, number, [fact.Placed([number], [1], [1], [0], [1], [1], "cycle")])
            encode_entry(number, number, [fact.Began(number, 0, 1, "bench")])
            jobs[number] = msgspec.structs.replace(jobs[number], phase=Succeeded(number))
            encode_entry(number, number, [fact.Ended(number, TaskPhase.SUCCEEDED, cause="bench")])

    return 3 * len(submits) / cpu_seconds(work)


def _array(tasks: int, width: int) -> float:
    """One array, started and ended in ranges of `width`."""
    kernel = make_kernel(1_250)
    spec = Spec(("sweep",), array=tasks, ask=Resources(cpu_milli=1000))
    return tasks / cpu_seconds(lambda: _drive_array(kernel, spec, width))


def _drive_array(kernel: Kernel, spec: Spec, width: int) -> None:
    now = 1
    events: list[Event] = [Submit(spec)]
    while events:
        outcome = kernel.handle(events, now)
        encode_entry(outcome.seq, now, outcome.facts)
        events = []
        for item in outcome.instructions:
            if isinstance(item, Start):
                end = item.first + sum(item.counts)
                ranges = [(first, min(width, end - first)) for first in range(item.first, end, width)]
                events += [Started(item.job, item.epoch, first, count) for first, count in ranges]
                events += [Exited(item.job, item.epoch, 0, first, count) for first, count in ranges]
        now += 1


def _fork_ms(seed: int) -> float:
    """A fork of 12,500 nodes with 10,000 jobs, most of them running."""
    kernel = make_kernel(12_500)
    kernel.handle(make_submits(10_000, seed), 1)
    assert len(kernel.world.fleet) == 12_500
    assert kernel.world.fleet.capacity(0) == NODE
    return 1000 * median([cpu_seconds(kernel.world.fork) for _ in range(9)])
