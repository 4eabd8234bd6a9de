"""What exactly will be executed for each task of a Start: argv, environment, directory. Pure, and no shell anywhere.

The environment is built from nothing: a few variables of the supervisor's own, the user's, and Muster's, the last
winning. So no secret of the server, no LD_* of its own and no failpoint can reach a task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from muster.engines.local.layout import Key
from muster.model.instruction import Start
from muster.model.record import Record

KEPT: Final = ("PATH", "HOME", "LANG", "TZ", "USER")
_DEFAULTS: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/"}
PORT_FIRST: Final = 20_000
PORTS: Final = 10_000


class Launch(Record, frozen=True):
    """One task as it will be executed; recorded before anything runs. `boot` names the machine's life it belongs to."""

    job: int
    epoch: int
    task: int
    argv: tuple[str, ...]
    env: dict[str, str]
    workdir: str
    boot: str

    @property
    def key(self) -> Key:
        """Which try of which task this is."""
        return Key(self.job, self.epoch, self.task)

    def marks(self) -> frozenset[bytes]:
        """The environment entries by which a process of this run is known."""
        return frozenset(f"{name}={self.env[name]}".encode() for name in ("MUSTER_JOB", "MUSTER_TASK", "MUSTER_EPOCH"))


class _Seat(Record, frozen=True):
    """Where a task sits: its node's rank in the Start, and its place among that node's tasks."""

    node_rank: int
    local_rank: int
    local_count: int
    devices: int
    device_ids: tuple[str, ...] = ()


def plan_launches(start: Start, node: str, own: Mapping[str, str], boot: str) -> Iterator[Launch]:
    """The tasks of `start` that belong on `node`, in order. `own` is the supervisor's environment."""
    task = start.first
    for node_rank, name in enumerate(start.nodes):
        count = start.counts[node_rank]
        for local_rank in range(count if name == node else 0):
            ids = start.device_ids[node_rank] if start.device_ids else ()
            seat = _Seat(node_rank, local_rank, count, start.devices[node_rank], ids)
            yield _plan_launch(start, task + local_rank, seat, own, boot)
        task += count


def _plan_launch(start: Start, task: int, seat: _Seat, own: Mapping[str, str], boot: str) -> Launch:
    spec = start.spec
    env = _DEFAULTS | {name: own[name] for name in KEPT if name in own} | spec.env
    share = (0, 1) if spec.ask.gpu_milli else (seat.local_rank, spec.ask.gpus)
    workdir = str(Path(env["HOME"] or "/") / spec.workdir)
    env |= {
        "MUSTER_JOB": str(start.job),
        "MUSTER_TASK": str(task),
        "MUSTER_EPOCH": str(start.epoch),
        "MUSTER_TASKS": str(spec.tasks),
        "CUDA_VISIBLE_DEVICES": show_devices(seat.devices, *share, seat.device_ids),
    }
    if spec.gang > 1:
        env |= _gang_variables(start, task, seat)
    return Launch(start.job, start.epoch, task, spec.command, env, workdir, boot)


def _gang_variables(start: Start, task: int, seat: _Seat) -> dict[str, str]:
    return {
        "RANK": str(task),
        "WORLD_SIZE": str(start.spec.gang),
        "LOCAL_RANK": str(seat.local_rank),
        "LOCAL_WORLD_SIZE": str(seat.local_count),
        "NODE_RANK": str(seat.node_rank),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(PORT_FIRST + start.job % PORTS),
    }


def show_devices(devices: int, local_rank: int, gpus: int, ids: tuple[str, ...] = ()) -> str:
    """The part of a node's device bits that its `local_rank`-th task takes, lowest first: `2,3`, or by their ids."""
    names = ids or tuple(str(number) for number in range(devices.bit_length()) if devices >> number & 1)
    return ",".join(names[local_rank * gpus : (local_rank + 1) * gpus])
