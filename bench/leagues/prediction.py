"""prediction: how well run times are foretold when a job is submitted, on every trace of jobs with owners or limits.

A job begins when it is submitted and ends a run time later, so what is learned never depends on a scheduler. Whatever
ends at an instant is learned before whoever comes then is foretold. Beside Muster: the mean of what the same user's
jobs ran so far, and the limit that the user asked for. The loss is the mean pinball loss of the three quantiles.

Ranges should hold for four in five of all jobs, so some may hold less often than others. How much less is shown:
`covered_least` is the share of that band in which the fewest hold, of owners with few and many jobs and of small and
large ones; `covered_longest` that of the longest quarter of all jobs, which nobody knows beforehand.

`hindsight` is no player: it is told how long all jobs of a class ran, of the same owner, name, size and limit, and
gives each of them the shortest range that holds for four in five. Whoever knows no more of a job than its class does
not come below its width at an equal share of every class.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from math import ceil
from typing import Final, NamedTuple

from msgspec.structs import replace

from bench.league import LeagueOptions
from bench.leagues.completion import named
from bench.leagues.entries import count_dropped, read_entries
from bench.leagues.sight import SEEN
from bench.report import Metric, Result
from muster.learning.ranges import HOLDS
from muster.learning.runtimes import QUANTILES, Range, RunTimes, Traits, hour_of
from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.simulator.traces.formats import SWF
from muster.simulator.traces.record import Record
from muster.units import SECOND_MS

BASELINES: Final = ("user-mean", "limit")
PLAYERS: Final = ("hindsight", "muster", *BASELINES)
WARM: Final = 200
"""How many of the first jobs are not counted: there is nothing to learn from yet."""
BANDS: Final = (1, 10, 100, 1000)
"""Where bands of owners begin, by how many jobs they have, and bands of jobs, by how large they are."""
BAND_LEAST: Final = 100
"""A band of fewer jobs says nothing."""


class Said(NamedTuple):
    """What was said of a job, and how long it ran."""

    said: Range
    ran_ms: int


def run(options: LeagueOptions) -> Result:
    """Foretell every file that is there and says who submitted what, or for how long at most."""
    metrics: dict[str, Metric] = {}
    is_any = False
    for stem, reading in read_entries(options.traces, "philly", "gen_parallel", SWF):
        records = reading.records
        if len(records) <= WARM or not any(record.user or record.tenant for record in records):
            metrics |= count_dropped(stem, reading.dropped, {"too few, or nobody's": len(records)})
            continue
        metrics |= count_dropped(stem, reading.dropped)
        players: dict[str, Callable[[Sequence[Record]], Iterator[Said]]] = {
            "hindsight": hindsight,
            "muster": foretell,
            "user-mean": user_mean,
        }
        if all(record.limit_ms is not None for record in records):
            players["limit"] = limit
        found: dict[str, dict[str, Metric]] = {}
        for policy, player in players.items():
            if options.is_wanted(policy):
                said = list(player(records))[WARM:]
                found[policy] = _judge(said, policy) | (_bands(records, said) if policy == "muster" else {})
        for policy, figures in found.items():
            metrics |= named(stem, policy, figures | (_goals(found) if policy == "muster" else {}))
        is_any = True
    if not is_any:
        fault = f"holds no file with owners and more than {WARM} jobs"
        raise RejectedError(Reason(Code.BAD_TRACE, str(options.traces), detail=fault))
    return Result("league prediction", metrics, {})


def foretell(records: Sequence[Record]) -> Iterator[Said]:
    """What Muster says of each job when it comes."""
    learned, ends = RunTimes(), list[tuple[int, int]]()
    for number, record in enumerate(records):
        while ends and ends[0][0] <= record.submit_ms:
            at, job = heappop(ends)
            learned.end(job, records[job].duration_ms, at)
        learned.settle(record.submit_ms)
        learned.accept(number, traits_of(record), record.submit_ms)
        yield Said(learned.predict(number), record.duration_ms)
        learned.begin(number, record.submit_ms)
        heappush(ends, (record.submit_ms + record.duration_ms, number))


def traits_of(record: Record) -> Traits:
    """Of a record, what may be seen when it is submitted."""
    seen = {name: getattr(record, name) for name in SEEN["prediction"]}
    size = seen["gpus"] or -(-seen["cpu_milli"] // 1000)
    return Traits(seen["tenant"], seen["user"], seen["name"], size, seen["limit_ms"], hour_of(seen["submit_ms"]))


def user_mean(records: Sequence[Record]) -> Iterator[Said]:
    """The mean of what the owner's jobs ran that ended by then; of everybody's, if none did."""
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    ends: list[tuple[int, int]] = []
    everybody = ("", "")
    for number, record in enumerate(records):
        while ends and ends[0][0] <= record.submit_ms:
            ended = records[heappop(ends)[1]]
            for key in ((ended.tenant, ended.user), everybody):
                total, count = sums.get(key, (0, 0))
                sums[key] = (total + ended.duration_ms, count + 1)
        total, count = sums.get((record.tenant, record.user)) or sums.get(everybody, (0, 1))
        mean = total / count
        yield Said(Range(mean, mean, (mean, mean, mean)), record.duration_ms)
        heappush(ends, (record.submit_ms + record.duration_ms, number))


def hindsight(records: Sequence[Record]) -> Iterator[Said]:
    """The shortest range that holds for four in five of a class, once all of it is known."""
    ran: dict[tuple[object, ...], list[float]] = {}
    for record in records:
        ran.setdefault(_class_of(record), []).append(float(record.duration_ms))
    ranges = {key: _shortest(sorted(spans)) for key, spans in ran.items()}
    for record in records:
        yield Said(ranges[_class_of(record)], record.duration_ms)


def _class_of(record: Record) -> tuple[object, ...]:
    return traits_of(record)._replace(hour=0)


def _shortest(spans: Sequence[float]) -> Range:
    """Of sorted run times, the shortest range that holds four in five of them; and their quantiles."""
    count = ceil(HOLDS * len(spans))
    first = min(range(len(spans) - count + 1), key=lambda at: spans[at + count - 1] - spans[at])
    quantiles = tuple(spans[min(len(spans) - 1, int(part * len(spans)))] for part in QUANTILES)
    return Range(spans[first], spans[first + count - 1], quantiles)


def limit(records: Sequence[Record]) -> Iterator[Said]:
    """The limit that was asked for."""
    for record in records:
        most = float(record.limit_ms or 0)
        yield Said(Range(0.0, most, (most, most, most)), record.duration_ms)


def pinball(part: float, said: float, ran: float) -> float:
    """The loss of a quantile: above it costs the part, below it the rest."""
    return max(part * (ran - said), (part - 1.0) * (ran - said))


def _judge(said: Sequence[Said], policy: str) -> dict[str, Metric]:
    count = len(said)
    loss = sum(
        pinball(part, value, ran) for each, ran in said for part, value in zip(QUANTILES, each.quantiles, strict=True)
    )
    covered = sum(each.low <= ran <= each.high for each, ran in said) / count
    width = _median([each.high - each.low for each, _ in said])
    middle = max(1.0, _median([float(ran) for _, ran in said]))
    mean_width = sum(each.high - each.low for each, _ in said) / count
    found = {
        "pinball_s": Metric(loss / count / len(QUANTILES) / SECOND_MS, "s"),
        "pinball_median_s": Metric(sum(pinball(0.5, x.quantiles[1], ran) for x, ran in said) / count / SECOND_MS, "s"),
        "covered": Metric(covered, "of jobs"),
        "width_over_median": Metric(width / middle, "median run times"),
        "mean_width_over_median": Metric(mean_width / middle, "median run times"),
    }
    if policy == "muster":
        found["covered"] = Metric(covered, "of jobs", 0.75)
        found["covered_most"] = Metric(covered, "of jobs", 0.85, at_least=False)
        found["width_over_median"] = Metric(width / middle, "median run times", 1.5, at_least=False)
    return found


def _goals(found: dict[str, dict[str, Metric]]) -> dict[str, Metric]:
    """What Muster is to lose at most by: no more than the best of the others who play."""
    losses = [found[policy]["pinball_s"].value for policy in BASELINES if policy in found]
    return {"pinball_s": replace(found["muster"]["pinball_s"], goal=min(losses), at_least=False)} if losses else {}


def _bands(records: Sequence[Record], said: Sequence[Said]) -> dict[str, Metric]:
    """How often ranges hold where they hold least often: in a band of owners or sizes, and for the longest quarter."""
    traits = [traits_of(record) for record in records]
    jobs = Counter((each.tenant, each.user) for each in traits)
    bands: dict[tuple[str, int], list[bool]] = {}
    for each, (said_of, ran) in zip(traits[WARM:], said, strict=True):
        held = said_of.low <= ran <= said_of.high
        bands.setdefault(("owner", bisect(BANDS, jobs[each.tenant, each.user])), []).append(held)
        bands.setdefault(("size", bisect(BANDS, each.devices)), []).append(held)
    longest = sorted(said, key=lambda each: each.ran_ms)[-len(said) // 4 :]
    shares = [sum(band) / len(band) for band in bands.values() if len(band) >= BAND_LEAST]
    return {
        "covered_least": Metric(min(shares, default=1.0), "of jobs", 0.6),
        "covered_longest": Metric(sum(x.low <= ran <= x.high for x, ran in longest) / len(longest), "of jobs"),
    }


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
