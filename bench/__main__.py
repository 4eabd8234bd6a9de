"""The runner. A benchmark is a module of this package with `run(seed) -> Result`; a league takes options of its own."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import Final

from bench import league
from bench.report import Result
from muster.model.errors import RejectedError
from muster.wire.words import put_in_words

NAMES: Final = (
    "door",
    "cli",
    "placement",
    "gang",
    "preempt",
    "cycle",
    "why",
    "torus",
    "replay",
    "spawn",
    "submit",
    "status",
    "latency",
    "memory",
    "forecast",
)
LONG: Final = ("kueue-generator",)
"""Those that take more than a minute by their nature are not among `all`."""
FAILED: Final = 2


def main(argv: list[str] | None = None) -> int:
    """Run one benchmark, one league, or all benchmarks."""
    options = _parse(argv)
    if options.name == "league":
        played = league.play(options)
        print(played.as_json() if options.json else f"{played.as_table()}\n\n{league.chart_of(played)}", flush=True)
        return 0
    for name in NAMES if options.name == "all" else (options.name,):
        module = importlib.import_module(f"bench.{name.replace('-', '_')}")
        result: Result = module.run(options.seed, *([options.jobs] if options.jobs else []))
        print(result.as_json() if options.json else result.as_table(), flush=True)
    return 0


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.set_defaults(jobs=None)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--seed", type=int, default=1, metavar="N", help="what chance goes by (default: 1)")
    shared.add_argument("--json", action="store_true", help="one line for programs")
    names = ", ".join((*NAMES, *LONG, "league"))
    words = parser.add_subparsers(dest="name", required=True, metavar="NAME", help=f"all, or one of {names}")
    for name in (*NAMES, *LONG, "all"):
        words.add_parser(name, parents=[shared])
    words.choices["replay"].add_argument("--jobs", type=int, metavar="N", help="so many instead of a million")
    games = words.add_parser("league", parents=[shared], prog="muster league", description=league.__doc__)
    league.add_options(games)
    options = parser.parse_args(argv)
    if options.name == "league" and (fault := league.find_fault(options)) is not None:
        games.error(fault)
    return options


def _main() -> int:
    """The same for who types it: a trace that cannot be used is told in words."""
    try:
        return main()
    except RejectedError as error:
        words = put_in_words(error.reason)
        sys.stderr.write(f"error[{error.reason.code.value}]: {words.what}\nhelp: {words.fix}\n")
        return FAILED


if __name__ == "__main__":
    raise SystemExit(_main())
