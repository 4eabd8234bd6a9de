"""A job as people write it: in a file, with the words and amounts that `muster run` takes as flags.

The one way from such words to a Spec; the command line's flags, job files and imported Slurm scripts all come through
here, so that none of them knows a field that another does not. It reads no file and no clock: the directory and the
instant it stands on are handed in.
"""

from __future__ import annotations

import os.path
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec.structs import replace

from muster.model.after import After, When
from muster.model.group import Group
from muster.model.spec import Needs, Spec
from muster.model.tier import STANDARD
from muster.units import (
    AmountError,
    Resources,
    parse_bytes,
    parse_count,
    parse_cpus,
    parse_duration,
    parse_gpus,
    parse_instant,
    parse_sides,
    parse_width,
)

T = TypeVar("T")

RESTART: Final = "restart"
IN_PLACE: Final = "in-place"
SHELL: Final = ("/bin/sh",)
SHELLS: Final = ("sh", "bash", "dash", "ash", "ksh", "zsh")
_INLINE: Final = {
    **dict.fromkeys(SHELLS, "-c"),
    **dict.fromkeys(("python", "python3"), "-c"),
    **dict.fromkeys(("perl", "ruby", "node", "Rscript"), "-e"),
}
"""Which flag of an interpreter takes a program as text."""

Amount = int | float | str
Words = list[str] | str
Jobs = list[int | str] | int | str


def _says(words: str) -> msgspec.Meta:
    return msgspec.Meta(description=words)


class GroupFile(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """So many tasks of a gang that ask for the same, and what they run if it is not the job's command."""

    tasks: Annotated[Amount, _says("How many tasks the group has.")] = 1
    gpus: Annotated[Amount, _says("GPUs per task: whole ones.")] = 0
    cpus: Annotated[Amount, _says("CPUs per task: 2, 0.5 or 500m.")] = 1
    memory: Annotated[Amount, _says("Memory per task: 64Gi or 500M.")] = 0
    disk: Annotated[Amount, _says("Disk per task: 100Gi.")] = 0
    command: Annotated[Words, _says("What its tasks run instead; one text is split as a shell would.")] = []


class JobFile(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A job. Each field is a flag of `muster run`, with _ for -; one that may be repeated there is a list here."""

    command: Annotated[Words, _says("The words to run; one text is split as a shell would, but no shell runs it.")] = []
    script: Annotated[str, _says("A program instead of a command; its first line may name an interpreter.")] = ""
    args: Annotated[list[str], _says("What the script is called with.")] = []
    name: Annotated[str, _says("A name to find it by.")] = ""
    tenant: Annotated[str, _says("Who pays; left out, `default`, or the only one that is yours.")] = ""
    gpus: Annotated[Amount, _says("GPUs per task: 8, or 0.5 for a share of one.")] = 0
    partition: Annotated[str, _says("One partition of this name, of one device, per task: see `muster flavors`.")] = ""
    cpus: Annotated[Amount, _says("CPUs per task: 2, 0.5 or 500m.")] = 1
    memory: Annotated[Amount, _says("Memory per task: 64Gi or 500M.")] = 0
    disk: Annotated[Amount, _says("Disk per task: 100Gi.")] = 0
    gang: Annotated[Amount | None, _says("So many tasks, all at once or not at all; 2-8: at least, at most.")] = None
    group: Annotated[
        dict[str, GroupFile] | list[str],
        _says("Groups of one gang by name, each with its own ask: 1 driver, 4 workers."),
    ] = {}
    elastic: Annotated[str, _says("How it gets another width, or another node: restart (a new run), or in-place.")] = ""
    spares: Annotated[Amount, _says("So many places more, kept idle for tasks of the gang that lose their node.")] = 0
    array: Annotated[Amount, _says("So many independent tasks.")] = 0
    at_most: Annotated[Amount, _says("So many tasks of the array at once; 0 is as many as there is room for.")] = 0
    flavor: Annotated[Words, _says("On this kind of node; more are tried in their order.")] = []
    any_flavor: Annotated[bool, _says("The flavors are equals: whichever is best.")] = False
    within: Annotated[str, _says("The whole gang in one rack, block, cluster or region.")] = ""
    near: Annotated[str, _says("Rather in one rack or block, if there is room.")] = ""
    spread: Annotated[str, _says("No two tasks of the gang in one node, rack or block.")] = ""
    spread_most: Annotated[int, _says("So many tasks at most, where spread says.")] = 1
    slice: Annotated[str, _says("Every slice_tasks tasks together in one node, rack or block.")] = ""
    slice_tasks: Annotated[int, _says("How many tasks a slice has.")] = 1
    shape: Annotated[str, _says("The gang in a box of a torus, as 4x4x2, one task on each node.")] = ""
    apart: Annotated[Words, _says("On no node where the tenant's job of that name is.")] = []
    apart_level: Annotated[str, _says("... in no rack, block or cluster.")] = "node"
    beside: Annotated[Words, _says("Only on nodes where the tenant's job of that name is.")] = []
    beside_level: Annotated[str, _says("... in one rack, block or cluster with it.")] = "node"
    like: Annotated[str, _says("Work of this kind: of flavors that are equals, the fastest for it comes first.")] = ""
    data: Annotated[Words, _says("Reads this dataset: the cluster that is nearest to it comes first.")] = []
    booking: Annotated[str, _says("On the nodes of a booking, in its windows.")] = ""
    label: Annotated[Words, _says("Only on nodes with this label: zone=a, zone!=b or zone.")] = []
    tolerate: Annotated[Words, _says("May use nodes with this taint.")] = []
    tier: Annotated[str, _says("Its class of service.")] = STANDARD
    priority: Annotated[int, _says("Before the tenant's other jobs: -1000 to 1000.")] = 0
    limit: Annotated[Amount | None, _says("End it after 90s, 1h30m or 2d.")] = None
    expect: Annotated[
        Amount | None, _says("It will take so long, as far as you know: 90s, 1h30m or 2d. Nobody is stopped by that.")
    ] = None
    yields: Annotated[
        bool, _says("Give way when it expects to end, if somebody is due; until then it may use places kept for them.")
    ] = False
    grace: Annotated[Amount, _says("Between being told to stop and being killed.")] = "10s"
    signal: Annotated[str, _says("Told to stop by this signal, if a process of it handles it: USR1.")] = ""
    due: Annotated[
        Amount | None, _says("Be over by then: 2h (from now), or 2026-11-15 14:05 (UTC unless it says).")
    ] = None
    retries: Annotated[Amount, _says("Try again so often if it fails.")] = 0
    no_evict: Annotated[bool, _says("Never evict it: it starts only inside its tenant's guarantee.")] = False
    after: Annotated[Jobs, _says("After these jobs got a place: numbers, or names of jobs above it in the file.")] = []
    afterok: Annotated[Jobs, _says("After these jobs succeeded; if one does not, it ends.")] = []
    afterany: Annotated[Jobs, _says("After these jobs are over.")] = []
    afternotok: Annotated[Jobs, _says("After these jobs failed or were cancelled.")] = []
    aftercorr: Annotated[Jobs, _says("Each task of an array after its like in these succeeded.")] = []
    hold: Annotated[bool, _says("Do not start it before `muster release`.")] = False
    env: Annotated[dict[str, str | int], _says("Variables that it gets.")] = {}
    image: Annotated[str, _says("In a container of this image, by podman or docker.")] = ""
    notify: Annotated[
        list[str], _says("Who is told of its end, and if it has to make room: routes of the server's.")
    ] = []
    workdir: Annotated[str, _says("Where it runs: by default where it is submitted; else from the file's place.")] = ""


class FieldError(AmountError):
    """A field holds what cannot be read; `field` is its name in the file."""

    def __init__(self, field: str, words: str) -> None:
        super().__init__(words)
        self.field = field


FIELDS_OF_SPEC: Final = {
    "limit_ms": "limit",
    "expect_ms": "expect",
    "grace_ms": "grace",
    "stop_signal": "signal",
    "due_at": "due",
    "held": "hold",
    "evictable": "no_evict",
    "ask": "cpus",
    "ask.gpus": "gpus",
    "ask.gpu_milli": "gpus",
    "ask.cpu_milli": "cpus",
    "ask.memory_bytes": "memory",
    "ask.disk_bytes": "disk",
    "needs.flavors": "flavor",
    "needs.groups": "group",
    "commands": "group",
    "needs.labels": "label",
    "needs.tolerates": "tolerate",
}
"""Where a fault of the spec is in the file, if it is called something else there."""


def field_of(subject: str) -> str:
    """The field of the file that a fault of its spec is about."""
    return FIELDS_OF_SPEC.get(subject, subject.rpartition(".")[2])


def make_spec(job: JobFile, *, here: str, now_ms: int, numbers: Mapping[str, int] | None = None) -> Spec:
    """The spec that the words mean; FieldError if one cannot be read. `numbers` are those of jobs that may be named."""
    groups = _groups(job)
    sides: tuple[int, ...] = _read("shape", parse_sides, job.shape) if job.shape else ()
    least, most = _width(job, sides, groups)
    return Spec(
        command=_command(job),
        name=job.name,
        tenant=job.tenant,
        image=job.image,
        notify=tuple(job.notify),
        gang=least,
        gang_most=most,
        in_place=_is_in_place(job.elastic),
        spares=_count("spares", job.spares),
        array=_count("array", job.array),
        at_most=_count("at_most", job.at_most),
        ask=_ask(replace(job, gpus=1) if job.partition and job.gpus in (0, "0") else job),
        env={name: str(value) for name, value in job.env.items()},
        workdir=os.path.normpath(os.path.join(here, job.workdir)),  # noqa: PTH118 - text alone; no file is looked at
        limit_ms=None if job.limit is None else _read("limit", parse_duration, job.limit),
        expect_ms=None if job.expect is None else _read("expect", parse_duration, job.expect),
        yields=job.yields,
        grace_ms=_read("grace", parse_duration, job.grace),
        stop_signal=job.signal.upper().removeprefix("SIG"),
        due_at=None if job.due is None else _read("due", lambda text: parse_instant(text, now_ms), job.due),
        retries=_count("retries", job.retries),
        needs=_needs(job, sides, tuple(groups)),
        evictable=not job.no_evict,
        tier=job.tier,
        priority=job.priority,
        held=job.hold,
        after=tuple(_afters(job, numbers)),
        commands={name: _split("group", each.command) for name, each in _group_files(job).items() if each.command},
    )


def _ask(job: JobFile | GroupFile) -> Resources:
    whole, share = _read("gpus", parse_gpus, job.gpus)
    return Resources(
        whole,
        _read("cpus", parse_cpus, job.cpus),
        _read("memory", parse_bytes, job.memory),
        share,
        disk_bytes=_read("disk", parse_bytes, job.disk),
    )


def _width(job: JobFile, sides: tuple[int, ...], groups: list[Group]) -> tuple[int, int]:
    """As many tasks as are asked for, as fill the box, or as the groups have; and the most, of an elastic gang."""
    if job.gang is not None:
        least, most = _read("gang", parse_width, job.gang)
        return least, most or (least if job.elastic == IN_PLACE else 0)
    return sum(group.tasks for group in groups) if groups else prod(sides), 0


def _groups(job: JobFile) -> list[Group]:
    return [Group(name, _count("group", each.tasks), _ask(each)) for name, each in _group_files(job).items()]


def _group_files(job: JobFile) -> dict[str, GroupFile]:
    """Groups as a file has them; on the command line each is one text: worker:4:gpus=8,cpus=16."""
    if isinstance(job.group, dict):
        return job.group
    pairs = [_parse_group(text) for text in job.group]
    if len(dict(pairs)) < len(pairs):
        raise FieldError("group", "two groups have one name")
    return dict(pairs)


def _parse_group(text: str) -> tuple[str, GroupFile]:
    name, _, rest = text.partition(":")
    tasks, _, amounts = rest.partition(":")
    pairs = [pair.partition("=") for pair in amounts.split(",") if pair]
    fields = {key: value for key, _, value in pairs}
    known = ("gpus", "cpus", "memory", "disk")
    if not name or not tasks or any(not mark or key not in known for key, mark, _ in pairs):
        raise FieldError(
            "group", f"group {text!r} is not NAME:TASKS:AMOUNTS such as worker:4:gpus=8,cpus=16,memory=64Gi"
        )
    return name, GroupFile(tasks, **fields)


def _needs(job: JobFile, sides: tuple[int, ...], groups: tuple[Group, ...]) -> Needs:
    return Needs(
        flavors=_words(job.flavor),
        any_flavor=job.any_flavor,
        within=job.within,
        near=job.near,
        spread=job.spread,
        spread_most=job.spread_most,
        slice=job.slice,
        slice_tasks=job.slice_tasks,
        labels=_words(job.label),
        tolerates=_words(job.tolerate),
        shape=sides,
        apart=tuple(_qualify(job.tenant, name) for name in _words(job.apart)),
        apart_level=job.apart_level,
        beside=tuple(_qualify(job.tenant, name) for name in _words(job.beside)),
        beside_level=job.beside_level,
        like=job.like,
        data=_words(job.data),
        booking=job.booking,
        groups=groups,
        partition=job.partition,
    )


def read_job(job: Spec | JobFile, *, here: str, now_ms: int) -> Spec:
    """A job as people write it in Python, as the server reads it. What it holds was checked by nobody yet."""
    if isinstance(job, Spec):
        return job
    if not isinstance(job, JobFile):
        raise TypeError(f"a job is a muster.Job, such as muster.Job('python train.py', gpus=8), not {job!r}")
    try:
        checked = msgspec.convert(msgspec.to_builtins(job, enc_hook=os.fspath), JobFile)
        return make_spec(checked, here=here, now_ms=now_ms)
    except msgspec.ValidationError as error:
        raise TypeError(f"muster.Job: {error}") from error
    except FieldError as error:
        raise FieldError(error.field, f"{error.field}: {error}") from error


def _read(field: str, parse: Callable[[str], T], value: Amount) -> T:
    try:
        return parse(str(value))
    except AmountError as error:
        raise FieldError(field, str(error)) from error


def _is_in_place(word: str) -> bool:
    if word not in ("", RESTART, IN_PLACE):
        raise FieldError("elastic", f"{word!r} is not one of {RESTART}, {IN_PLACE}")
    return word == IN_PLACE


def _count(field: str, value: Amount) -> int:
    return _read(field, lambda text: parse_count(text, field), value)


def _words(value: Words) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _qualify(tenant: str, name: str) -> str:
    """A job as needs name it."""
    return name if name.startswith(f"{tenant}/") else f"{tenant}/{name}"


def named_in(job: JobFile) -> Iterator[int | str]:
    """The jobs that it is to run after, as it names them."""
    return (named for when in When for named in jobs_of(job, when))


def _afters(job: JobFile, numbers: Mapping[str, int] | None) -> Iterator[After]:
    return (After(_number(when.value, named, numbers), when) for when in When for named in jobs_of(job, when))


def jobs_of(job: JobFile, when: When) -> Sequence[int | str]:
    """Those that it is to run after in this way, by number or name."""
    value: Jobs = getattr(job, when.value)
    return value if isinstance(value, list) else [value]


def _number(field: str, job: int | str, numbers: Mapping[str, int] | None) -> int:
    """A job by its number or, in a file, by its name; only those above it have one, so none wait for each other."""
    if numbers is not None and job in numbers:
        return numbers[str(job)]
    if isinstance(job, str) and not job.isdigit() and numbers is not None:
        names = f"there are {', '.join(sorted(numbers))}" if numbers else "there is none"
        raise FieldError(field, f"{job!r} is no job above it in the file: {names}")
    return _count(field, job)


def _command(job: JobFile) -> tuple[str, ...]:
    if job.script:
        if job.command:
            raise FieldError("script", "a job has a command or a script, not both")
        return script_command(job.script, job.name or "script", job.args)
    if job.args:
        raise FieldError("args", "args are for a script; put them into the command")
    return _split("command", job.command)


def _split(field: str, command: Words) -> tuple[str, ...]:
    if not isinstance(command, str):
        return tuple(command)
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise FieldError(field, f"{command[:40]!r} cannot be split into words: {error}") from None


def script_command(text: str, name: str, args: list[str]) -> tuple[str, ...]:
    """A program as the words that run it: its text travels with the job, so that nobody changes it on the way."""
    words, flag = split_script(text)
    zero = (name,) if words[0].rpartition("/")[2] in SHELLS else ()
    return (*words, flag, text, *zero, *args)


def split_script(text: str) -> tuple[tuple[str, ...], str]:
    """The words of a program's interpreter, and its flag that takes a program as text."""
    words = _interpreter(text)
    program = words[0].rpartition("/")[2]
    flag = _INLINE.get(program) or _INLINE.get(program.rstrip("0123456789."))
    if flag is None:
        known = ", ".join(_INLINE)
        raise FieldError("script", f"how {program} takes a program as text is not known here, only that of {known}")
    return words, flag


def _interpreter(text: str) -> tuple[str, ...]:
    """The words of the first line that names one; `env` only looks for it, as this system does anyway."""
    first = text.partition("\n")[0]
    if not first.startswith("#!"):
        return SHELL
    words = first[2:].split()
    if words and words[0].endswith("/env"):
        words = [word for word in words[1:] if word != "-S"]
    if not words:
        raise FieldError("script", f"its first line names no interpreter: {first[:40]!r}")
    return tuple(words)
