"""The guide of the Python client is run, block by block, against a real server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from live import LiveHome

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "python-client.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)


def test_there_is_something_to_run() -> None:
    assert len(BLOCKS) >= 3


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_each_block_of_the_guide_runs(live: LiveHome, block: str) -> None:
    ran = subprocess.run([sys.executable, "-c", block], env=live.env, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
