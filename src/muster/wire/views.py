"""The API's JSON: what a reader sees of jobs, nodes and tenants. Flat, named, and built on read from the world.

Field names end in their unit. Nothing is shown but what was asked for: a listing carries no commands or environments.
"""

from __future__ import annotations

import msgspec

from muster.model.sharing import Sharing
from muster.model.spec import Spec
from muster.model.tier import Promise
from muster.units import Resources


class View(msgspec.Struct, frozen=True, omit_defaults=True):
    """The base of what the API sends: objects by name; what has its default is left out."""


class Place(View, frozen=True):
    """A run's hold on one node; of a partition, with the slot in which it begins: `3g.40gb@4`."""

    node: str
    tasks: int
    devices: list[int] = []
    partition: str = ""


class TaskCounts(View, frozen=True):
    """How many tasks of an array are in each phase."""

    queued: int = 0
    starting: int = 0
    running: int = 0
    stopping: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    blocked: int = 0


class JobAccount(View, frozen=True):
    """What a job used, and who submitted it: device time by what it was spent on, in thousandths of a device times
    milliseconds, and what that cost. It was up for `served_ms`, since it started the last time."""

    user: str
    time: dict[str, int] = {}
    cost_micros: int = 0
    started_at_ms: int | None = None
    served_ms: int = 0


class MarkView(View, frozen=True):
    """How far a gang that runs said that it is: its step, and step and instant of its last checkpoint, if it has one;
    or it writes one now."""

    step: int
    saved_step: int | None = None
    saved_at_ms: int | None = None
    writes: bool = False


class EndView(View, frozen=True):
    """When a job that has its place will likely be over, and where that comes from, in words; between the other two
    instants four times in five, if that is known. Nothing is promised by it."""

    at_ms: int
    words: str
    least_ms: int | None = None
    most_ms: int | None = None


class FailedTasks(View, frozen=True):
    """Tasks of an array that failed in one way: so many, and which, as the first and the last of each range; of very
    many ranges the first ones. `note` is what the engine said of it, if it said anything."""

    why: str
    exit_code: int
    note: str
    tasks: int
    ranges: list[tuple[int, int]]


class JobView(View, frozen=True):
    """A job: `phase` is the word a user sees (queued, starting, running, stopping, succeeded, failed, cancelled). It
    `waits` for those jobs; `late` says so if it is, or may be, past its due time. Of many places the first are shown,
    and how many there are; `spares` are places that it holds for no task, and of those the same. `note` is what the
    engine said of its failure, if it said anything; the price is that of an hour where it is, in millionths, and `end`
    when it is likely over. `mark` is how far a gang said that it is; of an array, `saved` tasks that run have a
    checkpoint, and those that `failed` stand together by how they did, where one job is shown."""

    id: int
    name: str
    tenant: str
    phase: str
    tasks: int
    ask: Resources
    accepted_at_ms: int
    since_ms: int
    epoch: int = 0
    failures: int = 0
    why: str = ""
    exit_code: int | None = None
    places: list[Place] = []
    counts: TaskCounts | None = None
    spec: Spec | None = None
    is_over: bool = False
    held: bool = False
    waits: list[int] = []
    late: str = ""
    places_total: int = 0
    cpu_ms: int = 0
    rss_bytes: int = 0
    account: JobAccount | None = None
    note: str = ""
    spares: list[Place] = []
    price_micros: int = 0
    end: EndView | None = None
    mark: MarkView | None = None
    saved: int = 0
    spares_total: int = 0
    failed: list[FailedTasks] = []


class JobPage(View, frozen=True):
    """One page of jobs; `next_after` continues the listing, if there is more."""

    jobs: list[JobView]
    next_after: int | None = None
    seq: int = 0


class Submitted(View, frozen=True):
    """The answer to a submit: the job, and the entry to read at least."""

    job: int
    seq: int


class Problem(View, frozen=True):
    """RFC 9457: an error as a document, with a stable code and one fix."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    fix: str = ""
    needed: int = 0
    available: int = 0


class BulkPart(View, frozen=True):
    """What became of one job of many: its number, or the problem with it."""

    job: int = 0
    problem: Problem | None = None


class BulkAnswer(View, frozen=True):
    """What became of many jobs, in their order, and the entry to read at least."""

    jobs: list[BulkPart]
    seq: int


class Ahead(View, frozen=True):
    """Somebody who waits before you; without number and tenant, if they are not yours to see."""

    job: int
    tenant: str
    tasks: int
    ask: Resources


class OptionView(View, frozen=True):
    """One change with which a job would start now, or once so many jobs have stopped for it: `flag` is how `muster run`
    takes it."""

    field: str
    asked: int | str
    to: int | str
    flag: str
    words: str
    stops: int = 0


class WhyView(View, frozen=True):
    """Why a job waits, in words and in numbers; `offer` says in one line what would start it now."""

    job: int
    phase: str
    code: str = ""
    words: str = ""
    fix: str = ""
    needed: int = 0
    available: int = 0
    position: int = 0
    ahead: list[Ahead] = []
    ahead_total: Resources = Resources()
    options: list[OptionView] = []
    offer: str = ""
    late: str = ""


class OpeningView(View, frozen=True):
    """An ask per task: how many one-task jobs with it would start now, the largest gang, and what keeps out more; what
    the next one would cost in an hour, in millionths."""

    ask: Resources
    flags: str
    tasks: int
    gang: int
    limited_by: str
    price_micros: int = 0


class AvailView(View, frozen=True):
    """What a tenant could start now, the smallest ask first."""

    tenant: str
    openings: list[OpeningView]


class StoryLine(View, frozen=True):
    """One step in a job's life."""

    seq: int
    at_ms: int
    what: str
    cause: str = ""


class Story(View, frozen=True):
    """A job's life, oldest first; `next_after` continues it, if there is more."""

    job: int
    lines: list[StoryLine]
    next_after: int | None = None


class Occurrence(View, frozen=True):
    """Something that happened to a job: the kind of the fact, and the phase that it led to, where it says one."""

    seq: int
    at_ms: int
    job: int
    tenant: str
    what: str
    phase: str = ""


class LogPiece(View, frozen=True):
    """A piece of a task's output as text; what is not UTF-8 is replaced. Bytes are to be had from `/logs`."""

    text: str
    epoch: int


class Changed(View, frozen=True):
    """The answer to a change that makes no job: the entry to read at least."""

    seq: int


class BarView(View, frozen=True):
    """What keeps new work off a node: until then, or until its owner lifts it. Some also stop what runs."""

    kind: str
    owner: str
    since_ms: int
    reason: str = ""
    until_ms: int | None = None
    lets_finish: bool = True


class DeviceView(View, frozen=True):
    """A device of a node, by its number: what is free of it, in thousandths, and whether it is there at all. Of
    one that is cut, the `partitions` on it, each with the slot in which it begins."""

    number: int
    free_milli: int
    id: str = ""
    is_missing: bool = False
    partitions: list[str] = []


class LaterView(View, frozen=True):
    """What a node will be as soon as nothing runs there."""

    capacity: Resources
    flavor: str = ""
    region: str = ""
    cluster: str = ""
    block: str = ""
    rack: str = ""


class NodeView(View, frozen=True):
    """A node and what is free on it; nothing new goes there while it has bars.

    `name` is its address where another node has the same name. `devices` and `job_ids` are told of one node, not in a
    listing. What it `lacks` is what it joined with and does not have now; `losses` counts how often it failed of late.
    Where devices are cut, they have so many `slots` together. `later` is told of a busy node that says to be another.
    """

    name: str
    phase: str
    capacity: Resources
    free: Resources
    jobs: int = 0
    bars: list[BarView] = []
    address: str = ""
    flavor: str = ""
    region: str = ""
    cluster: str = ""
    block: str = ""
    rack: str = ""
    labels: dict[str, str] = {}
    taints: list[str] = []
    lacks: Resources | None = None
    devices: list[DeviceView] = []
    job_ids: list[int] = []
    torus: str = ""
    spot: str = ""
    losses: int = 0
    slots: int = 0
    slots_free: int = 0
    later: LaterView | None = None


class FlavorView(View, frozen=True):
    """A kind of capacity: the family whose quota it shares, what one device counts there, its price per device and hour
    in millionths; and the nodes and devices there are of it, and the whole devices that are free for new work; what
    a device and a core take of overlays' power. If its devices are cut, into how many `slots`, and which `partitions`
    may lie there, as `3g.40gb=4@0,4`."""

    name: str
    family: str
    units: int
    price_micros: int = 0
    nodes: int = 0
    devices: int = 0
    free: int = 0
    watts: int = 0
    core_watts: int = 0
    slots: int = 0
    partitions: list[str] = []


class OverlayView(View, frozen=True):
    """A power feed or an uplink: its budget, what is taken and what is left for whoever comes, all in its unit; by how
    much it is passed; the nodes that are behind it, and what says so: names and labels."""

    name: str
    resource: str
    unit: str
    budget: int
    taken: int = 0
    left: int = 0
    over: int = 0
    nodes: list[str] = []
    named: list[str] = []
    labels: list[str] = []


class LineView(View, frozen=True):
    """A quota line: `used` is held of it, and `impaired` is how much of the guarantee healthy nodes cannot cover.

    CPU is in thousandths of a core, memory in bytes, a GPU family in millionths of a device that counts as one.
    """

    family: str
    scope: str = ""
    guaranteed: int = 0
    limit: int | None = None
    lend: int | None = None
    used: int = 0
    impaired: int = 0


class BudgetView(View, frozen=True):
    """A budget and what has been spent of it in the present period; both in millionths of a GPU-hour or of the
    currency. `since_ms` is where its periods are counted from, `turns_at_ms` when the next one begins."""

    unit: str
    amount: int
    soft: bool = False
    period_ms: int = 0
    since_ms: int = 0
    spent: int = 0
    turns_at_ms: int | None = None


class TenantView(View, frozen=True):
    """A tenant: where it stands in the tree, its lines and budgets, and what it holds with all below it, by family."""

    name: str
    parent: str = ""
    weight: int = 1
    lines: list[LineView] = []
    used: dict[str, int] = {}
    budgets: list[BudgetView] = []


class TierView(View, frozen=True):
    """A tier: the lower rank goes first, who has waited so long is due, so many who are due cast a shadow; and what
    keeps its runs from being stopped for others, and how often in a day they may be moved for them. Of what it
    promises, `promised` thousandths of GPUs are to be had by its jobs, and so many of them are `behind`."""

    name: str
    rank: int
    longest_wait_ms: int
    shadows: int = 1
    min_run_ms: int = 0
    evictions_max: int | None = None
    emergency: bool = False
    sharing: Sharing | None = None
    promise: Promise | None = None
    moves_max: int = 0
    promised: int = 0
    behind: int = 0


class WindowView(View, frozen=True):
    """A window of a booking, with the nodes that it has, or the first of very many; it is `short` of so many."""

    opens_at_ms: int
    closes_at_ms: int
    nodes: list[str]
    is_open: bool = False
    short: int = 0


class BookingView(View, frozen=True):
    """A booking, its windows in order, and how many jobs name it."""

    name: str
    tenant: str
    nodes: int
    windows: list[WindowView]
    gpus: int = 0
    flavor: str = ""
    within: str = ""
    shared: bool = False
    jobs: int = 0


class ProfileView(View, frozen=True):
    """A stored profile: the weight of each score term, its version, and whether the fleet is scored by it."""

    name: str
    version: int
    is_used: bool
    weights: dict[str, int]


class AdviceView(View, frozen=True):
    """A kind of advice in force: its version, its end, how many columns it has and how many numbers in all."""

    name: str
    version: int
    expires_at_ms: int
    columns: int
    numbers: int


class FlavorGoodput(View, frozen=True):
    """What the time of a flavor's devices was spent on, in thousandths of a device times milliseconds, exactly."""

    flavor: str
    time: dict[str, int]


class UsageRow(View, frozen=True):
    """What was used by those of one group: what the sums are not by is left out. Device time is as in goodput; CPU time
    is that of tasks that ended."""

    tenant: str = ""
    user: str = ""
    flavor: str = ""
    hour_ms: int | None = None
    time: dict[str, int] = {}
    cpu_ms: int = 0
    cost_micros: int = 0
    jobs: int = 0


class UsageView(View, frozen=True):
    """Use in full hours from one instant to another, as far as it was known `at_ms`; `next_after` continues."""

    rows: list[UsageRow]
    since_ms: int
    until_ms: int
    at_ms: int
    next_after: int | None = None


class GoodputView(View, frozen=True):
    """The goodput account up to an instant: of the fleet, where the buckets of a flavor add up to all the time that
    there was since `since_ms`; or of what one tenant held."""

    at_ms: int
    flavors: list[FlavorGoodput]
    tenant: str = ""
    since_ms: int = 0


class RouteView(View, frozen=True):
    """A route for notices: a webhook or a command, what it is told, of which tenants (empty: of all), and as much of
    where it leads as is no secret."""

    name: str
    form: str
    on: list[str] = []
    tenants: list[str] = []
    waiting_ms: int = 0
    target: str = ""


class DeliveryView(View, frozen=True):
    """What became of a trial notice: whether it arrived, and if it did not, why."""

    id: str
    is_delivered: bool
    words: str = ""


class Health(View, frozen=True):
    """Whether the server is fit to answer: `leader` is whether writes get through."""

    status: str
    leader: bool
    seq: int
    lag_ms: int = 0
    version: str = ""
