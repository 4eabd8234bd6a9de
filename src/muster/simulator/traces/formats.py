"""Which format a file has, by what stands in it and never by its name; and all files of some formats below a folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from itertools import count
from pathlib import Path
from typing import Final

from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.simulator.traces import canonical, catalog, openb
from muster.simulator.traces.faults import is_faults
from muster.simulator.traces.jobs import FORMATS as TABLES
from muster.simulator.traces.jobs import read_jobs
from muster.simulator.traces.record import Reading, trace_error
from muster.simulator.traces.swf import FIELDS, is_swf, read_swf
from muster.simulator.traces.table import read_columns

SWF: Final = "swf"
FAULTS: Final = "infinitehbd"
ALL: Final = "all"
"""What is said of all files together stands under this name, so no file has it."""
FORMATS: Final = (canonical.FORMAT, *TABLES)
_OTHERS: Final = {
    openb.PODS: openb.POD_COLUMNS,
    openb.NODES: openb.NODE_COLUMNS,
    catalog.CATALOG: catalog.COLUMNS,
}
_COLUMNS: Final = {form.name: form.columns for form in FORMATS} | _OTHERS


def find_format(path: Path) -> str | None:
    """The name of a file's format; None if it is none of ours."""
    columns = read_columns(path)
    for form in FORMATS:
        if all(name in columns for name in form.columns):
            return form.name
    for name, wanted in _OTHERS.items():
        if all(column in columns for column in wanted):
            return name
    if is_swf(path):
        return SWF
    return FAULTS if is_faults(path) else None


def read_trace(path: Path) -> Reading:
    """The jobs of a file, in whatever format of jobs it has."""
    name = find_format(path)
    for form in FORMATS:
        if form.name == name:
            return read_jobs(path, form)
    if name == SWF:
        return read_swf(path)
    if name == openb.PODS:
        return openb.read_pods(path)
    raise trace_error(path, 1, "is no trace of jobs in a format that is known")


def find_traces(folder: Path, *names: str) -> Iterator[tuple[str, Path]]:
    """The files below a folder that have one of these formats, by path, each with a stem that no other has. That there
    is none is an error, and so is a file that has all columns of such a format but one."""
    if not folder.is_dir():
        raise RejectedError(Reason(Code.BAD_TRACE, str(folder), detail="is no folder"))
    stems = {ALL}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        form = find_format(path)
        if form in names:
            stem = _find_stem(path, stems)
            stems.add(stem)
            yield stem, path
        elif form is None:
            _check_columns(path, names)
    if len(stems) == 1:
        raise RejectedError(Reason(Code.BAD_TRACE, str(folder), detail=f"holds no file of format {' or '.join(names)}"))


def _find_stem(path: Path, taken: Set[str]) -> str:
    """A file's name up to its first dot; with a number, if another has it already."""
    stem = path.name.split(".")[0]
    others = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    return next(each for each in others if each and each not in taken)


def _check_columns(path: Path, names: Sequence[str]) -> None:
    """A file that lacks one column of a format was meant to have it, and so was one whose columns are parted otherwise:
    nobody would miss it if it were passed over."""
    columns = read_columns(path)
    words = columns if len(columns) > 1 else tuple(re.findall(r"\w+", "".join(columns)))
    for name in names:
        missing = [column for column in _COLUMNS.get(name, ()) if column not in words]
        if not missing and name in _COLUMNS:
            raise trace_error(path, 1, f"names the columns of format {name}, but not with commas between them")
        if len(missing) == 1 and len(_COLUMNS[name]) > len(missing) + 1:
            raise trace_error(path, 1, f"lacks the column {missing[0]} of format {name}")
    if SWF in names and is_swf(path, len(FIELDS) - 1):
        raise trace_error(path, 1, f"lacks one of the {len(FIELDS)} fields of format {SWF}")
    if FAULTS in names and is_faults(path, lacking=1):
        raise trace_error(path, 1, f"lacks a key of format {FAULTS}")
