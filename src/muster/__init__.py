"""Muster: one queue over every accelerator an organisation has.

This module imports nothing by itself, so that `import muster` costs nothing; each room is imported by its own name.
Only `muster.progress`, which jobs call, is here too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muster.sdk.progress import progress

__all__ = ["progress"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name != "progress":
        raise AttributeError(f"module 'muster' has no attribute {name!r}")
    from muster.sdk.progress import progress

    return progress
