"""How a task's process comes into being: in a session of its own, its output in its log, found as a shell finds it.

No shell reads anything of the user's, and there is no code of ours between the fork and the command, so a task costs
what the system's own spawn costs. It knows nothing of runs.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Iterator
from typing import Final

from muster.engines.local.launch import Launch
from muster.engines.local.ranges import End

CANNOT_RUN: Final = 126
NOT_FOUND: Final = 127
SHELL: Final = "/bin/sh"
FILES: Final = 65_536
OOM_SCORE: Final = b"300"
"""When memory runs out, tasks go before those who keep them."""

# Python ignores SIGPIPE, and what a program was born ignoring it goes on ignoring, so every task starts with defaults.
_DEFAULT_SIGNALS: Final = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


class CannotRunError(Exception):
    """A command cannot be run, and how such a run ends."""

    def __init__(self, code: int, note: str) -> None:
        super().__init__(note)
        self.end = End(code, note)


def spawn(launch: Launch, log: int) -> int:
    """Start a task that writes to `log`; its pid, also that of its group and session. Our directory is then its."""
    try:
        os.chdir(launch.workdir)
    except OSError as error:
        raise CannotRunError(CANNOT_RUN, f"cannot enter workdir {launch.workdir}: {error.strerror}") from error
    program = launch.argv[0]
    refused: OSError | None = None
    for path in _candidates(program, launch.env.get("PATH", "")):
        try:
            return _spawn_at(path, launch, log)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:  # as a shell does: there may be another one further down the path
            refused = error
        except OSError as error:
            raise CannotRunError(CANNOT_RUN, f"cannot start {program[:64]}: {error.strerror}") from error
    if refused is not None:
        raise CannotRunError(CANNOT_RUN, f"cannot execute {program}")
    raise CannotRunError(NOT_FOUND, f"command not found: {program}")


def bound_tasks() -> None:
    """Limits that our tasks inherit from us: no core dumps into their directories, and enough open files for a loader.
    A task may change them, up to the system's own."""
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if most == resource.RLIM_INFINITY else min(FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(now, wanted), most))


def make_expendable(pid: int) -> None:
    """Let the system take this process before ours when memory runs out. It may be gone already."""
    try:
        handle = os.open(f"/proc/{pid}/oom_score_adj", os.O_WRONLY)
    except OSError:
        return
    try:
        os.write(handle, OOM_SCORE)
    except OSError:
        return
    finally:
        os.close(handle)


def _candidates(program: str, path: str) -> Iterator[str]:
    if "/" in program:
        yield program
        return
    for part in path.split(":"):
        candidate = f"{part or '.'}/{program}"
        if os.path.exists(candidate):  # noqa: PTH110 - a tenth of the price, once for every task
            yield candidate


def _spawn_at(path: str, launch: Launch, log: int) -> int:
    try:
        return _spawn(path, launch.argv, launch, log)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        return _spawn(SHELL, (SHELL, path, *launch.argv[1:]), launch, log)  # a script without a first line


def _spawn(path: str, argv: tuple[str, ...], launch: Launch, log: int) -> int:
    return os.posix_spawn(
        path.encode(),
        [word.encode() for word in argv],
        {name.encode(): value.encode() for name, value in launch.env.items()},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, log, 1),
            (os.POSIX_SPAWN_DUP2, log, 2),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=_DEFAULT_SIGNALS,
    )
