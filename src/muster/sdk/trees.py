"""Copying the tree that a job is submitted from, so that it runs what was there then, changed files and all.

The copy lies in the home of the server, on this machine, under a digest of its content, and keeps the name of the
directory. Of a git repository it has what git would track: all that is not ignored, committed or not. Nothing is
followed out of the tree: a link that leads outside stays behind, like whatever is neither a file nor a link, and it is
said.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from muster.model.errors import RejectedError
from muster.model.origin import Origin
from muster.model.reason import Code, Reason
from muster.sdk.home import Home

FILES_MAX: Final = 20_000
BYTES_MAX: Final = 512 * 1024 * 1024
DIFF_BYTES_MAX: Final = 64 * 1024 * 1024
GIT_TIMEOUT_S: Final = 60
SKIPPED: Final = frozenset((".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__"))
"""Left out of a directory that no git knows."""
LOCKS: Final = (
    "requirements.lock",
    "poetry.lock",
    "uv.lock",
    "pixi.lock",
    "Pipfile.lock",
    "conda-lock.yml",
    "package-lock.json",
    "Cargo.lock",
)


class Copied(NamedTuple):
    """Where the job is to run, where it came from, and what stayed behind, each with why."""

    workdir: Path
    origin: Origin
    left_out: list[str]


class _Listing(NamedTuple):
    names: list[str]
    left_out: list[str]


def copy_tree(directory: Path, home: Home) -> Copied:
    """Copy the tree around `directory` (its repository, or itself) into the home; RejectedError if that cannot be."""
    if home.find_address() is None:
        raise _refuse(f"{home.root} is no home of a server on this machine")
    directory = directory.resolve()
    if not directory.is_dir():
        raise _refuse(f"{directory} is no directory")
    top = _find_top(directory)
    listing = _list_git(top) if top is not None else _list_plain(directory)
    root = top or directory
    work = home.root / "work"
    try:
        work.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=work) as fresh:
            name = root.name or "root"
            size, left_out = _copy_all(root, Path(fresh) / name, listing.names)
            digest = _digest(Path(fresh) / name)
            place = _settle(Path(fresh), work, digest, name)
    except OSError as error:
        raise _refuse(f"{error.filename or root}: {error.strerror}") from error
    left_out = [*listing.left_out, *left_out]
    copied = list(_walk(place / name))
    origin = Origin(
        directory=str(directory),
        snapshot=digest,
        files=len(copied),
        size_bytes=size,
        left_out=len(left_out),
        commit="" if top is None else _ask_git(top, "rev-parse", "--verify", "-q", "HEAD").decode().strip(),
        diff="" if top is None else _keep_diff(top, place),
        locks={lock: _hash_file(place / name / lock) for lock in LOCKS if (place / name / lock).is_file()},
    )
    return Copied(place / name / directory.relative_to(root), origin, left_out)


# What is in the tree.


def _find_top(directory: Path) -> Path | None:
    found = _ask_git(directory, "rev-parse", "--show-toplevel").decode().strip()
    return Path(found) if found else None


def _list_git(top: Path) -> _Listing:
    tracked = _ask_git(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
    ignored = _ask_git(top, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    left_out = [f"{name}: ignored by git" for name in _split(ignored)]
    return _Listing([name for name in _split(tracked) if os.path.lexists(top / name)], left_out)


def _list_plain(directory: Path) -> _Listing:
    names, left_out = [], []
    for place, folders, files in os.walk(directory):
        inner = Path(place).relative_to(directory)
        left_out += [f"{inner / name}/: never copied" for name in folders if name in SKIPPED]
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        names += [str(inner / name) for name in sorted([*files, *links])]
        if len(names) > FILES_MAX:
            break  # it is refused in any case
    return _Listing(names, left_out)


def _split(data: bytes) -> list[str]:
    return [os.fsdecode(name) for name in data.split(b"\0") if name]


def _ask_git(directory: Path, *words: str) -> bytes:
    """What git says; nothing if there is no git, or nothing that it could say."""
    try:
        ran = subprocess.run(
            ["git", "-C", str(directory), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return b""
    return ran.stdout if ran.returncode == 0 else b""


# Copying.


def _copy_all(root: Path, target: Path, names: list[str]) -> tuple[int, list[str]]:
    """Copy files and links; how many bytes, and what stayed behind."""
    if len(names) > FILES_MAX:
        raise RejectedError(Reason(Code.TREE_TOO_LARGE, "files", len(names), FILES_MAX))
    target.mkdir()
    size, left_out = 0, []
    for name in names:
        why = _copy_one(root, target, name)
        if why:
            left_out.append(f"{name}: {why}")
            continue
        size += (target / name).lstat().st_size
        if size > BYTES_MAX:
            raise RejectedError(Reason(Code.TREE_TOO_LARGE, "bytes", size, BYTES_MAX))
    return size, left_out


def _copy_one(root: Path, target: Path, name: str) -> str:
    """Copy one thing; why not, if it stays behind."""
    source, copy = root / name, target / name
    if any(parent.is_symlink() for parent in source.parents if parent.is_relative_to(root) and parent != root):
        return "behind a link"
    mode = source.lstat().st_mode
    if stat.S_ISLNK(mode):
        link = source.readlink()
        if link.is_absolute() or os.path.normpath(Path(name).parent / link).startswith(".."):
            return "a link that leads outside"
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.symlink_to(link)
        return ""
    if not stat.S_ISREG(mode):
        return "a repository of its own" if stat.S_ISDIR(mode) else "neither a file nor a link"
    if source.lstat().st_size > BYTES_MAX:
        raise RejectedError(Reason(Code.TREE_TOO_LARGE, "bytes", source.lstat().st_size, BYTES_MAX))
    copy.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file, copy.open("xb") as out:
        shutil.copyfileobj(file, out)
    copy.chmod(0o755 if mode & stat.S_IXUSR else 0o644)
    return ""


def _settle(fresh: Path, work: Path, digest: str, name: str) -> Path:
    """Give the copy its place, or find that the same is there already and nobody has changed it since."""
    for number in range(1, FILES_MAX):
        place = work / (digest[:16] if number == 1 else f"{digest[:16]}-{number}")
        try:
            place.mkdir(mode=0o700)
        except FileExistsError:
            if (place / name).is_dir() and _digest(place / name) == digest:
                return place
            continue
        (fresh / name).rename(place / name)
        return place
    raise _refuse("too many changed copies of one tree")


def _digest(root: Path) -> str:
    """A digest of names, contents and what may be executed."""
    whole = hashlib.sha256()
    for path in sorted(_walk(root)):
        name = os.fsencode(path.relative_to(root))
        if path.is_symlink():
            whole.update(b"l" + name + b"\0" + os.fsencode(path.readlink()) + b"\0")
        else:
            kind = b"x" if path.stat().st_mode & stat.S_IXUSR else b"f"
            whole.update(kind + name + b"\0" + _hash_file(path).encode() + b"\0")
    return whole.hexdigest()


def _walk(root: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(root):
        links: Iterable[str] = (name for name in folders if (Path(place) / name).is_symlink())
        yield from (Path(place) / name for name in (*files, *links))


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _keep_diff(top: Path, place: Path) -> str:
    """Keep how the tree differs from its commit, beside the copy; its digest."""
    diff = _ask_git(top, "diff", "--binary", "--no-ext-diff", "HEAD")
    if not diff or len(diff) > DIFF_BYTES_MAX:
        return ""
    digest = hashlib.sha256(diff).hexdigest()
    (place / f"{digest[:16]}.diff").write_bytes(diff)  # one tree may have come about from several commits
    return digest


def _refuse(detail: str) -> RejectedError:
    return RejectedError(Reason(Code.CANNOT_COPY, "snapshot", detail=detail))
