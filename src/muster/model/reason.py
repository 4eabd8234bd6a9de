"""Reasons are typed data: a stable code, what it is about, and the numbers. Words are made at the surface only.

A refusal answers one request and a waiting reason explains one queued job; both are Reasons, so that the command
line, the API and the SDK say the same thing. `docs/reference/codes.md` documents every code.
"""

from __future__ import annotations

import enum
from typing import Final

from muster.model.record import Record

RULED_OUT: Final = "ruled out by "
"""How the detail of a reason begins that names a need without which there would be room."""
OWN_TASKS: Final = "own tasks"
JOBS_ELSEWHERE: Final = "jobs elsewhere"
"""Whom a claim waits for, if it is not for jobs on its places."""


class Code(enum.StrEnum):
    """Stable codes: never renumbered, never reused."""

    BAD_SPEC = "M101"
    BAD_AMOUNT = "M102"
    BAD_NAME = "M103"
    TOO_LARGE = "M104"
    ASKS_NOTHING = "M105"
    NEVER_FITS = "M110"
    NEVER_WITHIN_QUOTA = "M111"
    UNKNOWN_TENANT = "M112"
    FLAVOR_IN_USE = "M113"
    LABEL_TOO_FINE = "M114"
    TENANT_LOOP = "M115"
    OVERPROMISED = "M116"
    TENANT_IN_USE = "M117"
    BAD_QUOTA = "M118"
    NEVER_INSIDE = "M119"
    UNKNOWN_JOB = "M120"
    ALREADY_OVER = "M121"
    STALE_EPOCH = "M122"
    UNEXPECTED = "M123"
    UNKNOWN_NODE = "M124"
    AMBIGUOUS_NODE = "M125"
    NODE_TAKEN = "M126"
    DEVICE_TAKEN = "M127"
    BAD_BUDGET = "M128"
    UNKNOWN_TIER = "M129"
    TIME_WENT_BACK = "M130"
    KEY_REUSED = "M131"
    PROMISES_FULL = "M132"
    BAD_PARTITION = "M133"
    UNKNOWN_PARTITION = "M134"
    BAD_TABLE = "M135"
    PARTITION_IN_USE = "M136"
    BAD_GROUP = "M137"
    EMPTY_OVERLAY = "M138"
    UNKNOWN_RESOURCE = "M139"
    OVERLAY_TAKEN = "M140"
    UNKNOWN_OVERLAY = "M141"
    NEVER_WITHIN_OVERLAY = "M142"
    NO_NODES_TO_BOOK = "M151"
    TOO_FEW_NODES = "M152"
    BAD_WINDOW = "M153"
    UNKNOWN_BOOKING = "M154"
    BOOKING_TAKEN = "M155"
    NOT_ITS_BOOKING = "M156"
    BAD_WIDTH = "M157"
    MOST_BELOW_WIDTH = "M158"
    BELOW_LEAST = "M159"
    NO_WIDTH = "M160"
    IS_STOPPING = "M161"
    NO_SPARES = "M162"
    TURNS_NOT_MOVED = "M164"
    NOT_MOVABLE = "M168"
    NO_PLACE_ELSEWHERE = "M169"
    UNKNOWN_PREDECESSOR = "M143"
    PREDECESSOR_RETIRED = "M144"
    NEVER_AFTER = "M145"
    UNLIKE = "M167"
    DUE_ALREADY = "M146"
    UNKNOWN_PROFILE = "M149"
    PROFILE_CHANGED = "M150"
    BAD_FILE = "M170"
    UNKNOWN_FIELD = "M171"
    BAD_SBATCH = "M172"
    UNMAPPED = "M173"
    NO_PAST = "M174"
    NOTHING_FAILED = "M175"
    NOT_THEN = "M176"
    WHICH_TENANT = "M177"
    NO_ROOM = "M201"
    OVER_QUOTA = "M202"
    NOT_WAITING = "M203"
    NOTHING_TO_BORROW = "M204"
    MAY_NOT_BORROW = "M205"
    BUDGET_SPENT = "M206"
    SOFT_BUDGET_SPENT = "M207"
    HELD = "M208"
    DUE = "M212"
    SHADOWED = "M213"
    WAITS_FOR_OTHERS = "M215"
    MAY_BE_LATE = "M216"
    IS_LATE = "M217"
    OVERLAY_FULL = "M219"
    CLAIMED = "M209"
    GROUP_NO_ROOM = "M210"
    WINDOW_TO_OPEN = "M220"
    BOOKING_FULL = "M221"
    NODES_BOOKED = "M222"
    REPAIRED = "M223"
    BEHIND_PROMISE = "M224"
    NO_ROOM_FOR_SPARES = "M225"
    MOVED_FOR = "M226"
    AT_ITS_MOST = "M230"
    NOT_ITS_TURN = "M231"
    JOURNAL_NEWER = "M301"
    JOURNAL_DAMAGED = "M302"
    ALREADY_SERVED = "M303"
    PORT_TAKEN = "M304"
    HOME_UNUSABLE = "M305"
    STORE_REFUSED = "M306"
    NO_LEADER = "M307"
    UNAUTHORISED = "M308"
    NO_SERVER = "M309"
    OVERLOADED = "M310"
    NOT_FOUND = "M311"
    BAD_BUNDLE = "M312"
    FORBIDDEN = "M313"
    BEHIND = "M314"
    BAD_TRACE = "M315"
    NOT_ALLOWED = "M316"
    UNKNOWN_USER = "M317"
    TOKEN_EXPIRED = "M318"  # noqa: S105 - a code, not a secret
    CHANGED_MEANWHILE = "M319"
    ENGINE_FAILED = "M320"
    RATE_LIMITED = "M322"
    TLS_NEEDED = "M323"
    SLOW_CLIENT = "M324"
    NO_RECORD = "M325"
    UNKNOWN_TOKEN = "M321"  # noqa: S105 - a code, not a secret
    IDENTITY_REFUSED = "M331"
    KEYS_UNKNOWN = "M332"
    BAD_SETTINGS = "M333"
    OUT_OF_MEMORY = "M334"
    ROUTE_TAKEN = "M326"
    LOGGED_IN = "M327"
    HAS_A_SERVER = "M328"
    IN_THE_CLEAR = "M329"
    UNKNOWN_ROUTE = "M335"
    NOT_ITS_METHOD = "M336"
    NOT_HERE = "M346"
    TREE_TOO_LARGE = "M347"
    CANNOT_COPY = "M348"
    NO_CONTAINERS = "M349"
    NO_PARQUET = "M353"
    CANNOT_WRITE = "M354"
    UNKNOWN_CLUSTER = "M355"
    NO_LEAGUES = "M356"
    NO_BACKUP = "M357"
    SERVER_SILENT = "M358"
    INVARIANT = "M900"


class Reason(Record, frozen=True):
    """Why something was refused or waits: `needed` and `available` are in the unit that `subject` names."""

    code: Code
    subject: str = ""
    needed: int = 0
    available: int = 0
    detail: str = ""


class Refused(Record, frozen=True, tag="refused"):
    """The answer to an event that changed nothing."""

    reason: Reason


class Done(Record, frozen=True, tag="done"):
    """The answer to an event that was taken: the job it is about, or 0."""

    job: int = 0


DONE: Final = Done()
