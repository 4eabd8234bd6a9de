"""The description of the API on stdout: what `docs/reference/openapi.json` is made from. It serves nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from muster.api.app import make_routes
from muster.api.metrics import Metrics
from muster.api.openapi import describe
from muster.app.process import WallClock
from muster.app.serve import LocalLogs
from muster.control.desk import Desk
from muster.control.follower import Follower
from muster.stores.memory import MemoryStore
from muster.world.world import World


def print_description() -> None:
    """Write the document."""
    follower = Follower(World(), MemoryStore(), WallClock(), Path("leader.sock"))
    routes = make_routes(follower, LocalLogs(Path("engine")), Metrics(follower), Desk(follower))
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(describe(routes)), indent=1).decode() + "\n")
