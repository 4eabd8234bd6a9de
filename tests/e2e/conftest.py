"""One server for every test that leaves it as it found it, and one for those that harm theirs: to start one costs more
than most of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from live import LiveHome, serving


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHome]:
    """A server with 8 declared GPUs. Whoever uses it ends its own jobs, and names its own tenants."""
    with serving(tmp_path_factory.mktemp("shared") / "home") as running:
        yield running


@pytest.fixture(scope="session")
def _harmed_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHome]:
    with serving(tmp_path_factory.mktemp("harmed") / "home") as running:
        yield running


@pytest.fixture
def harmed(_harmed_home: LiveHome) -> LiveHome:
    """A server that a test may harm, though not its files: up, with 8 declared GPUs. Whoever uses it ends its jobs."""
    _harmed_home.muster("up")
    return _harmed_home
