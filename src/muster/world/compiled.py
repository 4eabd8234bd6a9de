"""The one way to compile: plain functions over int64 words, with bounds checked; the same source runs uncompiled.

Compiled code takes arrays of words and integers, and gives an integer. It holds no floats, no parallel loops and no
state. With `NUMBA_DISABLE_JIT=1` every function is what it says in the source, which is its own parity test.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, ParamSpec, TypeAlias, TypeVar, cast

import numba
import numpy as np
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words: TypeAlias = NDArray[np.int64]
else:
    Words: TypeAlias = Any

IS_COMPILED: Final = not vars(config)["DISABLE_JIT"]
_OPTIONS: Final[dict[str, Any]] = {"boundscheck": True, "_nrt": False}
"""Without its run time: nothing here allocates, and counting references of the arrays costs more than most searches."""

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")


class ColdError(Exception):
    """Something would have to be compiled, by a process that only takes what is kept."""


def compiled(function: _Function) -> _Function:
    """Compile on the first call, or load what was compiled before from the same source."""
    made = numba.njit(**_OPTIONS)(function)
    if IS_COMPILED:
        with suppress(RuntimeError):  # numba finds no place where it may write: each process compiles for itself
            made._cache = _Cache(function)  # type: ignore[no-untyped-call]  # as numba does for `cache=True`
    return cast("_Function", made)


@contextmanager
def only_kept() -> Iterator[None]:
    """Raise `ColdError` within, rather than compile what is kept nowhere."""
    _Cache.compiles = False
    try:
        yield
    finally:
        _Cache.compiles = True


class Entry(Generic[_Params, _Result]):
    """The way into a compiled function for those who call it from Python for every lease, with what it says that it
    takes: numba's own looks at the kind of each argument first, which takes longer than the code."""

    __slots__ = ("_function", "call")

    def __init__(self, function: Callable[_Params, _Result]) -> None:
        self._function = function
        self.call: Callable[_Params, _Result] = self._call_first if IS_COMPILED else function

    def _call_first(self, *args: _Params.args, **names: _Params.kwargs) -> _Result:
        found: Callable[_Params, _Result] = _find_entry(self._function)
        self.call = found
        return found(*args, **names)


def _find_entry(function: Any) -> Any:
    """Its code for words and integers, compiled or loaded now."""
    kinds = [kind for name, kind in function.py_func.__annotations__.items() if name != "return"]
    signature = tuple(numba.int64[::1] if kind == "Words" else numba.int64 for kind in kinds)
    function.compile(signature)
    return function.overloads[signature].entry_point


class _Kept(CompileResultCacheImpl):
    """Code as it is kept: with the stamp of all that it was compiled from.

    numba compares the file of a function, not those of the functions and numbers that it takes from elsewhere: after an
    edit there, it would go on with the old code. So a stamp covers the function's file, the numbers that its module
    knows, and the stamps of the compiled functions that its module knows, which cover theirs in turn.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]  # nothing of numba is typed
        known = [(name, _trace_of(value)) for name, value in sorted(function.__globals__.items())]
        own = self.locator.get_source_stamp()
        self.stamp = sha256(repr((own, _OPTIONS, known)).encode()).hexdigest()

    def reduce(self, result: Any) -> tuple[str, Any]:
        return self.stamp, super().reduce(result)  # type: ignore[no-untyped-call]  # as above

    def rebuild(self, target: Any, kept: tuple[str, Any]) -> Any:
        """The code, or None, as if there were none, if it was made from other source."""
        if kept[0] != self.stamp:
            return None
        return super().rebuild(target, kept[1])  # type: ignore[no-untyped-call]  # as above


class _Cache(FunctionCache):
    _impl_class = _Kept
    compiles: ClassVar[bool] = True

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]  # as above
        if found is None and not self.compiles:
            raise ColdError(str(sig))
        return found


def _trace_of(value: object) -> str:
    """What a stamp says of a global: whatever compiled code can use, and nothing that differs by process."""
    if isinstance(value, int | tuple):
        return repr(value)
    cache = getattr(value, "_cache", None)
    return str(cache._impl.stamp) if isinstance(cache, _Cache) else ""


def find_differences(one: array[int], other: array[int]) -> list[int]:
    """Where two runs of words, equally long, are not the same."""
    left, right = (np.frombuffer(buffer, dtype=np.int64) for buffer in (one, other))
    return np.flatnonzero(left != right).tolist()


def find_filled(buffer: array[int] | Words, width: int) -> list[int]:
    """Of rows of so many words, those whose first one is not 0."""
    places: list[int] = np.frombuffer(buffer, dtype=np.int64)[::width].nonzero()[0].tolist()
    return places


def count_filled(buffer: array[int]) -> int:
    """How many words are not 0."""
    return int(np.count_nonzero(np.frombuffer(buffer, dtype=np.int64)))


def words_of(buffer: array[int]) -> Words:
    """The same memory as compiled code wants it; uncompiled code reads an `array` faster, and without overflow."""
    return np.frombuffer(buffer, dtype=np.int64) if IS_COMPILED else cast("Words", buffer)


def blank_words(count: int) -> Words:
    """So many words that are all 0."""
    return np.zeros(count, dtype=np.int64) if IS_COMPILED else cast("Words", array("q", bytes(8 * count)))


def order_of(column: Words, chosen: Words) -> Words:
    """Chosen places of a column, which go upwards, by what it has there: the least first, and of equals the first."""
    if not IS_COMPILED:
        return cast("Words", array("q", sorted(chosen, key=column.__getitem__)))
    return chosen[np.argsort(column[chosen], kind="stable")] if len(chosen) else chosen


def sort_rows(flat: array[int], width: int, fields: tuple[int, ...]) -> array[int]:
    """Rows of so many words by some fields of theirs, the first of them first."""
    rows = np.frombuffer(flat, dtype=np.int64).reshape(-1, width)
    order = np.lexsort([rows[:, field] for field in reversed(fields)])
    return array("q", rows[order].tobytes())


def column_of(buffer: array[int] | bytearray) -> Any:
    """A column of tasks as compiled code wants it."""
    return np.asarray(memoryview(buffer)) if IS_COMPILED else buffer
