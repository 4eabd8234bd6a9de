"""A real server in a home of its own, for benchmarks: started and stopped through the command line."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def muster(*words: str, home: Path) -> subprocess.CompletedProcess[bytes]:
    """Run one command of `muster` to its end."""
    program = Path(sys.executable).with_name("muster")
    return subprocess.run(
        [program, *words], env=os.environ | {"MUSTER_HOME": str(home)}, capture_output=True, check=True
    )


@contextmanager
def running_server() -> Iterator[Path]:
    """A leader and a follower that are up; gives their home."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as name:
        home = Path(name)
        muster("up", home=home)
        try:
            yield home
        finally:
            muster("down", "--jobs", home=home)
