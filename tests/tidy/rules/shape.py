"""How a module looks: its size, its words, its first paragraph, and the things it never does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from rules.purity import called_name
from rules.tree import Violation, comments_of, imported_names, nodes_of, parse

FUNCTION_LINES_MAX: Final = 70
FILE_LINES_MAX: Final = 600
TEST_FILE_LINES_MAX: Final = 1000
DOCSTRING_CHARS_MIN: Final = 40
REASON_CHARS_MIN: Final = 8

EMPTY_WORDS: Final = frozenset({"manager", "util", "helper", "common", "info", "misc"})
UNSAFE_MODULES: Final = frozenset({"pickle", "marshal", "shelve", "dill", "cloudpickle"})
UNSAFE_CALLS: Final = frozenset({"eval", "exec", "compile", "__import__"})
UNSAFE_ATTRIBUTES: Final = frozenset(
    {
        ("os", "system"),
        ("os", "popen"),
        ("subprocess", "getoutput"),
        ("subprocess", "getstatusoutput"),
        ("asyncio", "create_subprocess_shell"),
    }
)
UNSAFE_NAMES: Final = frozenset(".".join(each) for each in UNSAFE_ATTRIBUTES)

# (path, code) -> why this one stands without words beside it. Keep it short.
JUSTIFIED_SILENCERS: Final[dict[tuple[str, str], str]] = {}

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NOQA: Final = re.compile(r"#\s*noqa(?::\s*(?P<codes>[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*))?(?P<rest>.*)", re.IGNORECASE)
_IGNORE: Final = re.compile(r"#\s*type:\s*ignore(?:\[(?P<codes>[a-z0-9, -]+)\])?(?P<rest>.*)")


def _is_exercise(path: str) -> bool:
    return path.startswith(("tests/", "bench/"))


def check_sizes(path: str, source: str) -> Iterator[Violation]:
    """A function fits on a screen and a half; a file that does not fit in a head wants to be two."""
    most = TEST_FILE_LINES_MAX if _is_exercise(path) else FILE_LINES_MAX
    lines = source.count("\n")
    if lines > most:
        yield Violation(path, most + 1, f"{lines} lines; {most} is too long for a file")
    for node in nodes_of(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                yield Violation(path, node.lineno, f"{node.name} has {length} lines; {FUNCTION_LINES_MAX} is too long")


def check_words(path: str, source: str) -> Iterator[Violation]:
    """Names of modules, classes and functions say something."""
    names = [(1, part.removesuffix(".py")) for part in path.split("/")]
    names.extend(
        (node.lineno, node.name)
        for node in nodes_of(source)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    )
    for line, name in names:
        for word in _WORD.findall(name):
            if word.lower() in EMPTY_WORDS or word.lower().removesuffix("s") in EMPTY_WORDS:
                yield Violation(path, line, f"{name}: {word.lower()!r} says nothing")


def check_docstring(path: str, source: str) -> Iterator[Violation]:
    """Every module opens with what it decides and what it must never know; a test's may be short."""
    text = ast.get_docstring(parse(source)) or ""
    least = 1 if _is_exercise(path) else DOCSTRING_CHARS_MIN
    if len(text) < least:
        yield Violation(path, 1, "the module does not open with a paragraph about itself")


def check_silencers(path: str, source: str) -> Iterator[Violation]:
    """A silenced check names its code and says why, on its line or on the comment line above."""
    if not (_NOQA.search(source) or _IGNORE.search(source)):  # to find comments is to read every token
        return
    comments, lines = comments_of(source), source.splitlines()
    for line, comment in comments.items():
        for pattern in (_NOQA, _IGNORE):
            match = pattern.search(comment)
            if match is None or (path, match["codes"] or "") in JUSTIFIED_SILENCERS:
                continue
            above = comments.get(line - 1, "") if line > 1 and lines[line - 2].lstrip().startswith("#") else ""
            if not match["codes"]:
                yield Violation(path, line, "silences every check; name the code")
            elif not (_is_reason(match["rest"]) or _is_reason(above)):
                yield Violation(path, line, f"silences {match['codes']} without saying why")


def _is_reason(text: str) -> bool:
    return len(text.strip(" #-:")) >= REASON_CHARS_MIN


def check_excepts(path: str, source: str) -> Iterator[Violation]:
    """Nothing is swallowed: no bare except, and a broad one re-raises or says why it is that broad."""
    for node in nodes_of(source):
        if isinstance(node, ast.Call) and _suppresses(node) and not _says_why(source, node.lineno):
            yield Violation(path, node.lineno, "suppresses everything without saying why")
        if not isinstance(node, ast.ExceptHandler):
            continue
        if node.type is None:
            yield Violation(path, node.lineno, "a bare except")
        elif _is_broad(node.type) and not (_raises(node) or _says_why(source, node.lineno)):
            yield Violation(path, node.lineno, "a broad except that neither re-raises nor says why")


def _is_broad(caught: ast.expr) -> bool:
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(isinstance(kind, ast.Name) and kind.id in {"Exception", "BaseException"} for kind in kinds)


def _suppresses(node: ast.Call) -> bool:
    """Whether a call is `suppress` of something broad, by whatever way it was imported."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else called_name(node)
    return name == "suppress" and any(_is_broad(kind) for kind in node.args)


def _says_why(source: str, line: int) -> bool:
    return not comments_of(source).keys().isdisjoint((line - 1, line))


def _raises(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(node, ast.Raise) for statement in handler.body for node in ast.walk(statement))


def check_safety(path: str, source: str) -> Iterator[Violation]:
    """Nothing of ours is unpickled, evaluated or handed to a shell."""
    if not path.startswith("src/"):
        return
    for node in nodes_of(source):
        line = getattr(node, "lineno", 1)
        for name in imported_names(node, path):
            if name.partition(".")[0] in UNSAFE_MODULES:
                yield Violation(path, line, f"imports {name.partition('.')[0]}")
            if name in UNSAFE_NAMES:
                yield Violation(path, line, f"imports {name}, which hands a string to a shell")
        if called_name(node) in UNSAFE_CALLS:
            yield Violation(path, line, f"calls {called_name(node)}()")
        if _opens_shell(node):
            yield Violation(path, line, "hands a string to a shell, or bytes to pickle")


def _opens_shell(node: ast.AST) -> bool:
    if isinstance(node, ast.keyword) and node.arg in {"shell", "allow_pickle"}:
        return not (isinstance(node.value, ast.Constant) and node.value.value is False)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return (node.value.id, node.attr) in UNSAFE_ATTRIBUTES
    return False


QUIET_TESTS: Final = ("tests/unit/", "tests/property/", "tests/simulation/", "tests/golden/")


def check_sleeps(path: str, source: str) -> Iterator[Violation]:
    """Tests of the core run in virtual time: none of them sleeps."""
    if not path.startswith(QUIET_TESTS):
        return
    for node in nodes_of(source):
        slept = isinstance(node, ast.Attribute) and node.attr == "sleep" and isinstance(node.value, ast.Name)
        if (slept and ast.unparse(node) == "time.sleep") or "time.sleep" in imported_names(node, path):
            yield Violation(path, getattr(node, "lineno", 1), "a test sleeps")
