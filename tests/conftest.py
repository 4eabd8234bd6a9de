"""What holds for every test: what was loaded before the first one stays, and the collector need not look at it."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    """Hundreds of thousands of objects are there by now, and each full collection would visit all of them."""
    gc.collect()
    gc.freeze()
