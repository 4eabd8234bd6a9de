"""`python -m muster.app.rest HOME`: let the engine's supervisor go, once a server is down and nothing runs.

The command line may not know engines, so it starts this. Whatever does run goes on; the next server starts a supervisor
that adopts it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from muster.engines.local.link import shut_down
from muster.sdk.home import Home


def main(argv: list[str]) -> int:
    """Tell the supervisor of a home to leave, and wait until it has."""
    [root] = argv
    shut_down(Home(Path(root)).engine_root)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
