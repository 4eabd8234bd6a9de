"""Reasons in words: the one wording that the command line, the API and the SDK share.

Each code has a sentence and one fix, as templates over the Reason's own numbers. A test keeps the table total.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from muster.model.budget import show_spending
from muster.model.reason import JOBS_ELSEWHERE, OWN_TASKS, RULED_OUT, Code, Reason
from muster.model.tenant import show_amount
from muster.units import show_duration, show_instant
from muster.wire.option_words import FLAGS, SHOW, spell_flag


class Words(NamedTuple):
    """What happened, and the one thing to do about it."""

    what: str
    fix: str


_TABLE: Final[dict[Code, Words]] = {
    Code.BAD_SPEC: Words("{subject}: {detail}", "correct the field and send it again"),
    Code.BAD_GROUP: Words("{subject}: {detail}", "correct the groups and send it again"),
    Code.BAD_PARTITION: Words("{subject}: {detail}", "ask for one device (--gpus 1) and one partition of it per task"),
    Code.UNKNOWN_PARTITION: Words(
        "no flavor{subject} has a partition {detail!r}", "choose one that `muster flavors show NAME` lists"
    ),
    Code.BAD_TABLE: Words(
        "the partitions of {subject}: {detail}", "write each as NAME=SLOTS@STARTS, such as 3g.40gb=4@0,4"
    ),
    Code.PARTITION_IN_USE: Words(
        "{jobs} asking for {detail} as it is", "let them end or cancel them first, or give the new one another name"
    ),
    Code.EMPTY_OVERLAY: Words(
        "overlay {subject} has no node{more}", "name nodes that `muster nodes` lists, or labels that some of them have"
    ),
    Code.UNKNOWN_RESOURCE: Words(
        "there are no budgets of {detail!r}", "choose one of power (in watts) and network (in Mbit/s)"
    ),
    Code.OVERLAY_TAKEN: Words(
        "there is an overlay {subject} already, with a budget of {detail}", "choose another name, or remove it first"
    ),
    Code.UNKNOWN_OVERLAY: Words("there is no overlay {detail!r}", "choose one that `muster overlays` lists"),
    Code.NEVER_WITHIN_OVERLAY: Words(
        "never fits: it needs {needed:,} of overlay {subject}, whose budget is {detail}",
        "ask for fewer tasks or less per task, or have the budget raised",
    ),
    Code.OVERLAY_FULL: Words(
        "waiting for budget: overlay {subject} has {available:,} of {detail} left, this needs {needed:,}",
        "wait for work behind it to end, ask for less, or have the budget raised",
    ),
    Code.BAD_AMOUNT: Words("{subject} is {needed}, out of range ({detail})", "give a whole number within the range"),
    Code.BAD_NAME: Words(
        "{subject} {detail!r} is not a name",
        "use up to {available} letters (a to z), digits and . _ @ / -, starting with a letter or digit",
    ),
    Code.TOO_LARGE: Words(
        "{subject} has {needed}, the most is {available}", "make it smaller or split it; a long text goes into a file"
    ),
    Code.ASKS_NOTHING: Words("the job asks for nothing", "ask for at least one of gpus, cpus or memory"),
    Code.NEVER_FITS: Words(
        "never fits: {count}{each} must run at once, the whole fleet could hold {available}{more}",
        "ask for fewer tasks or less per task, or add nodes",
    ),
    Code.NEVER_WITHIN_QUOTA: Words(
        "never fits: it needs {amount}, tenant {detail} may hold {limit} (line {subject})",
        "ask for less, or have the tenant's quota raised",
    ),
    Code.UNKNOWN_TENANT: Words(
        "there is no tenant {detail!r}",
        "name one of yours with --tenant (`muster whoami` says where you have a role), or have an admin create it",
    ),
    Code.WHICH_TENANT: Words("no tenant is named, and you have {needed}: {detail}", "name one of them with --tenant"),
    Code.FLAVOR_IN_USE: Words(
        "{detail} has work on {needed} of its nodes: what it counts as cannot change under it",
        "drain those nodes first (`muster nodes --flavor {detail}`), or name a new flavor",
    ),
    Code.LABEL_TOO_FINE: Words(
        "{subject} has {needed} values on the nodes; at most {available} can be told apart",
        "ask by a coarser label",
    ),
    Code.TENANT_LOOP: Words(
        "tenant {detail} would stand below itself", "choose a parent that is not below it in `muster tenants`"
    ),
    Code.OVERPROMISED: Words(
        "tenants below {detail} would be guaranteed {amount}, more than its own {limit} (line {subject})",
        "guarantee less, or raise the line of {detail} first",
    ),
    Code.TENANT_IN_USE: Words(
        "tenant {detail} still has {subject} ({needed})",
        "move or end them first; see `muster tenants` and `muster ls --tenant {detail}`",
    ),
    Code.NEVER_INSIDE: Words(
        "never fits: it needs {amount} and may not be evicted, at most {limit} are guaranteed to it (line {subject})",
        "ask for less, have the guarantee raised, or, if it is no booking, let it be evicted",
    ),
    Code.BAD_BUDGET: Words(
        "budget {subject}: {detail}", "write it like 1000h/30d or 5000/30d; one hard and one soft each"
    ),
    Code.BAD_QUOTA: Words("line {subject}: {detail}", "give one line for it, and a limit that covers its guarantee"),
    Code.UNKNOWN_TIER: Words("there is no tier {detail!r}", "choose one that `muster tiers` lists"),
    Code.UNKNOWN_PROFILE: Words("there is no profile {detail!r}", "choose one that `muster profiles` lists"),
    Code.PROFILE_CHANGED: Words(
        "profile {detail} is at version {available}, not {needed}: somebody else changed it",
        "look at it with `muster profiles show {detail}`, and set it again",
    ),
    Code.BAD_FILE: Words("{subject}: {detail}", "correct it there; `muster submit --schema` prints what a job may say"),
    Code.UNKNOWN_FIELD: Words("a job has no field {subject!r}", "{detail}"),
    Code.BAD_SBATCH: Words("{subject}: {detail}", "correct the flag; `man sbatch` has its form"),
    Code.UNMAPPED: Words(
        "{subject} cannot be mapped, and without it the job would be wrong: {detail}",
        "take it out of the script, or see `muster import`",
    ),
    Code.NO_PAST: Words(
        "that is {needed} entries from what is kept whole, more than {available}, or before what is kept",
        "ask for a time nearer to now",
    ),
    Code.NOT_THEN: Words(
        "there was no job {needed} at {subject}: {detail}",
        "ask for another time; `muster story {needed}` tells its life",
    ),
    Code.UNKNOWN_JOB: Words("there is no job {needed}", "check the number with `muster ls --all`"),
    Code.ALREADY_OVER: Words("{subject} {needed} is already over", "nothing is left to do"),
    Code.STALE_EPOCH: Words("a report of epoch {available} came after epoch {needed} began", "nothing: it is ignored"),
    Code.UNEXPECTED: Words("{subject}: {detail}", "nothing: it is ignored"),
    Code.UNKNOWN_NODE: Words("there is no node {detail!r}", "check the name with `muster nodes`"),
    Code.AMBIGUOUS_NODE: Words(
        "{needed} nodes are called {subject!r}: {detail}", "say which one, with its region and cluster"
    ),
    Code.NO_NODES_TO_BOOK: Words(
        "booking {subject} wants {nodes}, {available} would be free for it{detail}",
        "book fewer nodes or another time (`muster bookings`), or let it begin later with --flexible",
    ),
    Code.TOO_FEW_NODES: Words(
        "no {subject} has {nodes} like that: the most is {available}",
        "book fewer nodes, smaller ones, or within a wider level",
    ),
    Code.BAD_WINDOW: Words(
        "the window {subject}: {amount}, {limit}",
        "give a time to come and a duration, one window after the other",
    ),
    Code.UNKNOWN_BOOKING: Words("there is no booking {detail!r}", "choose one that `muster bookings` lists"),
    Code.BOOKING_TAKEN: Words(
        "there is a booking {detail!r} already", "give this one another name, or cancel the other first"
    ),
    Code.NOT_ITS_BOOKING: Words(
        "booking {subject} is not for tenant {detail}",
        "use one of the tenant's own, or have it made with --shared by a tenant above",
    ),
    Code.BAD_WIDTH: Words(
        "a gang of {needed} to {available} tasks is none: {detail}", "say the least first, as in --gang 2-8"
    ),
    Code.MOST_BELOW_WIDTH: Words(
        "it runs with {needed} tasks, which is more than {available}",
        "shrink it first: muster scale JOB {available}",
    ),
    Code.BELOW_LEAST: Words(
        "it needs {needed} tasks, which is more than {available}",
        "change its bounds, as in: muster scale JOB {available}-{needed}",
    ),
    Code.NO_WIDTH: Words(
        "it cannot have another number of tasks: {detail}", "submit it anew as a gang without a shape, slices or spread"
    ),
    Code.IS_STOPPING: Words(
        "job {needed} was told to stop, or to shrink, and is not done yet",
        "say it again when it waits or runs; if it is over by then, submit it anew",
    ),
    Code.NO_SPARES: Words("no spares: {detail}", "leave `spares` out, or make it a gang of alike tasks"),
    Code.NOTHING_FAILED: Words(
        "nothing of job {needed} failed that could run again: {detail}",
        "see `muster show {needed}`; what failed a second time is brought back by the number that it had then",
    ),
    Code.TURNS_NOT_MOVED: Words(
        "{subject}: its jobs take turns, so they are not moved for others",
        "leave out --moves, or --shared-by",
    ),
    Code.NOT_MOVABLE: Words("job {needed} cannot be moved: {detail}", "requeue it, or drain its nodes"),
    Code.NO_PLACE_ELSEWHERE: Words(
        "there is no place for it elsewhere: {tasks} within its quota, {available} would fit now",
        "let it go to more nodes, wait until some are free, or drain its nodes: then it waits for room",
    ),
    Code.NODE_TAKEN: Words(
        "the address {detail!r} is that of a node in another place", "give the node, or its cluster, another name"
    ),
    Code.DEVICE_TAKEN: Words(
        "device {detail} is in node {subject} too",
        "if it is the same machine under another name, have the old node fenced; see `muster nodes`",
    ),
    Code.TIME_WENT_BACK: Words("time went back from {needed} to {available}", "check the clock of this machine"),
    Code.KEY_REUSED: Words(
        "the key {detail!r} already made job {needed}, from another spec", "use a new key for a different job"
    ),
    Code.GROUP_NO_ROOM: Words(
        "waiting for room: of group {subject}, {tasks}, {available} would fit now{more}",
        "wait, or ask for fewer tasks or less per task in that group",
    ),
    Code.NO_ROOM: Words(
        "waiting for room: {tasks}, {available} would fit now{more}",
        "wait, or ask for fewer tasks or less per task",
    ),
    Code.OVER_QUOTA: Words(
        "waiting for quota: it needs {amount}, tenant {detail} has {limit} left (line {subject})",
        "wait for the tenant's other jobs, or have its quota raised",
    ),
    Code.NOTHING_TO_BORROW: Words(
        "waiting for quota: it needs {amount}, others lend no more than {limit} (line {subject})",
        "wait, ask for less, or have a guarantee raised",
    ),
    Code.MAY_NOT_BORROW: Words(
        "waiting for its guarantee: it needs {amount} and may not borrow, for it may not be evicted;"
        " {limit} are left (line {subject})",
        "wait for the tenant's other jobs, or let it be evicted",
    ),
    Code.BUDGET_SPENT: Words(
        "waiting for budget: tenant {detail} has spent {amount} of {limit} (budget {subject})",
        "wait for the next period (`muster tenants`), or have the budget raised",
    ),
    Code.SOFT_BUDGET_SPENT: Words(
        "waiting for its guarantee: tenant {detail} spent {amount} of {limit} and may not borrow (budget {subject})",
        "wait for the tenant's other jobs or for the next period (`muster tenants`), or have the budget raised",
    ),
    Code.HELD: Words("held: it starts nothing until it is released", "let it start with `muster release {needed}`"),
    Code.DUE: Words(
        "waiting for room: it is due, and starts by {amount} at the latest if runs end as they are foreseen to",
        "wait; later jobs may not delay it",
    ),
    Code.SHADOWED: Words(
        "waiting so as not to delay job {needed}, which is due and starts by {limit} at the latest",
        "wait, or give it a limit that ends before then (`muster run --limit`)",
    ),
    Code.UNKNOWN_PREDECESSOR: Words("{subject}: there is no job {needed}", "check the number with `muster ls --all`"),
    Code.PREDECESSOR_RETIRED: Words(
        "{subject}: job {needed} ended a while ago and how is not known here",
        "look with `muster show {needed}`, and leave the condition out if it is met",
    ),
    Code.NEVER_AFTER: Words(
        "{subject}: job {needed} is over ({detail}), so it would never start",
        "leave the condition out, or run job {needed} again and name the new one",
    ),
    Code.UNLIKE: Words(
        "{subject}: it has {count} and {detail} has {available}, so not each of its tasks has its like there",
        "follow an array of as many tasks, or the whole of the other job: --afterok",
    ),
    Code.DUE_ALREADY: Words("it is due at {amount}, and that is past: it is {limit}", "give a later due time, or none"),
    Code.MAY_BE_LATE: Words(
        "due at {amount}; if it takes {detail}, it ends at {limit}",
        "ask for less so that it starts sooner, lower its limit, or give it a higher priority",
    ),
    Code.IS_LATE: Words("was due at {amount}", "nothing: it goes on, before those that are due later"),
    Code.PROMISES_FULL: Words(
        "{subject}: its promises would come to {needed} thousandths of GPUs, and there are {available}",
        "use a tier that promises less, ask for less, or wait until others of it are over",
    ),
    Code.BEHIND_PROMISE: Words(
        "behind what its tier promises: by {limit} of {amount} that it is to be up by the end of its window",
        "nothing: it goes before those of its tenant and tier that are less behind; a higher tier may start sooner",
    ),
    Code.WAITS_FOR_OTHERS: Words(
        "waiting for {others}: {detail}",
        "wait, or see why the first of them does: `muster why {needed}`",
    ),
    Code.CLAIMED: Words(
        "waiting for its places: {jobs} being stopped for it (claim until {limit})",
        "wait: it starts as soon as they are gone",
    ),
    Code.MOVED_FOR: Words(
        "waiting for its places: {jobs} being moved so that it fits ({detail}; claim until {limit})",
        "wait: it starts as soon as they are gone",
    ),
    Code.AT_ITS_MOST: Words(
        "{needed} of its tasks wait until others of it end: at most {available} are at it at once, as its owner said",
        "wait, or let more of them be at it: `muster scale {detail} N`",
    ),
    Code.NOT_ITS_TURN: Words(
        "waiting for its turn: there is room, and others of tier {subject} go first{more}",
        "wait: turns change when somebody ends and with every quantum; `muster tiers` has the rule",
    ),
    Code.WINDOW_TO_OPEN: Words(
        "waiting for its booking: {subject} opens at {amount}{more}", "wait, or run it without --booking"
    ),
    Code.BOOKING_FULL: Words(
        "waiting for room in booking {subject}: {tasks}, {available} would fit now{more}",
        "wait for the other jobs of the booking, or run it without --booking",
    ),
    Code.NODES_BOOKED: Words(
        "waiting for room: there is some on nodes that booking {subject} has {detail} {amount}",
        "give it a --limit that ends before then, or wait",
    ),
    Code.REPAIRED: Words(
        "waiting for a node instead of one that it lost, for {needed} of its tasks; it keeps its others until {limit}",
        "wait: it is the first to get what comes free",
    ),
    Code.NO_ROOM_FOR_SPARES: Words(
        "waiting for room for its spares: of {needed} places with them {available} would fit now{more}",
        "wait, or ask for fewer spares: its tasks alone would fit",
    ),
    Code.NOT_WAITING: Words("job {needed} is not waiting", "see `muster show {needed}`"),
    Code.JOURNAL_NEWER: Words(
        "the {subject} was written by a newer Muster ({detail})", "upgrade this Muster; the file was not touched"
    ),
    Code.JOURNAL_DAMAGED: Words("the {subject} is damaged: {detail}", "restore a backup; the file was not touched"),
    Code.ALREADY_SERVED: Words(
        "another server holds {subject}", "use the one that runs (`muster ls`), or stop it with `muster down`"
    ),
    Code.PORT_TAKEN: Words("port {needed} is taken", "free it, or choose another with `muster up --port`"),
    Code.HOME_UNUSABLE: Words(
        "cannot use {subject}: {detail}",
        "set MUSTER_HOME to a server's home, or for a new one to a directory that you may write to",
    ),
    Code.STORE_REFUSED: Words(
        "the store refused to write: {detail}", "free disk space, then `muster up`; nothing acknowledged was lost"
    ),
    Code.NO_LEADER: Words(
        "the leader is away or does not answer, so nothing can be changed now",
        "try again; if it stays, `muster doctor`",
    ),
    Code.UNAUTHORISED: Words(
        "no valid token came with the request",
        "use the token in the server's home directory, or one that `muster tokens make` gave you",
    ),
    Code.NO_SERVER: Words("no server answers at {detail}", "start one with `muster up`"),
    Code.SERVER_SILENT: Words(
        "the server at {detail} is there and has not answered for {needed} s",
        "its disk may hang: see the follower's log; `muster down` and `muster up` start another, and jobs go on",
    ),
    Code.OVERLOADED: Words("the server has {needed} {subject}, and that is the most", "try again in a moment"),
    Code.NOT_FOUND: Words("{subject} not found", "check the address"),
    Code.NOT_ITS_METHOD: Words("{subject} is not served: only {detail} there", "ask in one of these ways"),
    Code.BAD_BUNDLE: Words("cannot read the bundle: {detail}", "record it anew"),
    Code.FORBIDDEN: Words("{subject}: {detail}", "use the command line or the SDK, on the server's own machine"),
    Code.BAD_TRACE: Words(
        "{subject}: {detail}", "mend what it names, or name another: `muster trace formats` lists what is read"
    ),
    Code.NO_PARQUET: Words(
        "writing Parquet needs {subject}, and it is not installed", "`pip install 'muster[parquet]'`, or choose swf"
    ),
    Code.CANNOT_WRITE: Words("{subject} cannot be written: {detail}", "name another file, or make room for this one"),
    Code.NO_BACKUP: Words("cannot restore from {subject}: {detail}", "name a file that `muster backup` made"),
    Code.NO_LEAGUES: Words("the leagues are not installed", "run this in a checkout of Muster's sources"),
    Code.UNKNOWN_CLUSTER: Words("no published summary is called {subject!r}", "choose one of {detail}"),
    Code.BEHIND: Words("this server has entry {available}, entry {needed} was asked for", "try again in a moment"),
    Code.NOT_ALLOWED: Words(
        "this needs the role {subject} in {detail}", "ask an admin there for the role, or use another token"
    ),
    Code.UNKNOWN_USER: Words("there is no user {detail!r}", "check the name, or have an admin add it"),
    Code.TOKEN_EXPIRED: Words("the token {detail} ended at {limit}", "make a new one with `muster tokens make`"),
    Code.UNKNOWN_TOKEN: Words("there is no token {detail!r}", "check its number; it may have been dropped"),
    Code.NO_RECORD: Words(
        "the recorder does not have batch {needed} any more: it begins with {available}",
        "ask for a later time; `muster bundle` keeps what is there now for good",
    ),
    Code.SLOW_CLIENT: Words(
        "the {subject} of the request did not come within {available} s", "send the request without a pause, and again"
    ),
    Code.TLS_NEEDED: Words(
        "{detail!r} is not an address of this machine alone, and there is no certificate",
        "give --tls-cert and --tls-key, or listen on 127.0.0.1",
    ),
    Code.RATE_LIMITED: Words(
        "token {detail} sends more than {available} requests in a second",
        "wait {needed} ms, or send many jobs in one request",
    ),
    Code.CHANGED_MEANWHILE: Words(
        "{subject} is not what it was when it was read",
        "read it again, and send the change again if it is still meant",
    ),
    Code.ENGINE_FAILED: Words("the engine failed: {detail}", "see the server's log"),
    Code.IDENTITY_REFUSED: Words(
        "the identity provider's token is not taken: {detail}",
        "get a new one for this server, or use a token of Muster's",
    ),
    Code.KEYS_UNKNOWN: Words(
        "the keys of {subject} are not known now", "try again in a moment; if it stays, see the follower's log"
    ),
    Code.BAD_SETTINGS: Words("{subject}: {detail}", "mend the file, or take it away, and start again"),
    Code.OUT_OF_MEMORY: Words(
        "the task had more memory than it asked for", "ask for more with --memory, or let it use less"
    ),
    Code.LOGGED_IN: Words(
        "this home is logged in to {subject}, and has no server of its own",
        "`muster logout` first, or name another home: `muster --home PATH …`",
    ),
    Code.HAS_A_SERVER: Words(
        "{subject} is the home of a server",
        "log in from another home: `muster --home PATH login …`, and MUSTER_HOME=PATH for what follows",
    ),
    Code.IN_THE_CLEAR: Words(
        "a token for {subject} would cross the network in the clear", "use https://, or a tunnel that ends on 127.0.0.1"
    ),
    Code.ROUTE_TAKEN: Words(
        "there is a route {subject!r} for notices already",
        "take another name, or `muster notify remove {subject}` first",
    ),
    Code.UNKNOWN_ROUTE: Words(
        "there is no route {subject!r} for notices: this server has {detail}",
        "name one of those, or ask an admin for one",
    ),
    Code.NOT_HERE: Words(
        "task {available} of job {needed} does not run on this machine, or not as you",
        "see `muster show {needed}` for where it runs; enter it there, as the user of the server",
    ),
    Code.TREE_TOO_LARGE: Words(
        "the tree is too large to copy: {needed} {subject}, at most {available}",
        "leave data out with .gitignore, or run without --snapshot",
    ),
    Code.NO_CONTAINERS: Words(
        "containers need podman or docker, and neither is on this machine", "install one, or run without --image"
    ),
    Code.CANNOT_COPY: Words("the tree cannot be copied: {detail}", "run without --snapshot, or where the server is"),
    Code.INVARIANT: Words("a law of Muster was broken: {subject}: {detail}", "report it with the recorded bundle"),
}


_CLAIMED_FOR: Final = {
    OWN_TASKS: Words(
        "moving: {count} of its own have to be gone before it goes on in its new place, which is kept until {limit}",
        "wait: it starts there as soon as they are gone",
    ),
    JOBS_ELSEWHERE: Words(
        "waiting for its quota or a budget: its places are free and kept for it, and {jobs} being stopped elsewhere"
        " (claim until {limit})",
        "wait: it starts as soon as they are gone",
    ),
}
"""What a claim waits for, where it is not for jobs on its places: by the subject of the reason."""


def _show_due(_: str, at_ms: int) -> str:
    return show_instant(at_ms)


def _show_time(_: str, span_ms: int) -> str:
    return show_duration(span_ms)


_SHOWN_AS: Final[dict[Code, Callable[[str, int], str]]] = {
    Code.NEVER_WITHIN_QUOTA: show_amount,
    Code.NEVER_INSIDE: show_amount,
    Code.OVERPROMISED: show_amount,
    Code.OVER_QUOTA: show_amount,
    Code.NOTHING_TO_BORROW: show_amount,
    Code.MAY_NOT_BORROW: show_amount,
    Code.BUDGET_SPENT: show_spending,
    Code.SOFT_BUDGET_SPENT: show_spending,
    Code.DUE: _show_due,
    Code.SHADOWED: _show_due,
    Code.DUE_ALREADY: _show_due,
    Code.MAY_BE_LATE: _show_due,
    Code.IS_LATE: _show_due,
    Code.BEHIND_PROMISE: _show_time,
    Code.CLAIMED: _show_due,
    Code.MOVED_FOR: _show_due,
    Code.TOKEN_EXPIRED: _show_due,
    Code.BAD_WINDOW: _show_due,
    Code.WINDOW_TO_OPEN: _show_due,
    Code.NODES_BOOKED: _show_due,
    Code.REPAIRED: _show_due,
}
"""Reasons whose subject begins with a family or a budget's unit, and whose numbers are amounts of it, or instants."""
_ALL_CLOSED: Final = re.compile(r"([0-9]+) of \1 nodes closed")
"""To ask for less is of no use then."""

_TASKS_OF: Final = "tasks of "
_PER_TASK: Final = " per task"


def put_in_words(reason: Reason) -> Words:
    """The sentence and the fix for a reason."""
    if reason.code == Code.NEVER_FITS and reason.subject.endswith(_PER_TASK):
        return _put_size_in_words(reason)
    if reason.code == Code.BAD_NAME and 0 < reason.available < reason.needed:
        return Words(f"{reason.subject} has {reason.needed} letters, the most is {reason.available}", "shorten it")
    if reason.code == Code.BAD_NAME and reason.subject == "env":
        return Words(
            f"env {reason.detail!r} is not the name of a variable",
            "use letters (A to Z), digits and _, and begin with no digit",
        )
    if reason.code == Code.BAD_AMOUNT and not (reason.needed or reason.available):  # not one whole number
        return Words(f"{reason.subject}: out of range ({reason.detail})", "give what lies within the range")
    if reason.code == Code.BAD_WIDTH and reason.available < 1:
        return Words("a job has at least one task", "`muster cancel JOB` ends it, `muster hold JOB` keeps it waiting")
    kind = reason.subject.partition(" ")[0]
    each = f" of {reason.subject.removeprefix(_TASKS_OF)}" if reason.subject.startswith(_TASKS_OF) else ""
    show = partial(_SHOWN_AS[reason.code], kind) if reason.code in _SHOWN_AS else str
    fields = {
        "subject": reason.subject,
        "needed": reason.needed,
        "available": reason.available,
        "detail": reason.detail,
        "more": f" ({reason.detail})" if reason.detail else "",
        "count": _count(reason.needed),
        "nodes": _count(reason.needed, "node"),
        "others": "another job" if reason.available == 1 else f"{reason.available} other jobs",
        "jobs": "1 job is" if reason.needed == 1 else f"{reason.needed} jobs are",
        "each": each,
        "tasks": f"{_count(reason.needed)}{each} must start{'' if reason.needed == 1 else ' together'}",
        "amount": show(reason.needed),
        "limit": show(reason.available),
    }
    what, fix = _CLAIMED_FOR.get(reason.subject, _TABLE[reason.code])
    if reason.code == Code.BAD_FILE and reason.needed:  # the system's number for why it cannot be read
        fix = "check its name, and whether you may read it"
    if reason.code == Code.NEVER_FITS and reason.detail.startswith(RULED_OUT):
        fix = "leave that out or change it (`muster nodes -o wide` shows what there is), or add nodes that are so"
    if reason.code == Code.NO_ROOM and _ALL_CLOSED.match(reason.detail):
        fix = "have a node opened again: `muster nodes` says who closed it, why and for how long"
    return Words(what.format(**fields), fix.format(**fields))


def _count(number: int, noun: str = "task") -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _put_size_in_words(reason: Reason) -> Words:
    """One task is larger than every node: by how much, and what would do instead."""
    field = reason.subject.removesuffix(_PER_TASK)
    flag, show = FLAGS[field], SHOW.get(field, str)
    amount = show(reason.needed)
    asked = f"never fits: {amount} {flag.what.replace('s per', ' per') if amount == '1' else flag.what} asked"
    if not reason.available:
        return Words(f"{asked}, no node has any", f"leave {flag.name} out, or add nodes; `muster nodes` lists them")
    what = f"{asked}, the largest node has {show(reason.available)}"
    if field != "gpus":
        return Words(what, f"ask for {spell_flag(field, reason.available)} or less")
    tasks = -(-reason.needed // reason.available)
    return Words(what, f"ask for a gang of smaller tasks: --gang {tasks} --gpus {-(-reason.needed // tasks)}")
