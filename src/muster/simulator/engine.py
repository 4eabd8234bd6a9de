"""The simulated engine: nodes, processes and a network in virtual time, with every fault that a real one may have.

It keeps the contract of `muster.ports.engine`: instructions are idempotent, ends are repeated until they are forgotten,
a stop for what was never seen fences it. Messages may be lost (and are then said again), doubled or late; what a node
says, it says in order. It decides nothing about jobs: how long a task runs and how it exits is told by `fate`.

It also is the ground truth: two live processes on one device raise, whatever the kernel believes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from muster.model.errors import InvariantError
from muster.model.event import Event, Exited, Held, NodeGone, NodeSeen, NodeSilent, Started
from muster.model.group import group_at
from muster.model.instruction import Forget, Instruction, Start, Stop
from muster.model.node import PLAIN, Traits
from muster.ports.engine import Report
from muster.simulator.agenda import Agenda
from muster.simulator.cohort import Cohort, SimulatedNode, State, gaps, part_of_devices
from muster.simulator.joining import join_alike
from muster.units import MINUTE_MS, SECOND_MS, Limit, Resources

LATENCY_MS: Final = 20
KILLED: Final = 137
METERED_MS: Final = 1500
STOPPED: Final = 143


class Fate(NamedTuple):
    """What becomes of a cohort if nobody interferes; and how long it takes to stop if it is told to, as far as its
    grace lets it. None is up to chance, and never long."""

    start_ms: int
    run_ms: int
    code: int = 0
    stop_ms: Limit = None


FateOf: TypeAlias = Callable[[Start, int], Fate]


class Network(NamedTuple):
    """How bad the network is: shares of messages, in per mille."""

    lost: int = 0
    doubled: int = 0
    late_ms: int = 10 * MINUTE_MS


class SimulatedEngine:
    """One engine over many nodes."""

    def __init__(self, agenda: Agenda, fate: FateOf, dice: random.Random, network: Network | None = None) -> None:
        self._agenda = agenda
        self._fate = fate
        self._dice = dice
        self._network = network or Network()
        self._report: Report | None = None
        self._nodes: dict[str, SimulatedNode] = {}
        self._where: dict[tuple[int, int], dict[str, None]] = {}
        self._epochs: dict[int, dict[int, None]] = {}
        self._fenced: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._arrays: dict[int, None] = {}
        self._said: dict[int, list[Event]] = {}

    # -- the port ------------------------------------------------------------------------------------------------

    def open(self, report: Report) -> None:
        """Begin to observe: every node reports itself."""
        self._report = report
        for node in self._nodes.values():
            self._say_seen(node)

    def carry_out(self, instructions: Sequence[Instruction]) -> None:
        """Take instructions; they reach their nodes after the latency, in order."""
        if instructions:
            self._agenda.after(LATENCY_MS, self._carry_out, list(instructions))

    def close(self) -> None:
        """Stop observing."""
        self._report = None

    # -- nodes and their troubles --------------------------------------------------------------------------------

    def add_node(self, name: str, capacity: Resources, traits: Traits = PLAIN, devices: tuple[str, ...] = ()) -> str:
        """A machine; it reports itself at once if the engine is open. Its address, which all else calls it by."""
        node = SimulatedNode(name, capacity, traits, devices)
        self._nodes[node.address] = node
        if self._report is not None:
            self._say_seen(node)
        return node.address

    def is_healthy(self, name: str) -> bool:
        """Whether a node is up and reachable."""
        node = self._nodes[name]
        return node.is_alive and node.is_reachable

    def cut_off(self, name: str, silent_after_ms: int = 30 * SECOND_MS) -> int:
        """A node cannot be reached; what runs there goes on. Returns a token that `is_same_trouble` knows."""
        node = self._nodes[name]
        node.is_reachable = False
        node.trouble += 1
        self._agenda.after(silent_after_ms, self._notice, node, node.trouble)
        return node.trouble

    def crash(self, name: str, silent_after_ms: int = 30 * SECOND_MS) -> int:
        """A node dies, and everything on it; nobody knows yet."""
        node = self._nodes[name]
        for cohort in node.everyone():
            self._end(node, cohort, State.LOST, KILLED)
        node.is_alive = False
        node.boot += 1
        return self.cut_off(name, silent_after_ms)

    def is_same_trouble(self, name: str, trouble: int) -> bool:
        """Whether a node is still in the trouble that a token was given for."""
        return self._nodes[name].trouble == trouble and not self._nodes[name].is_reachable

    def fence(self, name: str) -> None:
        """The authority fences a node: whatever is alive there dies, and this is said."""
        node = self._nodes[name]
        for cohort in node.everyone():
            if cohort.is_live:
                self._end(node, cohort, State.EXITED, KILLED)
        node.boot += 1
        node.deaf_until = self._agenda.now + LATENCY_MS
        self._say([NodeGone(name, cause=f"{name} fenced")])

    def bring_back(self, name: str) -> None:
        """A node is reachable again and reports all that it still holds."""
        node = self._nodes[name]
        node.is_alive = node.is_reachable = True
        node.trouble += 1
        for cohort in node.everyone():
            if cohort.state == State.LOST:
                self._drop(node, cohort)
        self._say_seen(node)
        for cohort in node.everyone():
            self._tell(node, cohort)

    def lose_device(self, name: str, device: int) -> None:
        """A device falls off the bus; what ran on it hangs. The node says so at once, or when it is back."""
        node = self._nodes[name]
        node.missing |= 1 << device
        self._speak_up(node)

    def rename_device(self, name: str, device: int, alias: str) -> None:
        """A node calls one of its devices by an id that is, or was, somebody else's."""
        node = self._nodes[name]
        node.ids = (*node.ids[:device], alias, *node.ids[device + 1 :])
        self._speak_up(node)

    def mend_devices(self, name: str, ids: tuple[str, ...]) -> None:
        """All devices of a node are there again, under these ids."""
        node = self._nodes[name]
        node.missing = node.known_missing = 0
        node.ids = ids
        self._speak_up(node)

    def ids_of(self, name: str) -> tuple[str, ...]:
        """What a node calls its devices."""
        return self._nodes[name].ids

    def _speak_up(self, node: SimulatedNode) -> None:
        if node.is_alive and node.is_reachable and self._report is not None:
            self._say_seen(node)

    # -- ground truth --------------------------------------------------------------------------------------------

    def find_live(self, job: int, first: int, count: int) -> Cohort | None:
        """A live process of a job's tasks, of whatever epoch."""
        for epoch in self._epochs.get(job, ()):
            for name in self._where[(job, epoch)]:
                for cohort in self._nodes[name].known(job, epoch):
                    if cohort.is_live and cohort.overlaps(first, count):
                        return cohort
        return None

    def count_live(self) -> int:
        """How many tasks have a live process."""
        return sum(cohort.count for node in self._nodes.values() for cohort in node.everyone() if cohort.is_live)

    # -- instructions --------------------------------------------------------------------------------------------

    def _carry_out(self, instructions: list[Instruction]) -> None:
        for item in instructions:
            if isinstance(item, Start):
                self._start(item)
            elif isinstance(item, Stop):
                self._stop(item)
            else:
                self._forget(item)

    def _start(self, item: Start) -> None:
        first = item.first
        ids = item.device_ids or [()] * len(item.nodes)
        for name, count, devices, names in zip(item.nodes, item.counts, item.devices, ids, strict=True):
            node = self._nodes[name]
            if node.is_alive and node.is_reachable and node.deaf_until < self._agenda.now:
                self._start_here(item, node, first, count, node.numbers(devices, names))
            first += count

    def _start_here(self, item: Start, node: SimulatedNode, first: int, count: int, devices: int) -> None:
        """Start what this node does not know yet, and repeat what it does."""
        key = (item.job, item.epoch)
        fenced = [span for span in self._fenced.get(key, ()) if _overlaps(span, first, count)]
        for begin, width in fenced:
            self._say_exited(item.job, item.epoch, begin, width, STOPPED)
        known = [cohort for cohort in node.known(*key) if cohort.overlaps(first, count)]
        for cohort in known:
            self._tell(node, cohort)
        covered = fenced + [(cohort.first, cohort.count) for cohort in known]
        for begin, width in gaps(first, count, covered):
            gpus = group_at(item.spec.needs.groups, first)[0].ask.gpus if item.spec.needs.groups else item.spec.ask.gpus
            mine = part_of_devices(devices, gpus, begin - first, width)
            self._launch(item, node, Cohort(*key, begin, width, node.address, gpus, mine))

    def _launch(self, item: Start, node: SimulatedNode, cohort: Cohort) -> None:
        if node.busy_devices & cohort.devices:
            raise InvariantError(
                "no device runs two tasks", f"job {cohort.job} epoch {cohort.epoch} on {node.name}: {cohort.devices:b}"
            )
        if node.known_missing & cohort.devices:
            where = f"job {cohort.job} epoch {cohort.epoch} on {node.name}: {cohort.devices & node.known_missing:b}"
            raise InvariantError("no work goes to a device that is not there", where)
        node.busy_devices |= cohort.devices
        node.add(cohort)
        self._where.setdefault((cohort.job, cohort.epoch), {})[node.address] = None
        self._epochs.setdefault(cohort.job, {})[cohort.epoch] = None
        if item.spec.array:
            self._arrays[item.job] = None
        fate = self._fate(item, cohort.first)
        cohort.stop_ms = fate.stop_ms
        self._plan(fate.start_ms, self._be_up, node, cohort, fate)

    def _stop(self, item: Stop) -> None:
        covered: list[tuple[int, int]] = []
        for name in list(self._where.get((item.job, item.epoch), ())):
            node = self._nodes[name]
            for cohort in list(node.known(item.job, item.epoch)):
                if cohort.overlaps(item.first, item.count):
                    covered.append((cohort.first, cohort.count))
                    self._stop_cohort(node, cohort, item)
        for first, count in gaps(item.first, item.count, covered):
            self._fenced.setdefault((item.job, item.epoch), []).append((first, count))
            self._say_exited(item.job, item.epoch, first, count, STOPPED)

    def _stop_cohort(self, node: SimulatedNode, cohort: Cohort, item: Stop) -> None:
        if not node.is_reachable:
            return
        if not cohort.is_live:
            self._tell(node, cohort)
            return
        inside = self._cut(node, cohort, item.first, item.count)
        inside.turn += 1
        now, by_chance_ms = self._agenda.now, self._dice.randrange(100, 5000)
        leaves_at = now + min(item.grace_ms, by_chance_ms if inside.stop_ms is None else inside.stop_ms)
        if inside.stop_ms is not None and inside.leaves_at is not None:
            leaves_at = min(leaves_at, inside.leaves_at)
        inside.leaves_at = leaves_at
        self._plan(max(0, leaves_at - now), self._be_over, node, inside, STOPPED)

    def _cut(self, node: SimulatedNode, cohort: Cohort, first: int, count: int) -> Cohort:
        """The cohort of exactly the tasks inside a range; what is outside lives on as it was to."""
        if first <= cohort.first and cohort.end <= first + count:
            return cohort
        inside, outside = cohort.cut(first, count)
        node.drop(cohort)
        for part in (inside, *outside):
            node.add(part)
        for part in outside:
            self._plan(cohort.plan[0] - self._agenda.now, cohort.plan[1], node, part, *cohort.plan[2])
        return inside

    def _forget(self, item: Forget) -> None:
        key, spans = (item.job, item.epoch), item.spans
        fenced = self._fenced.pop(key, [])
        left = [span for span in fenced if not any(_overlaps(span, *each) for each in spans)]
        if left:
            self._fenced[key] = left
        for name in list(self._where.get(key, ())):
            node = self._nodes[name]
            for cohort in list(node.known(*key)) if node.is_reachable else ():
                if cohort.state == State.EXITED and any(cohort.overlaps(*each) for each in spans):
                    self._drop(node, cohort)

    def _drop(self, node: SimulatedNode, cohort: Cohort) -> None:
        node.drop(cohort)
        key = (cohort.job, cohort.epoch)
        if key not in node.cohorts and key in self._where:
            self._where[key].pop(node.address, None)
            if not self._where[key]:
                del self._where[key]
                epochs = self._epochs[cohort.job]
                del epochs[cohort.epoch]
                if not epochs:
                    del self._epochs[cohort.job]
                    self._arrays.pop(cohort.job, None)

    # -- lives ---------------------------------------------------------------------------------------------------

    def _plan(
        self, delay_ms: int, action: Callable[..., None], node: SimulatedNode, cohort: Cohort, *args: Any
    ) -> None:
        """What becomes of a cohort next, unless its turn changes before."""
        cohort.plan = (self._agenda.now + delay_ms, action, args)
        self._agenda.after(delay_ms, action, node, cohort, cohort.turn, *args)

    def _be_up(self, node: SimulatedNode, cohort: Cohort, turn: int, fate: Fate) -> None:
        if cohort.turn == turn and cohort.state == State.STARTING:
            cohort.state = State.RUNNING
            self._tell(node, cohort)
            self._plan(fate.run_ms, self._be_over, node, cohort, fate.code)

    def _be_over(self, node: SimulatedNode, cohort: Cohort, turn: int, code: int) -> None:
        if cohort.turn == turn and cohort.is_live:
            self._end(node, cohort, State.EXITED, code)
            self._tell(node, cohort)

    def _end(self, node: SimulatedNode, cohort: Cohort, state: State, code: int) -> None:
        if cohort.is_live:
            node.busy_devices &= ~cohort.devices
        cohort.turn += 1
        cohort.state = state
        cohort.code = code

    # -- messages ------------------------------------------------------------------------------------------------

    def _say_seen(self, node: SimulatedNode) -> None:
        held = tuple(Held(cohort.job, cohort.epoch, cohort.first, cohort.count) for cohort in node.everyone())
        capacity, devices = node.report()
        self._say([NodeSeen(node.name, capacity, held, f"{node.name} reports", node.traits, devices)])
        self._agenda.after(3 * LATENCY_MS, self._be_known, node, node.missing)

    def _be_known(self, node: SimulatedNode, missing: int) -> None:
        """What was decided before a loss was heard of has arrived by now: no start may speak of it any more."""
        node.known_missing |= missing & node.missing

    def _notice(self, node: SimulatedNode, trouble: int) -> None:
        if self.is_same_trouble(node.address, trouble):
            self._say([NodeSilent(node.address, cause=f"{node.name} silent")])

    def _tell(self, node: SimulatedNode, cohort: Cohort) -> None:
        """Report a cohort as it stands, through a network that may lose, double or delay it."""
        if not node.is_reachable or cohort.state in (State.STARTING, State.LOST):
            return
        event = _event_of(cohort)
        roll = self._dice.randrange(1000)
        if roll < self._network.lost:
            self._agenda.after(self._dice.randrange(10_000, 60_000), self._tell_again, node, cohort)
        else:
            self._say([event])
        if self._dice.randrange(1000) < self._network.doubled:
            late = self._dice.randrange(1, self._network.late_ms)
            self._agenda.after(late, self._say_late, node, node.boot, event)

    def _tell_again(self, node: SimulatedNode, cohort: Cohort) -> None:
        if cohort in node.known(cohort.job, cohort.epoch):
            self._tell(node, cohort)

    def _say_late(self, node: SimulatedNode, boot: int, event: Event) -> None:
        """A doubled message arrives; one from before the node last died does not."""
        if node.boot == boot:
            self._say([event])

    def _say_exited(self, job: int, epoch: int, first: int, count: int, code: int) -> None:
        self._say([Exited(job, epoch, code, first, count, cause="never started")])

    def _say(self, events: list[Event]) -> None:
        """What is said at one instant is one report."""
        at = self._agenda.now
        if at not in self._said:
            self._said[at] = []
            self._agenda.after(LATENCY_MS, self._deliver, at)
        self._said[at] += events

    def _deliver(self, said_at: int) -> None:
        events = self._said.pop(said_at)
        if self._report is not None:
            self._report(join_alike(events, self._arrays))


def _event_of(cohort: Cohort) -> Event:
    where = (cohort.first, cohort.count)
    if cohort.state == State.RUNNING:
        return Started(cohort.job, cohort.epoch, *where, cause=cohort.node)
    used = (cohort.count * METERED_MS, cohort.job << 20) if cohort.job % 3 == 0 else (0, 0)  # not every engine knows
    return Exited(cohort.job, cohort.epoch, cohort.code, *where, "", cohort.node, *used)


def _overlaps(span: tuple[int, int], first: int, count: int) -> bool:
    return span[0] < first + count and first < span[0] + span[1]
