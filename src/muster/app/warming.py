"""Compiled code for a server that starts: where it is kept, and by whom it is made.

It is kept beside the source; in the home, if that belongs to somebody else. What is there is loaded, in a fraction of a
second. What is not is compiled by a process that ends then, since whoever compiles keeps some 300 MB for as long as it
lives; of the two that start together, one has it done and the other waits. It decides nothing else of a server.
"""

from __future__ import annotations

import fcntl
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import muster
from muster.sdk.home import Home

CODE_FOLDER: Final = "compiled"
FOLDER_VARIABLE: Final = "NUMBA_CACHE_DIR"
COMPILED_WITHIN_S: Final = 1800.0

_log = logging.getLogger(__name__)


def choose_folder(home: Home, environ: MutableMapping[str, str], source: Path | None = None) -> None:
    """Have code kept in the home, unless it may be written beside the source. The compiler reads that when it is
    loaded, so this comes before anything of the server."""
    beside = Path(muster.__file__).parent if source is None else source
    if home.root.is_dir() and not os.access(beside, os.W_OK):
        environ.setdefault(FOLDER_VARIABLE, str(home.root.absolute() / CODE_FOLDER))


def load_code(home: Home, *parts: Callable[[], None]) -> None:
    """Run each part, which runs all compiled code that it has once, so that nobody waits for the compiler later."""
    if _is_kept(parts):
        return
    with _alone(home):
        if not _is_kept(parts):
            _log.info("compiling for this machine, once; it takes a minute or two")
            _compile_apart()
    for part in parts:  # what could not be kept is compiled here
        part()


def _is_kept(parts: tuple[Callable[[], None], ...]) -> bool:
    """Whether all of it could be loaded."""
    from muster.world.compiled import ColdError, only_kept  # after `choose_folder`

    try:
        with only_kept():
            for part in parts:
                part()
    except ColdError:
        return False
    return True


def _compile_apart() -> None:
    program = [sys.executable, "-P", "-m", "muster.app", "warm"]
    try:
        subprocess.run(program, stdin=subprocess.DEVNULL, check=True, timeout=COMPILED_WITHIN_S)
    except (OSError, subprocess.SubprocessError) as error:
        _log.warning("%s", error)


@contextmanager
def _alone(home: Home) -> Iterator[None]:
    with home.compile_lock_file.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
