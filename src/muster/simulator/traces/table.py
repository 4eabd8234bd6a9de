"""Rows of a trace's file: plain or gzipped, with the line that each stands on, and numbers that are numbers.

It knows no format. Whoever reads a row says what a field should be: what is not a number at all is refused with its
line, and what is a number and makes no sense is left out under a reason, which is counted.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import math
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TextIO, TypeVar, cast

from muster.model.errors import RejectedError
from muster.simulator.traces.record import Reading, Record, in_order, trace_error
from muster.units import AMOUNT_MAX, SECOND_MS

T = TypeVar("T")
SPAN_MAX_MS: Final = 100 * 366 * 86400 * SECOND_MS
"""A hundred years: whatever is longer is no time of a job."""
GZIP_MAGIC: Final = b"\x1f\x8b"
_MARKS: Final = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Marks at the beginning of files that are no UTF-8; the longer ones first, as one of them begins like a shorter."""
_HEAD: Final = 64
"""How many bytes tell how a file is encoded."""
_STRAY: Final = "backslashreplace"
ROWS_MAX: Final = 5_000_000
"""Rows of one file: about two gigabytes of records."""
LINE_MAX: Final = 1 << 26
"""Characters of one line: what is longer is no table, and need not be held to see it."""
LINES_KEPT: Final = 5
"""Of those left out for one reason, the lines that are told."""


class DropRowError(Exception):
    """A row is left out; the message is the reason under which it is counted."""


def open_text(path: Path) -> TextIO:
    """A trace's file as text, unpacked if it is packed, whatever its name says. A mark of the encoding at its beginning
    is no text; bytes that are no UTF-8, as in many a remark of older files, stand for themselves."""
    unpack = gzip.open if is_packed(path) else open
    with unpack(path, "rb") as file:
        encoding = _encoding_of(file.read(_HEAD))
    return cast(TextIO, unpack(path, "rt", encoding=encoding, errors=_STRAY, newline=""))


def _encoding_of(head: bytes) -> str:
    """How a file is encoded that begins so: by its mark; without one, letters of two bytes have an empty one each."""
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            return name
    for first, name in enumerate(("utf-16-be", "utf-16-le")):
        if head and not any(head[first::2]):
            return name
    return "utf-8-sig"


def is_packed(path: Path) -> bool:
    """Whether a file is gzipped."""
    with path.open("rb") as head:
        return head.read(2) == GZIP_MAGIC


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Every line with its number, one at a time; a file that ends in the middle, or never ends, is refused there."""
    number = 0
    try:
        with open_text(path) as file:
            for number, line in enumerate(iter(lambda: file.readline(LINE_MAX), ""), start=1):
                if len(line) == LINE_MAX or number > ROWS_MAX:
                    raise trace_error(path, number, f"more than {ROWS_MAX:,} lines, or of {LINE_MAX:,} characters")
                yield number, line
    except (EOFError, zlib.error, OSError) as error:
        raise trace_error(path, number + 1, f"cannot be read any further: {error}") from error


def peek_lines(path: Path) -> Iterator[str]:
    """The lines of a file of which nobody knows yet whether it is a trace, for as long as it is a text. What cannot be
    unpacked or opened is refused, for it may be one, and nobody would miss it if it were passed over."""
    try:
        for _, line in read_lines(path):
            yield line
    except RejectedError as error:
        if isinstance(error.__cause__, (EOFError, zlib.error, OSError)):
            raise


def read_columns(path: Path) -> tuple[str, ...]:
    """The names in a file's first line, if it is a table."""
    try:
        names = next(csv.reader([next(peek_lines(path), "")], skipinitialspace=True), ())
    except csv.Error:
        return ()
    return tuple(name.strip() for name in names)


class Row:
    """One row of a table, by column."""

    __slots__ = ("_cells", "_path", "line")

    def __init__(self, path: Path, line: int, cells: dict[str, str]) -> None:
        self._path, self.line, self._cells = path, line, cells

    def text(self, column: str) -> str:
        """What stands there."""
        return self._cells[column].strip()

    def word(self, column: str) -> str:
        """What stands there, and in many other rows too: kept once for all of them."""
        return sys.intern(self.text(column))

    def has(self, column: str) -> bool:
        """Whether something stands in a column that not every file has."""
        return bool(self._cells.get(column, "").strip())

    def number(self, column: str) -> float:
        """A number; what is none is refused, and one that is not finite is left out."""
        text = self.text(column)
        try:
            value = float(text)
        except ValueError:
            raise trace_error(self._path, self.line, f"{column} is {text!r}, not a number") from None
        if not math.isfinite(value):
            raise DropRowError(f"{column} is not finite")
        return value

    def amount(self, column: str) -> float:
        """A number that is never negative."""
        value = self.number(column)
        if value < 0:
            raise DropRowError(f"{column} is negative")
        return value

    def count(self, column: str) -> int:
        """A whole number of things, at least none."""
        value = self.number(column)
        if not 0 <= value <= AMOUNT_MAX or value != int(value):
            raise DropRowError(f"{column} is not a count")
        return int(value)

    def scaled(self, column: str, unit: int) -> int:
        """An amount in some unit, as a whole number of a smaller one; it is never negative."""
        value = self.number(column)
        if value < 0 or value * unit > AMOUNT_MAX:
            raise DropRowError(f"{column} is not an amount")
        return round(value * unit)

    def span_ms(self, column: str, unit_ms: int) -> int:
        """A time in some unit, as milliseconds; it is never negative."""
        return to_ms(self.number(column), unit_ms, column)


def to_ms(value: float, unit_ms: int, what: str) -> int:
    """A time in some unit as whole milliseconds."""
    if value != value:  # a whole number that is too large for a float is a number, too
        raise DropRowError(f"{what} is not finite")
    if value < 0:
        raise DropRowError(f"{what} is negative")
    if value > SPAN_MAX_MS or value * unit_ms > SPAN_MAX_MS:
        raise DropRowError(f"{what} is more than a hundred years")
    return round(value * unit_ms)


def read_table(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    """The rows of a table with a line of names; the named columns are there, or the file is refused."""
    lines = read_lines(path)
    header = next(lines, None)
    names = () if header is None else tuple(name.strip() for name in _cells(path, *header))
    missing = [name for name in columns if name not in names]
    if missing:
        raise trace_error(path, 1, f"no column {', '.join(missing)}")
    twice = [name for name in columns if names.count(name) > 1]
    if twice:
        raise trace_error(path, 1, f"the column {twice[0]} stands there more than once")
    for number, line in lines:
        cells = _cells(path, number, line)
        if not cells:
            continue
        if len(cells) != len(names):
            raise trace_error(path, number, f"{len(cells)} fields, and the first line names {len(names)}")
        yield Row(path, number, dict(zip(names, cells, strict=True)))


def _cells(path: Path, number: int, line: str) -> list[str]:
    try:
        return next(csv.reader([line], skipinitialspace=True), [])
    except csv.Error as error:
        raise trace_error(path, number, f"is no row of a table: {error}") from error


class Seen:
    """What was left out so far and on which lines, and which ids were met: a second row of an id is left out."""

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self.lines: dict[str, list[int]] = {}
        self._ids: set[str] = set()

    def check_id(self, name: str) -> str:
        """An id that no row had before."""
        if name in self._ids:
            raise DropRowError("id was there before")
        self._ids.add(name)
        return name

    def drop(self, error: DropRowError, line: int) -> None:
        """Count a row that is left out; of each reason the first lines are kept."""
        reason = str(error)
        self.dropped[reason] += 1
        kept = self.lines.setdefault(reason, [])
        if len(kept) < LINES_KEPT:
            kept.append(line)

    def read(self, records: Iterable[Record]) -> Reading:
        """What came of the file, in the one order of traces."""
        return in_order(records, dict(self.dropped), self.lines)


def gather(path: Path, columns: Sequence[str], convert: Callable[[Row, Seen], T], what: str) -> tuple[list[T], Seen]:
    """What the rows of a table mean, and what was left out of it; a table with nothing to use is refused."""
    seen, found = Seen(), list[T]()
    for row in read_table(path, columns):
        try:
            found.append(convert(row, seen))
        except DropRowError as error:
            seen.drop(error, row.line)
    if not found:
        raise trace_error(path, 1, f"no {what} that can be used; left out: {dict(seen.dropped)}")
    return found, seen
