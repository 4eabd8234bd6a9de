"""A command that is run for each notice, which it reads from its standard input as JSON. No shell, no word of a notice
in its arguments, and no environment of the server's but where to find programs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Final

from muster.ports.notifier import NotDeliveredError

PATIENCE_S: Final = 30.0
KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")


class Command:
    """The Notifier of one command line; 0 is an arrival."""

    def __init__(self, argv: Sequence[str], patience_s: float = PATIENCE_S) -> None:
        self._argv = list(argv)
        self._patience_s = patience_s

    def deliver(self, number: str, body: bytes) -> None:
        """Run it once; what takes too long is ended with all that it started."""
        env = {name: os.environ[name] for name in KEPT if name in os.environ} | {"MUSTER_NOTICE": number}
        quiet = subprocess.DEVNULL
        try:
            process = subprocess.Popen(
                self._argv, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, env=env, start_new_session=True
            )
        except OSError as error:
            raise NotDeliveredError(f"{self._argv[0]}: {error.strerror}") from error
        try:
            process.communicate(body, timeout=self._patience_s)
        except subprocess.TimeoutExpired as error:
            raise NotDeliveredError(f"{self._argv[0]} took more than {self._patience_s:g} s") from error
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.returncode:
            raise NotDeliveredError(f"{self._argv[0]} ended with {process.returncode}")
