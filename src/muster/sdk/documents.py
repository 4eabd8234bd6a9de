"""Job files: one or many jobs in YAML, JSON or TOML, each of them read as a `JobFile`, or refused with file and line.

It turns text into plain values and says where in the text a field stands. What the fields mean is `muster.sdk.jobfile`;
that YAML has ways to say things twice, to run code and to take `no` for a boolean is kept out here: scalars are read as
in JSON, everything else is text, and no alias, tag or repeated key is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from muster.model.after import When
from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.model.spec import DEFAULT_TENANT, Spec, find_fault, give_tenant
from muster.sdk.jobfile import FieldError, JobFile, field_of, jobs_of, make_spec

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

FILE_BYTES_MAX: Final = 1024 * 1024
JOBS_MAX: Final = 1000
DEPTH_MAX: Final = 8
"""How deep a file may be nested, the stream and the document themselves counted."""

_INTEGER: Final = re.compile(r"-?(?:0|[1-9]\d{0,18})")
_FLOAT: Final = re.compile(r"-?(?:0|[1-9]\d{0,18})\.\d{1,19}")
_PLAIN: Final = {"true": True, "false": False, "null": None, "~": None, "": None}
_AT: Final = re.compile(r"`\$\.?(?P<path>[^`]*)`")
_UNKNOWN: Final = re.compile(r"unknown field `(?P<field>[^`]*)`")


class FileError(RejectedError):
    """What is wrong in a file, and where: `job.yaml:7`."""

    def __init__(self, reason: Reason, where: str) -> None:
        super().__init__(reason)
        self.where = where


class Document(NamedTuple):
    """One job of a file as plain values, and the line of each of its fields."""

    values: Any
    line: int
    lines: Mapping[str, int]


class Draft(NamedTuple):
    """A job of a file that is in order by itself, and where it stands."""

    job: JobFile
    where: str
    document: Document


def read_jobs(text: str, name: str) -> list[Draft]:
    """The jobs of a file by its text; the end of its name says which language it is written in."""
    if len(text) > FILE_BYTES_MAX:
        raise FileError(Reason(Code.TOO_LARGE, name, needed=len(text), available=FILE_BYTES_MAX), name)
    documents = list(_documents(text, name))
    if not documents:
        raise FileError(Reason(Code.BAD_FILE, name, detail="there is no job in it"), name)
    if len(documents) > JOBS_MAX:
        raise FileError(Reason(Code.TOO_LARGE, "the list of jobs", needed=len(documents), available=JOBS_MAX), name)
    return [_draft(document, name) for document in documents]


def make_specs(drafts: list[Draft], *, here: str, now_ms: int) -> list[Spec]:
    """What each job asks for, checked as far as that can be done without a server. A job that others of the file are to
    run after stands for them with its place in the file, counted from 1."""
    numbers: dict[str, int] = {}
    taken_twice: set[str] = set()
    specs = []
    for place, draft in enumerate(drafts, start=1):
        _check_names(draft, taken_twice)
        specs.append(make_one(draft, here=here, now_ms=now_ms, numbers=numbers))
        if draft.job.name in numbers:
            taken_twice.add(draft.job.name)
        if draft.job.name:
            numbers[draft.job.name] = place
    return specs


def _check_names(draft: Draft, taken_twice: Container[str]) -> None:
    """Raise if it is to run after a name that several jobs above it have: it would run before some of them are over."""
    for when in When:
        for named in jobs_of(draft.job, when):
            if str(named) in taken_twice:
                detail = f"several jobs above it in the file are called {named!r}"
                raise FileError(Reason(Code.BAD_FILE, when.value, detail=detail), _where(draft, when.value))


def make_one(draft: Draft, *, here: str, now_ms: int, numbers: Mapping[str, int]) -> Spec:
    """One job's spec; whatever is wrong with it is said with its line."""
    try:
        spec = make_spec(draft.job, here=here, now_ms=now_ms, numbers=numbers)
    except FieldError as error:
        reason = Reason(Code.BAD_FILE, error.field, detail=str(error))
        raise FileError(reason, _where(draft, error.field)) from error
    fault = find_fault(spec if spec.tenant else give_tenant(spec, DEFAULT_TENANT))  # the server may choose another
    if fault is not None:
        raise FileError(fault, _where(draft, field_of(fault.subject)))
    return spec


def place_of(draft: Draft) -> str:
    """Where a job begins: `jobs.yaml:7`."""
    return f"{draft.where}:{draft.document.line}"


def _where(draft: Draft, field: str) -> str:
    return f"{draft.where}:{draft.document.lines.get(field, draft.document.line)}"


def _draft(document: Document, name: str) -> Draft:
    try:
        return Draft(msgspec.convert(document.values, JobFile), name, document)
    except msgspec.ValidationError as error:
        words = str(error)
        unknown, at = _UNKNOWN.search(words), _AT.search(words)
        path = at["path"] if at else ""
        if unknown:
            line = document.lines.get(unknown["field"], document.line)
            raise FileError(_unknown_field(unknown["field"]), f"{name}:{line}") from None
        field = re.split(r"[.\[]", path)[0]
        detail = words.partition(" - at ")[0]
        line = document.lines.get(path, document.lines.get(field, document.line))
        raise FileError(Reason(Code.BAD_FILE, path or "job", detail=detail), f"{name}:{line}") from None


def _unknown_field(field: str) -> Reason:
    near = get_close_matches(field.replace("-", "_"), JobFile.__struct_fields__, n=1, cutoff=0.6)
    fix = f"did you mean {near[0]}?" if near else "`muster submit --schema` lists what a job may say"
    return Reason(Code.UNKNOWN_FIELD, field[:80], detail=fix)


def _documents(text: str, name: str) -> Iterator[Document]:
    if name.endswith(".toml"):
        return _toml_documents(text, name)
    return _json_documents(text, name) if name.endswith(".json") else _yaml_documents(text, name)


def _json_documents(text: str, name: str) -> Iterator[Document]:
    """One job, or a list of them. YAML reads nearly all of JSON, so it is asked where the fields stand."""
    try:
        values = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        byte = re.search(r"byte (\d+)", str(error))
        line = text.encode()[: int(byte[1])].count(b"\n") + 1 if byte else 1
        raise _bad(name, str(error), line) from None
    jobs = values if isinstance(values, list) else [values]
    try:
        places = list(_yaml_documents(text, name))
    except FileError:
        places = []
    for at, job in enumerate(jobs):
        yield places[at]._replace(values=job) if len(places) == len(jobs) else Document(job, 1, {})


def _toml_documents(text: str, name: str) -> Iterator[Document]:
    import tomllib

    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"line (\d+)", str(error))
        raise _bad(name, str(error), int(line[1]) if line else 1) from None
    heads = [number for number, row in enumerate(text.splitlines(), 1) if row.strip().startswith("[[job]]")]
    jobs = values.get("job")
    if not (heads and isinstance(jobs, list) and len(values) == 1):
        yield Document(values, 1, _toml_lines(text, 1, len(text)))
        return
    for job, start, end in zip(jobs, heads, [*heads[1:], len(text)], strict=False):
        yield Document(job, start, _toml_lines(text, start, end))


def _toml_lines(text: str, start: int, end: int) -> dict[str, int]:
    """Where each key is set, between two lines."""
    found: dict[str, int] = {}
    for number, row in enumerate(text.splitlines(), 1):
        key = re.match(r'\s*"?([\w.-]+)"?\s*=', row)
        if key and start <= number < end:
            found.setdefault(key[1], number)
    return found


def _yaml_documents(text: str, name: str) -> Iterator[Document]:
    import yaml  # type: ignore[import-untyped]  # the package brings no types; only its nodes are looked at

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_depth(yaml.parse(text, Loader=loader), name)
        for node in yaml.compose_all(text, Loader=loader):
            if node is not None and (node.id != "scalar" or node.value):
                yield from _split(node, name)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _bad(name, error.problem or str(error), mark.line + 1 if mark else 1) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise _bad(name, str(error).partition("\n")[0], 1) from None


def _check_depth(events: Iterator[Any], name: str) -> None:
    """Before nodes are made of them: those are made by a recursion that a deep file would bring down."""
    depth = 0
    for event in events:
        kind = type(event).__name__
        depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        if depth > DEPTH_MAX:
            raise _bad(name, "it is nested too deeply", _line(event))


def _split(node: Any, name: str) -> Iterator[Document]:
    """A document is a job, or a list of jobs."""
    parts = node.value if node.id == "sequence" else [node]
    for part in parts:
        if part.id != "mapping":
            raise _bad(name, "a job is a mapping of fields, such as `command: python train.py`", _line(part))
        lines: dict[str, int] = {}
        yield Document(_value(part, "", lines, name, set()), _line(part), lines)


def _value(node: Any, path: str, lines: dict[str, int], name: str, seen: set[int]) -> Any:
    """A node as plain values; `lines` learns where each path stands, `seen` which nodes there were."""
    lines.setdefault(path, _line(node))
    if id(node) in seen:
        raise _bad(name, "an alias is not taken here; write it out", _line(node))
    seen.add(id(node))
    if node.id == "scalar":
        return _scalar(node)
    if node.id == "sequence":
        return [_value(each, f"{path}[{at}]", lines, name, seen) for at, each in enumerate(node.value)]
    values: dict[str, Any] = {}
    for key, each in node.value:
        word = key.value if key.id == "scalar" else ""
        if not word or word in values:
            raise _bad(name, f"{word} is said twice" if word else "a key must be a word", _line(key))
        inner = f"{path}.{word}" if path else word
        lines[inner] = _line(key)
        values[word] = _value(each, inner, lines, name, seen)
    return values


def _scalar(node: Any) -> Any:
    """As JSON has it: what is quoted is text, and so is whatever is no number, true, false or null."""
    text: str = node.value
    if node.style:
        return text
    if text in _PLAIN:
        return _PLAIN[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _line(node: Any) -> int:
    line: int = node.start_mark.line
    return line + 1


def _bad(name: str, detail: str, line: int) -> FileError:
    return FileError(Reason(Code.BAD_FILE, name, detail=detail), f"{name}:{line}")
