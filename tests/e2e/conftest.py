"""One server for every test that leaves it as it found it: to start one costs more than most of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from live import LiveHome, serving


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHome]:
    """A server with 8 declared GPUs. Whoever uses it ends its own jobs, and names its own tenants."""
    with serving(tmp_path_factory.mktemp("shared") / "home") as running:
        yield running
