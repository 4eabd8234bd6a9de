"""Muster: one queue over every accelerator an organisation has.

This module imports nothing by itself, so that `import muster` costs nothing; each room is imported by its own name.
What people write is here too, loaded when it is first used: `muster.Client` and `muster.Job`, and `muster.progress` and
`muster.item`, which jobs call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muster.sdk.client import Client
    from muster.sdk.jobfile import JobFile as Job
    from muster.sdk.mapping import item
    from muster.sdk.progress import progress

__all__ = ["Client", "Job", "item", "progress"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "Client":
        from muster.sdk.client import Client

        return Client
    if name == "Job":
        from muster.sdk.jobfile import JobFile

        return JobFile
    if name == "item":
        from muster.sdk.mapping import item

        return item
    if name != "progress":
        raise AttributeError(f"module 'muster' has no attribute {name!r}")
    from muster.sdk.progress import progress

    return progress
