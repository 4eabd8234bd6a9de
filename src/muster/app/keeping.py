"""`backup FILE` and `restore FILE`: a home's journal to a file, while the server runs, and back, while it does not."""

from __future__ import annotations

import sys
from pathlib import Path

from muster.app.parsing import WordParser
from muster.sdk.home import Home
from muster.stores.sqlite.backup import back_up, restore


def main(argv: list[str]) -> int:
    """Do one of the two; the exit code."""
    word, *rest = argv
    parser = WordParser(prog=f"muster {word}")
    parser.add_argument("file", type=Path)
    parser.add_argument("--home", type=Path, help="the home directory (default: MUSTER_HOME, or ~/.muster)")
    args = parser.parse_args(rest)
    home = Home(args.home)
    home.check_own()
    if word == "backup":
        sys.stdout.write(f"{args.file}: the journal up to entry {back_up(home.journal_file, args.file)}\n")
    else:
        home.prepare()
        sys.stdout.write(f"{home.journal_file}: restored up to entry {restore(args.file, home.journal_file)}\n")
    return 0
