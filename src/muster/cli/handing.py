"""Handing in the jobs of files: many in one request, in their order, each of them said as soon as it is accepted.

A job that names another of its file needs that one's number, so it leaves in a later round. One that the server refuses
is said with its place in the file and harms no other but those that are to run after it: they are left out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import click

from muster.cli.failing import OK, SERVER_ERROR, USAGE, show_error
from muster.cli.here import get_here
from muster.cli.printing import is_terminal, print_json
from muster.model.errors import MusterError
from muster.model.spec import Spec
from muster.sdk.bulk import JOBS_AT_ONCE, Outcome
from muster.sdk.client import Client
from muster.sdk.documents import Draft, make_one, place_of
from muster.sdk.errors import AnsweredError, UnfitError
from muster.sdk.jobfile import named_in
from muster.wire.views import Submitted

SHOWN_MAX: Final = 5
"""So many refusals are said in full; a file whose every job has the same fault would fill the screen with it."""


class Item(NamedTuple):
    """A job of a file, and the places of those that it names, by their names."""

    draft: Draft
    folder: str
    above: Mapping[str, int]


def list_items(files: Sequence[tuple[str, Sequence[Draft]]]) -> list[Item]:
    """All jobs in their order. A job may name those above it in its own file."""
    items = list[Item]()
    for folder, drafts in files:
        known = dict[str, int]()
        for draft in drafts:
            above = {name: known[name] for name in map(str, named_in(draft.job)) if name in known}
            if draft.job.name:
                known[draft.job.name] = len(items)
            items.append(Item(draft, folder, above))
    return items


def split_rounds(items: Sequence[Item]) -> Iterator[range]:
    """Which places leave together: no round holds a job and one that it names."""
    begin = 0
    for place, item in enumerate(items):
        if place - begin == JOBS_AT_ONCE or any(named >= begin for named in item.above.values()):
            yield range(begin, place)
            begin = place
    yield range(begin, len(items))


class HandingIn:
    """The jobs of one command line on their way."""

    def __init__(self, client: Client, items: Sequence[Item], key: str, output: str) -> None:
        self._client = client
        self._items = items
        self._key = key
        self._output = output
        self._numbers: dict[int, int] = {}
        self._refused = 0
        self._code = OK

    def run(self) -> int:
        """Hand all of them in; the exit code that this means."""
        try:
            for places in split_rounds(self._items):
                self._submit([place for place in places if self._is_wanted(place)])
                if self._code == SERVER_ERROR:  # it would not do its part for the others either
                    break
        except (KeyboardInterrupt, MusterError) as error:
            if self._numbers or isinstance(error, KeyboardInterrupt):  # else the error says it all
                self._sum_up(" before this; `muster ls` shows whether those on their way were, too")
            raise
        self._sum_up("")
        return self._code

    def _is_wanted(self, place: int) -> bool:
        """Not if one is missing that it is to run after."""
        return all(named in self._numbers for named in self._items[place].above.values())

    def _submit(self, places: Sequence[int]) -> None:
        specs = [self._make(self._items[place]) for place in places]
        keys = [f"{self._key}/{place + 1}" for place in places] if self._key else ()
        outcomes = self._client.submit_many(specs, keys) if specs else ()
        for place, outcome in zip(places, outcomes, strict=True):
            self._tell(place, outcome)
        if sys.stderr.isatty() and not is_terminal():  # else the jobs themselves are seen to come
            click.echo(f"\r\033[K{len(self._numbers)} of {len(self._items)} jobs", nl=False, err=True)

    def _make(self, item: Item) -> Spec:
        here = item.folder if item.draft.job.workdir else str(get_here())
        numbers = {name: self._numbers[place] for name, place in item.above.items()}
        return make_one(item.draft, here=here, now_ms=int(time.time() * 1000), numbers=numbers)

    def _tell(self, place: int, outcome: Outcome) -> None:
        draft = self._items[place].draft
        if isinstance(outcome, AnsweredError):
            self._refuse(draft, outcome)
            return
        self._numbers[place] = outcome.job
        _print(outcome, draft.job.name, self._output)

    def _refuse(self, draft: Draft, error: AnsweredError) -> None:
        self._refused += 1
        self._code = max(self._code, SERVER_ERROR if isinstance(error, UnfitError) else USAGE)
        error.where = place_of(draft)
        if self._refused <= SHOWN_MAX:
            show_error(error)

    def _sum_up(self, when: str) -> None:
        """How many there are now, if that is not what was asked for."""
        accepted, total = len(self._numbers), len(self._items)
        if sys.stderr.isatty() and not is_terminal():
            click.echo("\r\033[K", nl=False, err=True)
        if accepted < total and (total > 1 or when):
            more = f", {self._refused} were refused" if self._refused > SHOWN_MAX else ""
            click.echo(f"{accepted} of {total} jobs were accepted{more}{when}", err=True)


def _print(done: Submitted, name: str, output: str) -> None:
    if output == "json":
        print_json(done)
    else:
        click.echo(str(done.job) if output == "name" else f"job {done.job} {name}".rstrip())
