"""Flags of sbatch: all of them are in the table and in the guide, and are read as getopt and Slurm read them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.reason import Code
from muster.sdk.slurm.amounts import read_bytes, read_gpus, read_indexes, read_seconds, read_signal
from muster.sdk.slurm.flags import FLAGS, Fate, ScriptError, Takes, read_flags
from muster.sdk.slurm.mapping import Import, import_script
from muster.sdk.slurm.script import read_script
from muster.units import AmountError

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "from-slurm.md"

# The options that the manual page of sbatch lists (Slurm 25.11), and what only it knew before.
OF_SBATCH = """
account acctg-freq array batch bb bbf begin chdir cluster-constraint clusters comment consolidate-segments constraint
container container-id contiguous core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot
dependency distribution error exclude exclusive export export-file extra extra-node-info get-user-env gid gpu-bind
gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags help hint hold ignore-pbs input job-name
kill-on-invalid-dep licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus network nice
no-kill no-requeue nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket
oom-kill-step open-mode output overcommit oversubscribe parsable partition prefer priority profile propagate qos quiet
reboot requeue reservation resources resv-ports segment signal sockets-per-node spread-job spread-segments stepmgr
switches test-only thread-spec threads-per-core time time-min tmp tres-bind tres-per-task uid usage use-min-nodes
verbose version wait wait-all-nodes wckey wrap
"""


def imported(*lines: str, words: tuple[str, ...] = (), env: dict[str, str] | None = None) -> Import:
    text = "\n".join(["#!/bin/bash", *(f"#SBATCH {line}" for line in lines), "true", ""])
    said = [*read_script(text, "x.sh"), *read_flags(words, "the command line")[0]]
    return import_script(text, "x.sh", said, args=[], env=env or {}, here="/here")


def test_every_flag_of_sbatch_is_in_the_table() -> None:
    assert [flag.name for flag in FLAGS] == OF_SBATCH.split()
    assert len({flag.short for flag in FLAGS if flag.short}) == sum(bool(flag.short) for flag in FLAGS)


def test_the_guide_says_of_every_flag_what_becomes_of_it() -> None:
    rows = re.findall(
        r"^\| `--([a-z-]+)`(?:, `-(\w)`)? \| (mapped|left out|refused) \| (.+) \|$", GUIDE.read_text(), re.M
    )
    fates = {Fate.MAPPED: "mapped", Fate.LEFT_OUT: "left out", Fate.NEEDED: "refused"}
    assert rows == [(flag.name, flag.short, fates[flag.fate], flag.words) for flag in FLAGS]


@pytest.mark.parametrize("flag", [flag for flag in FLAGS if flag.fate != Fate.MAPPED], ids=lambda flag: flag.name)
def test_what_is_not_mapped_is_named_or_refused(flag: Any) -> None:
    line = f"--{flag.name}" + ("=x" if flag.takes == Takes.VALUE else "")
    if flag.fate == Fate.NEEDED:
        with pytest.raises(ScriptError) as caught:
            imported(line)
        assert (caught.value.reason.code, caught.value.where) == (Code.UNMAPPED, "x.sh:2")
    else:
        assert [(note.flag, note.where) for note in imported(line).notes] == [(line, "x.sh:2")]


@pytest.mark.parametrize(
    ("lines", "fields"),
    [
        (["--nodes=4 --ntasks-per-node=8 --cpus-per-task=2"], {"gang": 4, "spread": "node", "cpus": 16}),
        (["-N 2-4", "-n4"], {"gang": 2, "cpus": 2}),
        (["-n 8"], {"gang": None, "cpus": 8}),
        (["--ntasks=8 --ntasks-per-node=4"], {"gang": 2, "cpus": 4}),
        (["--gres=gpu:h100:8"], {"gpus": 8, "flavor": ["h100"]}),
        (["--gres gpu"], {"gpus": 1}),
        (["--gres=gpu:a100"], {"gpus": 1, "flavor": ["a100"]}),
        (["--gres=gpu:a100:2(S:0,1)"], {"gpus": 2, "flavor": ["a100"]}),
        (["--gres=gpu:a100:2,shard:1"], {"gpus": 2, "flavor": ["a100"]}),
        (["--gres=tmpfs:10G,gpu:4"], {"gpus": 4}),
        (["-G 16 -N 2"], {"gpus": 8, "gang": 2}),
        (["--gpus-per-task=2 --ntasks=3"], {"gpus": 6, "cpus": 3}),
        (["--gpus-per-node=4 --cpus-per-gpu=8 --mem-per-gpu=10G"], {"gpus": 4, "cpus": 32, "memory": "40Gi"}),
        (["--mem-per-cpu=2000 -c 4"], {"memory": "8000Mi"}),
        (["--mem=64G --tmp=1T"], {"memory": "64Gi", "disk": "1Ti"}),
        (["--time=1-02:30"], {"limit": "95400s"}),
        (["--array=1-9:2%3"], {"array": 5, "at_most": 3, "limit": None}),
        (["--array=1-9", "-t 10"], {"array": 9, "limit": "600s"}),
        (["--dependency=afterok:3:4,afterany:5"], {"afterok": [3, 4], "afterany": [5]}),
        (["-C 'zone1&big'"], {"label": ["zone1", "big"]}),
        (["-J 'my job!' -A vision"], {"name": "my-job-", "tenant": "vision"}),
        (["-H --nice=50"], {"hold": True, "priority": -50}),
        (["-D /data", "--deadline=2026-11-15T14:05"], {"workdir": "/data", "due": "2026-11-15T14:05"}),
        (["--job-na=x"], {"name": "x"}),
        (['--comment="a # b" # --hold'], {"hold": False}),
    ],
)  # fmt: skip
def test_mapped_flags_become_fields(lines: list[str], fields: dict[str, Any]) -> None:
    job = imported(*lines).job
    assert {field: getattr(job, field) for field in fields} == fields


def test_the_command_line_beats_the_script_and_a_later_line_an_earlier_one() -> None:
    assert imported("-n 2", "-n 3", "-A a", words=("--account", "b")).job.cpus == 3
    assert imported("-A a", words=("--account", "b")).job.tenant == "b"


@pytest.mark.parametrize(
    ("lines", "where", "words"),
    [
        (["--nodse=2"], "x.sh:2", "no such flag"),
        (["--no=2"], "x.sh:2", "any of no-kill, no-requeue, nodefile"),
        (["-n 2", "--time=soon"], "x.sh:3", "'soon' is not a time"),
        (["--mem=lots"], "x.sh:2", "'lots' is not a size"),
        (["--array=9-1"], "x.sh:2", "'9-1' has no index"),
        (["--array=0-9999999"], "x.sh:2", "or more than"),
        (["--hold=1"], "x.sh:2", "takes no value"),
        (["--time"], "x.sh:2", "value is missing"),
        (["-y"], "x.sh:2", "no such flag"),
        (["--comment='x"], "x.sh:2", "No closing quotation"),
        (["job"], "x.sh:2", "not a flag"),
        (["-n 1", "hetjob", "-n 2"], "x.sh:3", "heterogeneous job"),
        (["--gres=gpu:a100:x"], "x.sh:2", "'gpu:a100:x' is not a number of GPUs"),
        (["--gres=gpu:a100:1,gpu:h100:1"], "x.sh:2", "one kind"),
        (["--gpus=a100:1,h100:1"], "x.sh:2", "one kind"),
        (["-G 3 -N 2"], "x.sh:2", "evenly"),
        (["--dependency=singleton"], "x.sh:2", "'singleton' is not one of"),
        (["--dependency=afterok:1?afterok:2"], "x.sh:2", "all of them"),
        (["--dependency=after:1+5"], "x.sh:2", "minutes after a start"),
        (["--dependency=afterok:7:1_3"], "x.sh:2", "one task of an array"),
        (["--constraint=[a|b]"], "x.sh:2", "joined by &"),
        (["--array=1-3 --nodes=2"], "x.sh:2", "one node each"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(lines: list[str], where: str, words: str) -> None:
    with pytest.raises(ScriptError) as caught:
        imported(*lines)
    assert caught.value.where == where
    assert words in caught.value.reason.detail


def test_what_else_is_asked_for_beside_gpus_is_named() -> None:
    [note] = imported("--gres=tmpfs:10G,gpu:4,shard:1").notes
    assert note.flag == "--gres=tmpfs:10G,gpu:4,shard:1"
    assert "tmpfs:10G, shard:1:" in note.words


def test_what_a_job_file_cannot_say_of_files_is_named_for_it_alone() -> None:
    found = imported("--output=out.%j -e err.%j --input=data --open-mode=append")
    assert not found.notes
    assert [note.flag for note in found.plain_notes] == ["--output=out.%j", "--error=err.%j", "--input=data"]
    assert not imported("-n 1").plain_notes


def test_secrets_of_the_shell_stay_there_unless_the_script_says_so() -> None:
    env = {"PATH": "/bin", "AWS_SECRET": "s", "MUSTER_HOME": "h", "MINE": "m"}
    assert {"PATH"} == set(imported(env=env).job.env) & set(env)
    assert {"PATH", "AWS_SECRET", "MINE"} == set(imported("--export=ALL", env=env).job.env) & set(env)
    assert not set(imported("--export=NONE", env=env).job.env) & set(env)
    job = imported("--export=MINE,A=b", env=env).job
    assert (job.env["MINE"], job.env["A"], "PATH" in job.env) == ("m", "b", False)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 1800), ("30:15", 1815), ("1:00:00", 3600), ("2-3", 183_600), ("1-0:30", 88_200), ("0", None)],
)
def test_times(text: str, seconds: int | None) -> None:
    assert read_seconds(text) == seconds


def test_sizes_gpus_and_indexes() -> None:
    assert [read_bytes(text) for text in ("1", "1K", "2g", "3GB")] == [2**20, 2**10, 2**31, 3 * 2**30]
    assert [read_gpus(text) for text in ("8", "a100:4", "gpu:2", "gpu:a100:1")] == [
        *(("", 8), ("a100", 4), ("", 2), ("a100", 1)),
    ]
    assert read_indexes("1,5,9-11%2") == ((1, 5, 9, 10, 11), 2)
    assert (read_indexes("1,5,9-11").step, read_indexes("0-8:4").step, read_indexes("7").step) == (0, 4, 1)
    with pytest.raises(AmountError):
        read_gpus("mps:100%")


@settings(derandomize=True, max_examples=80, deadline=None)
@given(line=st.text(st.characters(blacklist_characters="\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=60))
def test_any_line_is_read_or_refused_with_its_place(line: str) -> None:
    where = ""
    try:
        imported(line)
    except ScriptError as error:
        where = error.where
    assert where in ("", "x.sh:2")


@pytest.mark.parametrize(
    ("text", "name", "before_s"),
    [("USR1@120", "USR1", 120), ("B:SIGTERM", "TERM", 60), ("10", "USR1", 60), ("RB:usr2@5", "USR2", 5)],
)
def test_signals_as_slurm_writes_them(text: str, name: str, before_s: int) -> None:
    assert read_signal(text) == (name, before_s)


@pytest.mark.parametrize("text", ["KILL@9", "9", "USR1@", "@60", "USR1@soon", ""])
def test_other_signals_are_refused(text: str) -> None:
    with pytest.raises(AmountError, match="USR1"):
        read_signal(text)
