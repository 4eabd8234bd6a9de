"""What a process asked of the system, from `strace`; and what a disk may hold after the power failed in the middle.

A disk keeps what was synced. Of what was written to a file since its last sync, any part may be there: some writes and
not others, in whatever order, some of them torn. A file that was made may be missing until its directory was synced.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

CALLS: Final = "openat,write,pwrite64,fsync,fdatasync,ftruncate,unlink"
SECTOR: Final = 512
_LINE: Final = re.compile(r"^(\d+) +(\w+)\((.*)$")
_RESUMED: Final = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$")
_FILE: Final = re.compile(r"^(\w+)<((?:\\x[0-9a-f]{2})*)>")
_TEXT: Final = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


class Call(NamedTuple):
    """One system call: the file that it is about, its bytes, its numbers; `begun` and `done` are lines of the trace."""

    name: str
    file: str
    data: bytes
    numbers: tuple[int, ...]
    begun: int
    done: int


def find_strace() -> str | None:
    """Where strace is, if it is there and may trace."""
    found = shutil.which("strace")
    if found is None or subprocess.run([found, "-o", "/dev/null", "true"], capture_output=True).returncode:
        return None
    return found


def strace(out: Path, calls: str = CALLS) -> list[str]:
    """The words that begin a command line which is traced into a file."""
    return ["strace", "-f", "-y", "-xx", "-s", "2000000", "-e", f"trace={calls}", "-e", "signal=none", "-o", str(out)]


def read_trace(path: Path) -> list[Call]:
    """Every call that was done, in the order in which they were."""
    open_calls: dict[str, tuple[str, int]] = {}
    calls: list[Call] = []
    with path.open(errors="replace") as lines:
        for number, line in enumerate(lines):
            resumed = _RESUMED.match(line)
            if resumed is not None:
                begun = open_calls.pop(resumed[1], None)
                if begun is not None:
                    calls.append(_parse(begun[0] + resumed[3], resumed[2], begun[1], number))
                continue
            found = _LINE.match(line)
            if found is None:
                continue
            if "<unfinished ...>" in line:
                open_calls[found[1]] = (found[3].partition("<unfinished")[0], number)
            else:
                calls.append(_parse(found[3], found[2], number, number))
    return calls


def _parse(text: str, name: str, begun: int, done: int) -> Call:
    file, data = _FILE.match(text), _TEXT.findall(text)
    head, _, _ = text.rpartition(" = ")
    numbers = tuple(int(word) for word in re.findall(r", (\d+)\b", _TEXT.sub("", head)))
    if name in ("openat", "unlink"):
        path = _bytes(data[0]).decode() if data else ""
        return Call(f"{name}+" if "O_CREAT" in text else name, path, b"", numbers, begun, done)
    whole = b"".join(map(_bytes, data))
    return Call(name, _bytes(file[2]).decode() if file else text.partition(",")[0], whole, numbers, begun, done)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


class Disk:
    """The files of a directory, as they surely are and as they might be."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._sure = {str(path): bytearray(path.read_bytes()) for path in root.iterdir() if path.is_file()}
        self._pending: dict[str, list[Call]] = {}
        self._unsure_names: set[str] = set()

    def take(self, call: Call) -> None:
        """A call was done."""
        if not call.file.startswith(self._root) or call.file.endswith("-shm"):
            return
        if call.name == "openat+" and call.file not in self._sure:
            self._sure[call.file] = bytearray()
            self._unsure_names.add(call.file)
        elif call.name in ("pwrite64", "ftruncate") and call.file in self._sure:
            self._pending.setdefault(call.file, []).append(call)
        elif call.name in ("fsync", "fdatasync"):
            if call.file == self._root:
                self._unsure_names.clear()
            for one in self._pending.pop(call.file, []):
                _put(self._sure[call.file], one)

    def write_image(self, target: Path, dice: random.Random) -> int:
        """One of the states that a crash may leave, as files; how many writes were at stake."""
        at_stake = sum(map(len, self._pending.values()))
        for name, sure in self._sure.items():
            if name in self._unsure_names and dice.random() < 0.5:
                continue
            data = bytearray(sure)
            for call in _survivors(self._pending.get(name, []), dice):
                _put(data, call)
            (target / Path(name).name).write_bytes(data)
        return at_stake


def _survivors(calls: Sequence[Call], dice: random.Random) -> Iterator[Call]:
    """What reached the disk: a beginning, or any part; and of one of them perhaps only some sectors."""
    share = dice.choice((0.0, 0.2, 0.5, 0.8, 1.0))
    cut = dice.randrange(len(calls) + 1)
    for number, call in enumerate(calls):
        if share == 0.0 and number >= cut:
            return
        if share == 0.0 or dice.random() < share:
            yield _tear(call, dice) if dice.random() < 0.1 else call


def _tear(call: Call, dice: random.Random) -> Call:
    sectors = dice.randrange(len(call.data) // SECTOR + 1)
    return call._replace(data=call.data[: sectors * SECTOR]) if call.name == "pwrite64" else call


def _put(data: bytearray, call: Call) -> None:
    offset = call.numbers[-1]
    if call.name == "ftruncate":
        del data[offset:]
        data.extend(bytes(offset - len(data)))
        return
    data.extend(bytes(max(0, offset - len(data))))
    data[offset : offset + len(call.data)] = call.data
