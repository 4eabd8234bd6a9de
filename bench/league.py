"""`bench league NAME --traces DIR`: the production kernel against published policies, with bounds beside results.

Metrics are named `<file stem>.<policy>.<measure>`; a bound is the policy `bound`. A directory may hold any files of the
known formats: nothing here knows a file's name or content.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from bench.league_page import show_league
from bench.published import compare, read_published
from bench.report import Result
from bench.standings import draw_standings, standings_of
from muster.simulator.pages.files import check_reports, write_reports
from muster.simulator.witness import Witness

WATCHED: Final = "muster"
BOUND: Final = "bound"
"""Beside every result, whoever plays."""
PICTURES_MAX: Final = 3
WIDTH_MAX: Final = 100
LEAGUES: Final = ("packing", "rigid", "philly", "deadline", "faults", "prediction")
DEFAULT_TRACES: Final = Path(os.environ.get("MUSTER_TRACES", "../shared/traces"))


class LeagueOptions(msgspec.Struct, frozen=True):
    """What a league is run on. No policies named means all of the league's; no seeds, the league's own number."""

    traces: Path
    seeds: int | None = None
    policies: tuple[str, ...] = ()
    seed: int = 1
    witnesses: dict[str, Witness] | None = None

    def find_witness(self, stem: str, policy: str) -> Witness | None:
        """Who is to watch a run, if pictures are wanted and there are not enough: those of Muster's default."""
        if self.witnesses is None or policy != WATCHED or len(self.witnesses) >= PICTURES_MAX:
            return None
        return self.witnesses.setdefault(f"{stem}, {policy}", Witness())

    def keep_witness(self, stem: str, policy: str, witness: Witness | None) -> None:
        """Who watched a run in another process has seen it there."""
        if self.witnesses is not None and witness is not None:
            self.witnesses[f"{stem}, {policy}"] = witness

    def tell(self, words: str) -> None:
        """Say what is being played, to whoever looks on at a terminal."""
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K{words}")
            sys.stderr.flush()

    def warn(self, words: str) -> None:
        """Say what a reader of the figures has to know, to whoever reads the errors."""
        sys.stderr.write(f"{words}\n")

    def is_wanted(self, policy: str) -> bool:
        """Whether a policy takes part."""
        return not self.policies or policy in self.policies


def add_options(parser: argparse.ArgumentParser) -> None:
    """What a league takes on the command line, beside what every benchmark takes."""
    parser.add_argument("league", choices=LEAGUES, metavar="NAME", help=", ".join(LEAGUES))
    where = f"the folder of the traces (default: MUSTER_TRACES, here {DEFAULT_TRACES})"
    parser.add_argument("--traces", type=Path, default=DEFAULT_TRACES, metavar="DIR", help=where)
    parser.add_argument("--seeds", type=int, metavar="N", help="repeat with so many seeds (default: the league's own)")
    parser.add_argument("--policies", default="", metavar="A,B", help="only these, with the bounds (default: all)")
    others = "a table of what others published of these lists: what was played is measured by it (see bench.published)"
    parser.add_argument("--published", type=Path, metavar="FILE", help=others)
    pages = "a page (.html), or the figures (.json); may be given twice"
    parser.add_argument("--report", type=Path, action="append", default=[], metavar="FILE", help=pages)


def find_fault(args: argparse.Namespace) -> str | None:
    """What is wrong with a command line that names a league."""
    players: tuple[str, ...] = tuple(importlib.import_module(f"bench.leagues.{args.league}").PLAYERS)
    unknown = [policy for policy in _policies_of(args) if policy not in (*players, BOUND)]
    if unknown:
        return f"{args.league} has no policy {unknown[0]}; it has {', '.join(players)}"
    return "there is no result without a seed" if args.seeds is not None and args.seeds < 1 else None


def _policies_of(args: argparse.Namespace) -> tuple[str, ...]:
    return tuple(filter(None, args.policies.split(",")))


def play(args: argparse.Namespace) -> Result:
    """Play the league that a command line names, and write its reports."""
    check_reports(args.report)
    policies = _policies_of(args)
    published = read_published(args.published) if args.published is not None else []
    witnesses: dict[str, Witness] | None = {} if args.report else None
    result = run(args.league, LeagueOptions(args.traces, args.seeds, policies, args.seed, witnesses))
    result = msgspec.structs.replace(result, metrics=result.metrics | compare(result.metrics, published))
    command = f"muster league {args.league} --traces DIR" + (f" --seeds {args.seeds}" if args.seeds else "")
    command += f" --policies {args.policies}" if args.policies else ""
    command += f" --published {args.published}" if args.published is not None else ""
    pictures = {told: witness.picture() for told, witness in (witnesses or {}).items()}
    figures = msgspec.json.decode(result.as_json())
    origin = {"command": command, "date": datetime.now(UTC).date().isoformat(), "commit": find_commit()}
    write_reports(
        args.report,
        lambda: show_league(args.league, ", ".join(origin.values()), figures["metrics"], pictures),
        {**origin, **figures, "pictures": pictures},
    )
    return result


def find_commit() -> str:
    """The commit that is played, and whether anything was changed since."""
    git = shutil.which("git")
    if git is None:
        return "commit not known"
    said = subprocess.run(
        [git, "describe", "--always", "--dirty=, with changes", "--exclude=*"],
        capture_output=True,
        text=True,
        check=False,
    )
    return said.stdout.strip() or "commit not known"


def chart_of(result: Result) -> str:
    """A league for people at a terminal: results as bars beside their bounds."""
    width = min(shutil.get_terminal_size().columns, WIDTH_MAX)
    return "\n".join(draw_standings(standings_of(msgspec.json.decode(result.as_json())["metrics"]), width))


def run(name: str, options: LeagueOptions) -> Result:
    """Play one league."""
    result: Result = importlib.import_module(f"bench.leagues.{name}").run(options)
    return result
