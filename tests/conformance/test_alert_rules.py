"""The alert rules of docs/ops, judged by Prometheus' own tool: they are in order, and they wake who should be woken.

Where promtool is not installed, this says so and is skipped.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

RULES = Path(__file__).parents[2] / "docs/ops/alerts.yml"
PROMTOOL = shutil.which("promtool")
pytestmark = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: prometheus)")

LEADER = "muster_leader_up"
UP, GONE, BARRED = 'muster_nodes{phase="up"}', 'muster_nodes{phase="gone"}', "muster_nodes_barred"
GOOD = 'muster_requests_total{method="GET",status="2xx"}'
BROKEN = 'muster_requests_total{method="POST",status="5xx"}'
DEVICES, FREE = 'muster_devices{flavor="h100"}', 'muster_devices_free{flavor="h100"}'
QUEUED = 'muster_jobs{phase="queued"}'


def judge(*words: str | Path) -> subprocess.CompletedProcess[str]:
    assert PROMTOOL is not None
    return subprocess.run([PROMTOOL, *words], capture_output=True, text=True, check=False)


def test_they_are_in_order() -> None:
    found = judge("check", "rules", RULES)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize(
    ("alert", "measured", "minute", "is_up"),
    [
        ("MusterNoLeader", {LEADER: "1x5 0x10"}, 6, False),
        ("MusterNoLeader", {LEADER: "1x5 0x10"}, 8, True),
        ("MusterNoLeader", {LEADER: "1x5 0 1x10"}, 8, False),
        ("MusterManyNodesBarred", {UP: "10x40", GONE: "90x40", BARRED: "3x40"}, 20, True),
        ("MusterManyNodesBarred", {UP: "10x40", GONE: "90x40", BARRED: "2x40"}, 20, False),
        ("MusterErrors", {GOOD: "0+6000x40", BROKEN: "0+60x40"}, 20, True),
        ("MusterErrors", {GOOD: "0+6000x40", BROKEN: "0+1x40"}, 20, False),
        ("MusterIdleBesideAQueue", {DEVICES: "8x60", FREE: "4x60", QUEUED: "11x60"}, 40, True),
        ("MusterIdleBesideAQueue", {DEVICES: "8x60", FREE: "4x60", QUEUED: "9x60"}, 40, False),
    ],
)
def test_they_wake_who_should_be_woken(
    tmp_path: Path, alert: str, measured: dict[str, str], minute: int, is_up: bool
) -> None:
    asked = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) by (alertname)'
    told = [{"labels": f'{{alertname="{alert}"}}', "value": 1}] if is_up else []
    scene = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in measured.items()],
        "promql_expr_test": [{"expr": asked, "eval_time": f"{minute}m", "exp_samples": told}],
    }
    page = tmp_path / "scene.yml"  # JSON is YAML too
    page.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [scene]}))
    found = judge("test", "rules", page)
    assert found.returncode == 0, found.stdout + found.stderr
