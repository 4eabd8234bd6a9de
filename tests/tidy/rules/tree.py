"""What the rules stand on: the files of the tree, their syntax, their comments, and what a violation is."""

from __future__ import annotations

import ast
import functools
import io
import subprocess
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

ROOT = Path(__file__).resolve().parents[3]


class Violation(NamedTuple):
    """One line of the tree that breaks a rule."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


Rule: TypeAlias = Callable[[str, str], Iterator[Violation]]


def list_files(root: Path = ROOT) -> list[str]:
    """Every file that is tracked or would be, sorted, as paths from the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    return sorted({name for name in listed.stdout.split("\0") if name and (root / name).is_file()})


def find_text(path: str, root: Path = ROOT) -> str | None:
    """A file's text, or None when it is not text."""
    data = (root / path).read_bytes()
    if b"\0" in data:
        return None
    return data.decode("utf-8", errors="replace")


@functools.lru_cache(maxsize=1)
def parse(source: str) -> ast.Module:
    """The syntax of a module; every rule looks at the same tree, and no tree is kept beyond the next."""
    return ast.parse(source)


@functools.lru_cache(maxsize=1)
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """Every node of a module, walked once."""
    return tuple(ast.walk(parse(source)))


@functools.lru_cache(maxsize=1)
def comments_of(source: str) -> dict[int, str]:
    """Line -> the comment on it. Strings that look like comments are not comments."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}


def room_of(path: str) -> str | None:
    """`src/muster/world/columns.py` -> `world`; None for what is in no room."""
    parts = path.split("/")
    return parts[2] if len(parts) > 3 and parts[:2] == ["src", "muster"] else None


def imported_names(node: ast.AST, path: str) -> list[str]:
    """The absolute dotted names that an import statement brings in; other nodes bring none."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        package = path.removeprefix("src/").split("/")[: -node.level]
        base = ".".join([*package, base]).rstrip(".")
    return [f"{base}.{alias.name}" for alias in node.names]
