"""`bench league NAME --traces DIR`: the production kernel against published policies, with bounds beside results.

Metrics are named `<file stem>.<policy>.<measure>`; a bound is the policy `bound`. A directory may hold any files of the
known formats: nothing here knows a file's name or content.
"""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path
from typing import Final

import msgspec

from bench.report import Result

LEAGUES: Final = ("packing", "rigid", "philly", "deadline", "faults", "prediction")
DEFAULT_TRACES: Final = Path(os.environ.get("MUSTER_TRACES", "../shared/traces"))


class LeagueOptions(msgspec.Struct, frozen=True):
    """What a league is run on. No policies named means all of the league's; no seeds, the league's own number."""

    traces: Path
    seeds: int | None = None
    policies: tuple[str, ...] = ()
    seed: int = 1

    def is_wanted(self, policy: str) -> bool:
        """Whether a policy takes part."""
        return not self.policies or policy in self.policies


def add_options(parser: argparse.ArgumentParser) -> None:
    """What a league takes on the command line, beside what every benchmark takes."""
    parser.add_argument("league", nargs="?", choices=LEAGUES)
    parser.add_argument("--traces", type=Path, default=DEFAULT_TRACES)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--policies", default="")


def run(name: str, options: LeagueOptions) -> Result:
    """Play one league."""
    result: Result = importlib.import_module(f"bench.leagues.{name}").run(options)
    return result
