"""How a process of the engine is started that is to outlive whoever starts it, and that there is only one of it.

The lock is taken by who starts it and handed down already held, so that two of them, or two tries, never start two.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from muster.engines.local.groups import VARIABLE as GROUP_VARIABLE
from muster.engines.local.launch import KEPT
from muster.engines.local.layout import SUPERVISOR_LOG
from muster.engines.local.logs import LOG_VARIABLE
from muster.ports.failpoint import VARIABLE

# The shell leaves at once, so that the process is nobody's child and its end nobody's zombie.
_DETACH: Final = '"$@" &'


def start_detached(root: Path, name: str, module: str, words: Sequence[str] = ()) -> bool:
    """Start `python -m MODULE ROOT WORDS` unless somebody holds ROOT/NAME.lock; whether it was started."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = find_lock(root / f"{name}.lock")
    if lock is None:
        return False
    try:
        _spawn(root, [sys.executable, "-P", "-m", module, "--lock-fd", str(lock), str(root), *words], lock)
    finally:
        os.close(lock)
    return True


def find_lock(path: Path) -> int | None:
    """A descriptor that holds a lock, or None if somebody else does."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def _spawn(root: Path, program: list[str], lock: int) -> None:
    with (root / SUPERVISOR_LOG).open("ab") as log:
        subprocess.run(
            ["/bin/sh", "-c", _DETACH, "muster", *program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=_environment(os.environ),
            pass_fds=[lock],
            start_new_session=True,
            check=True,
        )


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    """No secret of the server: tasks run as the same user and could read it from their parent."""
    kept = {*KEPT, VARIABLE, LOG_VARIABLE, GROUP_VARIABLE, "PYTHONPATH", "PYTHONHOME"}
    return {name: value for name, value in own.items() if name in kept}
