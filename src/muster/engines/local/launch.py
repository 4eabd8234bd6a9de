"""What exactly will be executed for each task of a Start: argv, environment, directory. Pure, and no shell anywhere.

The environment is built from nothing: a few variables of the supervisor's own, the user's, and Muster's, the last
winning. So no secret of the server, no LD_* of its own and no failpoint can reach a task.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from muster.engines.local.layout import Key, progress_path, width_path
from muster.model.again import indexes_of
from muster.model.group import group_at
from muster.model.instruction import NOT_SAVED, Start
from muster.model.partition import devices_in, start_in
from muster.model.spec import Spec
from muster.units import ZERO, Resources

KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR")
_DEFAULTS: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/"}
PROGRESS_VARIABLE: Final = "MUSTER_PROGRESS"
RESUME_VARIABLE: Final = "MUSTER_RESUME_STEP"
WIDTH_VARIABLE: Final = "MUSTER_WORLD_SIZE_FILE"
PARTITION_VARIABLE: Final = "MUSTER_PARTITION"
ADDRESS: Final = "127.0.0.1"
PORT_FIRST: Final = 20_000
PORTS: Final = 10_000


class Launch(NamedTuple):
    """One task as it will be executed."""

    key: Key
    argv: tuple[str, ...]
    env: dict[str, str]
    workdir: str
    ask: Resources = ZERO
    stop_signal: str = ""


class _Seat(NamedTuple):
    """Where a task sits: its node's rank in the Start, and its place among that node's tasks."""

    node_rank: int
    local_rank: int
    local_count: int
    devices: int
    device_ids: tuple[str, ...]


def keys_on(start: Start, node: str) -> list[Key]:
    """The tasks of `start` that belong on `node`, in order."""
    keys, first = [], start.first
    for name, count in zip(start.nodes, start.counts, strict=True):
        if name == node:
            keys += [Key(start.job, start.epoch, task) for task in range(first, first + count)]
        first += count
    return keys


def plan_launches(
    start: Start, node: str, own: Mapping[str, str], root: Path, within: Container[int]
) -> Iterator[Launch]:
    """The same as they will be executed, for tasks `within` a range. `own` is the environment of who starts them."""
    base, indexes = _plan_environment(start, own), indexes_of(start.spec.again, start.spec.tasks)
    workdir = str(Path(base["HOME"] or "/") / start.spec.workdir)
    task = start.first
    for node_rank, name in enumerate(start.nodes):
        count = start.counts[node_rank]
        ids = start.device_ids[node_rank] if start.device_ids else ()
        for local_rank in range(count if name == node else 0):
            key = Key(start.job, start.epoch, task + local_rank)
            if key.task not in within:
                continue
            seat = _Seat(node_rank, local_rank, count, start.devices[node_rank], ids)
            command, env = _command_of(start.spec, key.task), base | _plan_own(start, key, seat, root)
            if start.spec.again is not None:
                env["MUSTER_TASK"] = str(indexes[key.task])
            yield Launch(key, command, env, workdir, _ask_of(start.spec, key.task), start.spec.stop_signal)
        task += count


def marks_of(key: Key, root: Path) -> frozenset[bytes]:
    """The environment entries by which a process of a run is known: another server on this machine has jobs of the same
    numbers."""
    words = {"MUSTER_ENGINE": root, "MUSTER_JOB": key.job, "MUSTER_PLACE": key.task, "MUSTER_EPOCH": key.epoch}
    return frozenset(f"{name}={value}".encode() for name, value in words.items())


def _plan_environment(start: Start, own: Mapping[str, str]) -> dict[str, str]:
    """What is the same for all tasks."""
    kept = {name: own[name] for name in KEPT if name in own}
    return {**_DEFAULTS, **kept, **start.spec.env, "MUSTER_JOB": str(start.job), "MUSTER_EPOCH": str(start.epoch)}


def _plan_own(start: Start, key: Key, seat: _Seat, root: Path) -> dict[str, str]:
    """What is a task's own."""
    spec = start.spec
    ask = _ask_of(spec, key.task)
    share = (0, 1) if ask.gpu_milli else (seat.local_rank, ask.gpus)
    own = {
        "MUSTER_ENGINE": str(root),
        "MUSTER_PLACE": str(key.task),
        "MUSTER_TASK": str(key.task),
        "MUSTER_TASKS": str(start.width or spec.total),
        PROGRESS_VARIABLE: str(progress_path(root, key if spec.array else key._replace(task=0))),  # a gang has one
        "CUDA_VISIBLE_DEVICES": show_devices(devices_in(seat.devices), *share, seat.device_ids),
    }
    resumes = start.resumes[key.task - start.first if spec.array else 0] if start.resumes else NOT_SAVED
    if resumes != NOT_SAVED:
        own[RESUME_VARIABLE] = str(resumes)
    if spec.needs.partition:
        own[PARTITION_VARIABLE] = f"{spec.needs.partition}@{max(0, start_in(seat.devices))}"
    if spec.needs.groups:
        own |= _group_variables(spec, key.task)
    if start.width:
        own[WIDTH_VARIABLE] = str(width_path(root, key.job, key.epoch))
    return own | _gang_variables(start, key.task, seat) if spec.gang > 1 or start.width else own


def _ask_of(spec: Spec, task: int) -> Resources:
    """What a task may use: what its group asks for, if it is of one."""
    return group_at(spec.needs.groups, task)[0].ask if spec.needs.groups else spec.ask


def _command_of(spec: Spec, task: int) -> tuple[str, ...]:
    """What a task runs: its group's own command, if it has one."""
    if not spec.commands:
        return spec.command
    return spec.commands.get(group_at(spec.needs.groups, task)[0].name, spec.command)


def _group_variables(spec: Spec, task: int) -> dict[str, str]:
    group, place = group_at(spec.needs.groups, task)
    return {
        "MUSTER_GROUP": group.name,
        "MUSTER_GROUP_RANK": str(place),
        "MUSTER_GROUP_SIZE": str(group.tasks),
        "MUSTER_GROUPS": ",".join(f"{each.name}:{each.tasks}" for each in spec.needs.groups),
    }


def _gang_variables(start: Start, task: int, seat: _Seat) -> dict[str, str]:
    """A rank by the names that torchrun, JAX and Open MPI give it. Not PMI_RANK: MPICH would look for its launcher."""
    port = PORT_FIRST + start.job % PORTS
    size = str(start.width or start.spec.gang)
    return {
        "RANK": str(task),
        "WORLD_SIZE": size,
        "LOCAL_RANK": str(seat.local_rank),
        "LOCAL_WORLD_SIZE": str(seat.local_count),
        "NODE_RANK": str(seat.node_rank),
        "GROUP_RANK": str(seat.node_rank),
        "NNODES": str(len(start.nodes)),
        "GROUP_WORLD_SIZE": str(len(start.nodes)),
        "ROLE_NAME": "default",
        "ROLE_RANK": str(task),
        "ROLE_WORLD_SIZE": size,
        "TORCHELASTIC_RUN_ID": str(start.job),
        "TORCHELASTIC_RESTART_COUNT": str(start.epoch - 1),
        "TORCHELASTIC_MAX_RESTARTS": str(start.spec.retries),
        "MASTER_ADDR": ADDRESS,
        "MASTER_PORT": str(port),
        "JAX_COORDINATOR_ADDRESS": f"{ADDRESS}:{port}",
        "JAX_NUM_PROCESSES": size,
        "JAX_PROCESS_ID": str(task),
        "OMPI_COMM_WORLD_RANK": str(task),
        "OMPI_COMM_WORLD_SIZE": size,
        "OMPI_COMM_WORLD_LOCAL_RANK": str(seat.local_rank),
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(seat.local_count),
        "MUSTER_HOSTS": ",".join(f"{ADDRESS}:{count}" for count in start.counts),
    }


def show_devices(devices: int, local_rank: int, gpus: int, ids: tuple[str, ...] = ()) -> str:
    """The part of a node's device bits that its `local_rank`-th task takes, lowest first: `2,3`, or by their ids."""
    names = ids or tuple(str(number) for number in range(devices.bit_length()) if devices >> number & 1)
    return ",".join(names[local_rank * gpus : (local_rank + 1) * gpus])
