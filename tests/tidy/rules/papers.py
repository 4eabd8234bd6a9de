"""The papers of the house: every code explained, every word in the glossary, no dead link, no gap in the numbers."""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from rules.tree import Violation, room_of

CODES_PAGE: Final = "docs/reference/codes.md"
MAP_PAGE: Final = "ARCHITECTURE.md"
LARGE: Final = 250
"""A module of so many lines is one that a newcomer has to find."""
GLOSSARY_PAGE: Final = "docs/glossary.md"

# What a reader of the docs may meet without a warning; each has its entry.
_WORDS: Final = """
adoption advice array ask attempt bar batch block body booking calendar cancel cause claim class cluster code
cordon cycle device dispatch domain draft drain due engine entry epoch event evict expire fact failpoint family
fence flavor fleet fold follower fork gang goodput grace group instruction job journal keeper kernel leader lease
ledger lender limit migrate move node opening option overlay phase placement plan pool port preempt profile
quarantine quota rack rank reason reclaim recorder region replay requeue reservation restore room run shadow
slot snapshot spec store story supervisor task tenant tier upcaster wake_at workflow world
"""
GLOSSARY_WORDS: Final = tuple(_WORDS.split())

_HEADING: Final = re.compile(r"^#{2,4} .*?\b(M\d{3})\b", re.MULTILINE)
_ENTRY: Final = re.compile(r"^- \*\*(?P<word>[^*]+)\*\*", re.MULTILINE)
_LINK: Final = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)(?:\s+\"[^\"]*\")?\)")
_FENCE: Final = re.compile(r"^\s*(?:```|~~~)")
_ROW: Final = re.compile(r"^\| (?P<rooms>`[a-z]+`(?: · `[a-z]+`)*) \|.*\| (?P<files>[^|]*)\|$", re.MULTILINE)
_QUOTED: Final = re.compile(r"`([a-z]+)`")
_FILE_NAME: Final = re.compile(r"`([^`]+)`")
_ADR: Final = re.compile(r"docs/adr/(?P<number>\d{4})-[a-z0-9-]+\.md")


def find_unexplained(codes: Mapping[str, str], page: str) -> Iterator[Violation]:
    """Every code has a section that names it, gives an example and says how to fix it; no section is left over."""
    sections = _sections(page)
    for code, name in codes.items():
        text = sections.get(code, "")
        if name.lower() not in text.lower():
            yield Violation(CODES_PAGE, 1, f"{code} {name} has no section that names it")
        for part in ("Example", "Fix"):
            if f"**{part}.**" not in text:
                yield Violation(CODES_PAGE, 1, f"{code} {name} has no {part.lower()}")
    for code in sorted(set(sections) - set(codes)):
        yield Violation(CODES_PAGE, 1, f"{code} is explained and does not exist")


def _sections(page: str) -> dict[str, str]:
    heads = list(_HEADING.finditer(page))
    ends = [head.start() for head in heads[1:]] + [len(page)]
    return {head[1]: page[head.start() : end] for head, end in zip(heads, ends, strict=True)}


def find_undefined(words: Iterable[str], page: str) -> Iterator[Violation]:
    """Every word has an entry, and the entries stand in the order of the alphabet."""
    entries = [match["word"].lower() for match in _ENTRY.finditer(page)]
    for word in words:
        if word not in entries:
            yield Violation(GLOSSARY_PAGE, 1, f"no entry for {word!r}")
    for first, second in itertools.pairwise(entries):
        if first >= second:
            yield Violation(GLOSSARY_PAGE, 1, f"{second!r} stands after {first!r}")


def find_dead_links(path: str, source: str, files: Collection[str]) -> Iterator[Violation]:
    """Relative links of a page lead to a file or a directory of the tree."""
    for number, line in _prose(source):
        for match in _LINK.finditer(line):
            target = match["target"].partition("#")[0]
            if not target or re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            reached = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            if not _exists(reached, files):
                yield Violation(path, number, f"a link to {match['target']}, which is not there")


def _exists(reached: str, files: Collection[str]) -> bool:
    return reached in files or any(name.startswith(f"{reached}/") for name in files)


def _prose(source: str) -> Iterator[tuple[int, str]]:
    """The lines outside fenced code, numbered."""
    fenced = False
    for number, line in enumerate(source.splitlines(), start=1):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def find_adr_gaps(files: Iterable[str]) -> Iterator[Violation]:
    """Decisions are numbered from 0001 without gaps or doubles."""
    numbers = sorted(int(match["number"]) for name in files if (match := _ADR.fullmatch(name)))
    for expected, number in enumerate(numbers, start=1):
        if number != expected:
            yield Violation("docs/adr", 1, f"{number:04d} stands where {expected:04d} should")
            return


TESTED_ROOMS: Final = (
    "units",
    "model",
    "wire",
    "world",
    "lifecycle",
    "policy",
    "scheduler",
    "kernel",
    "stores",
    "engines",
    "simulator",
    "learning",
    "access",
    "outward",
    "control",
    "forecast",
    "api",
    "sdk",
    "cli",
)


def find_untested_rooms(files: Collection[str]) -> Iterator[Violation]:
    """A room with code in it has tests that mirror it."""
    for room in TESTED_ROOMS:
        source, mirror = f"src/muster/{room}/", f"tests/unit/{room}/"
        has_code = any(
            name.startswith(source) and name.endswith(".py") for name in files if name != f"{source}__init__.py"
        )
        has_tests = any(name.startswith(mirror) and name.endswith(".py") for name in files)
        if has_code and not has_tests:
            yield Violation(mirror, 1, f"{room} has code and no unit tests")


def find_unmapped(page: str, rooms: Iterable[str], sizes: Mapping[str, int]) -> Iterator[Violation]:
    """Every room with code has a row on the code map, every large module is named there, and nothing that is not."""
    rows = [(_QUOTED.findall(row["rooms"]), _FILE_NAME.findall(row["files"])) for row in _ROW.finditer(page)]
    for room in rooms:
        named = [name.removeprefix(f"{room}/") for those, names in rows if room in those for name in names]
        own = {path.removeprefix(f"src/muster/{room}/"): size for path, size in sizes.items() if room_of(path) == room}
        if own and not any(room in those for those, _ in rows):
            yield Violation(MAP_PAGE, 1, f"room {room} has no row on the code map")
        for path, size in own.items():
            if size >= LARGE and not any(_covers(name, path) for name in named):
                yield Violation(MAP_PAGE, 1, f"{room}/{path}, of {size} lines, is not on the code map")
    for those, names in rows:
        for name in names:
            places = (name, *(f"{room}/{name}" for room in those))
            if not any(_covers(f"src/muster/{place}", path) for place in places for path in sizes):
                yield Violation(MAP_PAGE, 1, f"{name} is on the code map and not there")


def _covers(name: str, path: str) -> bool:
    """Whether a name on the map is that of a file, or of a folder that it lies in."""
    return path == name or (name.endswith("/") and path.startswith(name))
