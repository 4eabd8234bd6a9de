"""The tree keeps the rules of the house. Each rule is proven to bite in `test_tidy_rules.py`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable

import pytest
from rules import SYNTAX_RULES, papers, rooms, text
from rules.tree import Rule, Violation, find_text, list_files

from muster.model.reason import Code

FILES = list_files()
PYTHON = [path for path in FILES if path.endswith(".py")]
TEXTS = {path: content for path in FILES if (content := find_text(path)) is not None}


def assert_none(violations: Iterable[Violation]) -> None:
    found = [str(violation) for violation in violations]
    assert not found, "\n" + "\n".join(found)


@pytest.fixture(scope="module")
def broken() -> dict[Rule, list[Violation]]:
    """Every rule's violations. All rules look at a module before any looks at the next: no more than one syntax tree is
    there at a time, where those of all modules are more than a million objects."""
    found: dict[Rule, list[Violation]] = {rule: [] for rule in SYNTAX_RULES}
    for path in PYTHON:
        for rule, violations in found.items():
            violations.extend(rule(path, TEXTS[path]))
    return found


@pytest.mark.parametrize("rule", SYNTAX_RULES, ids=lambda rule: rule.__name__)
def test_every_module_keeps(rule: Rule, broken: dict[Rule, list[Violation]]) -> None:
    assert PYTHON
    assert_none(broken[rule])


def test_every_text_speaks_of_muster_alone() -> None:
    assert_none(violation for path, content in TEXTS.items() for violation in text.check_text(path, content))


def test_every_code_is_explained() -> None:
    assert_none(papers.find_unexplained({code.value: code.name for code in Code}, TEXTS[papers.CODES_PAGE]))


def test_every_word_has_an_entry() -> None:
    assert_none(papers.find_undefined(papers.GLOSSARY_WORDS, TEXTS[papers.GLOSSARY_PAGE]))


def test_every_relative_link_leads_somewhere() -> None:
    pages = [path for path in TEXTS if path.endswith(".md")]
    assert pages
    files = frozenset(FILES)
    assert_none(violation for path in pages for violation in papers.find_dead_links(path, TEXTS[path], files))


def test_decisions_are_numbered_without_gaps() -> None:
    assert_none(papers.find_adr_gaps(FILES))


def test_every_room_with_code_has_unit_tests() -> None:
    assert_none(papers.find_untested_rooms(FILES))


def test_every_room_stands_in_the_order() -> None:
    built = {path.split("/")[2] for path in PYTHON if path.startswith("src/muster/") and path.count("/") > 2}
    assert built <= set(rooms.RANKS)


def test_the_two_guards_of_the_rooms_agree() -> None:
    contracts = tomllib.loads(TEXTS["pyproject.toml"])["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    told = [tuple(room.strip().removeprefix("muster.") for room in layer.split("|")) for layer in reversed(layers)]
    assert [set(layer) for layer in told] == [set(layer) for layer in rooms.LAYERS]


def test_a_newcomer_finds_every_room_and_every_large_module_on_the_code_map() -> None:
    sizes = {path: TEXTS[path].count("\n") for path in PYTHON if path.startswith("src/")}
    assert_none(papers.find_unmapped(TEXTS[papers.MAP_PAGE], rooms.RANKS, sizes))
