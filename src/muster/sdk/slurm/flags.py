"""Every flag of sbatch: how it is written, and what becomes of it here. A table, and the reader of words by it.

A flag is *mapped*, or *left out* (the job runs without it, and that is said), or *needed* (a job without it would be
wrong, so the script is refused). What a mapped one means is `muster.sdk.slurm.mapping`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason


class Takes(enum.Enum):
    """Whether a flag has a value."""

    NOTHING = "nothing"
    VALUE = "value"
    MAYBE = "maybe"


class Fate(enum.Enum):
    """What becomes of a flag."""

    MAPPED = "mapped"
    LEFT_OUT = "left out"
    NEEDED = "refused"


class Flag(NamedTuple):
    """A flag by its long name; `words` says what it becomes, or why it becomes nothing."""

    name: str
    short: str
    takes: Takes
    fate: Fate
    words: str


class Said(NamedTuple):
    """A flag as somebody wrote it, and where."""

    name: str
    value: str
    where: str


_NO, _ONE, _MAYBE = Takes.NOTHING, Takes.VALUE, Takes.MAYBE
_MAPPED, _OUT, _NEEDED = Fate.MAPPED, Fate.LEFT_OUT, Fate.NEEDED

FLAGS: Final = (
    Flag("account", "A", _ONE, _MAPPED, "`tenant`"),
    Flag("acctg-freq", "", _ONE, _OUT, "nothing is sampled here"),
    Flag("array", "a", _ONE, _MAPPED, "`array`; the indexes are in SLURM_ARRAY_TASK_ID; a `%` limit is `at_most`"),
    Flag("batch", "", _ONE, _OUT, "there is no node for the script alone"),
    Flag("bb", "", _ONE, _OUT, "there are no burst buffers"),
    Flag("bbf", "", _ONE, _OUT, "there are no burst buffers"),
    Flag("begin", "b", _ONE, _NEEDED, "a job cannot be told to start later; submit it then"),
    Flag("chdir", "D", _ONE, _MAPPED, "`workdir`"),
    Flag("cluster-constraint", "", _ONE, _OUT, "use `within` and `label`"),
    Flag("clusters", "M", _ONE, _OUT, "there is one queue; use `label` for where it runs"),
    Flag("comment", "", _ONE, _OUT, "a job has no comment"),
    Flag("consolidate-segments", "", _NO, _OUT, "use `slice`"),
    Flag("constraint", "C", _ONE, _MAPPED, "`label`, for names joined by `&` or `,`; other forms are refused"),
    Flag("container", "", _ONE, _NEEDED, "the script runs as it is on the node"),
    Flag("container-id", "", _ONE, _NEEDED, "the script runs as it is on the node"),
    Flag("contiguous", "", _NO, _OUT, "use `within`; the tightest place is taken anyway"),
    Flag("core-spec", "S", _ONE, _OUT, "cores are not told apart"),
    Flag("cores-per-socket", "", _ONE, _OUT, "sockets are not told apart"),
    Flag("cpu-freq", "", _ONE, _OUT, "frequencies are left alone"),
    Flag("cpus-per-gpu", "", _ONE, _MAPPED, "part of `cpus`"),
    Flag("cpus-per-task", "c", _ONE, _MAPPED, "part of `cpus`"),
    Flag("deadline", "", _ONE, _MAPPED, "`due`, for a date such as 2026-11-15T14:05"),
    Flag("delay-boot", "", _ONE, _OUT, "nodes are not booted"),
    Flag(
        "dependency",
        "d",
        _ONE,
        _MAPPED,
        "`after`, `afterok`, `afterany`, `afternotok`, `aftercorr`; other kinds, `+TIME` and `JOB_TASK` are refused",
    ),
    Flag("distribution", "m", _ONE, _OUT, "tasks of a node stay together"),
    Flag("error", "e", _ONE, _MAPPED, "the same file, and `muster logs`"),
    Flag("exclude", "x", _ONE, _OUT, "use `label` with `!=`"),
    Flag("exclusive", "", _MAYBE, _OUT, "ask for all of a node's CPUs and GPUs"),
    Flag("export", "", _ONE, _MAPPED, "`env`; without it, only what programs are found by (see below)"),
    Flag("export-file", "", _ONE, _OUT, "use `--export` or `env`"),
    Flag("extra", "", _ONE, _OUT, "use `label`"),
    Flag("extra-node-info", "B", _ONE, _OUT, "sockets are not told apart"),
    Flag("get-user-env", "", _MAYBE, _OUT, "no login shell is run; use `#!/bin/bash -l`"),
    Flag("gid", "", _ONE, _NEEDED, "a job runs as the server does"),
    Flag("gpu-bind", "", _ONE, _OUT, "each task sees its GPUs alone"),
    Flag("gpu-freq", "", _ONE, _OUT, "frequencies are left alone"),
    Flag("gpus", "G", _ONE, _MAPPED, "`gpus`, divided over the nodes; a type is a `flavor`"),
    Flag("gpus-per-node", "", _ONE, _MAPPED, "`gpus`; a type is a `flavor`"),
    Flag("gpus-per-socket", "", _ONE, _OUT, "sockets are not told apart"),
    Flag("gpus-per-task", "", _ONE, _MAPPED, "part of `gpus`; a type is a `flavor`"),
    Flag("gres", "", _ONE, _MAPPED, "`gpus`, for `gpu:8` and `gpu:h100:8`; what is no GPU is left out"),
    Flag("gres-flags", "", _ONE, _OUT, "GPUs are handed out whole"),
    Flag("help", "h", _NO, _MAPPED, "this help"),
    Flag("hint", "", _ONE, _OUT, "threads are not told apart"),
    Flag("hold", "H", _NO, _MAPPED, "`hold`"),
    Flag("ignore-pbs", "", _NO, _MAPPED, "so it is: `#PBS` lines are comments"),
    Flag("input", "i", _ONE, _MAPPED, "the script reads that file"),
    Flag("job-name", "J", _ONE, _MAPPED, "`name`; what no name may have becomes `-`"),
    Flag("kill-on-invalid-dep", "", _ONE, _MAPPED, "so it is: a job whose condition can never be met ends"),
    Flag("licenses", "L", _ONE, _OUT, "licences are not counted"),
    Flag("mail-type", "", _ONE, _OUT, "no mail is sent"),
    Flag("mail-user", "", _ONE, _OUT, "no mail is sent"),
    Flag("mcs-label", "", _ONE, _OUT, "use `tenant`"),
    Flag("mem", "", _ONE, _MAPPED, "`memory`, per node; 0 (all of it) is left out"),
    Flag("mem-bind", "", _ONE, _OUT, "memory is not bound"),
    Flag("mem-per-cpu", "", _ONE, _MAPPED, "part of `memory`"),
    Flag("mem-per-gpu", "", _ONE, _MAPPED, "part of `memory`"),
    Flag("mincpus", "", _ONE, _MAPPED, "at least so many `cpus`"),
    Flag("network", "", _ONE, _OUT, "networks are not set up"),
    Flag("nice", "", _MAYBE, _MAPPED, "`priority`, turned round"),
    Flag("no-kill", "k", _MAYBE, _OUT, "a gang that loses a node is tried again as a whole"),
    Flag("no-requeue", "", _NO, _OUT, "what loses its node waits again"),
    Flag("nodefile", "F", _ONE, _OUT, "use `label`"),
    Flag("nodelist", "w", _ONE, _OUT, "use `label`"),
    Flag("nodes", "N", _ONE, _MAPPED, "`gang`, spread over nodes; of a range, the least"),
    Flag("ntasks", "n", _ONE, _MAPPED, "what `srun` starts; part of `cpus` and `gpus`"),
    Flag("ntasks-per-core", "", _ONE, _OUT, "cores are not told apart"),
    Flag("ntasks-per-gpu", "", _ONE, _MAPPED, "as many tasks as that makes"),
    Flag("ntasks-per-node", "", _ONE, _MAPPED, "what `srun` starts on a node"),
    Flag("ntasks-per-socket", "", _ONE, _OUT, "sockets are not told apart"),
    Flag("oom-kill-step", "", _MAYBE, _OUT, "the kernel decides"),
    Flag("open-mode", "", _ONE, _MAPPED, "whether the output files are begun anew"),
    Flag("output", "o", _ONE, _MAPPED, "the same file, and `muster logs`"),
    Flag("overcommit", "O", _NO, _OUT, "ask for fewer CPUs, such as `cpus: 0.5`"),
    Flag("oversubscribe", "s", _NO, _OUT, "ask for a share, such as `gpus: 0.5`"),
    Flag("parsable", "", _NO, _MAPPED, "only the number is printed"),
    Flag("partition", "p", _ONE, _OUT, "say what it stands for with `--flavor`, `--tier` or `--label`"),
    Flag("prefer", "", _ONE, _OUT, "use `flavor` for a first and a second choice"),
    Flag("priority", "", _ONE, _OUT, "use `priority` or `tier`"),
    Flag("profile", "", _ONE, _OUT, "nothing is sampled here"),
    Flag("propagate", "", _MAYBE, _OUT, "limits are the server's"),
    Flag("qos", "q", _ONE, _OUT, "say what it stands for with `--tier`"),
    Flag("quiet", "Q", _NO, _MAPPED, "nothing is printed"),
    Flag("reboot", "", _NO, _OUT, "nodes are not booted"),
    Flag("requeue", "", _MAYBE, _MAPPED, "so it is: what loses its node waits again"),
    Flag("reservation", "", _ONE, _NEEDED, "say which booking it stands for, or take the flag out"),
    Flag("resources", "", _ONE, _OUT, "use `label`"),
    Flag("resv-ports", "", _MAYBE, _OUT, "MASTER_PORT is set for a gang"),
    Flag("segment", "", _ONE, _OUT, "use `slice`"),
    Flag("signal", "", _ONE, _MAPPED, "`signal` and `grace`: at every end, and not at the limit alone"),
    Flag("sockets-per-node", "", _ONE, _OUT, "sockets are not told apart"),
    Flag("spread-job", "", _NO, _OUT, "use `spread`"),
    Flag("spread-segments", "", _NO, _OUT, "use `slice`"),
    Flag("stepmgr", "", _NO, _OUT, "there are no steps"),
    Flag("switches", "", _ONE, _OUT, "use `within: rack` or `near: rack`"),
    Flag("test-only", "", _NO, _MAPPED, "`--dry-run`"),
    Flag("thread-spec", "", _ONE, _OUT, "threads are not told apart"),
    Flag("threads-per-core", "", _ONE, _OUT, "threads are not told apart"),
    Flag("time", "t", _ONE, _MAPPED, "`limit`; for arrays, that of each task"),
    Flag("time-min", "", _ONE, _OUT, "`limit` is the only one"),
    Flag("tmp", "", _ONE, _MAPPED, "`disk`"),
    Flag("tres-bind", "", _ONE, _OUT, "each task sees its GPUs alone"),
    Flag("tres-per-task", "", _ONE, _NEEDED, "use `--gpus-per-task` and `--cpus-per-task`"),
    Flag("uid", "", _ONE, _NEEDED, "a job runs as the server does"),
    Flag("usage", "", _NO, _MAPPED, "this help"),
    Flag("use-min-nodes", "", _NO, _MAPPED, "so it is: of a range, the least"),
    Flag("verbose", "v", _NO, _MAPPED, "what is left out is always said"),
    Flag("version", "V", _NO, _MAPPED, "the version"),
    Flag("wait", "W", _NO, _MAPPED, "it waits, and leaves with the job's exit code"),
    Flag("wait-all-nodes", "", _ONE, _MAPPED, "so it is: a gang starts as a whole"),
    Flag("wckey", "", _ONE, _OUT, "use `tenant`"),
    Flag("wrap", "", _ONE, _MAPPED, "`script`"),
)
BY_NAME: Final = {flag.name: flag for flag in FLAGS}
BY_LETTER: Final = {flag.short: flag for flag in FLAGS if flag.short}
HET_WORDS: Final = ("hetjob", "packjob")
"""What begins another part of a heterogeneous job, in a line of its own; on a command line it is a colon."""
_OLD: Final = {"share": "oversubscribe", "workdir": "chdir", "tasks-per-node": "ntasks-per-node", "gpu": "gpus"}
"""What was a flag once, or is one for `srun` alone, and is still written."""


def read_flags(words: Iterable[str], where: str) -> tuple[list[Said], list[str]]:
    """The flags among words, as getopt takes them, and from the first that is none on, the rest."""
    left = list(words)
    said: list[Said] = []
    while left and left[0].startswith("-") and left[0] != "-":
        word = left.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            said.append(_complete(_find_long(name, where), value if equals else None, left, where))
        else:
            said += _read_letters(word[1:], left, where)
    return said, left


def _read_letters(letters: str, left: list[str], where: str) -> Iterator[Said]:
    """`-n4`, `-n 4`, or several in one word, of which the last may have a value."""
    while letters:
        letter, letters = letters[0], letters[1:]
        flag = BY_LETTER.get(letter)
        if flag is None:
            raise bad_flag(f"-{letter}", "sbatch has no such flag", where)
        if flag.takes == Takes.VALUE and letters:
            yield Said(flag.name, letters.removeprefix("="), where)
            return
        yield _complete(flag, None, left, where)


def _complete(flag: Flag, value: str | None, left: list[str], where: str) -> Said:
    if value is not None and flag.takes == Takes.NOTHING:
        raise bad_flag(f"--{flag.name}", f"it takes no value, and has {value[:40]!r}", where)
    if value is None and flag.takes == Takes.VALUE:
        if not left:
            raise bad_flag(f"--{flag.name}", "its value is missing", where)
        value = left.pop(0)
    return Said(flag.name, value or "", where)


def _find_long(name: str, where: str) -> Flag:
    """By its whole name, or by as much of it as is enough."""
    name = _OLD.get(name, name)
    if name in BY_NAME:
        return BY_NAME[name]
    begun = [flag for flag in FLAGS if flag.name.startswith(name)] if name else []
    if len(begun) == 1:
        return begun[0]
    many = f"it may be any of {', '.join(flag.name for flag in begun)}" if begun else "sbatch has no such flag"
    raise bad_flag(f"--{name[:40]}", many, where)


class ScriptError(RejectedError):
    """What of a Slurm script cannot be taken, and where it stands."""

    def __init__(self, reason: Reason, where: str) -> None:
        super().__init__(reason)
        self.where = where


def bad_flag(subject: str, detail: str, where: str) -> ScriptError:
    """A flag that cannot be read."""
    return ScriptError(Reason(Code.BAD_SBATCH, subject, detail=detail), where)


def needed_flag(said: Said, words: str) -> ScriptError:
    """A flag without which the job would be wrong."""
    return ScriptError(Reason(Code.UNMAPPED, f"--{said.name}", detail=words), said.where)


def het_job(word: str, where: str) -> ScriptError:
    """A job of several parts that are not alike, which begins with this word."""
    words = "the parts of a heterogeneous job are jobs of their own here; or write a job file with `group`"
    return ScriptError(Reason(Code.UNMAPPED, word, detail=words), where)
