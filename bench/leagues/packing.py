"""`bench league packing`: how much of a fleet's devices stays unallocated when demand for all of them has arrived.

The protocol is that of the published comparison (FGD, USENIX ATC 2023): all pods of a list, shuffled by a seed, then
drawn again at random until demand is 130 % of the devices; strictly online, one pod after the other, none leaves, none
that fits is turned away, and one that does not fit is dropped. Nodes are known by an order that is shuffled by the seed
too, and ties go to the first of that order: the published runs rename nodes so, and policies with many ties depend on
it. Seeds, streams and orders are the published ones, number for number, so what differs is the policy and not the luck.
Every policy is a Profile of the production kernel, driven through its one door with one pod in each batch.

    random       any node that fits
    dot_product  where what is asked lies along what is free (Grandl et al., Tetris, SIGCOMM 2014)
    clustering   beside its likes (Xiao et al., Gandiva, OSDI 2018)
    packing      shared devices first, then nodes in use, then the others (Weng et al., NSDI 2022)
    best_fit     where least is left, over all resources (Panigrahy et al., 2011)
    fgd          where the least is made useless for what else is asked (Weng et al., FGD, USENIX ATC 2023)

All six are as the last of these papers compares them. `hindsight` is no policy: the same stream up to full demand,
packed when all of it is known, with the widest or the choosiest pods first, or as it came. It says what could have been
reached, the bound what could not be passed on any of the streams that are played.

`fgd` is given the mix of the whole list, as it was published; `muster` learns from pods that have arrived. `default` is
the profile that every fleet begins with. Nothing here knows a file's name: lists and nodes are found by their columns.
At the end of every run it is checked that what the kernel holds is what was placed and has not left.
"""

from __future__ import annotations

import heapq
import random
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import accumulate
from pathlib import Path
from time import process_time
from typing import Final, NamedTuple

from bench.league import LeagueOptions
from bench.leagues.dice import Dice
from bench.leagues.entries import count_dropped
from bench.leagues.packing_bound import find_bound
from bench.leagues.trial import require
from bench.report import Metric, Result, tell_distance
from muster.app.process import settle_memory
from muster.kernel.kernel import Kernel
from muster.learning.packing import Kind, PackingAdviser, class_columns, pick_typical
from muster.model.advice import PACKING, Advice
from muster.model.errors import RejectedError
from muster.model.event import Advise, Cancel, Event, Exited, NodeSeen, SetProfile, Started, Submit, UseProfile
from muster.model.node import Traits
from muster.model.phase import Queued
from muster.model.profile import TERMS, Profile
from muster.model.reason import Code, Done, Reason
from muster.model.spec import ANYWHERE, Needs, Spec
from muster.simulator.traces import openb
from muster.simulator.traces.formats import find_traces
from muster.simulator.traces.record import Record
from muster.units import INSTANT_MAX, Resources
from muster.world.world import World

SEEDS: Final = 10
FIRST_SEED: Final = 42
"""The first of the published seeds: it is our seed 1."""
PRINTED: Final = 1
"""How many numbers the published runs print before they draw any."""
WATCHED: Final = 10
"""How many numbers somebody takes between the stream and the nodes; their watches on a cluster, we suppose. Found by
trying 0 to 31 on one run, and then seen to hold for other seeds, lists and policies."""
FULL: Final = 1.0
OVERFULL: Final = 1.3
PERCENT: Final = 100
DEVICE: Final = 1000
PROCESSES: Final = 2
WARMING: Final = 64
"""With how many pods each process warms up."""
CHURNED: Final[tuple[str, ...]] = ("fgd", "muster")
"""Who plays the stream with departures too, with one seed."""
_OFF: Final = dict.fromkeys(TERMS, 0)
POLICIES: Final[dict[str, Profile]] = {
    "random": Profile(**_OFF | {"chance": 1}),
    "dot_product": Profile(**_OFF | {"alignment": 1}),
    "clustering": Profile(**_OFF | {"clustering": 1}),
    "packing": Profile(**_OFF | {"breaking": 1}),
    "best_fit": Profile(**_OFF | {"snugness": 1}),
    "fgd": Profile(**_OFF | {"fragments": 1}),
    "default": Profile(),
    "muster": Profile(**_OFF | {"pattern": 60, "price": 60, "displacement": 4, "stranding": 3}),
}
HINDSIGHT: Final = "hindsight"
PLAYERS: Final = (*POLICIES, HINDSIGHT)
ANY_MODEL: Final = 1000
PACKERS: Final = ("fgd", "muster")
"""Who packs the stream once more when all of it is known, in several orders; the best of them counts."""


class Entry(NamedTuple):
    """What is played: pods on nodes, and what was left out of both lists."""

    nodes: list[openb.NodeRow]
    pods: list[Record]
    nodes_dropped: dict[str, int]
    pods_dropped: dict[str, int]


class Score(NamedTuple):
    """One run: unallocated devices in per cent when all of the demand, and 130 % of it, has arrived; and how fast."""

    at_full: float
    at_overfull: float
    decisions_per_s: float


def run(options: LeagueOptions) -> Result:
    """All lists in the folder, each by every policy that is wanted."""
    entries = read_folder(options.traces)
    first = FIRST_SEED - 1 + options.seed
    seeds = range(first, first + (options.seeds or SEEDS))
    wanted = [name for name in POLICIES if options.is_wanted(name)]
    metrics: dict[str, Metric] = {}
    some = next(iter(entries.values()))
    with ProcessPoolExecutor(PROCESSES, initializer=_warm_up, initargs=(some.nodes, some.pods[:WARMING])) as pool:
        runs = {
            (stem, name): [pool.submit(play, name, each.nodes, each.pods, seed) for seed in seeds]
            for stem, each in entries.items()
            for name in wanted
        }
        bounds = {
            stem: [pool.submit(bound_of, each.nodes, each.pods, seed) for seed in seeds]
            for stem, each in entries.items()
        }
        known = {
            stem: pool.submit(play_hindsight, each.nodes, each.pods, first)
            for stem, each in entries.items()
            if options.is_wanted(HINDSIGHT)
        }
        churns = {
            (stem, name): pool.submit(play_churn, name, each.nodes, each.pods, options.seed)
            for stem, each in entries.items()
            for name in CHURNED
            if name in wanted
        }
        for stem, each in entries.items():
            metrics |= count_dropped(stem, each.nodes_dropped, each.pods_dropped)
            bound = 100 * min(future.result() for future in bounds[stem])
            metrics[f"{stem}.bound.unallocated_pct"] = Metric(bound, "%")
            if stem in known:
                found = known[stem].result()
                metrics[f"{stem}.{HINDSIGHT}.unallocated_pct"] = Metric(found, "%")
                metrics |= tell_distance(f"{stem}.{HINDSIGHT}.above_bound", found, bound, "of bound")
            scores = {name: [future.result() for future in runs[stem, name]] for name in wanted}
            for name in wanted:
                measures = _measures(scores, name, bound)
                metrics |= {f"{stem}.{name}.{key}": measure for key, measure in measures.items()}
            metrics |= _churn_measures(stem, {name: churns[stem, name].result() for name in CHURNED if name in wanted})
    return Result("league packing", metrics | _summary(metrics, entries), {})


def _warm_up(nodes: Sequence[openb.NodeRow], pods: Sequence[Record]) -> None:
    """A few pods that nobody counts: the compiler is done before anything is timed. Memory is as a server has it."""
    settle_memory()
    for policy in POLICIES:
        stage = Stage(policy, nodes, pods)
        for pod in pods:
            stage.place(pod)


def _measures(scores: dict[str, list[Score]], name: str, bound: float) -> dict[str, Metric]:
    mine = [score.at_full for score in scores[name]]
    middle = statistics.median(mine)
    found = {
        "unallocated_pct": Metric(middle, "%"),
        "sd": Metric(statistics.stdev(mine) if len(mine) > 1 else 0.0, "%"),
        "at_130": Metric(statistics.median(score.at_overfull for score in scores[name]), "%"),
        **tell_distance("above_bound", middle, bound, "of bound"),
        "decisions_per_s": Metric(statistics.median(score.decisions_per_s for score in scores[name]), "/s CPU", 5000),
    }
    if "fgd" in scores and name != "fgd":
        fgd = statistics.median(score.at_full for score in scores["fgd"])
        found["closed_pct"] = Metric(100 * (fgd - middle) / (fgd - bound) if fgd > bound else 0.0, "% of FGD to bound")
    return found


def _churn_measures(stem: str, idle: dict[str, float]) -> dict[str, Metric]:
    """What was idle while pods came and left; Muster's is to be no more than that of FGD, if both played."""
    goals = {"muster": idle.get("fgd")}
    return {
        f"{stem}.{name}.churn_idle_pct": Metric(value, "%", goals.get(name), at_least=False)
        for name, value in idle.items()
    }


def _summary(metrics: dict[str, Metric], stems: Iterable[str]) -> dict[str, Metric]:
    names = [f"{stem}.muster.closed_pct" for stem in stems]
    closed = [metrics[name].value for name in names if name in metrics]
    return {"all.muster.closed_pct": Metric(statistics.mean(closed), "% of FGD to bound", 45)} if closed else {}


def read_folder(folder: Path) -> dict[str, Entry]:
    """All lists of pods below a folder, each on every list of nodes there, found by their columns. Lists that name the
    same nodes with devices are one; where there are several, an entry has the names of both."""
    lists = {stem: openb.read_pods(path) for stem, path in find_traces(folder, openb.PODS)}
    for stem, reading in lists.items():
        if not any(map(asked_by, reading.records)):
            raise RejectedError(Reason(Code.BAD_TRACE, stem, detail="holds no pod that asks for a device"))
    fleets: dict[str, openb.FleetReading] = {}
    for stem, path in find_traces(folder, openb.NODES):
        fleet = openb.read_nodes(path)
        if all(fleet.nodes != other.nodes for other in fleets.values()):
            fleets[stem] = fleet
    return {
        stem if len(fleets) == 1 else f"{stem}-{place}": Entry(fleet.nodes, pods.records, fleet.dropped, pods.dropped)
        for place, fleet in fleets.items()
        for stem, pods in lists.items()
    }


def devices_of(nodes: Sequence[openb.NodeRow]) -> int:
    """Thousandths of devices in a fleet."""
    return sum(1000 * node.capacity.gpus for node in nodes)


def asked_by(pod: Record) -> int:
    """Thousandths of devices that a pod asks for."""
    return 1000 * pod.gpus + pod.gpu_milli


def draw(pods: Sequence[Record], nodes: Sequence[openb.NodeRow], seed: int) -> tuple[list[Record], list[openb.NodeRow]]:
    """A stream, and the nodes in the order of their names: all pods in a random order, some left out, or drawn again
    until demand is 130 % of the devices. Where that ends, one device of a pod counts, as it does in the published runs.
    """
    dice, most = Dice(seed), OVERFULL * devices_of(nodes)
    dice.skip(PRINTED)
    ordered = sorted(pods, key=lambda pod: pod.id)
    stream = ordered.copy()
    dice.shuffle(stream)
    total = sum(map(asked_by, stream))
    is_short = total < most
    while total > most:
        total -= asked_by(stream.pop(dice.below(len(stream))))
    while is_short:
        pod = ordered[dice.below(len(ordered))]
        is_short = total + min(asked_by(pod), DEVICE) <= most
        if is_short:
            stream.append(pod)
            total += asked_by(pod)
    dice.skip(WATCHED)
    ranks = dice.ranks(len(nodes))
    by_rank = dict(zip(ranks, sorted(nodes, key=lambda node: node.name), strict=True))
    return stream, [by_rank[rank] for rank in range(len(nodes))]


def typical_advice(pods: Sequence[Record], flavors: Sequence[str]) -> Advice:
    """What FGD is given: the classes that make up 95 % of the whole list, with CPU and devices and without memory."""
    counts: Counter[Kind] = Counter(Kind(pod.cpu_milli, 0, pod.gpus, pod.gpu_milli, pod.models) for pod in pods)
    kinds = pick_typical(counts, most=len(counts))
    total = sum(counts[kind] for kind in kinds)
    columns = class_columns(kinds, [counts[kind] / total for kind in kinds])
    for name in flavors:
        columns[f"on:{name}"] = tuple(0 if not kind.flavors or name in kind.flavors else -1 for kind in kinds)
    return Advice(1, INSTANT_MAX, columns)


class Stage:
    """A kernel with a fleet, a profile, and an adviser if the policy learns; pods go through its door one by one. Of
    equal places, the first of the nodes is taken."""

    def __init__(self, policy: str, nodes: Sequence[openb.NodeRow], pods: Sequence[Record]) -> None:
        self.kernel, self._now = Kernel(World()), 1
        self._adviser = PackingAdviser() if POLICIES[policy].pattern else None
        self._handle(*(NodeSeen(node.name, node.capacity, traits=Traits(node.model)) for node in nodes))
        self._handle(SetProfile("league", POLICIES[policy]), UseProfile("league"))
        if policy == "fgd":
            self._handle(Advise(PACKING, typical_advice(pods, sorted({node.model for node in nodes}))))
        self._unplaced: list[Event] = []
        self._specs: dict[tuple[object, ...], Spec] = {}

    def place(self, pod: Record) -> int | None:
        """Submit a pod: the number of its job if it got a place. What got none is cancelled with what comes next."""
        answer = self._handle(*self._take_unplaced(), Submit(self._spec(pod)))
        if not isinstance(answer, Done):
            return None
        if isinstance(self.kernel.world.jobs[answer.job].phase, Queued):
            self._unplaced = [Cancel(answer.job)]
            return None
        return answer.job

    def end(self, job: int) -> None:
        """A pod leaves. Who got no place before is gone by then: what comes free is for who comes next."""
        self._handle(*self._take_unplaced(), Started(job, 1), Exited(job, 1, 0))

    def check_held(self, placed: int) -> None:
        """What the kernel holds is what those take who were placed and have not left: nothing is lost or held twice."""
        fleet = self.kernel.world.fleet
        held = sum(fleet.held(slot)[0] for slot in range(len(fleet)))
        require(held == placed, "what is held is what was placed", f"held {held}, placed {placed}")

    def _take_unplaced(self) -> list[Event]:
        unplaced, self._unplaced = self._unplaced, []
        return unplaced

    def _handle(self, *events: Event) -> object:
        outcome = self.kernel.handle(events, self._now)
        self._now += 1
        if self._adviser is not None:
            self._adviser.observe(self.kernel.world, outcome.facts)
            for said in self._adviser.advise(self.kernel.world, self._now):
                self.kernel.handle([said], self._now)
        return outcome.answers[-1]

    def _spec(self, pod: Record) -> Spec:
        key = (pod.gpus, pod.gpu_milli, pod.cpu_milli, pod.memory_bytes, pod.models)
        found = self._specs.get(key)
        if found is None:
            ask = Resources(pod.gpus, pod.cpu_milli, pod.memory_bytes, pod.gpu_milli)
            needs = Needs(flavors=pod.models, any_flavor=True) if pod.models else ANYWHERE
            found = self._specs[key] = Spec(command=("pod",), name="pod", ask=ask, needs=needs)
        return found


def play(policy: str, nodes: Sequence[openb.NodeRow], pods: Sequence[Record], seed: int) -> Score:
    """One run of one policy. What is unallocated at full demand is the mean while demand rounds to 100 per cent; on a
    fleet so small that it never does, what is when demand has passed it."""
    total = devices_of(nodes)
    stream, order = draw(pods, nodes, seed)
    stage = Stage(policy, order, pods)
    arrived = placed = 0
    at_full: list[float] = []
    passed: list[float] = []
    begin = process_time()
    for pod in stream:
        arrived += asked_by(pod)
        placed += asked_by(pod) if stage.place(pod) is not None else 0
        if round(PERCENT * arrived / total) == PERCENT:
            at_full.append(_unallocated(placed, total))
        elif arrived > total and not passed:
            passed.append(_unallocated(placed, total))
    spent = process_time() - begin
    stage.check_held(placed)
    last = _unallocated(placed, total)
    return Score(statistics.mean(at_full or passed or [last]), last, len(stream) / spent)


def play_hindsight(nodes: Sequence[openb.NodeRow], pods: Sequence[Record], seed: int) -> float:
    """The stream of one seed until full demand, packed once all of it is known: what is unallocated, in per cent."""
    total, found = devices_of(nodes), list[float]()
    stream, order = draw(pods, nodes, seed)
    until = _count_full(stream, total)
    for key in (_as_it_came, _widest_first, _choosiest_first):
        for policy in PACKERS:
            stage = Stage(policy, order, pods)
            known = sorted(stream[:until], key=key)
            placed = sum(asked_by(pod) for pod in known if stage.place(pod) is not None)
            stage.check_held(placed)
            found.append(_unallocated(placed, total))
    return min(found)


def bound_of(nodes: Sequence[openb.NodeRow], pods: Sequence[Record], seed: int) -> float:
    """The part of the devices that stays unallocated at best at full demand, of what the stream of one seed asks for. A
    short list's stream may be easier to pack than the list."""
    stream, _ = draw(pods, nodes, seed)
    return find_bound(nodes, stream[: _count_full(stream, devices_of(nodes))])


def _count_full(stream: Sequence[Record], total: int) -> int:
    """With how many pods of a stream demand is full."""
    sums = accumulate(map(asked_by, stream))
    return next((at for at, arrived in enumerate(sums, start=1) if arrived >= FULL * total), len(stream))


def _as_it_came(pod: Record) -> tuple[int, ...]:  # noqa: ARG001 - all are alike, and sorting keeps their order
    return ()


def _widest_first(pod: Record) -> tuple[int, ...]:
    """Whole devices before shares, which fill what is left best in the order in which they came."""
    return (-pod.gpus,)


def _choosiest_first(pod: Record) -> tuple[int, ...]:
    return len(pod.models) or ANY_MODEL, -pod.gpus


def play_churn(policy: str, nodes: Sequence[openb.NodeRow], pods: Sequence[Record], seed: int) -> float:
    """One run in which pods leave after a while: demand for 130 % of the devices is there at any time, from the first
    moment on, when as many come as stay at a time. Gives how much of the devices is unallocated in the mean, in per
    cent, while as many come for the third time: by then two in three of the first have left."""
    dice, total = random.Random(seed), devices_of(nodes)
    order = sorted(nodes, key=lambda node: node.name)
    dice.shuffle(order)
    stage, ordered = Stage(policy, order, pods), sorted(pods, key=lambda pod: pod.id)
    stay = max(1, int(OVERFULL * total * len(ordered) / sum(map(asked_by, ordered))))
    leaving: list[tuple[int, int, int]] = []
    placed, idle = 0, 0.0
    for step in range(-stay, 2 * stay):
        now = max(0, step)
        while leaving and leaving[0][0] <= now:
            _, job, asked = heapq.heappop(leaving)
            stage.end(job)
            placed -= asked
        pod, lasts = dice.choice(ordered), 1 + int(dice.expovariate(1 / stay))
        number = stage.place(pod)
        if number is not None:
            heapq.heappush(leaving, (now + lasts, number, asked_by(pod)))
            placed += asked_by(pod)
        idle += _unallocated(placed, total) if step >= stay else 0.0
    stage.check_held(placed)
    return idle / stay


def _unallocated(placed: int, total: int) -> float:
    return PERCENT * (total - placed) / total
