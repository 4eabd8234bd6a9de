"""A batch script: its text, its `#SBATCH` lines, and the words that run it here as Slurm would have run it.

The text is not changed but for its first line, which names the interpreter; it travels as one argument, and whatever
somebody put into a flag travels as a variable or as a quoted word. Nothing is ever pasted into shell text unquoted.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.sdk.jobfile import SHELLS, split_script
from muster.sdk.slurm.amounts import Indexes
from muster.sdk.slurm.flags import HET_WORDS, Said, bad_flag, het_job, read_flags

MARK: Final = "#SBATCH"
PRELUDE: Final = "SBATCH_PRELUDE"
"""The variable that brings `srun` into a shell script; its first line takes it from there."""

SRUN: Final = r"""
srun() (
  n=$SLURM_NTASKS
  while [ $# -gt 0 ]; do
    case "$1" in
      --) shift; break ;;
      -n|--ntasks) n=$2; shift 2 ;;
      -n?*) n=${1#-n}; shift ;;
      --ntasks=*) n=${1#*=}; shift ;;
      --*=*) shift ;;
      --contiguous|--disable-status|--exact|--exclusive|--hold|--immediate|--interactive|--kill-on-bad-exit) shift ;;
      --label|--no-allocate|--no-kill|--overcommit|--overlap|--oversubscribe|--preserve-env|--pty|--quiet) shift ;;
      --reboot|--spread-job|--unbuffered|--use-min-nodes|--verbose|--wait-for-children|--whole) shift ;;
      --*) shift 2 ;;
      -[EHIKOQXZklsuv]*) shift ;;
      -?) shift 2 ;;
      -?*) shift ;;
      *) break ;;
    esac
  done
  here=$(( (n + SLURM_NNODES - 1) / SLURM_NNODES ))
  code=0 pids= i=0
  while [ $i -lt $here ]; do
    SLURM_LOCALID=$i SLURM_PROCID=$((SLURM_NODEID * here + i)) SLURM_NTASKS=$n "$@" &
    pids="$pids $!" i=$((i + 1))
  done
  for pid in $pids; do
    wait $pid; one=$?
    [ $one -gt $code ] && code=$one
  done
  exit $code
)
"""
"""`srun COMMAND` in a script: this node's part of it, each task with its number. Of its own flags only -n is obeyed."""

_IGNORE: Final = "TERM INT HUP USR1 USR2"
_PATTERN: Final = re.compile(r"%(\d*)([%AaJjNnstuxb])|%")
_VARIABLES: Final = {
    "A": "SLURM_ARRAY_JOB_ID",
    "a": "SLURM_ARRAY_TASK_ID",
    "J": "SLURM_JOB_ID",
    "j": "SLURM_JOB_ID",
    "N": "HOSTNAME",
    "n": "SLURM_NODEID",
    "s": "SLURM_STEP_ID",
    "t": "SLURM_PROCID",
    "u": "USER",
    "x": "SLURM_JOB_NAME",
}


def check_script(text: str, name: str) -> None:
    """Raise unless a text looks like a batch script; Slurm takes no other, so whoever gives one meant another file."""
    if not text.strip():
        raise RejectedError(Reason(Code.BAD_FILE, name, detail="there is no script in it"))
    if not text.startswith("#!"):
        words = "it is no batch script: the first line of one is #! and what runs it, such as #!/bin/bash"
        raise RejectedError(Reason(Code.BAD_FILE, name, detail=words))


def read_script(text: str, name: str) -> Iterator[Said]:
    """The flags in the `#SBATCH` lines before the first command."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            return
        if re.match(rf"{MARK}\s", line):
            where = f"{name}:{number}"
            said, rest = read_flags(_words(line[len(MARK) :], where), where)
            if rest and rest[0] in HET_WORDS:
                raise het_job(rest[0], where)
            if rest:
                raise bad_flag(rest[0][:40], "not a flag of sbatch", where)
            yield from said


def _words(line: str, where: str) -> list[str]:
    """Words as a shell would split them; a word that begins with # begins a comment."""
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        for word in lexer:
            if word.startswith("#"):
                break
            words.append(word)
    except ValueError as error:
        raise bad_flag(line.strip()[:40], str(error), where) from None
    return words


def make_command(text: str, name: str, args: Sequence[str], wrapper: str) -> tuple[str, ...]:
    """The words that run the script inside its wrapper."""
    interpreter, flag = split_script(text)
    is_shell = interpreter[0].rpartition("/")[2] in SHELLS
    if is_shell:
        rest = text.partition("\n")[2] if text.startswith("#!") else text
        text = f'eval "${PRELUDE}"\n{rest}'
    zero = (name,) if is_shell else ()
    return ("/bin/sh", "-c", wrapper, name, *interpreter, flag, text, *zero, *args)


def find_script(command: Sequence[str], env: Collection[str]) -> str:
    """The name of the script that these words run, if `make_command` made them; else empty."""
    return command[3] if PRELUDE in env else ""


def make_wrapper(*, output: str, error: str, source: str, append: bool, indexes: Indexes | None, tasks: int) -> str:
    """The shell text around a script: variables that only the run knows, and its output in files as well."""
    lines = [
        'export SLURM_JOB_ID="$MUSTER_JOB" SLURM_JOBID="$MUSTER_JOB" SLURM_NODEID="${NODE_RANK:-0}"',
        'export SLURM_PROCID="$((SLURM_NODEID * SLURM_TASKS_HERE))" SLURM_LOCALID=0 SLURM_STEP_ID=batch',
        'export SLURM_RESTART_COUNT="$((MUSTER_EPOCH - 1))" HOSTNAME="${HOSTNAME:-$(uname -n)}"',
    ]
    if indexes is not None:
        lines.append(f'export SLURM_ARRAY_JOB_ID="$MUSTER_JOB" SLURM_ARRAY_TASK_ID="{_index(indexes)}"')
    if source:
        lines.append(f"exec < {spell_pattern(source)}")
    lines.append(f"out={spell_pattern(output)}; err={spell_pattern(error) if error else ''}")
    if not append and tasks == 1:
        lines.append(': > "$out"; if [ -n "$err" ]; then : > "$err"; fi')
    deaf = f"trap : {_IGNORE}"
    errors = f'{{ {{ {deaf}; "$@" 2>&1 1>&5 3>&- 4>&-; echo $? >&3; }} | keep "$err" >&4; }} 5>&1 | keep "$out" >&4'
    alone = f'{{ {deaf}; "$@" 2>&1 3>&- 4>&-; echo $? >&3; }} | keep "$out" >&4'
    lines += [
        f"keep() {{ trap '' {_IGNORE}; exec tee -a -- \"$1\"; }}",
        deaf,
        "exec 4>&1",
        f'if [ -n "$err" ]; then code=$({deaf}; {{ {errors}; }} 3>&1); else code=$({deaf}; {{ {alone}; }} 3>&1); fi',
        'exit "${code:-1}"',
    ]
    return "\n".join(lines)


def _index(indexes: Indexes) -> str:
    if indexes.step:
        return f"$(({indexes.values[0]} + {indexes.step} * MUSTER_TASK))"
    listed = " ".join(map(str, indexes.values))
    return f"$(echo {listed} | cut -d ' ' -f $((MUSTER_TASK + 1)))"


def spell_pattern(pattern: str) -> str:
    """A file name with %j and the like as one shell word: what is text is quoted, what is a number is filled in."""
    if pattern == "none":
        return "/dev/null"
    parts: list[str] = []
    at = 0
    for found in _PATTERN.finditer(pattern):
        parts.append(shlex.quote(pattern[at : found.start()]) if found.start() > at else "")
        parts.append(_fill(found[1] or "", found[2] or "%"))
        at = found.end()
    parts.append(shlex.quote(pattern[at:]) if at < len(pattern) else "")
    return "".join(parts) or "''"


def _fill(width: str, letter: str) -> str:
    if letter == "%":
        return "%"
    if letter == "b":
        return '"$((SLURM_ARRAY_TASK_ID % 10))"'
    name = _VARIABLES[letter]
    if width and letter in "AaJjnt":
        return f'"$(printf %0{min(int(width), 10)}d "${name}")"'
    return f'"${{{name}}}"'
