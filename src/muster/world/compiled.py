"""The one way to compile: plain functions over int64 words, with bounds checked; the same source runs uncompiled.

Compiled code takes arrays of words and integers, and gives an integer. It holds no floats, no parallel loops and no
state. With `NUMBA_DISABLE_JIT=1` every function is what it says in the source, which is its own parity test.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

import numba
import numpy as np
from numba.core import config

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words: TypeAlias = NDArray[np.int64]
else:
    Words: TypeAlias = Any

IS_COMPILED: Final = not vars(config)["DISABLE_JIT"]
_OPTIONS: Final[dict[str, Any]] = {"cache": True, "boundscheck": True, "_nrt": False}
"""Without its run time: nothing here allocates, and counting references of the arrays costs more than most searches."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """Compile on the first call, or load what was compiled before."""
    return cast("_Function", numba.njit(**_OPTIONS)(function))


def words_of(buffer: array[int]) -> Words:
    """The same memory as compiled code wants it; uncompiled code reads an `array` faster, and without overflow."""
    return np.frombuffer(buffer, dtype=np.int64) if IS_COMPILED else cast("Words", buffer)
