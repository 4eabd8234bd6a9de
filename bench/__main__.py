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
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", choices=(*NAMES, *LONG, "league", "all"))
    league.add_options(parser)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, help="replay: how many jobs, for a shorter look than the whole")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    if (options.name == "league") != (options.league is not None):
        parser.error(f"`league` takes one of {', '.join(league.LEAGUES)}, and nothing else does")
    if options.name == "league":
        fault = league.find_fault(options)
        if fault is not None:
            parser.error(fault)
        played = league.play(options)
        print(played.as_json() if options.json else f"{played.as_table()}\n\n{league.chart_of(played)}", flush=True)
        return 0
    if options.jobs is not None and options.name != "replay":
        parser.error("`--jobs` is for `replay`")
    for name in NAMES if options.name == "all" else (options.name,):
        module = importlib.import_module(f"bench.{name.replace('-', '_')}")
        result: Result = module.run(options.seed, *([options.jobs] if options.jobs else []))
        print(result.as_json() if options.json else result.as_table(), flush=True)
    return 0


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
