"""Nobody waits for the compiler in the middle of a batch: whatever a storm calls was called by the warm-up before."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from muster.kernel.warm import warm_up
from muster.simulator.options import SimOptions
from muster.simulator.simulation import run_simulation

def ready():
    modules = [module for name, module in sys.modules.items() if name.startswith("muster.")]
    compiled = {value for module in modules for value in vars(module).values() if hasattr(value, "overloads")}
    return {f"{each.__module__}.{each.__name__}{kinds}" for each in compiled for kinds in each.overloads}

warm_up()
before = ready()
storm = {"load": 1.6, "pace": 4, "faults": 4000, "maintenance": 2000, "device_faults": 4000, "bookings": 8000}
run_simulation(SimOptions(nodes=16, days=0.12, tenants=3, inspect_every=500, **storm))
print(len(before), *sorted(ready() - before), sep="\\n")
"""


def test_a_storm_calls_nothing_that_the_warm_up_did_not() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    _, *late = ran.stdout.splitlines()
    assert late == []
