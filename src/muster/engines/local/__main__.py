"""`python -m muster.engines.local ROOT`: the supervisor of one root. It outlives the server that started it."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from pathlib import Path

from muster.engines.local.layout import SUPERVISOR_LOG
from muster.engines.local.log_file import start_log
from muster.engines.local.serving import serve


def main() -> int:
    """Run until told to leave; 0 also when another supervisor has this root already."""
    parser = argparse.ArgumentParser(prog="python -m muster.engines.local", description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--lock-fd", type=int, help="a descriptor that already holds ROOT/supervisor.lock")
    arguments = parser.parse_args()
    start_log(arguments.root.absolute() / SUPERVISOR_LOG, logging.WARNING)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # whoever started it may close the terminal
    if not serve(arguments.root, arguments.lock_fd):
        logging.warning("another supervisor has %s", arguments.root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
