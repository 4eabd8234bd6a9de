"""What a scheduler may see of a trace's job, league by league. Run times, ends and iterations are never among it."""

from __future__ import annotations

from typing import Final

SEEN: Final[dict[str, tuple[str, ...]]] = {
    "packing": ("gpus", "gpu_milli", "cpu_milli", "memory_bytes", "models"),
    "rigid": ("submit_ms", "gpus"),
    "philly": ("submit_ms", "gpus", "tenant"),
    "deadline": ("submit_ms", "gpus", "user"),
    "faults": ("submit_ms", "gpus"),
    "prediction": ("submit_ms", "gpus", "cpu_milli", "tenant", "user", "name", "limit_ms"),
}
"""By league. An oracle is a policy that says so in its name, and is told the rest beside the kernel's door."""
