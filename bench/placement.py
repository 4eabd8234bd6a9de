"""`bench placement`: attempts to place one task on a fleet that is 90 % full, in compiled code from end to end.

Each attempt looks for a node and takes it if there is one; others give back after a refusal and above 90 %.
CPU and memory strand devices, so attempts are refused; those look everywhere. Placed and refused attempts are also
timed apart, on the fleet as it stood at the end and without taking anything. The reference is a compiled scan of every
node for the same asks, and it also says whether a refusal was false.
"""

from __future__ import annotations

import random
from functools import partial
from typing import NamedTuple

import numpy as np

from bench.fleets import make_asks, make_fleet
from bench.report import Metric, Result, cpu_seconds, median
from muster.model.spec import ANYWHERE
from muster.scheduler.placing.fit import query_of
from muster.scheduler.placing.query import CPU, DISK, GPUS, MEMORY, MILLI, NETWORK
from muster.scheduler.placing.single import find_single, fits, lowest_devices, tightest_device
from muster.world.arena import DEVICE, NODES, NOWHERE
from muster.world.compiled import Words, compiled
from muster.world.index import take

ASKS = 64
ATTEMPTS = 200_000
ROUNDS = 5
HELD, USED, DICE, PLACED, REFUSED, FALSE = range(6)
ROW = 3
"""What is held: slot, ask, devices."""


def run(seed: int) -> Result:
    """Both sizes in interleaved rounds; the metrics are medians."""
    loads = {"12k": _Load(12_500, seed), "50k": _Load(50_000, seed)}
    rounds = [{name: load.measure() for name, load in loads.items()} for _ in range(ROUNDS)]
    middle = {
        name: _Figures(*(median([one[name][place] for one in rounds]) for place in range(len(_Figures._fields))))
        for name in loads
    }
    wrong = sum(load.count_false_refusals() for load in loads.values())
    metrics = {
        "attempts_per_s_12k": Metric(middle["12k"].attempts, "attempts/s", 1_000_000, at_least=True),
        "attempts_per_s_50k": Metric(middle["50k"].attempts, "attempts/s", 500_000, at_least=True),
        "false_refusals": Metric(wrong, "attempts", 0, at_least=False),
    }
    reference: dict[str, float] = {}
    for name, figures in middle.items():
        reference |= {f"{what}_{name}": value for what, value in figures._asdict().items() if what != "attempts"}
    return Result("placement", metrics, reference)


class _Figures(NamedTuple):
    """Per second, but for the share of refused attempts."""

    attempts: float
    placed_alone: float
    refused_alone: float
    refused_share: float
    gpus_in_use: float
    full_scan: float


class _Load:
    """A fleet, filled to nine tenths, and what is asked of it."""

    def __init__(self, nodes: int, seed: int) -> None:
        self._fleet = make_fleet(nodes)
        asks = make_asks(ASKS, seed)
        queries = [query_of(self._fleet, ask, 1, ANYWHERE) for ask in asks]
        self._width = max(map(len, queries))
        self._queries = np.zeros(ASKS * self._width, dtype=np.int64)
        for number, query in enumerate(queries):
            self._queries[number * self._width : number * self._width + len(query)] = query
        dice = random.Random(seed)
        self._order = np.array([dice.randrange(ASKS) for _ in range(ATTEMPTS)], dtype=np.int64)
        self._held = np.zeros(ROW * nodes * 64, dtype=np.int64)
        self._state = np.array([0, 0, seed * 2 + 1, 0, 0, 0], dtype=np.int64)
        self._most = nodes * 8 * DEVICE * 9 // 10
        for _ in range(2 + nodes // 5_000):
            self._churn(ATTEMPTS, 0)

    def measure(self) -> _Figures:
        """One round."""
        before = self._state.copy()
        seconds = cpu_seconds(partial(self._churn, ATTEMPTS, 0))
        placed, refused = self._state[PLACED] - before[PLACED], self._state[REFUSED] - before[REFUSED]
        return _Figures(
            ATTEMPTS / seconds,
            self._alone(hit=True),
            self._alone(hit=False),
            float(refused / (placed + refused)),
            float(self._state[USED] / self._most * 0.9),
            self._scan(),
        )

    def count_false_refusals(self) -> int:
        """One more round in which every refusal is checked against all nodes."""
        self._churn(ATTEMPTS // 10, 1)
        return int(self._state[FALSE])

    def _churn(self, attempts: int, verify: int) -> int:
        words = self._fleet.words
        return churn(
            words, self._queries, self._width, self._order, self._held, self._state, self._most, attempts, verify
        )

    def _alone(self, hit: bool) -> float:
        """Attempts of one outcome, repeated; 0 if no ask has it now."""
        words, width = self._fleet.words, self._width
        parts = [self._queries[number * width : (number + 1) * width] for number in range(ASKS)]
        chosen = [part for part in parts if (find_single(words, part) != NOWHERE) == hit]
        if not chosen:
            return 0.0
        flat = np.concatenate(chosen)
        return ATTEMPTS / cpu_seconds(lambda: repeat(words, flat, width, ATTEMPTS))

    def _scan(self) -> float:
        words, count = self._fleet.words, 2_000
        return count / cpu_seconds(lambda: scan_many(words, self._queries, self._width, count))


@compiled
def scan(words: Words, query: Words) -> int:
    """The lowest slot that fits, by looking at every node."""
    for slot in range(words[NODES]):
        if fits(words, query, slot):
            return slot
    return NOWHERE


@compiled
def scan_many(words: Words, queries: Words, width: int, count: int) -> int:
    """The reference: one scan per ask that looks at every node, as a best fit must."""
    found = 0
    for number in range(count):
        begin = number % (len(queries) // width) * width
        for slot in range(words[NODES]):
            found += int(fits(words, queries[begin : begin + width], slot))
    return found


@compiled
def repeat(words: Words, queries: Words, width: int, count: int) -> int:
    """Attempts that take nothing."""
    found = 0
    for number in range(count):
        begin = number % (len(queries) // width) * width
        found += int(find_single(words, queries[begin : begin + width]) != NOWHERE)
    return found


@compiled
def move(words: Words, query: Words, slot: int, devices: int, sign: int) -> int:
    """Take a node's share for one task (1), or give it back (-1)."""
    milli = query[MILLI] if query[MILLI] else DEVICE
    amounts = sign * query[CPU], sign * query[MEMORY], sign * query[DISK], sign * query[NETWORK]
    return take(words, slot, devices, sign * milli, amounts[0], amounts[1], amounts[2], amounts[3])


@compiled
def churn(
    words: Words,
    queries: Words,
    width: int,
    order: Words,
    held: Words,
    state: Words,
    most: int,
    count: int,
    verify: int,
) -> int:
    """Attempt after attempt; whoever the dice name leaves after a refusal, and while the fleet is above `most`."""
    for number in range(count):
        ask = order[number]
        query = queries[ask * width : (ask + 1) * width]
        slot = find_single(words, query)
        if slot == NOWHERE:
            state[REFUSED] += 1
            if verify and scan(words, query) != NOWHERE:
                state[FALSE] += 1
            give_back(words, queries, width, held, state)
        else:
            devices = lowest_devices(words, slot, query[GPUS])
            if query[MILLI]:
                devices = 1 << tightest_device(words, slot, query[MILLI], 0)
            move(words, query, slot, devices, 1)
            at = ROW * state[HELD]
            held[at], held[at + 1], held[at + 2] = slot, ask, devices
            state[HELD] += 1
            state[PLACED] += 1
            state[USED] += DEVICE * query[GPUS] + query[MILLI]
        while state[USED] > most:
            give_back(words, queries, width, held, state)
    return 0


@compiled
def give_back(words: Words, queries: Words, width: int, held: Words, state: Words) -> None:
    """Somebody leaves; the last one's row moves into the gap."""
    state[DICE] = (state[DICE] * 6364136223846793005 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF
    at, last = ROW * ((state[DICE] >> 20) % state[HELD]), ROW * (state[HELD] - 1)
    query = queries[held[at + 1] * width : (held[at + 1] + 1) * width]
    move(words, query, held[at], held[at + 2], -1)
    state[USED] -= DEVICE * query[GPUS] + query[MILLI]
    for offset in range(ROW):
        held[at + offset] = held[last + offset]
    state[HELD] -= 1
