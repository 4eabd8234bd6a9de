"""How a running job says how far it is, from inside: `muster.progress(step)`.

It appends one line to the file that `MUSTER_PROGRESS` names, which any language can do: the step, and behind it
`checkpoint` if everything up to that step is safe, or `checkpointing` if it is about to be. Nothing is imported here
but the standard library, and nothing is waited for.
"""

from __future__ import annotations

import os
from typing import Final

VARIABLE: Final = "MUSTER_PROGRESS"


def progress(step: int, *, checkpoint: bool = False, checkpointing: bool = False) -> bool:
    """Say that this run has done `step`; with `checkpoint`, that it could resume from there; with `checkpointing`, that
    it begins to save and trains no further until it says the next. Whether anybody listens.

    Outside of a job this does nothing, and a disk that is full harms no training.
    """
    if step < 0:
        raise ValueError(f"a step is not negative: {step}")
    path = os.environ.get(VARIABLE)
    if not path:
        return False
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            word = " checkpoint" if checkpoint else " checkpointing" if checkpointing else ""
            os.write(handle, f"{step}{word}\n".encode())
        finally:
            os.close(handle)
    except OSError:
        return False
    return True
