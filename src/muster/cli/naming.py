"""Names and numbers that people type: found among those there are, or refused with the one that is most like it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol, TypeVar

import click

DIGITS_MAX: Final = 18


class _JobNumber(click.ParamType[int]):
    """A job is called by its number: several may have one name."""

    name = "job"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; what is none says where numbers are listed."""
        text = str(value)
        if not (text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX):
            self.fail(f"{text[:40]!r} is not the number of a job; `muster ls -a` lists them", param, ctx)
        return int(text)


JOB: Final = _JobNumber()


class Named(Protocol):
    """What has a name to be called by."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def find_named(views: Sequence[N], name: str, what: str) -> N:
    """The one of that name; if there is none, that is a mistake of the caller's."""
    for view in views:
        if view.name == name:
            return view
    near = suggest(name, [view.name for view in views])
    raise click.UsageError(f"there is no {what} {name!r}{near or f'; `muster {what}s` lists them'}")


def take_one(context: click.Context, option: click.Parameter, said: Sequence[str]) -> str:
    """The one value of an option of `multiple`, or nothing: of two, click would take the last and drop the first
    without a word."""
    if len(set(said)) > 1:
        raise click.UsageError(f"{option.opts[0]} is said as {' and as '.join(dict.fromkeys(said))}: say one", context)
    return said[0] if said else ""


def suggest(word: str, words: Iterable[str]) -> str:
    """`; did you mean nodes?`, if one of the words is much like it."""
    from difflib import get_close_matches  # here: most words are spelt right

    near = get_close_matches(word, list(words), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""
