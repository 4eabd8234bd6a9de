"""The pure parts of the local engine: what will be executed, how it is reported, and how bytes become frames."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from muster.engines.local.book import LINES_SPARE, Book
from muster.engines.local.capacity import discover_capacity, discover_machine
from muster.engines.local.frames import FRAME_BYTES_MAX, Ack, Asked, Hello, Order, asked_inbox, encode_frame, told_inbox
from muster.engines.local.launch import marks_of, plan_launches, show_devices
from muster.engines.local.layout import Key, find_key, log_path
from muster.engines.local.processes import find_family, find_process, find_stat, signal_process
from muster.engines.local.ranges import CAUSE, RANGES_MAX, End, keys_of, merge_exited, merge_held, merge_started
from muster.model.again import Again
from muster.model.errors import EngineError
from muster.model.event import Exited, Held, Started
from muster.model.group import Group
from muster.model.instruction import NOT_SAVED, Forget, Start, Stop
from muster.model.partition import word_of
from muster.model.spec import Needs, Spec
from muster.units import Resources

ROOT = Path("/r")
OWN = {"PATH": "/bin", "HOME": "/users/me", "LD_PRELOAD": "evil.so", "TOKEN": "secret", "MUSTER_FAILPOINT": "x"}


def start(spec: Spec, nodes: list[str], counts: list[int], devices: list[int], first: int = 0) -> Start:
    return Start(7, 2, spec, first, nodes, counts, devices)


def test_a_task_gets_only_its_own_environment() -> None:
    spec = Spec(command=("train",), env={"PATH": "/srv/bin", "LR": "3", "MUSTER_JOB": "forged"})
    (launch,) = plan_launches(start(spec, ["a"], [1], [0]), "a", OWN, ROOT, range(20))
    assert launch.env == {
        "PATH": "/srv/bin",
        "HOME": "/users/me",
        "LR": "3",
        "MUSTER_ENGINE": "/r",
        "MUSTER_JOB": "7",
        "MUSTER_PLACE": "0",
        "MUSTER_TASK": "0",
        "MUSTER_EPOCH": "2",
        "MUSTER_TASKS": "1",
        "MUSTER_PROGRESS": "/r/progress/7.0.2",
        "CUDA_VISIBLE_DEVICES": "",
    }


def test_a_task_is_told_its_partition() -> None:
    #            device 2, slots 4 and 5 · device 0, whole
    words = {"2g.20gb": (word_of(2, 0b110000), Resources(0, 100, 0, 250)), "7g.80gb": (1, Resources(1, 100))}
    told = []
    for name, (word, ask) in words.items():
        order = start(Spec(("serve",), ask=ask, needs=Needs(partition=name)), ["a"], [1], [word])
        (launch,) = plan_launches(order, "a", {}, ROOT, range(20))
        told.append((launch.env["CUDA_VISIBLE_DEVICES"], launch.env["MUSTER_PARTITION"]))
    assert told == [("2", "2g.20gb@4"), ("0", "7g.80gb@0")]


def test_only_the_tasks_of_this_node_are_launched() -> None:
    # first = 10:   node a takes 10, 11    node b takes 12, 13, 14
    spec = Spec(command=("train",), array=20)
    order = start(spec, ["a", "b"], [2, 3], [0, 0], first=10)
    assert [launch.key.task for launch in plan_launches(order, "b", {}, ROOT, range(20))] == [12, 13, 14]


def test_who_starts_again_is_told_where_it_could_resume_and_each_task_has_a_file_of_its_own() -> None:
    order = Start(7, 2, Spec(("train",), array=20), 10, ["a", "b"], [1, 3], [0, 0], resumes=[3, 5, NOT_SAVED, 0])
    tasks = [launch.env for launch in plan_launches(order, "b", {}, ROOT, range(20))]
    assert [env.get("MUSTER_RESUME_STEP") for env in tasks] == ["5", None, "0"]
    assert [env["MUSTER_PROGRESS"] for env in tasks] == [f"/r/progress/7.{task}.2" for task in (11, 12, 13)]
    gang = Start(7, 2, Spec(("train",), gang=2), 0, ["a"], [2], [0], resumes=[4])
    ranks = [launch.env for launch in plan_launches(gang, "a", {}, ROOT, range(20))]
    assert [(env["MUSTER_RESUME_STEP"], env["MUSTER_PROGRESS"]) for env in ranks] == [("4", "/r/progress/7.0.2")] * 2


def test_a_task_that_runs_again_knows_itself_by_the_number_it_had() -> None:
    spec = Spec(("train",), array=3, again=Again(5, (4, 1, 9, 2), 20))
    names = ("MUSTER_PLACE", "MUSTER_TASK", "MUSTER_TASKS")
    launches = list(plan_launches(start(spec, ["a"], [2], [0], first=1), "a", {}, ROOT, range(20)))
    assert [[launch.env[name] for name in names] for launch in launches] == [["1", "9", "20"], ["2", "10", "20"]]
    for launch in launches:
        own = {f"{name}={value}".encode() for name, value in launch.env.items()}
        known = [key.task for key in (Key(7, 2, place) for place in range(20)) if marks_of(key, ROOT) <= own]
        assert known == [launch.key.task], "no other task is taken for it"


def test_ranks_of_a_gang_over_two_nodes() -> None:
    spec = Spec(command=("train",), gang=3, ask=Resources(gpus=2))
    order = start(spec, ["a", "b"], [1, 2], [0b11, 0b111100])
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "CUDA_VISIBLE_DEVICES", "MASTER_PORT")
    rows = [[launch.env[name] for name in names] for launch in plan_launches(order, "b", {}, ROOT, range(20))]
    assert rows == [["1", "3", "0", "2", "1", "2,3", "20007"], ["2", "3", "1", "2", "1", "4,5", "20007"]]


def test_a_gang_has_every_variable_that_torchrun_sets() -> None:
    spec = Spec(command=("train",), gang=2, retries=3)
    (launch,) = plan_launches(start(spec, ["a", "b"], [1, 1], [0, 0]), "b", {}, ROOT, range(20))
    wanted = {
        "RANK": "1",
        "LOCAL_RANK": "0",
        "GROUP_RANK": "1",
        "GROUP_WORLD_SIZE": "2",
        "ROLE_NAME": "default",
        "ROLE_RANK": "1",
        "ROLE_WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "1",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "TORCHELASTIC_RUN_ID": "7",
        "TORCHELASTIC_RESTART_COUNT": "1",
        "TORCHELASTIC_MAX_RESTARTS": "3",
    }
    assert {name: launch.env.get(name) for name in wanted} == wanted


def test_each_group_of_a_gang_has_its_command_its_devices_and_its_name() -> None:
    groups = (Group("driver", 1, Resources(0, 1000)), Group("worker", 2, Resources(2, 1000)))
    spec = Spec(("work",), gang=3, needs=Needs(groups=groups), commands={"driver": ("drive",)})
    order = start(spec, ["a", "a", "b"], [1, 1, 1], [0, 0b11, 0b1100])
    names = ("RANK", "MUSTER_GROUP", "MUSTER_GROUP_RANK", "MUSTER_GROUP_SIZE", "CUDA_VISIBLE_DEVICES")
    rows = [
        (launch.argv, *(launch.env[name] for name in names))
        for node in ("a", "b")
        for launch in plan_launches(order, node, {}, ROOT, range(20))
    ]
    assert rows == [
        (("drive",), "0", "driver", "0", "1", ""),
        (("work",), "1", "worker", "0", "2", "0,1"),
        (("work",), "2", "worker", "1", "2", "2,3"),
    ]


def test_a_relative_workdir_lies_in_the_home_directory() -> None:
    for workdir, wanted in (("", "/users/me"), ("work", "/users/me/work"), ("/data", "/data")):
        (launch,) = plan_launches(
            start(Spec(command=("x",), workdir=workdir), ["a"], [1], [0]), "a", OWN, ROOT, range(20)
        )
        assert launch.workdir == wanted


def test_devices_are_taken_lowest_first() -> None:
    assert [show_devices(0b101101, rank, 2) for rank in range(2)] == ["0,2", "3,5"]
    assert show_devices(0b11, 0, 0) == ""


def test_neighbours_become_ranges() -> None:
    keys = [Key(1, 1, 2), Key(1, 1, 0), Key(1, 1, 1), Key(1, 2, 3), Key(2, 1, 4)]
    assert merge_held(keys) == [Held(1, 1, 0, 3), Held(1, 2, 3, 1), Held(2, 1, 4, 1)]


def test_ends_are_merged_only_when_they_say_the_same() -> None:
    ends = [
        (Key(1, 1, task), End(code, note, 10 + task, 100 - task))
        for task, code, note in ((0, 0, ""), (1, 0, ""), (2, 1, ""), (3, 1, "x"))
    ]
    assert merge_exited(ends) == [
        Exited(1, 1, 0, 0, 2, "", CAUSE, 21, 100),
        Exited(1, 1, 1, 2, 1, "", CAUSE, 12, 98),
        Exited(1, 1, 1, 3, 1, "x", CAUSE, 13, 97),
    ]


def test_scattered_ends_are_one_event() -> None:
    ends = [(Key(1, 1, task), End(task % 2, "", 1, task)) for task in (9, 4, 0, 2, 3, 5, 6)]
    assert merge_exited(ends) == [
        Exited(1, 1, 0, 0, 1, "", CAUSE, 4, 6, [2, 1, 4, 1, 6, 1]),
        Exited(1, 1, 1, 3, 1, "", CAUSE, 3, 9, [5, 1, 9, 1]),
    ]
    assert merge_started(key for key, _ in ends) == [Started(1, 1, 0, 1, CAUSE, [2, 5, 9, 1])]


def test_an_event_is_of_so_many_ranges_at_most() -> None:
    ends = [(Key(1, 1, 2 * task), End(0, "", 1, task)) for task in range(RANGES_MAX + 2)]
    first, second = merge_exited(ends)
    assert (first.total, first.cpu_ms, first.rss_bytes) == (RANGES_MAX, RANGES_MAX, RANGES_MAX - 1)
    assert second == Exited(1, 1, 0, 2 * RANGES_MAX, 1, "", CAUSE, 2, RANGES_MAX + 1, [2 * RANGES_MAX + 2, 1])
    assert [event.total for event in merge_started(key for key, _ in ends)] == [RANGES_MAX, 2]


def test_what_is_to_be_forgotten_may_be_scattered() -> None:
    assert [key.task for key in keys_of(Forget(1, 1, 4, 2, [0, 1, 9, 2]))] == [4, 5, 0, 9, 10]
    assert [key.task for key in keys_of(Stop(1, 1, 4, 2, 100))] == [4, 5]


def test_frames_survive_any_cut() -> None:
    frames: list[Asked] = [Hello("n"), Order(1, Stop(1, 1, 0, 5, 100)), Order(2, Forget(1, 1, 0, 5))]
    data = b"".join(encode_frame(frame) for frame in frames)
    for size in (1, 2, 3, 7, len(data)):
        inbox = asked_inbox()
        got = [frame for at in range(0, len(data), size) for frame in inbox.feed(data[at : at + size])]
        assert got == frames


def test_a_frame_too_large_or_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(EngineError):
        list(asked_inbox().feed((FRAME_BYTES_MAX + 1).to_bytes(4, "big")))
    with pytest.raises(EngineError):
        list(told_inbox().feed(encode_frame(Hello("n"))))
    with pytest.raises(EngineError):
        list(asked_inbox().feed(encode_frame(Ack(1))))


def test_file_names_are_keys_and_back() -> None:
    assert find_key(Key(12, 3, 4).name) == Key(12, 3, 4)
    assert [find_key(name) for name in (".gone.1.2.3", "1.2", "1.2.x", "1.2.-3", "1.2.3.4", "1.2.³")] == [None] * 6
    assert log_path(Path("/r"), 12, 4, 3) == Path("/r/logs/12.4.3.log")


def test_a_stat_line_with_a_hostile_name() -> None:
    fields = b" ".join(str(number).encode() for number in range(4, 53))
    process = find_stat(b"42 (a) S 1 (b) S " + fields + b"\n")
    assert process is not None
    assert (process.pid, process.state, process.session, process.started) == (42, b"S", 6, 22)


def test_nobody_is_signalled_who_has_another_s_number() -> None:
    other = find_process(1)
    assert other is not None
    assert not signal_process(other._replace(started=other.started + 1), number=0)


def test_a_family_is_a_session_and_its_descendants() -> None:
    script = ["sh", "-c", "setsid sleep 600 & sleep 600 & wait"]
    with subprocess.Popen(script, start_new_session=True, stdin=subprocess.DEVNULL) as leader:
        give_up_at = time.monotonic() + 60
        is_whole = False
        while not is_whole and time.monotonic() < give_up_at:
            family = find_family({leader.pid})[leader.pid]
            is_whole = sorted(process.session == leader.pid for process in family) == [False, True]
        killed = [signal_process(process, signal.SIGKILL) for process in family]
        leader.kill()
    assert is_whole
    assert killed == [True, True]


def test_a_book_is_taken_over_as_it_was_left(tmp_path: Path) -> None:
    book = Book(tmp_path / "book", "now")
    keys = [Key(1, 1, task) for task in range(4)]
    book.begin(keys)
    book.end([(keys[1], End(7, "two\nlines", 12, 345)), (keys[2], End(0))])
    book.forget([keys[2]])
    again = Book(tmp_path / "book", "later")
    assert again.boot_before == "now"
    assert again.runs == {keys[0]: None, keys[1]: End(7, "two lines", 12, 345), keys[3]: None}
    assert Book(tmp_path / "book", "x").boot_before == "later"


@pytest.mark.parametrize(
    "scribble", [b"", b"x", b"+ 1.0.1", b"- 1.0.1 7", b"- 1.0.1 x 0 0 \n", b"+ a.b.c\n", b"\xff\n\n"]
)
def test_what_is_not_whole_in_a_book_counts_as_nothing(tmp_path: Path, scribble: bytes) -> None:
    (tmp_path / "book").write_bytes(b"now\n" + scribble)
    assert Book(tmp_path / "book", "now").runs == {}


def test_a_book_forgets_most_of_itself_in_time(tmp_path: Path) -> None:
    book = Book(tmp_path / "book", "now")
    for number in range(2 * LINES_SPARE):
        book.begin([Key(number, 1, 0)])
        book.end([(Key(number, 1, 0), End(0))])
        book.forget([Key(number, 1, 0)])
    assert (tmp_path / "book").read_bytes().count(b"\n") <= LINES_SPARE + 1
    assert Book(tmp_path / "book", "now").runs == {}


def fake_system(root: Path, group_limit: str) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text("MemTotal:       1024 kB\nMemFree: 1 kB\n")
    (root / "proc/self/cgroup").write_text("0::/top/ours\n")
    (root / "sys/fs/cgroup/top/ours").mkdir(parents=True)
    (root / "sys/fs/cgroup/top/ours/memory.max").write_text("max\n")
    (root / "sys/fs/cgroup/top/memory.max").write_text(group_limit)
    return root


@pytest.mark.parametrize(("limit", "memory"), [("max\n", 1024 * 1024), ("4096\n", 4096), ("9999999\n", 1024 * 1024)])
def test_memory_is_the_lowest_limit_on_the_way_up(tmp_path: Path, limit: str, memory: int) -> None:
    assert discover_capacity(fake_system(tmp_path, limit)).memory_bytes == memory


@pytest.mark.parametrize(
    ("script", "gpus", "ids"),
    [
        ("printf '0, GPU-a1\\n1, GPU-b2\\n'", 2, ("GPU-a1", "GPU-b2")),
        ("printf '0, GPU-a1\\n1, [N/A]\\n'", 2, ()),
        ("printf '0, GPU-a1\\n1, GPU-a1\\n'", 2, ()),
        ("printf '0\\n1\\n'", 2, ()),
        ("echo No devices were found; exit 6", 0, ()),
    ],
)
def test_gpus_are_those_that_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, gpus: int, ids: tuple[str, ...]
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    capacity, devices = discover_machine()
    assert devices == ids
    assert capacity.gpus == gpus
    assert capacity.cpu_milli >= 1000
    assert capacity.memory_bytes > 0
