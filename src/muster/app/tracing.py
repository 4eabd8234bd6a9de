"""`muster trace info|convert|plot|make|export|formats`: traces of jobs: published, Muster's own, or drawn.

It finds out what a file is by what stands in it, says what was left out and on which lines, and writes one form as
another. A file that is refused is refused before anything is written.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Final, TextIO

import msgspec

from muster.app.parsing import WordParser
from muster.cli.printing import show_plain
from muster.model.errors import RejectedError, StoreError
from muster.model.reason import Code, Reason
from muster.ports import Journal
from muster.ports.store import Wanted
from muster.sdk.home import Home
from muster.simulator.chronicle import Chronicle, read_history
from muster.simulator.like import CLUSTERS, make_jobs
from muster.simulator.traces import openb
from muster.simulator.traces.canonical import CANONICAL, write_canonical
from muster.simulator.traces.catalog import CATALOG, read_catalog
from muster.simulator.traces.faults import read_faults
from muster.simulator.traces.formats import FAULTS, SWF, find_format, read_trace
from muster.simulator.traces.notes import NOTES
from muster.simulator.traces.parquet import check_parquet, write_parquet
from muster.simulator.traces.record import Reading, trace_error
from muster.simulator.traces.sight import SEEN
from muster.simulator.traces.summary import Summary, draw, summarise
from muster.simulator.traces.swf import write_swf
from muster.simulator.traces.table import ROWS_MAX
from muster.stores.sqlite import SqliteJournal
from muster.units import DAY_MS, show_duration
from muster.wire.codec import decode_entry

OK: Final = 0
WIDTH_MAX: Final = 100
PAGE: Final = 1000
DAYS_MAX: Final = 3660
OWNER: Final = "owner"
"""Who is meant where history names nobody: the owner of the home."""
PARQUET: Final = "parquet"
FORMS: Final = (CANONICAL, SWF, PARQUET)


def main(argv: list[str]) -> int:
    """Run one of the words; the exit code."""
    arguments = _parse(argv)
    return int(arguments.run(arguments))


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = WordParser(prog="muster trace")
    words = parser.add_subparsers(required=True, metavar="WORD")
    for word, run, about in (
        ("info", _tell, "what a file is, its figures, and what was left out of it"),
        ("plot", _plot, "when its jobs came, how wide and how long they are"),
        ("convert", _convert, "write its jobs in another form"),
    ):
        each = words.add_parser(word, help=about)
        each.add_argument("file", type=Path)
        each.set_defaults(run=run)
        if word == "info":
            each.add_argument("--json", action="store_true", help="for programs")
        if word == "convert":
            _add_target(each)
    export = words.add_parser("export", help="write the history of this server's jobs as a trace")
    _add_target(export)
    export.add_argument("--home", type=Path, help="the home directory (default: MUSTER_HOME, or ~/.muster)")
    export.set_defaults(run=_export)
    make = words.add_parser("make", help="jobs like those of a published cluster")
    make.add_argument("like", metavar="NAME", help=f"one of {', '.join(CLUSTERS)}")
    make.add_argument("--jobs", type=int, default=10_000, metavar="N", help="default: 10000")
    make.add_argument("--days", type=float, default=7.0, metavar="N", help="over so many days; default: 7")
    make.add_argument("--seed", type=int, default=0, metavar="N")
    _add_target(make)
    make.set_defaults(run=_make)
    formats = words.add_parser("formats", help="the formats that are known, their units and traps")
    formats.set_defaults(run=_list_formats)
    arguments = parser.parse_args(argv)
    if "to" in arguments and arguments.to is None:
        arguments.to = _form_of(arguments.target)
    return arguments


def _form_of(target: Path) -> str:
    """What the name of a file says that is to be written: nobody looks for another form in it later."""
    endings = {suffix.lower() for suffix in target.suffixes}
    return next((form for form in (SWF, PARQUET) if f".{form}" in endings), CANONICAL)


def _add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", type=Path, metavar="TO_FILE", help="packed if its name ends in .gz")
    parser.add_argument("--to", choices=FORMS, help=f"default: as the file's name ends, else {CANONICAL}")


def _tell(arguments: argparse.Namespace) -> int:
    path: Path = arguments.file
    name = _get_format(path)
    figures, dropped, lines = _read(path, name)
    if arguments.json:
        seen = {league: SEEN[league] for league in NOTES[name].leagues}
        found = {"format": name, "figures": figures, "dropped": dropped, "lines": lines, "seen": seen}
        sys.stdout.write(msgspec.json.encode({"file": path.name, **found}).decode() + "\n")
        return OK
    told = _words(figures) if isinstance(figures, Summary) else figures
    rows = {"format": f"{name}: {NOTES[name].what}", "units": NOTES[name].units, "traps": NOTES[name].traps, **told}
    rows |= {f"{league} sees": ", ".join(SEEN[league]) for league in NOTES[name].leagues}
    for key, text in rows.items():
        sys.stdout.write(f"{key:15} {show_plain(str(text))}\n")
    _tell_dropped(dropped, lines, sys.stdout)
    return OK


def _read(path: Path, name: str) -> tuple[Summary | dict[str, object], dict[str, int], dict[str, list[int]]]:
    """Figures of a file of any format, and what was left out."""
    if name == openb.NODES:
        fleet = openb.read_nodes(path)
        gpus = sum(node.capacity.gpus for node in fleet.nodes)
        models = _count(node.model for node in fleet.nodes for _ in range(node.capacity.gpus))
        return {"nodes": len(fleet.nodes), "GPUs": gpus, "GPUs by model": models}, fleet.dropped, fleet.lines
    if name == FAULTS:
        outages = read_faults(path)
        out = sum(outage.end_ms - outage.start_ms for outage in outages.all)
        found = {"outages": len(outages.all), "servers": len({outage.node for outage in outages.all})}
        return {**found, "out in all": show_duration(out)}, outages.dropped, {}
    if name == CATALOG:
        offers = read_catalog(path)
        bare = sum(offer.is_bare for offer in offers.all)
        clouds = _count(offer.cloud for offer in offers.all)
        found = {"offers": len(offers.all), "models": len({offer.model for offer in offers.all})}
        return {**found, "clouds": clouds, "without machine": bare}, offers.dropped, offers.lines
    reading = read_trace(path)
    return summarise(reading.records), reading.dropped, reading.lines


def _count(names: Iterator[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in Counter(names).most_common())


def _words(figures: Summary) -> dict[str, str]:
    runs = ", ".join(f"{name} {show_duration(span)}" for name, span in figures.runs_ms.items())
    return {
        "jobs": f"{figures.jobs:,}, {figures.gpu_jobs:,} with a GPU, submitted in {show_duration(figures.span_ms)}",
        "GPUs of a job": f"mean {figures.mean_gpus:g}, median {figures.median_gpus:g}, most {figures.most_gpus:g}",
        "run time": f"mean {show_duration(figures.mean_run_ms)}, {runs}",
        "GPU-hours": f"{figures.gpu_hours:,.0f}",
        "whose": ", ".join(f"{name or 'nobody'} {count:,}" for name, count in figures.tenants.items()),
        "ends": ", ".join(f"{name} {count:,}" for name, count in figures.statuses.items()) or "not told",
        "limits": f"{figures.with_limit:,} have one; {figures.with_deadline:,} have a deadline",
    }


def _tell_dropped(dropped: dict[str, int], lines: dict[str, list[int]], file: TextIO) -> None:
    """Every reason for which rows were left out, how many, and the first lines."""
    if not dropped:
        file.write(f"{'left out':15} none\n")
    for reason, count in dropped.items():
        where = ", ".join(str(line) for line in lines.get(reason, ()))
        more = ", …" if where and count > len(lines[reason]) else ""
        file.write(f"{'left out':15} {count:,}: {reason}{f' (line {where}{more})' if where else ''}\n")


def _plot(arguments: argparse.Namespace) -> int:
    reading = _get_jobs(arguments.file)
    width = min(shutil.get_terminal_size().columns, WIDTH_MAX)
    sys.stdout.write("\n".join(draw(reading.records, width)) + "\n")
    _tell_dropped(reading.dropped, reading.lines, sys.stderr)
    return OK


def _convert(arguments: argparse.Namespace) -> int:
    if arguments.to == PARQUET:
        check_parquet()
    reading = _get_jobs(arguments.file)
    _write(reading, arguments.to, arguments.target, arguments.file.name)
    return OK


def _export(arguments: argparse.Namespace) -> int:
    if arguments.to == PARQUET:
        check_parquet()
    path = Home(arguments.home).journal_file
    if not path.exists():
        raise StoreError(Reason(Code.HOME_UNUSABLE, str(path.parent), detail="there is no journal"))
    with contextlib.closing(SqliteJournal(path)) as journal:
        reading = read_history(tell(journal), name_users(journal))
    _write(reading, arguments.to, arguments.target, "Muster")
    return OK


def _make(arguments: argparse.Namespace) -> int:
    if arguments.to == PARQUET:
        check_parquet()
    if not (1 <= arguments.jobs <= ROWS_MAX and 0 < arguments.days <= DAYS_MAX):
        limits = f"from 1 to {ROWS_MAX} jobs, in up to {DAYS_MAX} days"
        raise RejectedError(Reason(Code.BAD_AMOUNT, "jobs and days", detail=limits))
    jobs = make_jobs(arguments.like, arguments.jobs, int(arguments.days * DAY_MS), arguments.seed)
    _write(Reading(list(jobs), {}), arguments.to, arguments.target, f"like {arguments.like}")
    return OK


def tell(journal: Journal) -> Chronicle:
    """What became of every job that a journal knows, page by page from its beginning."""
    chronicle, seq = Chronicle(), 0
    while page := journal.read_entries(seq, PAGE):
        for data in page:
            entry = decode_entry(data)
            chronicle.take(entry.at, entry.facts)
            seq = entry.seq
    return chronicle


def name_users(journal: Journal) -> dict[int, str]:
    """Who submitted each job that history remembers; what it has forgotten is not told, though entries may still be."""
    users: dict[int, str] = {}
    after = 0
    while page := journal.read_finished(Wanted(after, PAGE)):
        after = page[-1].finished.job
        users |= {each.finished.job: each.user or OWNER for each in page}
    return users


def _list_formats(arguments: argparse.Namespace) -> int:  # noqa: ARG001 - every word is called alike
    for name, note in NOTES.items():
        sys.stdout.write(f"{name:15} {note.what}\n{'':15} units: {note.units}\n{'':15} traps: {note.traps}\n")
    return OK


def _get_format(path: Path) -> str:
    if not path.is_file():
        raise RejectedError(Reason(Code.BAD_TRACE, str(path), detail="is no file"))
    name = find_format(path)
    if name is None:
        raise trace_error(path, 1, "is in no format that is known; `muster trace formats` lists them")
    return name


def _get_jobs(path: Path) -> Reading:
    _get_format(path)
    return read_trace(path)


def _write(reading: Reading, form: str, target: Path, title: str) -> None:
    """Write the records, and say how many; what the form cannot tell is counted beside what was left out before."""
    left_out = dict(reading.dropped)
    try:
        if form == PARQUET:
            write_parquet(reading.records, target)
        else:
            with _open(target) as file:
                if form == SWF:
                    told = write_swf(reading.records, file, title)
                    left_out |= {reason: count + left_out.get(reason, 0) for reason, count in told.items()}
                else:
                    write_canonical(reading.records, file)
    except OSError as error:
        raise StoreError(Reason(Code.CANNOT_WRITE, str(target), detail=error.strerror or str(error))) from error
    sys.stdout.write(f"{len(reading.records):,} jobs\n")
    _tell_dropped(left_out, reading.lines, sys.stdout)


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return TextIOWrapper(gzip.GzipFile(path, "wb", mtime=0), encoding="utf-8", newline="")
    return path.open("w", encoding="utf-8", newline="")
