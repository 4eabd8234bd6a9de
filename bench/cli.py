"""`bench cli`: CPU time of a cold `muster ls` against a real server, beside a bare interpreter and its imports."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Final

from bench.report import Metric, Result, median
from bench.server import muster, running_server

ROUNDS: Final = 9


def run(seed: int) -> Result:  # noqa: ARG001 - nothing here is random
    """Interleave the command with its references and take medians."""
    with running_server() as home:
        muster("run", "--", "true", home=home)
        words = [str(Path(sys.executable).with_name("muster")), "ls", "--all"]
        rounds = [(_cpu_ms(words, home), _cpu_ms(_BARE, home), _cpu_ms(_IMPORTS, home)) for _ in range(ROUNDS)]
    command, bare, imports = (median(list(column)) for column in zip(*rounds, strict=True))
    metric = Metric(command, "ms CPU", 150, at_least=False)
    return Result("cli", {"cli_cpu_ms": metric}, {"bare_python_ms": bare, "click_and_msgspec_ms": imports})


_BARE: Final = [sys.executable, "-c", "pass"]
_IMPORTS: Final = [sys.executable, "-c", "import click, msgspec"]


def _cpu_ms(words: list[str], home: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, env=os.environ | {"MUSTER_HOME": str(home)}, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
