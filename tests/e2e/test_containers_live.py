"""Tasks in real containers, by podman and a root file system that is made here of one static program.

The storage is the test's own, so that no image of this machine is seen or left. Where a container cannot be run at all,
the tests say why and are skipped. What podman is told to the letter is in `test_engine_crashes.py`.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from live import await_true, serving
from test_engine_crashes import Scene, wait_until

from muster.model.event import Progressed

IMAGE: Final = "localhost/muster-test:1"
APPLETS: Final = ("sh", "cat", "sleep", "hostname", "readlink")
PLAIN: Final = '[containers]\nipcns = "host"\n'
"""With a memory of its own to share, each container would have a mount, and a test that is killed would leave one."""
MODEST: Final = f"""{PLAIN}
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
"""
"""For machines on which nobody may raise a limit, and whose control groups are of two versions at once."""


class Podman:
    """The podman of this machine with a storage of its own: `path` is a program that a server finds by that name."""

    def __init__(self, home: Path, program: str, settings: str) -> None:
        conf = home / "containers.conf"
        conf.write_text(settings)
        stores = f"--root {home / 'root'} --runroot {home / 'run'} --storage-driver vfs"
        self.path = home / "podman"
        self.path.write_text(f'#!/bin/sh\nCONTAINERS_CONF={conf} exec {program} {stores} "$@"\n')
        self.path.chmod(0o755)

    def run(self, *words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """One command, to its end."""
        return subprocess.run([self.path, *words], input=given, capture_output=True, check=False)

    def containers(self) -> list[str]:
        """The names of all that there are, whatever they do."""
        return self.run("ps", "--all", "--format", "{{.Names}}").stdout.decode().split()


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    """One that has the image, and has run a container of it."""
    program, busybox = shutil.which("podman"), shutil.which("busybox")
    if program is None or busybox is None:
        pytest.skip("podman and a static busybox are not here (Debian: podman runc busybox-static)")
    home, words = tmp_path_factory.mktemp("podman"), b""
    for settings in (PLAIN, MODEST):
        found = Podman(home, program, settings)
        found.run("import", "-", IMAGE, given=_pack(Path(busybox)))
        tried = found.run("run", "--rm", "--network=host", IMAGE, "sh", "-c", "exit 0")
        if tried.returncode == 0:
            yield found
            found.run("rm", "--all", "--force")
            return
        words = tried.stderr
    pytest.skip(f"no container can be run here: {words.decode(errors='replace').strip()}")


@pytest.fixture
def scene(tmp_path: Path, podman: Podman) -> Iterator[Scene]:
    """An engine that finds this podman."""
    scene = Scene(tmp_path)
    try:
        scene.supervise(PATH=f"{podman.path.parent}:{os.environ['PATH']}")
        yield scene
    finally:
        scene.clear()


def _pack(busybox: Path) -> bytes:
    """A root file system: one program under several names."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(busybox, "bin/busybox")
        for name in APPLETS:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return packed.getvalue()


def test_a_command_runs_behind_walls_and_keeps_its_directory_its_words_and_its_code(
    scene: Scene, podman: Podman
) -> None:
    bench = scene.bench()
    script = "readlink /proc/self/ns/pid > walls; echo $WORD $MUSTER_JOB > out; exit 7"
    bench.start(bench.shell(script, image=IMAGE, env={"WORD": "secret"}))
    ended = bench.wait_exited()
    assert (ended.code, ended.note) == (7, "")
    assert bench.lines("out") == ["secret 1"]
    assert bench.lines("walls") != [str(Path("/proc/self/ns/pid").readlink())]
    wait_until(lambda: podman.containers() == [], "the removal")


def test_what_is_stopped_hears_of_it_and_may_tidy_up(scene: Scene, podman: Podman) -> None:
    bench = scene.bench()
    tidy = "trap 'echo tidy >> out; exit 3' TERM; echo up >> out; while :; do sleep 0.05; done"
    bench.start(bench.shell(tidy, image=IMAGE))
    bench.wait_for_line("out")
    bench.stop()
    assert bench.wait_exited().code == 3
    assert bench.lines("out") == ["up", "tidy"]
    wait_until(lambda: podman.containers() == [], "the removal")


def test_what_does_not_heed_is_killed_after_its_grace_with_all_that_it_began(scene: Scene, podman: Podman) -> None:
    bench = scene.bench()
    deaf = "trap '' TERM; (while :; do sleep 0.05; done) & echo up >> out; while :; do sleep 0.05; done"
    bench.start(bench.shell(deaf, image=IMAGE))
    bench.wait_for_line("out")
    bench.stop(grace_ms=200)
    assert bench.wait_exited().code == 137
    wait_until(lambda: podman.containers() == [], "the removal")


def test_the_end_of_another_task_leaves_a_container_alone(scene: Scene) -> None:
    """Podman leaves its keeper a process beside each container, and keepers end what tasks leave to them."""
    bench = scene.bench()
    bench.start(bench.shell("echo up > up; while [ ! -e go ]; do sleep 0.05; done; exit 7", image=IMAGE))
    bench.wait_for_line("up")
    for job in (2, 3):  # by both keepers, each of which looks at what is left a moment after an end
        bench.start(bench.shell("sleep 0.2", array=8), job=job)
        for task in range(8):
            assert bench.wait_exited(job=job, task=task).code == 0
    (scene.scratch / "go").touch()
    assert bench.wait_exited().code == 7


def test_no_container_outlives_its_keeper(scene: Scene, podman: Podman) -> None:
    bench = scene.bench()
    bench.start(bench.shell("echo up >> out; while :; do sleep 0.05; done", image=IMAGE))
    bench.wait_for_line("out")
    for keeper in scene.find_keepers():
        os.kill(keeper, signal.SIGKILL)
    ended = bench.wait_exited()
    assert (ended.code, ended.note) == (137, "its keeper was killed")
    wait_until(lambda: podman.containers() == [], "the removal")


def test_progress_is_told_from_inside(scene: Scene) -> None:
    bench = scene.bench()
    script = 'echo "5 checkpoint" >> "$MUSTER_PROGRESS"; while [ ! -e go ]; do sleep 0.05; done'
    bench.start(bench.shell(script, image=IMAGE))
    bench.recorder.wait_for(
        lambda events: any(isinstance(event, Progressed) and event.step == 5 for event in events), "progress"
    )
    (scene.scratch / "go").touch()
    assert bench.wait_exited().code == 0


def test_an_image_that_is_not_there_is_no_fault_of_the_command(scene: Scene) -> None:
    bench = scene.bench()
    bench.start(bench.shell("exit 0", image="localhost/muster-test:none"))
    ended = bench.wait_exited()
    assert (ended.code, "[M349]" in ended.note) == (125, True)


def test_exec_and_shell_enter_the_container(podman: Podman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{podman.path.parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    with serving(tmp_path / "home", "cpus=4") as live:
        script = "echo up > up; while [ ! -e go ]; do sleep 0.05; done"
        job = live.muster("run", "-d", "--image", IMAGE, "--env", "WORD=x", "--", "sh", "-c", script).stdout.strip()
        await_true(lambda: (tmp_path / "up").exists(), "the job runs")
        inside = "readlink /proc/self/ns/pid; echo $WORD $MUSTER_JOB; cat up"
        ran = live.muster("exec", job, "--", "sh", "-c", inside).stdout.splitlines()
        assert ran[1:] == [f"x {job}", "up"]
        assert ran[0] != str(Path("/proc/self/ns/pid").readlink())
        assert live.muster("shell", job, stdin="cat up; exit 5\n", code=5).stdout == "up\n"
        (tmp_path / "go").touch()
        live.muster("wait", job)
