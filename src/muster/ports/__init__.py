"""Protocols between the pure core and the outside. An adapter implements one; only `app` chooses which."""

from muster.ports.adviser import Adviser
from muster.ports.clock import Clock
from muster.ports.engine import Engine, Report
from muster.ports.logs import Logs
from muster.ports.outward import Fetch
from muster.ports.store import Change, Commit, Journal, Kept, Store

__all__ = ["Adviser", "Change", "Clock", "Commit", "Engine", "Fetch", "Journal", "Kept", "Logs", "Report", "Store"]
