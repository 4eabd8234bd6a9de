"""A supervisor that holds nothing and serves nobody does not stay for ever, and is small while it does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
from muster.engines.local.serving import serve
assert serve(Path(sys.argv[1]), idle_s=0.05)
"""


def test_an_unused_supervisor_leaves_and_takes_its_socket_with_it(tmp_path: Path) -> None:
    root = tmp_path / "engine"
    subprocess.run([sys.executable, "-c", PROGRAM, str(root)], check=True, timeout=60)
    assert not (root / "supervisor.sock").exists()


def test_a_keeper_and_a_supervisor_load_nothing_large() -> None:
    program = "import sys, muster.engines.local.keeping, muster.engines.local.serving; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], check=True, timeout=60, capture_output=True, text=True)
    assert {"numpy", "numba", "asyncio", "http"}.isdisjoint(ran.stdout.split())
