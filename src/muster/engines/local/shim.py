"""The few lines of shell between the supervisor and a user's command, and how they are started.

The shim is what survives the supervisor: it holds the run's lock as long as it lives, says who it is, waits for the
command and writes down its code. It uses builtins only, because PATH belongs to the user by then, and the user's words
reach it as arguments, never as text of the script.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final

from muster.engines.local.launch import Launch

SHELL: Final = "/bin/sh"
_LOCK_FD: Final = 9

# - The trap keeps the shim alive through Stop's signals; being a command and not '', it is not inherited.
# - `stat` (who the shim is) is written by the subshell, the last thing before the command, and only then does the
#   subshell let go of the lock. So a free lock without `stat` proves that nothing ever ran; and once there is a `stat`,
#   whoever is in the group and not the shim takes signals as they come, so that Stop's are not swallowed by the trap.
# - `exec` finds programs only, no builtins. If it fails, the EXIT trap of the subshell says so; if it succeeds, that
#   trap is gone together with the subshell. (Not `exec --`: some dashes take the dashes for a program.)
# - `exec 9>&-`: the command must not hold the lock, or a daemon it leaves behind would look like a living shim.
# - `exit` is one write of a few bytes, and counts for a reader only with its newline; a rename would need `mv`.
_SCRIPT: Final = r"""
trap : TERM INT HUP
_muster_run=$1 _muster_dir=$2
ulimit -S -n "$3"
shift 3
read -r _muster_stat < /proc/$$/stat || exit 126
if cd -- "$_muster_dir"; then
  (
    echo "$_muster_stat" > "$_muster_run/stat" || exit 126
    exec 9>&-
    trap 'echo exec > "$_muster_run/fault"' EXIT
    exec "$@"
  )
  _muster_code=$?
else
  echo workdir > "$_muster_run/fault"
  _muster_code=126
fi
echo "$_muster_code" > "$_muster_run/exit"
exit "$_muster_code"
"""

# Python ignores SIGPIPE and a shell cannot undo what it was born ignoring, so every task starts with defaults.
_DEFAULT_SIGNALS: Final = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


def spawn_shim(launch: Launch, run: Path, log: Path, lock: int, files_max: int) -> int:
    """Start a shim in a session of its own, with `lock` (already locked) handed down; its pid. Raises OSError."""
    words = [SHELL, "-c", _SCRIPT, "muster", str(run), launch.workdir, show_limit(files_max), *launch.argv]
    return os.posix_spawn(
        SHELL,
        [word.encode() for word in words],
        {name.encode(): value.encode() for name, value in launch.env.items()},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, lock, _LOCK_FD),
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=_DEFAULT_SIGNALS,
    )


def show_limit(limit: int) -> str:
    """A resource limit as `ulimit` reads it."""
    return str(limit) if limit >= 0 else "unlimited"
