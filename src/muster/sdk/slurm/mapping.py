"""What flags of sbatch mean for a job: from what was said to a job file, and the notes on what was left out.

Slurm allocates nodes and runs the script once; here a job is a gang with one task per node. So amounts are added up to
what one node must have, the script runs once on each node, and `srun` in it starts that node's part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from typing import Any, Final, NamedTuple, TypeVar

from muster.model.tier import PRIORITY_MAX
from muster.sdk.jobfile import JobFile
from muster.sdk.slurm.amounts import (
    Indexes,
    read_bytes,
    read_count,
    read_gpus,
    read_gres,
    read_indexes,
    read_seconds,
    read_signal,
)
from muster.sdk.slurm.flags import BY_NAME, Fate, Said, bad_flag, needed_flag
from muster.sdk.slurm.script import PRELUDE, SRUN, make_command, make_wrapper
from muster.units import AmountError, spell_bytes

T = TypeVar("T")

HANDED_ON: Final = (
    *("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "MODULEPATH"),
    *("LOADEDMODULES", "LANG", "LC_ALL", "TMPDIR"),
)
"""Of the submitter's variables, those by which programs are found. The rest may hold secrets, and a job is kept for
long: it is handed on only if the script says so."""
NEVER: Final = ("MUSTER_", "SLURM_", "BASH_FUNC")
_KINDS: Final = ("after", "afterok", "afterany", "afternotok", "aftercorr")
ONE_KIND: Final = "a task has GPUs of one kind; `--flavor` may name several to choose from"
_NOT_A_JOB: Final = re.compile(r"\d+(?:_\d+|\+\d+)+")
_FEATURES: Final = re.compile(r"[\w.@/-]+(?:[&,][\w.@/-]+)*")
_NOT_NAME: Final = re.compile(r"[^A-Za-z0-9._@/-]")


_FILES: Final = "`muster logs` has it; the file is written for `muster sbatch` alone"
_BY_THE_WRAPPER: Final = {
    "output": _FILES,
    "error": _FILES,
    "input": "it is read for `muster sbatch` alone; write `exec < FILE` into the script",
}
"""Flags that are no fields of a job: what runs around the script does what they say."""


class Note(NamedTuple):
    """Something of the script that the job does without, and why."""

    flag: str
    words: str
    where: str


class Import(NamedTuple):
    """A script as a job that runs as it would have under Slurm, the same as one would write it here, what was left out
    of both, what the second is without besides, and which flags were said."""

    job: JobFile
    plain: JobFile
    notes: list[Note]
    plain_notes: list[Note]
    asked: frozenset[str]


class Layout(NamedTuple):
    """How many nodes, how many tasks `srun` starts in all and on each, and what a node must have."""

    nodes: int
    tasks: int
    here: int
    gpus: int
    kind: str
    cpus: int
    memory_bytes: int


def import_script(
    text: str, name: str, said: Sequence[Said], *, args: Sequence[str], env: Mapping[str, str], here: str
) -> Import:
    """The job that a script means under these flags, of which a later one beats an earlier one. `env` is the
    submitter's environment, `here` the directory it is submitted in."""
    return _Reader(said).read(text, name, args, env, here)


class _Reader:
    """Reads one script's flags; what it cannot use it notes."""

    def __init__(self, said: Sequence[Said]) -> None:
        self._said = {one.name: one for one in said}
        self.notes: list[Note] = []

    def read(self, text: str, name: str, args: Sequence[str], env: Mapping[str, str], here: str) -> Import:
        self._check_fates()
        indexes = self._value("array", read_indexes)
        layout = self._layout(is_array=indexes is not None)
        limit_s = self._value("time", read_seconds)
        wrapper = self._wrapper(indexes, layout.nodes)
        fields: dict[str, Any] = {
            "command": list(make_command(self._text("wrap") or text, name, args, wrapper)),
            "name": self._name(name),
            "tenant": self._text("account"),
            "gpus": layout.gpus,
            "cpus": layout.cpus,
            "memory": spell_bytes(layout.memory_bytes) if layout.memory_bytes else 0,
            "disk": spell_bytes(self._value("tmp", read_bytes) or 0) if "tmp" in self._said else 0,
            "gang": layout.nodes if layout.nodes > 1 else None,
            "spread": "node" if layout.nodes > 1 else "",
            "array": 0 if indexes is None else len(indexes.values),
            "at_most": 0 if indexes is None else indexes.at_once,
            "flavor": [layout.kind] if layout.kind else [],
            "label": self._labels(),
            "limit": None if limit_s is None else f"{limit_s}s",
            **self._ending(),
            "due": self._text("deadline") or None,
            "priority": self._priority(),
            "hold": "hold" in self._said,
            "workdir": self._text("chdir") or here,
            "env": {**self._environment(env), **_variables(self._name(name), layout, indexes, here)},
            **self._afters(),
        }
        own = {"command": [], "env": self._exported(env), "workdir": self._text("chdir")}
        plain = JobFile(**{**fields, **own}, script=self._text("wrap") or text, args=list(args))
        apart = [self._describe(each, words) for each, words in _BY_THE_WRAPPER.items() if each in self._said]
        return Import(JobFile(**fields), plain, self.notes, apart, frozenset(self._said))

    def _check_fates(self) -> None:
        for one in self._said.values():
            flag = BY_NAME[one.name]
            if flag.fate == Fate.NEEDED:
                raise needed_flag(one, flag.words)
            if flag.fate == Fate.LEFT_OUT:
                self._note(one.name, flag.words)

    def _note(self, name: str, words: str) -> None:
        self.notes.append(self._describe(name, words))

    def _describe(self, name: str, words: str) -> Note:
        one = self._said[name]
        return Note(f"--{name}{'=' if one.value else ''}{one.value}", words, one.where)

    def _text(self, name: str) -> str:
        one = self._said.get(name)
        return "" if one is None else one.value

    def _value(self, name: str, read: Callable[[str], T]) -> T | None:
        """A flag's value, read; None if it was not said."""
        one = self._said.get(name)
        if one is None:
            return None
        try:
            return read(one.value)
        except AmountError as error:
            raise bad_flag(f"--{name}", str(error), one.where) from None

    def _ending(self) -> dict[str, str]:
        """By which signal it is told to end, and how long before."""
        asked = self._value("signal", read_signal)
        return {} if asked is None else {"signal": asked.name, "grace": f"{asked.before_s}s"}

    def _count(self, name: str) -> int:
        return self._value(name, read_count) or 0

    def _layout(self, *, is_array: bool) -> Layout:
        per_node, tasks = self._count("ntasks-per-node"), self._count("ntasks")
        nodes = self._value("nodes", lambda text: read_count(text.partition("-")[0])) or 0
        if not nodes:
            nodes = ceil(tasks / per_node) if tasks and per_node else 1
        if nodes > 1 and is_array:
            raise needed_flag(self._said["nodes"], "the tasks of an array have one node each")
        kind, whole, each = self._gpus(nodes)
        tasks = tasks or nodes * (per_node or 1)
        if whole and "ntasks-per-gpu" in self._said and "ntasks" not in self._said:
            tasks = nodes * whole * self._count("ntasks-per-gpu")
        here = per_node or ceil(tasks / nodes)
        gpus = whole or each * here
        cpus = max(here * max(1, self._count("cpus-per-task")), gpus * self._count("cpus-per-gpu"))
        cpus = max(cpus, self._count("mincpus"))
        return Layout(nodes, tasks, here, gpus, kind, cpus, self._memory(cpus, gpus))

    def _gpus(self, nodes: int) -> tuple[str, int, int]:
        """The kind, how many on a node, and how many for each task, whichever was said."""
        kind, whole, each = "", 0, 0
        for found in (self._gres(), self._kind_of_gpus("gpus-per-node")):
            kind, whole = found or (kind, whole)
        found = self._kind_of_gpus("gpus-per-task")
        kind, each = found or (kind, each)
        found = self._kind_of_gpus("gpus")
        if found is not None and not whole and not each:
            kind, total = found
            if total % nodes:
                raise bad_flag(
                    "--gpus", f"{total} cannot be divided evenly over {nodes} nodes", self._said["gpus"].where
                )
            whole = total // nodes
        return kind, whole, each

    def _gres(self) -> tuple[str, int] | None:
        """The GPUs among what was asked for by that flag; what else it names is noted."""
        found = self._value("gres", read_gres)
        if found is None:
            return None
        if found.others:
            self._note("gres", f"of it {', '.join(found.others)}: only GPUs are known by that name")
        if len(found.gpus) > 1:
            raise needed_flag(self._said["gres"], ONE_KIND)
        return found.gpus[0] if found.gpus else None

    def _kind_of_gpus(self, name: str) -> tuple[str, int] | None:
        """A kind and how many, if the flag was said."""
        if "," in self._text(name):
            raise needed_flag(self._said[name], ONE_KIND)
        return self._value(name, read_gpus)

    def _memory(self, cpus: int, gpus: int) -> int:
        if "mem" in self._said and self._text("mem") == "0":
            self._note("mem", "all of a node's memory cannot be asked for; say how much")
            return 0
        per_cpu, per_gpu = self._value("mem-per-cpu", read_bytes) or 0, self._value("mem-per-gpu", read_bytes) or 0
        return self._value("mem", read_bytes) or per_cpu * cpus or per_gpu * gpus

    def _name(self, script: str) -> str:
        text = self._text("job-name") or ("wrap" if "wrap" in self._said else script.rpartition("/")[2])
        return _NOT_NAME.sub("-", text).lstrip("._@/-")[:128]

    def _labels(self) -> list[str]:
        text = self._text("constraint")
        if text and not _FEATURES.fullmatch(text):
            raise needed_flag(self._said["constraint"], "only names joined by & can be asked for")
        return re.split("[&,]", text) if text else []

    def _priority(self) -> int:
        if "nice" not in self._said:
            return 0
        text = self._text("nice") or "100"
        number = self._value("nice", lambda _: read_count(text.removeprefix("-"))) or 0
        return max(-PRIORITY_MAX, min(PRIORITY_MAX, number if text.startswith("-") else -number))

    def _afters(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        text = self._text("dependency")
        for part in text.split(",") if text else ():
            kind, *jobs = part.split(":")
            if kind not in _KINDS or not jobs or "?" in part:
                words = f"{part[:40]!r} is not one of {', '.join(_KINDS)} with numbers of jobs, all of them to be met"
                raise needed_flag(self._said["dependency"], words)
            for job in filter(_NOT_A_JOB.fullmatch, jobs):
                words = f"{job[:40]!r}: a job waits neither for one task of an array nor for minutes after a start"
                raise needed_flag(self._said["dependency"], words)
            try:
                found.setdefault(kind, []).extend(map(read_count, jobs))
            except AmountError as error:
                raise bad_flag("--dependency", str(error), self._said["dependency"].where) from None
        return found

    def _environment(self, env: Mapping[str, str]) -> dict[str, str]:
        found = {} if "export" in self._said else {name: env[name] for name in HANDED_ON if name in env}
        return {**found, **self._exported(env)}

    def _exported(self, env: Mapping[str, str]) -> dict[str, str]:
        """What the script says shall be handed on; NONE and NIL are no variables."""
        kept: dict[str, str] = {}
        for word in self._text("export").split(","):
            name, equals, value = word.partition("=")
            if name == "ALL":
                kept |= {key: text for key, text in env.items() if not key.startswith(NEVER)}
            elif equals:
                kept[name] = value
            elif name in env:
                kept[name] = env[name]
        return kept

    def _wrapper(self, indexes: Indexes | None, tasks: int) -> str:
        default = "slurm-%j.out" if indexes is None else "slurm-%A_%a.out"
        return make_wrapper(
            output=self._text("output") or default,
            error=self._text("error"),
            source=self._text("input"),
            append=self._text("open-mode").startswith("a"),
            indexes=indexes,
            tasks=tasks,
        )


def _variables(name: str, layout: Layout, indexes: Indexes | None, here: str) -> dict[str, str]:
    """What a script may read that is known before it runs; its wrapper adds what is not."""
    found: dict[str, object] = {
        PRELUDE: SRUN,
        "SLURM_CLUSTER_NAME": "muster",
        "SLURM_CPUS_ON_NODE": layout.cpus,
        "SLURM_CPUS_PER_TASK": layout.cpus // layout.here,
        "SLURM_JOB_NAME": name,
        "SLURM_JOB_NUM_NODES": layout.nodes,
        "SLURM_NNODES": layout.nodes,
        "SLURM_NPROCS": layout.tasks,
        "SLURM_NTASKS": layout.tasks,
        "SLURM_NTASKS_PER_NODE": layout.here,
        "SLURM_SUBMIT_DIR": here,
        "SLURM_TASKS_HERE": layout.here,
    }
    if layout.gpus:
        found["SLURM_GPUS_ON_NODE"] = layout.gpus
    if indexes is not None:
        found["SLURM_ARRAY_TASK_COUNT"] = len(indexes.values)
        found["SLURM_ARRAY_TASK_MIN"], found["SLURM_ARRAY_TASK_MAX"] = min(indexes.values), max(indexes.values)
        found["SLURM_ARRAY_TASK_STEP"] = indexes.step or 1
    return {key: str(value) for key, value in found.items()}


def show_notes(notes: Iterable[Note]) -> list[str]:
    """A line for each flag that the job does without."""
    return [f"left out: {note.flag} ({note.where}): {note.words}" for note in notes]
