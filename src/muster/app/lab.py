"""The laboratory: `sim`, `bundle` and `replay`. None of them serves anybody.

It wires the simulator and the journal for one task each and prints what came of it. Exit codes: 0 as
hoped, 1 the replay differs, 2 refused, 4 a law was broken.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from muster.app.parsing import WordParser, show_refusal
from muster.app.retelling import retell
from muster.model.errors import InvariantError, MusterError, RejectedError, StoreError
from muster.model.reason import Code, Reason
from muster.ports import Journal
from muster.sdk.home import Home
from muster.simulator.like import CLUSTERS
from muster.simulator.options import METAS, SimOptions
from muster.simulator.pages.files import check_place, check_reports, refused, write_reports
from muster.simulator.pages.run import show_run
from muster.simulator.replay import replay
from muster.simulator.report import Report
from muster.simulator.simulation import Progress, run_simulation
from muster.simulator.witness import Picture, Witness
from muster.stores.sqlite import SqliteJournal
from muster.units import DAY_MS, AmountError, is_clock_time, parse_past, show_duration, show_instant
from muster.wire.bundle import Bundle, chain_of, decode_bundle, encode_bundle
from muster.wire.codec import decode_entry, decode_inputs
from muster.world.apply import apply_entry
from muster.world.snapshot import digest, restore
from muster.world.world import World

OK: Final = 0
DIFFERS: Final = 1
REFUSED: Final = 2
LAW_BROKEN: Final = 4
WIDTH_MAX: Final = 100
PAGE: Final = 1000
BAR: Final = 24


def main(argv: list[str]) -> int:
    """Run one of the words; the exit code."""
    arguments = _parse(argv)
    try:
        return int(arguments.run(arguments))
    except MusterError as error:
        show_refusal(error)
        return LAW_BROKEN if isinstance(error, InvariantError) else REFUSED
    except KeyboardInterrupt:
        return 130


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = WordParser(prog="muster")
    words = parser.add_subparsers(required=True, metavar="WORD")
    sim = words.add_parser("sim", help="simulate a fleet under load and faults, with every law watched")
    _add_options(sim)
    sim.add_argument("--bundle", type=Path, metavar="FILE", help="record the run, to be replayed")
    words_of_report = "a page (.html) or the figures (.json) of the run; may be given twice"
    sim.add_argument("--report", type=Path, metavar="FILE", action="append", default=[], help=words_of_report)
    sim.set_defaults(run=_simulate)
    bundle = words.add_parser("bundle", help="record the live server's decisions to a file")
    bundle.add_argument("file", type=Path)
    bundle.add_argument("--home", type=Path, help="the home directory (default: MUSTER_HOME, or ~/.muster)")
    bundle.set_defaults(run=_bundle)
    again = words.add_parser("replay", help="decide a bundle again, or a span of time of a server, and compare")
    again.add_argument("file", type=Path, nargs="?", help="a bundle; without one, --from and --to say what of a home")
    again.add_argument("--from", dest="since", metavar="TIME", help="02:50, 10m (ago), or 2026-11-15 14:05 (UTC)")
    again.add_argument("--to", dest="until", metavar="TIME", help="the same (default: now)")
    again.add_argument("--home", type=Path, help="the home directory (default: MUSTER_HOME, or ~/.muster)")
    again.set_defaults(run=_replay)
    return parser.parse_args(argv)


def _add_options(parser: argparse.ArgumentParser) -> None:
    """One flag per option of a simulation, with the option's own words and default."""
    for field in msgspec.structs.fields(SimOptions):
        flag, words, kind = f"--{field.name.replace('_', '-')}", METAS[field.name].description, type(field.default)
        if kind is bool:
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=field.default, help=words)
        elif kind is str:
            words = f"{words}: {', '.join(CLUSTERS)}"
            parser.add_argument(flag, default=field.default, metavar="NAME", help=words)
        else:
            words = f"{words} (default: {field.default})"
            parser.add_argument(flag, type=kind, default=field.default, metavar="N", help=words)


def _simulate(arguments: argparse.Namespace) -> int:
    chosen = {field: getattr(arguments, field) for field in SimOptions.__struct_fields__}
    chosen["record"] = arguments.record or arguments.bundle is not None
    check_reports(arguments.report)
    if arguments.bundle is not None:
        check_place(arguments.bundle)
    witness = Witness() if arguments.report else None
    report = run_simulation(SimOptions(**chosen), _show_progress if sys.stderr.isatty() else None, witness)
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
    sys.stdout.write(report.render(min(shutil.get_terminal_size().columns, WIDTH_MAX)))
    if arguments.bundle is not None and report.bundle is not None:
        _write(arguments.bundle, report.bundle)
    if witness is not None:
        write_reports(arguments.report, lambda: page_of(report, witness.picture()), report.as_value(witness.picture()))
    return OK


def play_league(words: list[str]) -> int:
    """Hand over to the leagues, which stand beside the sources and are not installed."""
    sources = Path(__file__).resolve().parents[3]
    if not (sources / "bench" / "league.py").is_file():
        raise RejectedError(Reason(Code.NO_LEAGUES))
    sys.path.insert(0, str(sources))
    code: int = importlib.import_module("bench.__main__").main(["league", *words])
    return code


def page_of(report: Report, picture: Picture) -> str:
    """The page of a simulation."""
    options = report.options
    lead = f"{options.nodes:,} nodes of {options.gpus} GPUs, {show_duration(report.span_ms)} of virtual time"
    figures = [
        ("GPU time held while jobs came", f"{report.arrival_pct} %"),
        ("GPU time held", f"{report.busy_pct} %"),
        ("jobs", f"{report.accepted:,}"),
        *((f"wait, {name}", show_duration(span)) for name, span in report.waits_ms.items()),
        ("runs begun again", f"{report.restarts:,}"),
        ("stopped for others", f"{report.takings:,}"),
        ("fairness", f"{picture.fairness:g}"),
    ]
    return show_run(picture, "A simulated fleet", lead, options.command(), figures)


def _show_progress(progress: Progress) -> None:
    full = BAR * progress.done_pct // 100
    bar = "█" * full + "░" * (BAR - full)
    sys.stderr.write(f"\r\033[K{bar} {progress.done_pct}%  {progress.entries:,} entries, {progress.waiting:,} waiting")
    sys.stderr.flush()


def _open_journal(home: Path | None) -> SqliteJournal:
    own = Home(home)
    own.check_own()
    path = own.journal_file
    if not path.exists():
        raise StoreError(Reason(Code.HOME_UNUSABLE, str(path.parent), detail="there is no journal"))
    return SqliteJournal(path)


def _bundle(arguments: argparse.Namespace) -> int:
    with contextlib.closing(_open_journal(arguments.home)) as journal:
        recorded = record(journal)
    _write(arguments.file, encode_bundle(recorded))
    sys.stdout.write(f"{len(recorded.entries)} entries, digest {recorded.digest}\n")
    return OK


def record(journal: Journal) -> Bundle:
    """What a live journal can prove: from its beginning, or from its snapshot if the recorder was cut since."""
    inputs = list(journal.read_inputs(0))
    start = b""
    if inputs and decode_inputs(inputs[0]).seq > 1:
        start = _get_start(journal)
    world = restore(start) if start else World()
    inputs = [data for data in inputs if decode_inputs(data).seq > world.seq]
    entries = list(_fold(world, journal, len(inputs)))
    return Bundle(start, inputs, entries, chain_of(entries), digest(world))


def _get_start(journal: Journal) -> bytes:
    found = journal.find_snapshot()
    if found is None:
        raise StoreError(Reason(Code.JOURNAL_DAMAGED, "recorder", detail="its beginning is gone, without a snapshot"))
    return found[1]


def _fold(world: World, journal: Journal, count: int) -> Iterator[bytes]:
    """The next `count` entries, each folded into the world as it is handed over."""
    for _ in range(0, count, PAGE):
        for data in journal.read_entries(world.seq, min(PAGE, count)):
            entry = decode_entry(data)
            apply_entry(world, entry.seq, entry.at, entry.facts)
            count -= 1
            yield data


def _replay(arguments: argparse.Namespace) -> int:
    if arguments.file is None:
        return _retell(arguments)
    found = replay(decode_bundle(_read(arguments.file)))
    if found.same:
        sys.stdout.write(f"same: {found.entries} entries, digest {found.digest}\n")
        return OK
    sys.stdout.write(f"differs after {found.entries} entries, digest {found.digest}\n{found.first_difference}\n")
    return DIFFERS


def _retell(arguments: argparse.Namespace) -> int:
    """A span of time, batch by batch."""
    since, until = read_span(arguments.since or "10m", arguments.until, int(time.time() * 1000))
    told = differing = 0
    with contextlib.closing(_open_journal(arguments.home)) as journal:
        for batch in retell(journal, since, until):
            sys.stdout.write("".join(f"{line}\n" for line in batch.lines))
            told += 1
            differing += not batch.is_same
    span = f"{show_instant(since)} to {show_instant(until)}"
    if not told:
        sys.stdout.write(f"nothing was heard or decided, {span}\n")
        return OK
    sys.stdout.write(f"{told} batches, {span}: {'all decided alike' if not differing else f'{differing} DIFFER'}\n")
    return DIFFERS if differing else OK


def read_span(since: str, until: str | None, now: int) -> tuple[int, int]:
    """The two ends of a span; a clock time at its end is the first after its beginning, and may be still to come."""
    try:
        begin = parse_past(since, now)
        end = now if until is None else parse_past(until, now)
    except AmountError as error:
        raise RejectedError(Reason(Code.BAD_SPEC, "--from and --to", detail=str(error))) from error
    if end < begin and is_clock_time(until or ""):
        end += DAY_MS
    if end < begin:
        detail = f"the span ends at {show_instant(end)}, before it begins, at {show_instant(begin)}"
        raise RejectedError(Reason(Code.BAD_SPEC, "--from and --to", detail=detail))
    return begin, min(end, now)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreError(Reason(Code.BAD_BUNDLE, str(path), detail=f"{path}: {error.strerror}")) from error


def _write(path: Path, data: bytes) -> None:
    try:  # for its owner alone: what jobs were given as their environment is in it
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)
    except OSError as error:
        raise refused(path, error.strerror or str(error)) from error
