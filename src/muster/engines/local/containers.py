"""A task in a container: the command line of podman or docker that runs it there, and the one that removes it.

The container sees the job's directory under its own name, the devices of its task, and of the environment what the job
and Muster set; the rest is the image's. Values are handed over by name and never as words that others can read. It only
looks for the program; a keeper runs it.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from muster.engines.local.launch import KEPT, PROGRESS_VARIABLE, Launch
from muster.engines.local.layout import Key, name_of_root

RUNTIMES: Final = ("podman", "docker")
NO_RUNTIME: Final = "containers need podman or docker, and neither is on this machine [M349]"
MINDER: Final = b"conmon"
RUNTIME_FAILED: Final = 125
"""With this podman and docker leave if they themselves failed, and the command did not even begin."""


def find_runtime(path: str) -> str | None:
    """The program that runs containers here, if there is one."""
    return next((found for name in RUNTIMES if (found := shutil.which(name, path=path)) is not None), None)


def plan_container(launch: Launch, image: str, runtime: str, root: Path, named: Mapping[str, str]) -> Launch:
    """The same task in a container of `image`; `named` are the variables that the job itself sets."""
    words = [runtime, "run", "--rm", "--init", "--network=host", f"--name={name_of(root, launch.key)}"]
    words += [f"--volume={launch.workdir}:{launch.workdir}", f"--workdir={launch.workdir}"]
    if PROGRESS_VARIABLE in launch.env:
        progress = Path(launch.env[PROGRESS_VARIABLE]).parent
        words.append(f"--volume={progress}:{progress}")
    words += _device_words(launch.env.get("CUDA_VISIBLE_DEVICES", ""), Path(runtime).name)
    if Path(runtime).name == "docker":  # its daemon is root, and so would the files be that the job writes
        words.append(f"--user={os.getuid()}:{os.getgid()}")
    words += [f"--env={name}" for name in sorted(launch.env) if name not in KEPT or name in named]
    return launch._replace(argv=(*words, image, *launch.argv))


def plan_removal(root: Path, key: Key, runtime: str) -> list[str]:
    """How to end what is left of a task's container; that nothing is left is no failure."""
    gone = ["--ignore"] if Path(runtime).name == "podman" else []
    return [runtime, "rm", "--force", *gone, name_of(root, key)]


def plan_signal(root: Path, key: Key, runtime: str, number: int) -> list[str]:
    """How to signal what a task's container runs."""
    return [runtime, "kill", f"--signal={signal.Signals(number).name}", name_of(root, key)]


def explain_failure(runtime: str | None, code: int) -> str:
    """What a container's exit code says of who ran it; nothing if it is the command's own."""
    if runtime is None or code != RUNTIME_FAILED:
        return ""
    return f"{Path(runtime).name} could not run the container, and the job's log has its words [M349]"


def is_minder(pid: int) -> bool:
    """Whether a process is the one that podman leaves beside a container: without it nobody learns how that ends."""
    try:
        return Path(f"/proc/{pid}/comm").read_bytes().strip() == MINDER
    except OSError:
        return False


def name_of(root: Path, key: Key) -> str:
    """What the container of a run is called; another server on this machine has other names."""
    return f"{name_of_root(root)}-{key.name}"


def _device_words(devices: str, runtime: str) -> list[str]:
    if not devices:
        return []
    if runtime == "docker":
        return [f'--gpus="device={devices}"']
    return [f"--device=nvidia.com/gpu={device}" for device in devices.split(",")]
