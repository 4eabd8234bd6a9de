"""Loans: which runs are on borrowed capacity now. A function of what is held and guaranteed, and of nothing else.

*Of what a tenant holds beyond the guarantees on its way up, the newest runs are the borrowed ones.* At every node of
the tree the oldest runs are covered first, by the part of its guarantee that is no child's; what is left over weighs on
the node above, and what is left over at the root is borrowed. So each run, from the newest on, climbs from its tenant
to the root, and at every node as much of it goes on as has to be left over there still. A gang of which any part is
borrowed borrows; of the tasks of an array on a site, the newest ones do. A run, and a task, is as old as the ticket by
which it has its places: of the claim, if it came by one. So whoever starts makes nobody else borrow, and nor does
whoever ends.

It knows nothing of who may take what from whom.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from muster.units import AMOUNT_MAX, Resources
from muster.world.compiled import Words, blank_words, compiled, words_of
from muster.world.ledger import Ledger
from muster.world.quota import Fund, Quotas, Room, Share, load
from muster.world.runs import (
    BACK,
    FUNDS,
    GONE,
    HERD,
    JOB,
    LEAVING,
    MILLI,
    ROW,
    SHELF,
    SITE,
    SLOT,
    STATE,
    TASKS,
    TENANT,
    TICKET,
    Runs,
)
from muster.world.sites import GPUS_AT, Site

FUNDS_MAX: Final = 62
"""How many funds can be told apart by the bits of a word; of those beyond, nothing counts as borrowed."""
TASKS_OF_ARRAY, CLAIM = -1, -2
"""In a row of `spread`, for the slot: whose it is."""
BORROWED: Final = BACK
"""In a row of `spread`: how many of its tasks borrow."""
_ROOT: Final = 0
Homes: TypeAlias = "dict[Fund, array[int]]"
"""In each fund, the share of every tenant by its number: the same as long as quotas and the tree are."""


class Loans:
    """Who borrows of which funds: written into the rows, a bit for each of `funds`. On each shelf of rows, nobody who
    stands before its edge borrows. `spread` are rows of what is held besides gangs, by age: what tasks of an array have
    on one site by one ticket, and what is claimed. `groups` are the herds that there may be, each a job and a site.
    `homes` are kept by who asks often."""

    def __init__(
        self,
        quotas: Quotas,
        ledger: Ledger,
        runs: Runs,
        sites: Sequence[Site],
        spread: array[int],
        groups: Sequence[tuple[int, int]],
        homes: Homes | None = None,
    ) -> None:
        lent = [fund for fund in quotas.funds().values() if fund.root.children and load(fund.root) > 0]
        self.funds = lent[:FUNDS_MAX]
        self._spread = spread
        self._groups = groups
        rows, spread_rows = runs.rows(), words_of(self._spread)
        self.edges = no_edges(runs)
        clear_loans(runs)
        for bit, fund in enumerate(self.funds):
            tree = words_of(_tree_of(fund, ledger, runs, {} if homes is None else homes))
            factors = words_of(factors_of(fund, sites))
            tasks = len(self._spread) // ROW
            kind = MILLI + fund.kind
            first = mark_loans(rows, runs.used, self.edges, spread_rows, tasks, tree, factors, kind, 1 << bit)
            runs.lent_from = min(runs.lent_from, first)

    def mask_of(self, funds: Sequence[Fund]) -> int:
        """The bits of some funds."""
        return sum(1 << bit for bit, fund in enumerate(self.funds) if fund in funds)

    def herds(self) -> list[tuple[int, int, int, int]]:
        """Of each array and site on which it holds something: how many of the tasks borrow, and of which funds."""
        counts = array("q", bytes(24 * max(1, len(self._groups))))
        count_herds(words_of(self._spread), len(self._spread) // ROW, words_of(counts))
        herds = [(*group, *counts[3 * herd : 3 * herd + 3]) for herd, group in enumerate(self._groups)]
        return [(job, site, borrowed, funds) for job, site, tasks, borrowed, funds in herds if tasks]

    def claims(self) -> dict[int, tuple[int, int]]:
        """For how many tasks those have a claim who do, and how many of these would borrow, by job."""
        flat, found = self._spread, dict[int, tuple[int, int]]()
        for at in range(0, len(flat), ROW):
            if flat[at + SLOT] == CLAIM:
                tasks, borrowed = found.get(flat[at + JOB], (0, 0))
                found[flat[at + JOB]] = (tasks + flat[at + TASKS], borrowed + flat[at + BORROWED])
        return found


def no_edges(runs: Runs) -> Words:
    """The edges of shelves if nobody borrows."""
    return words_of(array("q", (AMOUNT_MAX,)) * len(runs.ends)) if runs.ends else blank_words(0)


def factors_of(fund: Fund, sites: Sequence[Site]) -> array[int]:
    """What a unit of an amount counts in a fund, by site."""
    return array("q", [_factor(fund, site) for site in sites] or [0])


def _factor(fund: Fund, site: Site) -> int:
    """What a unit of an amount on a site counts in a fund."""
    if not fund.has_site(site):
        return 0
    return site.units if fund.kind == GPUS_AT else 1


def _tree_of(fund: Fund, ledger: Ledger, runs: Runs, homes: Homes) -> array[int]:
    """How many shares a fund has, and of each the one above it and how much is to be left over there; the first one is
    the root. Then the share of every tenant by its number: of those who were met since, it is found."""
    names = list(fund.shares)
    number = {name: at for at, name in enumerate(names)}
    shares = [fund.shares[name] for name in names]
    tree = array("q", (len(shares),))
    tree.extend(number[share.parent.name] if share.parent is not None else _ROOT for share in shares)
    tree.extend(_left_over(share) for share in shares)
    home = homes.setdefault(fund, array("q"))
    for tenant in runs.tenants.names[len(home) :]:
        home.append(next(number[name] for name in ledger.chain(str(tenant)) if name in number))
    tree.extend(home)
    return tree


def _left_over(share: Share) -> int:
    return max(0, load(share) - share.own)


def clear_loans(runs: Runs) -> None:
    """Nobody borrows."""
    rows = runs.rows()
    _clear(rows, runs.lent_from, runs.used)
    runs.lent_from = runs.used


@compiled
def _clear(rows: Words, first: int, used: int) -> None:
    """Nobody borrows whose rows stand behind so many."""
    for at in range(first * ROW, used * ROW, ROW):
        rows[at + FUNDS] = 0


@compiled
def mark_loans(
    rows: Words, used: int, edges: Words, spread: Words, tasks: int, tree: Words, factors: Words, field: int, bit: int
) -> int:
    """Let everybody climb in one fund, the newest first, until nothing more gets to the root; `field` is which of its
    amounts counts, and `bit` is set of whoever gets there. How many rows stand before the first of these."""
    run, other, rest = (used - 1) * ROW, (tasks - 1) * ROW, _borrowed_at_most(tree)
    lowest = used * ROW
    while rest > 0 and (run >= 0 or other >= 0):
        is_run = other < 0 or (
            run >= 0
            and (
                rows[run + TICKET] > spread[other + TICKET]
                or (rows[run + TICKET] == spread[other + TICKET] and rows[run + JOB] > spread[other + JOB])
            )
        )
        if is_run:
            if rows[run + STATE] != GONE and rows[run + STATE] != LEAVING:
                amount = rows[run + field] * factors[rows[run + SITE]]
                left = _climb(tree, tree[1 + 2 * tree[0] + rows[run + TENANT]], amount)
                if left:
                    first = run - ROW * rows[run + BACK]
                    rows[first + FUNDS] |= bit
                    edges[rows[run + SHELF]] = min(edges[rows[run + SHELF]], first)
                    lowest = min(lowest, first)
                    rest -= left
            run -= ROW
        else:
            amount = spread[other + field] * factors[spread[other + SITE]]
            left = _climb(tree, tree[1 + 2 * tree[0] + spread[other + TENANT]], amount)
            if left:
                each = amount // spread[other + TASKS]
                spread[other + FUNDS] |= bit
                spread[other + BORROWED] = max(spread[other + BORROWED], (left + each - 1) // each)
                rest -= left
            other -= ROW
    return lowest // ROW


@compiled
def _borrowed_at_most(tree: Words) -> int:
    """How much may get to the root: what is left over right below it, if nobody begins there."""
    shares, most = tree[0], 0
    for tenant in range(1 + 2 * shares, len(tree)):
        if tree[tenant] == _ROOT:
            return AMOUNT_MAX
    for share in range(1, shares):
        if tree[1 + share] == _ROOT:
            most += tree[1 + shares + share]
    return int(most)


@compiled
def count_herds(spread: Words, rows: int, counts: Words) -> None:
    """Of each herd, how many tasks it has, how many of them borrow, and of which funds."""
    for at in range(0, rows * ROW, ROW):
        if spread[at + SLOT] == TASKS_OF_ARRAY:
            to = 3 * spread[at + HERD]
            counts[to] += spread[at + TASKS]
            counts[to + 1] += spread[at + BORROWED]
            counts[to + 2] |= spread[at + FUNDS]


@compiled
def _climb(tree: Words, share: int, amount: int) -> int:
    """How much of an amount gets from a share to the root."""
    shares = tree[0]
    while share != _ROOT and amount:
        left = 1 + shares + share
        amount = min(amount, tree[left])
        tree[left] -= amount
        share = tree[1 + share]
    return int(amount)


def find_owed(rooms: Iterable[Room], site: Site, ask: Resources, tasks: int) -> list[Fund] | None:
    """The funds of which a tenant's guarantees cover so much more on a site, if that is what is left for it there; None
    if in one they do not. Limits are not looked at: whoever stands in the way of them may be gone."""
    amounts, owed = site.amounts(ask, tasks), list[Fund]()
    for room in rooms:
        more = amounts[room.kind]
        if more and room.inside is not None:
            if room.inside < more:
                return None
            owed.append(room.fund)
    return owed
