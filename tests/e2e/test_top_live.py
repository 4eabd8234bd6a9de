"""`muster top` on a real terminal: somebody is woken up, looks, drains a node, and leaves (journey 9)."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from pathlib import Path
from typing import Final

import click
from live import DEADLINE_S, LiveHome, serving

SIZE: Final = struct.pack("HHHH", 40, 120, 0, 0)
DOWN: Final = b"\x1b[B"


class Terminal:
    """A command on a terminal of 40 lines: keys go in, and all that was drawn so far can be read."""

    def __init__(self, live: LiveHome, *words: str) -> None:
        self._own, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, SIZE)
        env = {**live.env, "TERM": "xterm"}
        self.process = subprocess.Popen(["muster", *words], env=env, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        self._drawn = ""

    def press(self, keys: bytes) -> None:
        os.write(self._own, keys)

    def await_text(self, text: str) -> None:
        """Read on until it is drawn; what came before is not looked at again."""
        give_up_at = time.monotonic() + DEADLINE_S
        while text not in self._drawn:
            assert time.monotonic() < give_up_at, f"not drawn: {text}\n{self._drawn}"
            if select.select([self._own], [], [], 0.1)[0]:
                self._drawn += click.unstyle(os.read(self._own, 65536).decode(errors="replace"))
        self._drawn = self._drawn.partition(text)[2]

    def close(self) -> int:
        try:
            return self.process.wait(DEADLINE_S)
        finally:
            os.close(self._own)


def test_a_node_is_found_looked_into_and_drained(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as live, live.client() as client:
        live.muster("run", "--", "sh", "-c", "exit 4", code=4)
        job = live.muster("run", "--detach", "--name", "steady", "--gpus", "2", "--", "sleep", "300").stdout.strip()
        terminal = Terminal(live, "top")
        terminal.await_text("! job 1 failed: exit code 4")
        terminal.await_text("steady")
        terminal.press(DOWN + b"\r")  # from what failed to the node
        terminal.await_text("$ muster show ")
        terminal.press(b"q")
        terminal.await_text("look into")
        terminal.press(b"d")
        terminal.await_text(f"job {job} steady of default: 1 x 2g 1c")
        assert not client.nodes()[0].bars, "nothing is done before somebody said yes"
        terminal.press(b"y")
        terminal.await_text("is draining; 1 job is to finish there")
        assert [bar.reason for bar in client.nodes()[0].bars] == ["from top"]
        terminal.press(b"qq")
        assert terminal.close() == 0
        live.muster("cancel", job)
