"""Completion in the shells themselves: each loads what `muster completion` prints, and is asked what `muster no…` may
become. A shell that is not installed is skipped with a word; CI installs all three."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ASKED: Final = {
    "bash": """
        eval "$(muster completion bash)"
        COMP_WORDS=(muster no) COMP_CWORD=1
        _muster_completion muster
        printf '%s\\n' "${COMPREPLY[@]}"
    """,
    # Without a terminal zsh completes nothing: what its completion system would be handed is printed.
    "zsh": """
        compdef() { : }
        _describe() { print -rl -- "${(@P)3}" }
        eval "$(muster completion zsh)"
        words=(muster no) CURRENT=2
        _muster_completion
    """,
    "fish": """
        muster completion fish | source
        complete -C 'muster no'
    """,
}
ALONE: Final = {"bash": ["--noprofile", "--norc"], "zsh": ["-f"], "fish": ["--no-config"]}


@pytest.mark.parametrize("shell", ASKED)
def test_a_shell_completes_commands(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here: apt-get install {shell}")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    done = subprocess.run(
        [program, *ALONE[shell], "-c", ASKED[shell]], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = [line.replace(":", "\t").split("\t")[0] for line in done.stdout.splitlines()]
    assert found == ["nodes", "notify"]
