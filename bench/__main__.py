"""The runner. A benchmark is a module of this package with `run(seed) -> Result`."""

from __future__ import annotations

import argparse
import importlib
from typing import Final

from bench.report import Result

NAMES: Final = ("door", "cli", "placement", "gang", "preempt", "cycle", "why", "torus", "replay")


def main() -> int:
    """Run one benchmark, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", choices=(*NAMES, "all"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for name in NAMES if options.name == "all" else (options.name,):
        result: Result = importlib.import_module(f"bench.{name}").run(options.seed)
        print(result.as_json() if options.json else result.as_table(), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
