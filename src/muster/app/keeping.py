"""`backup FILE` and `restore FILE`: a home's journal to a file, while the server runs, and back, while it does not."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from muster.app.parsing import WordParser
from muster.app.rewinding import end_unknown
from muster.app.serve import node_name
from muster.control.loading import load_world
from muster.engines.local.capacity import discover_machine
from muster.engines.local.engine import LocalEngine
from muster.engines.local.layout import STARTS
from muster.engines.local.starts import list_starts
from muster.sdk.home import Home
from muster.sdk.node_file import read_node_file
from muster.stores.sqlite import SqliteJournal
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
        return _forget_the_future(home)
    return 0


def _forget_the_future(home: Home) -> int:
    """Have the engine of a home end what the journal does not know, if it has anything at all."""
    if not (home.engine_root / STARTS).is_dir() or next(list_starts(home.engine_root), None) is None:
        return 0
    with contextlib.closing(SqliteJournal(home.journal_file)) as journal:
        world = load_world(journal)
    said = read_node_file(home.node_file)
    engine = LocalEngine(home.engine_root, node_name(), said.capacity_of(discover_machine().capacity), said.traits())
    ended, is_over = end_unknown(world, engine)
    if ended:
        sys.stderr.write(f"ended {ended} task{'s' * (ended != 1)} that began after the backup was made\n")
    if not is_over:
        sys.stderr.write("not all of them are gone: wait for their ends before `muster up`, and restore again\n")
    return 0 if is_over else 1
