"""`bench submit`: durable submits by 64 clients, against a bare validated POST of the same server in the same minutes.

Real leader, real follower, a journal with fsync on; every job waits, since none fits beside what runs. Rounds take
turns between the bare server and the durable one; then each is paced at 80 % of what the durable one did, and how long
answers took is measured from when each request was due: what the bare one took is what this machine does to anybody at
that pace, now. The CPU time of both processes per submit is beside it, and how many cores others kept busy meanwhile.

At full load a client that waits sends nothing, so a stall is felt by 64 requests; paced, it is felt by all that were
due in it, and by those that are due until the rest of 20 % has made up for it: four times as long as the stall. What
others take of the cores or of the disk therefore shows in `submit_p99_ms` first.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from bench import clients
from bench.bare import TOKEN
from bench.clients import Plan, Tally
from bench.report import Metric, Result, median
from bench.server import cpu_of, muster, running_server
from muster.sdk.home import Home

ROUNDS: Final = 3
CLIENTS: Final = 64
SECONDS: Final = 4.0
SPEC: Final = {"command": ["python", "train.py", "--step", "1"], "name": "train", "ask": {"gpus": 1, "cpu_milli": 1000}}
HOG: Final = ("run", "--detach", "--cpus", "1", "--gpus", "8", "--", "sleep", "600")


def run(seed: int) -> Result:  # noqa: ARG001 - nothing here is random
    """Take turns, then pace."""
    with running_server("gpus=8,cpus=64,memory=64Gi") as home, bare_server() as port:
        muster(*HOG, home=home)
        rounds = [(_bare(port), _durable(home)) for _ in range(ROUNDS)]
        durable_per_s = median([durable.per_s for _, durable in rounds])
        bare_per_s = median([bare.per_s for bare, _ in rounds])
        before, begin = _clocks(home), time.monotonic()
        paced = _durable(home, per_s=0.8 * durable_per_s)
        lasted_s = time.monotonic() - begin
        spent = {name: after - before[name] for name, after in _clocks(home).items()}
        bare_paced = _bare(port, per_s=0.8 * durable_per_s)
    ratio = median([durable.per_s / bare.per_s for bare, durable in rounds])
    submits = len(paced.took_ms) * (SECONDS + 0.5) / SECONDS
    metrics = {
        "ratio_to_bare": Metric(ratio, "of a bare POST", 0.5),
        "submit_p99_ms": Metric(paced.percentile(0.99), "ms at 80 %", 30, at_least=False),
        "submits_per_s": Metric(durable_per_s, "submits/s"),
    }
    reference = {
        "bare_per_s": bare_per_s,
        "bare_p99_ms": rounds[0][0].percentile(0.99),
        "full_p50_ms": rounds[-1][1].percentile(0.5),
        "full_p99_ms": rounds[-1][1].percentile(0.99),
        "paced_p50_ms": paced.percentile(0.5),
        "bare_paced_p50_ms": bare_paced.percentile(0.5),
        "bare_paced_p99_ms": bare_paced.percentile(0.99),
        "refused": sum(durable.refused for _, durable in rounds) + paced.refused,
        **{f"{role}_us": 1e6 * spent[role] / submits for role in ("leader", "follower", "clients")},
        "others_cores": (spent["machine"] - spent["leader"] - spent["follower"] - spent["clients"]) / lasted_s,
    }
    return Result("submit", metrics, reference)


def _clocks(home: Path) -> dict[str, float]:
    """CPU seconds so far: of the server's processes, of this one with the clients that have ended, of the machine."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    user, nice, system, _, _, irq, soft_irq, *_ = map(int, Path("/proc/stat").read_text().split()[1:11])
    return {
        **cpu_of(home),
        "clients": sum(usage.ru_utime + usage.ru_stime for usage in usages),
        "machine": (user + nice + system + irq + soft_irq) / os.sysconf("SC_CLK_TCK"),
    }


def submits(token: str, count: int, prefix: str) -> list[bytes]:
    """So many submits, each with a key of its own."""
    body = msgspec.json.encode(SPEC)
    return [clients.post("/v1/jobs", token, body, f"Idempotency-Key: {prefix}-{number}") for number in range(count)]


def _bare(port: int, per_s: float = 0.0) -> Tally:
    sent = submits(TOKEN, 200_000 if per_s else CLIENTS, "bare")
    return clients.run(Plan("127.0.0.1", port, sent, CLIENTS, SECONDS, per_s=per_s))


def _durable(home: Path, per_s: float = 0.0) -> Tally:
    address, token = Home(home).find_address(), Home(home).read_token()
    assert address is not None
    sent = submits(token, 200_000, os.urandom(8).hex())
    return clients.run(Plan(address.host, address.port, sent, CLIENTS, SECONDS, per_s=per_s))


@contextmanager
def bare_server() -> Iterator[int]:
    """A bare server that is up; gives its port."""
    with subprocess.Popen([sys.executable, "-m", "bench.bare"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()
