"""Many jobs in few requests, and what became of each of them.

Each job travels with a key of its own, so that a request whose answer was lost is sent again as it is and nothing is
accepted twice. A job that the server could not judge this time (nobody leads, too much at once) is sent again with the
others of its kind, while patience lasts; one that is refused is not, and harms nobody it came with. It knows bytes and
keys; what a job says is not looked at here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from muster.sdk.errors import AnsweredError, make_error
from muster.sdk.transport import TRY_AGAIN, Patience, Request
from muster.wire.views import BulkAnswer, BulkPart, Submitted

PATH: Final = "/v1/jobs/bulk"
JOBS_AT_ONCE: Final = 200
"""Fewer than the server takes: while it reads them it answers nobody else."""
BYTES_AT_ONCE: Final = 1024 * 1024
"""So that a slow network has sent them before the server loses patience."""

Outcome: TypeAlias = Submitted | AnsweredError
"""The job that was made, or why there is none."""
Send: TypeAlias = Callable[[Request], BulkAnswer]


def spell(spec: bytes, key: str) -> bytes:
    """One of many jobs, as the server reads it."""
    return msgspec.json.encode({"spec": msgspec.Raw(spec), "key": key})


def submit_many(send: Send, patience_s: float, jobs: Sequence[bytes]) -> tuple[Outcome, ...]:
    """What becomes of each job, in their order."""
    return tuple(outcome for group in split(jobs) for outcome in _submit(send, Patience(patience_s), group))


def split(jobs: Sequence[bytes]) -> Iterator[list[bytes]]:
    """The same jobs in groups, each of which fits a request; what is too large for any is alone in its own."""
    group, size = list[bytes](), 0
    for job in jobs:
        if group and (len(group) == JOBS_AT_ONCE or size + len(job) > BYTES_AT_ONCE):
            yield group
            group, size = [], 0
        group.append(job)
        size += len(job)
    if group:
        yield group


def _submit(send: Send, patience: Patience, group: Sequence[bytes]) -> list[Outcome]:
    outcomes = dict[int, Outcome]()
    waiting = list(range(len(group)))
    while waiting:
        answer = send(Request("POST", PATH, body=b'{"jobs":[' + b",".join(group[at] for at in waiting) + b"]}"))
        parts = dict(zip(waiting, answer.jobs, strict=True))
        outcomes |= {at: _judge(part, answer.seq) for at, part in parts.items()}
        waiting = [at for at, part in parts.items() if part.problem is not None and part.problem.status in TRY_AGAIN]
        if waiting and not patience.pause():
            break
    return [outcomes[at] for at in range(len(group))]


def _judge(part: BulkPart, seq: int) -> Outcome:
    return Submitted(part.job, seq) if part.problem is None else make_error(part.problem)
