"""The one place that prints: listings in every format, details, and a little colour.

A table is columns padded to their widest cell; no library. On a terminal a line is cut to its width, unless `wide` is
asked for. Colour only for a terminal, never under NO_COLOR, and never as the only bearer of a meaning.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click
import msgspec

from muster.model.origin import Origin
from muster.units import Resources, show_bytes, show_cpus, show_duration, show_instant
from muster.wire.views import FailedTasks, JobView

if TYPE_CHECKING:
    from muster.sdk.changes import Changes

COLOURS: Final = {
    "running": "green",
    "up": "green",
    "ok": "green",
    "queued": "yellow",
    "starting": "yellow",
    "stopping": "yellow",
    "unknown": "yellow",
    "warning": "yellow",
    "failed": "red",
    "gone": "red",
    "wrong": "red",
    "cancelled": "bright_black",
}
GAP: Final = "  "
LISTINGS: Final = ("table", "wide", "json", "yaml", "csv", "name")
DETAILS: Final = ("text", "json", "yaml")
LOOK_AGAIN_S: Final = 2.0
WATCH_OR_AT: Final = "--at shows what was, which --watch would never see change: leave one of them out"
RANGES_SHOWN: Final = 8
COLUMN_LEAST: Final = 12
"""Signs of a column that has to make room for the others."""

DRY_RUN: Final = click.option("--dry-run", is_flag=True, help="Say what it would do, and do nothing.")

F = TypeVar("F", bound=Callable[..., Any])


class Listing(NamedTuple):
    """What is listed: a row of cells under `heads` for people, and the value itself for programs.

    Heads in `wide` are shown if that is asked for, those in `spare` only if somebody has something there; `names` are
    what each is called by. `empty` says why there is nothing, and `note` how to go on. The first `carried` cells may be
    blank, and then are those of the row above: people see that, programs are told again.
    """

    heads: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    value: object
    names: Sequence[str]
    wide: frozenset[str] = frozenset()
    spare: frozenset[str] = frozenset()
    empty: str = ""
    note: str = ""
    carried: int = 0


def listing_options(command: F) -> F:
    """`-o` and `--watch`, for every command that lists."""
    words = "Show it again whenever it changes, until Ctrl-C."
    watch = click.option("-w", "--watch", is_flag=True, callback=_watch_the_present, help=words)
    return watch(
        click.option("-o", "output", type=click.Choice(LISTINGS), default="table", help="The format.")(command)
    )


def _watch_the_present(context: click.Context, _: click.Parameter, watch: bool) -> bool:
    """The value of `--watch`; the past does not change."""
    if watch and context.params.get("at") is not None:
        raise click.UsageError(WATCH_OR_AT)
    return watch


def detail_options(command: F) -> F:
    """`-o`, for every command that shows one thing."""
    return click.option("-o", "output", type=click.Choice(DETAILS), default="text", help="The format.")(command)


def show_listing(make: Callable[[], Listing], output: str, watch: bool) -> None:
    """Print a listing once, or whenever it has changed: in place on a terminal, else one below the other. Whoever
    watches is told by the server when something happens to a job, and asks again after a while in any case."""
    told, changes = "", _listen() if watch else None
    while True:
        listing = make()
        text = render(listing, output)
        words = [listing.empty if not listing.rows else "", listing.note] if output in ("table", "wide") else []
        if watch and is_terminal() and output in ("table", "wide"):
            lines = "".join(f"{line}\x1b[K\n" for line in _clip([*text.splitlines(), *filter(None, words)]))
            click.echo(f"\x1b[H{lines}\x1b[J", nl=False, color=True)
        elif not watch or text != told:
            _put(text, output)
            for line in filter(None, words):
                click.echo(line, err=True)
        if changes is None:
            return
        told = text
        changes.wait(LOOK_AGAIN_S)


def _put(text: str, output: str) -> None:
    """What programs read is UTF-8, wherever; what people read is in the signs of their terminal."""
    for_people = output in ("table", "wide", "text")
    click.echo(text if for_people else text.encode(), nl=False, color=for_people)


def _clip(lines: list[str]) -> list[str]:
    """As many as fit the terminal, above the line of the cursor: what is drawn in place must not scroll."""
    size = _size()
    height = len(lines) + 1 if size is None else size.lines
    if len(lines) < height:
        return lines
    return [*lines[: height - 2], f"… {len(lines) - height + 2} lines more"]


def _listen() -> Changes:
    from muster.sdk.changes import Changes  # most listings are shown once

    return Changes()


def render(listing: Listing, output: str) -> str:
    """A listing in one of the formats, each line with its end."""
    if output in ("json", "yaml"):
        return spell(listing.value, output)
    if output == "name":
        return "".join(f"{name}\n" for name in listing.names)
    if output == "csv":
        return _spell_csv(listing)
    if not listing.rows:
        return ""
    kept = [
        at
        for at, head in enumerate(listing.heads)
        if not (head in listing.wide and output != "wide")
        and not (head in listing.spare and not any(row[at] for row in listing.rows))
    ]
    heads = [listing.heads[at] for at in kept]
    rows = [[row[at] for at in kept] for row in listing.rows]
    return spell_table(heads, rows, None if output == "wide" else _width())


def spell(value: object, output: str) -> str:
    """A value for programs: the API's JSON on one line, or the same as YAML."""
    if output == "json":
        return msgspec.json.encode(value).decode() + "\n"
    import yaml  # type: ignore[import-untyped]  # the package brings no types; one call is made

    plain = msgspec.to_builtins(value)
    text: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=1000)
    return text


def _spell_csv(listing: Listing) -> str:
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head.lower().replace(" ", "_") for head in listing.heads)
    above: Sequence[str] = ()
    for row in listing.rows:
        if row[0] or not above:
            above = [cell.strip() for cell in row[: listing.carried]]
        writer.writerow([*above, *row[listing.carried :]])
    return text.getvalue()


def spell_table(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Columns under their heads, left-aligned, painted where that is wanted; to fit `width`, wide columns are narrowed,
    and what is still longer is cut there."""
    plain = [[show_plain(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(heads, *plain, strict=True)]
    if width is not None:
        widths = _narrow(widths, width)
    lines = []
    for row in (heads, *plain):
        cells = [_cut(cell, size).ljust(size) for cell, size in zip(row, widths, strict=True)]
        line = GAP.join(cells).rstrip()
        if width is not None and len(line) > width:
            lines.append(line[: width - 1] + "…")
        else:
            lines.append(GAP.join(_paint(cell) for cell in cells).rstrip())
    return "".join(f"{line}\n" for line in lines)


def _narrow(widths: list[int], width: int) -> list[int]:
    """The widest give way until all fit, each down to what still tells things apart; the last is cut with its line."""
    found = list(widths)
    room = width - len(GAP) * (len(found) - 1) - min(found[-1], COLUMN_LEAST)
    while sum(found[:-1]) > room and (widest := max(found[:-1], default=0)) > COLUMN_LEAST:
        found[found.index(widest)] -= 1
    return found


def _cut(cell: str, size: int) -> str:
    return cell if len(cell) <= size else f"{cell[: size - 1]}…"


def _width() -> int | None:
    size = _size() if is_terminal() else None
    return None if size is None else max(20, size.columns)


def _size() -> os.terminal_size | None:
    try:
        return os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return None


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table beside something else that is shown; what is listed goes through `show_listing`."""
    click.echo(spell_table(heads, rows), nl=False, color=True)


def print_detail(output: str, value: object) -> bool:
    """One thing for programs, if that is the format; False if a person reads it."""
    if output == "text":
        return False
    _put(spell(value, output), output)
    return True


def print_fields(fields: Sequence[tuple[str, str]]) -> None:
    """`name: value` lines, the values aligned; what is empty is left out."""
    shown = [(name, value) for name, value in fields if value]
    width = max((len(name) for name, _ in shown), default=0) + 1
    for name, value in shown:
        click.echo(f"{name + ':':<{width}} {show_plain(value)}")


def fields_of(heads: Sequence[str], row: Sequence[str]) -> list[tuple[str, str]]:
    """A row of a listing, as the fields of one thing."""
    return [(head.lower(), cell) for head, cell in zip(heads, row, strict=True)]


def print_json(value: object) -> None:
    """The API's JSON, on one line."""
    click.echo(msgspec.json.encode(value))


def show_ago(at_ms: int, now_ms: int | None = None) -> str:
    """How long ago, to the second; or how long before another instant, for those who look at the past."""
    span_s = ((int(time.time() * 1000) if now_ms is None else now_ms) - at_ms) // 1000
    return show_duration(span_s * 1000) if span_s > 0 else "0s"


def show_ask(ask: Resources) -> str:
    """What one task asks for, in few letters: `8g 4c 16Gi`; of a share of a device, `0.25g`."""
    parts = []
    if ask.gpus or ask.gpu_milli:
        parts.append(f"{show_cpus(1000 * ask.gpus + ask.gpu_milli)}g")
    if ask.cpu_milli:
        parts.append(f"{show_cpus(ask.cpu_milli)}c")
    if ask.memory_bytes:
        parts.append(show_bytes(ask.memory_bytes))
    return " ".join(parts)


def show_progress(view: JobView) -> str:
    """How far an array is: `12/200 done, 8 running, 5 with a checkpoint, 1 failed`. Tasks that were cancelled are not
    done, but gone."""
    counts = view.counts
    if counts is None:
        return ""
    busy = counts.starting + counts.running + counts.stopping
    parts = [f"{counts.succeeded + counts.failed}/{view.tasks} done"]
    others = (
        (busy, "running"),
        (view.saved, "with a checkpoint"),
        (counts.failed, "failed"),
        (counts.cancelled, "cancelled"),
    )
    return ", ".join([*parts, *(f"{number} {word}" for number, word in others if number)])


def show_extra(view: JobView) -> str:
    """How many tasks an elastic gang has, if it has more than its least: `, 4 tasks`."""
    held = sum(place.tasks for place in view.places)
    more = "+" if view.places_total > len(view.places) else ""
    return f", {held}{more} tasks" if view.counts is None and held > view.tasks else ""


def show_mark(view: JobView) -> str:
    """How far a gang said that it is: `at step 9, checkpointed at 7`."""
    mark = view.mark
    if mark is None:
        return ""
    saved = "" if mark.saved_step is None else f", checkpointed at {mark.saved_step}"
    return f"at step {mark.step}{saved}{', writes a checkpoint' if mark.writes else ''}"


def show_end(view: JobView) -> str:
    """How a job ended, in words: `failed: exit code 127: command not found: pyton`."""
    if view.why == "dependency":
        return "cancelled: what it was to run after cannot come about"
    if view.phase != "failed":
        return view.phase
    if view.counts is not None:
        return f"failed: {view.counts.failed} of {view.tasks} task{'s' if view.tasks != 1 else ''}{_show_note(view)}"
    return f"failed: {_show_fault(view)}"


def show_failed(group: FailedTasks) -> str:
    """Which tasks of an array failed in one way: `tasks 3, 7-9: exit code 127: command not found: pyton`."""
    return f"{show_tasks(group.ranges, group.tasks)}: {_show_fault(group)}"


def _show_fault(failed: JobView | FailedTasks) -> str:
    words = {"limit": "ran past its limit", "lost": "its node was lost"}
    return words.get(failed.why, f"exit code {failed.exit_code}{_show_note(failed)}")


def _show_note(failed: JobView | FailedTasks) -> str:
    return f": {show_plain(failed.note)}" if failed.note else ""


def show_tasks(ranges: Sequence[tuple[int, int]], total: int) -> str:
    """So many tasks, of which these ranges are known: `tasks 3, 7-9 and 20 more`."""
    shown = ranges[:RANGES_SHOWN]
    words = [f"{first}" if first == last else f"{first}-{last}" for first, last in shown]
    more = total - sum(last - first + 1 for first, last in shown)
    return f"task{'s' if total != 1 else ''} {', '.join(words)}" + (f" and {more} more" if more else "")


def show_likely_end(view: JobView) -> str:
    """When a job that runs will likely be over, and who says so: `at … (…), from 41 jobs of its owner with the same
    name`."""
    end = view.end
    if end is None:
        return ""
    span = ""
    if end.least_ms is not None and end.most_ms is not None:
        span = f" ({show_instant(end.least_ms)} to {show_instant(end.most_ms)} four times in five)"
    return f"at {show_instant(end.at_ms)}{span}, {end.words}"


def show_plain(text: str) -> str:
    """What somebody else chose must not steer this terminal: control characters are shown as escapes."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def _paint(cell: str) -> str:
    colour = COLOURS.get(cell.strip())
    if colour is None or os.environ.get("NO_COLOR") or not is_terminal():
        return cell
    return click.style(cell, fg=colour)


def is_terminal() -> bool:
    """Whether somebody may be looking at standard output."""
    return sys.stdout.isatty()


def show_origin(origin: Origin) -> str:
    """A snapshot in a line: its digest, its size, and what it is based on."""
    files = f"{origin.files} file{'s' if origin.files != 1 else ''}"
    base = f", at commit {origin.commit[:12]}" if origin.commit else ""
    changed = " with changes" if origin.diff else ""
    left_out = f", {origin.left_out} left out" if origin.left_out else ""
    return f"{origin.snapshot[:16]}: {files}, {show_bytes(origin.size_bytes)}{base}{changed}{left_out}"
