"""Each rule of the house bites: it finds a planted violation, and leaves the innocent twin beside it alone."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from rules import SYNTAX_RULES, papers, purity, rooms, shape, text
from rules.tree import ROOT, Rule, Violation, find_text, list_files

CORE = "src/muster/world/planted.py"
UNITS = "src/muster/units/planted.py"
TEST = "tests/unit/world/test_planted.py"


def found_by(rule: Rule, path: str, source: str) -> list[Violation]:
    return list(rule(path, textwrap.dedent(source)))


PLANTED: list[tuple[Rule, str, str]] = [
    (rooms.check_rooms, "src/muster/world/x.py", "import muster.kernel.door"),
    (rooms.check_rooms, "src/muster/world/x.py", "from muster.kernel import door"),
    (rooms.check_rooms, "src/muster/world/x.py", "from muster import kernel"),
    (rooms.check_rooms, "src/muster/world/x.py", "from ..kernel import door"),
    (rooms.check_rooms, "src/muster/world/deep/x.py", "from ... import kernel"),
    (rooms.check_rooms, "src/muster/engines/x.py", "from muster.stores import sqlite"),
    (rooms.check_rooms, "src/muster/stores/x.py", "def lazily():\n    from muster.simulator import load"),
    (rooms.check_rooms, "src/muster/control/x.py", "from muster.engines.local import LocalEngine"),
    (rooms.check_rooms, "src/muster/control/x.py", "from muster.stores.sqlite import SqliteStore"),
    (rooms.check_rooms, "src/muster/cli/x.py", "from muster.world import world"),
    (rooms.check_rooms, "src/muster/cli/x.py", "from muster.api import routes"),
    (rooms.check_rooms, "src/muster/sdk/x.py", "from muster.ports import Clock"),
    (rooms.check_rooms, "src/muster/cellar/x.py", "x = 1"),
    (purity.check_impure_imports, CORE, "import time"),
    (purity.check_impure_imports, CORE, "from datetime import datetime"),
    (purity.check_impure_imports, CORE, "import os.path"),
    (purity.check_impure_imports, UNITS, "import datetime"),
    (purity.check_impure_imports, CORE, "def f():\n    import random"),
    (purity.check_impure_imports, CORE, "import tempfile"),
    (purity.check_impure_imports, CORE, "from concurrent.futures import ThreadPoolExecutor"),
    (purity.check_impure_imports, CORE, "from numpy import random"),
    (purity.check_impure_imports, CORE, "from numba import prange"),
    (purity.check_impure_calls, CORE, "def f(x):\n    return numpy.random.default_rng()"),
    (purity.check_impure_calls, CORE, "def f(x):\n    return hash(x)"),
    (purity.check_impure_calls, CORE, "def f(x):\n    print(x)"),
    (purity.check_impure_calls, CORE, "def f(x):\n    return sorted(x, key=lambda item: id(item))"),
    (purity.check_impure_calls, "src/muster/model/x.py", "with open('x') as file:\n    pass"),
    (purity.check_exactness, CORE, "LIMIT = 0.5"),
    (purity.check_exactness, CORE, "def f(a, b):\n    return a / b"),
    (purity.check_exactness, CORE, "def f(a, b):\n    a /= b"),
    (purity.check_exactness, CORE, "def f(a: float) -> int:\n    return int(a)"),
    (purity.check_exactness, UNITS, "def parse_half(a):\n    return a / 2"),
    (purity.check_exactness, CORE, "def show_half(a):\n    return a / 2"),
    (purity.check_exactness, CORE, "x = words.astype(numpy.float64)"),
    (purity.check_exactness, CORE, "x = operator.truediv(1, 2)"),
    (purity.check_exactness, CORE, "f = njit(parallel=True)"),
    (purity.check_exactness, CORE, "f = njit(fastmath=quick)"),
    (purity.check_set_order, CORE, "for x in {1, 2}:\n    pass"),
    (purity.check_set_order, CORE, "first = next(iter({1, 2}))"),
    (purity.check_set_order, CORE, "y = [*{1, 2}]"),
    (purity.check_set_order, CORE, "y = (0, *set(z))"),
    (purity.check_set_order, CORE, "a, b = {1, 2}"),
    (purity.check_set_order, CORE, "def f(z):\n    yield from set(z)"),
    (purity.check_set_order, CORE, "y = dict.fromkeys(set(z))"),
    (purity.check_set_order, CORE, "y = array('q', set(z))"),
    (purity.check_set_order, CORE, "for x in chain(z, {1, 2}):\n    pass"),
    (purity.check_set_order, CORE, "y = [x for x in set(z)]"),
    (purity.check_set_order, CORE, "y = {x: 1 for x in frozenset(z)}"),
    (purity.check_set_order, CORE, "y = list(set(z))"),
    (purity.check_set_order, CORE, "def f(z):\n    for i, x in enumerate(set(z)):\n        pass"),
    (purity.check_set_order, CORE, "def f(z):\n    dirty = set(z)\n    for x in dirty:\n        pass"),
    (purity.check_set_order, CORE, "KNOWN = frozenset({1})\ndef f():\n    return [x for x in KNOWN]"),
    (purity.check_set_order, CORE, "def f(dirty: set[int]):\n    for x in dirty:\n        pass"),
    (purity.check_set_order, CORE, "def f(a, b):\n    for x in set(a) - b:\n        pass"),
    (purity.check_set_order, CORE, "def f(dirty: set[int]):\n    return dirty.pop()"),
    (
        purity.check_set_order,
        CORE,
        """
        class Queue:
            def __init__(self):
                self.dirty = set()

            def walk(self):
                for x in self.dirty:
                    pass
        """,
    ),
    (purity.check_set_order, CORE, "x = ','.join({'a', 'b'})"),
    (purity.check_set_order, CORE, "class Q:\n    dirty: set[int]\ndef f(q):\n    return tuple(q.dirty)"),
    (shape.check_sizes, CORE, "def f():\n" + "    x = 1\n" * 70),
    (shape.check_sizes, CORE, "x = 1\n" * 601),
    (shape.check_sizes, TEST, "x = 1\n" * 1001),
    (shape.check_words, "src/muster/world/" + "utils.py", "x = 1"),
    (shape.check_words, "src/muster/" + "common/x.py", "x = 1"),
    (shape.check_words, CORE, "class JobManager:\n    pass"),
    (shape.check_words, CORE, "class HTTPHelper:\n    pass"),
    (shape.check_words, CORE, "def node_info():\n    pass"),
    (shape.check_words, TEST, "def misc():\n    pass"),
    (shape.check_docstring, CORE, "x = 1"),
    (shape.check_docstring, CORE, '"""Columns."""'),
    (shape.check_docstring, TEST, "x = 1"),
    (shape.check_silencers, CORE, "x = 1  # " + "noqa"),
    (shape.check_silencers, CORE, "x = 1  # " + "noqa: E501"),
    (shape.check_silencers, CORE, "x = 1  # " + "type: ignore"),
    (shape.check_silencers, CORE, "x = 1  # " + "type: ignore[arg-type]"),
    (shape.check_excepts, CORE, "try:\n    pass\nexcept:\n    raise"),
    (shape.check_excepts, CORE, "try:\n    pass\nexcept Exception:\n    pass"),
    (shape.check_excepts, CORE, "try:\n    pass\nexcept (OSError, BaseException) as error:\n    x = error"),
    (shape.check_excepts, CORE, "with suppress(Exception):\n    pass"),
    (shape.check_excepts, CORE, "with contextlib.suppress(OSError, BaseException):\n    pass"),
    (shape.check_safety, CORE, "from os import system"),
    (shape.check_safety, CORE, "asyncio.create_subprocess_shell('ls')"),
    (shape.check_safety, CORE, "subprocess.getstatusoutput('ls')"),
    (shape.check_safety, CORE, "numpy.load(file, allow_pickle=True)"),
    (shape.check_safety, CORE, "import pickle"),
    (shape.check_safety, CORE, "from marshal import loads"),
    (shape.check_safety, CORE, "eval('1')"),
    (shape.check_safety, CORE, "exec('1')"),
    (shape.check_safety, CORE, "subprocess.run('ls', shell=True)"),
    (shape.check_safety, CORE, "subprocess.run('ls', shell=on)"),
    (shape.check_safety, CORE, "os.system('ls')"),
    (shape.check_sleeps, TEST, "import time\ntime.sleep(1)"),
    (shape.check_sleeps, "tests/golden/test_x.py", "from time import sleep\nsleep(1)"),
    (text.check_text, "README.md", "see /" + "work/main"),
    (text.check_text, "README.md", "`/" + "root`"),
    (text.check_text, "Makefile", "X := /" + "home/me/x"),
    (text.check_text, "requirements.lock", "--find-links /" + "opt/wheels"),
    (text.check_text, "requirements.lock", "--index-url https://" + "py" + "pi.org/simple"),
    (text.check_text, "x.py", "# TO" + "DO: later"),
    (text.check_text, "x.py", "# FIX" + "ME"),
    (text.check_text, "x.md", "XX" + "X here"),
]

INNOCENT: list[tuple[Rule, str, str]] = [
    (rooms.check_rooms, "src/muster/kernel/x.py", "from muster.world import world\nimport muster.units\nimport os"),
    (rooms.check_rooms, "src/muster/kernel/x.py", "from . import door\nfrom .door import handle"),
    (rooms.check_rooms, "src/muster/cli/x.py", "from muster.sdk import Client\nfrom muster import __version__"),
    (rooms.check_rooms, "src/muster/__init__.py", "import muster.kernel"),
    (purity.check_impure_imports, "src/muster/control/x.py", "import time"),
    (purity.check_impure_imports, "src/muster/units/times.py", "import datetime"),
    (purity.check_impure_imports, CORE, "from muster.units import times\nimport re"),
    (purity.check_impure_calls, CORE, "def f(job):\n    return job.hash(), job.id"),
    (purity.check_exactness, UNITS, "def show_half(a):\n    return f'{a / 2}'"),
    (purity.check_exactness, CORE, "def f(a, b):\n    return a // b, 'a/b', 1"),
    (purity.check_exactness, "src/muster/api/x.py", "X = 0.5"),
    (purity.check_exactness, CORE, "f = njit(parallel=False, boundscheck=True)"),
    (purity.check_set_order, CORE, "for x in sorted({1, 2}):\n    pass"),
    (purity.check_set_order, CORE, "y = sorted(x for x in set(z))\nn = len(set(z))\nt = sum(x for x in {1, 2})"),
    (purity.check_set_order, CORE, "y = {x + 1 for x in set(z)}"),
    (purity.check_set_order, CORE, "y = {*set(z), 3}\nw = [*sorted(set(z))]\n(x,) = {1}"),
    (purity.check_set_order, CORE, "def f():\n    s = set()\ndef g():\n    s = [1]\n    for x in s:\n        pass"),
    (purity.check_set_order, CORE, "s = frozenset({1})\ndef g(s: list[int]):\n    for x in s:\n        pass"),
    (purity.check_set_order, CORE, "def f(counts: dict[int, int]):\n    return [x for x in counts], counts.pop()"),
    (shape.check_sizes, CORE, "def f():\n" + "    x = 1\n" * 69),
    (shape.check_sizes, TEST, "x = 1\n" * 1000),
    (shape.check_words, CORE, "def inform():\n    pass\nclass Commonwealth:\n    pass\nutil = 1"),
    (shape.check_docstring, TEST, '"""Columns."""'),
    (shape.check_docstring, CORE, '"""Columns of nodes. It never knows what a policy is or who asks."""'),
    (shape.check_silencers, CORE, "x = 1  # " + "noqa: S101 - a misspelt point would never fire"),
    (shape.check_silencers, CORE, "x = 1  # " + "type: ignore[arg-type]  # the stub is wrong here"),
    (shape.check_silencers, CORE, "# The stub is wrong here.\nx = 1  # " + "type: ignore[arg-type]"),
    (shape.check_silencers, CORE, "x = '# " + "noqa'"),
    (shape.check_excepts, CORE, "try:\n    pass\nexcept Exception:\n    note()\n    raise"),
    (shape.check_excepts, CORE, "try:\n    pass\nexcept Exception:  # the client must get an answer\n    pass"),
    (shape.check_excepts, CORE, "try:\n    pass\n# the client must get an answer\nexcept Exception:\n    pass"),
    (shape.check_excepts, CORE, "try:\n    pass\nexcept OSError:\n    pass"),
    (shape.check_safety, CORE, "import re\nre.compile('x')\nsubprocess.run(['ls'], shell=False)"),
    (shape.check_excepts, CORE, "with suppress(KeyError):\n    pass"),
    (shape.check_safety, "tests/unit/x.py", "import pickle"),
    (shape.check_sleeps, "tests/e2e/test_x.py", "import time\ntime.sleep(1)"),
    (shape.check_sleeps, TEST, "clock.sleep(1)"),
    (
        text.check_text,
        "README.md",
        "docs/" + "work/x, ~/" + "work, $HOME/" + "work, /" + "workdir, https://x.org/" + "home/",
    ),
    (text.check_text, "x.sh", "mktemp /tmp/x.XXXXXX"),
]


@pytest.mark.parametrize(("rule", "path", "source"), PLANTED)
def test_a_planted_violation_is_found(rule: Rule, path: str, source: str) -> None:
    found = found_by(rule, path, source)
    assert found
    assert all(violation.path == path for violation in found)


@pytest.mark.parametrize(("rule", "path", "source"), INNOCENT)
def test_the_innocent_are_left_alone(rule: Rule, path: str, source: str) -> None:
    assert found_by(rule, path, source) == []


def test_every_rule_has_a_planted_violation_and_an_innocent_twin() -> None:
    rules = {*SYNTAX_RULES, text.check_text}
    assert {rule for rule, _, _ in PLANTED} == rules
    assert {rule for rule, _, _ in INNOCENT} == rules


def test_a_violation_prints_as_a_place_an_editor_can_open() -> None:
    [violation] = found_by(purity.check_impure_imports, CORE, "x = 1\nimport time")
    assert str(violation) == f"{CORE}:2: the core imports time"


def test_rooms_on_one_level_never_see_each_other() -> None:
    for layer in rooms.LAYERS:
        for room in layer:
            assert [other for other in layer if rooms.may_import(room, other)] == [room]


def test_a_code_without_a_section_is_found() -> None:
    page = "# Codes\n\n### M101 bad_spec\n\n**Example.** x\n\n**Fix.** y\n"
    assert list(papers.find_unexplained({"M101": "BAD_SPEC"}, page)) == []
    assert [v.what for v in papers.find_unexplained({"M101": "BAD_SPEC", "M102": "BAD_AMOUNT"}, page)] == [
        "M102 BAD_AMOUNT has no section that names it",
        "M102 BAD_AMOUNT has no example",
        "M102 BAD_AMOUNT has no fix",
    ]


def test_a_section_without_a_fix_and_a_section_left_over_are_found() -> None:
    page = "### M101 bad_spec\n\n**Example.** x\n\n### M999 gone\n\n**Example.** x\n\n**Fix.** y\n"
    assert [v.what for v in papers.find_unexplained({"M101": "BAD_SPEC"}, page)] == [
        "M101 BAD_SPEC has no fix",
        "M999 is explained and does not exist",
    ]


def test_a_word_without_an_entry_and_an_entry_out_of_order_are_found() -> None:
    page = "- **Gang**: tasks that start together.\n- **Ask**: what a task needs.\n"
    assert [v.what for v in papers.find_undefined(["ask", "epoch"], page)] == [
        "no entry for 'epoch'",
        "'ask' stands after 'gang'",
    ]


def test_what_the_code_map_does_not_say_and_what_it_says_in_vain_is_found() -> None:
    page = """
`policy` is spoken of.

| `world` | x | y | `fleet.py`, `gone.py` |
| `engines` · `stores` | | | `engines/local/` |
"""
    small = ["world/fleet.py", "world/small.py", "policy/taking.py", "stores/memory.py"]
    sizes = {f"src/muster/{path}": 10 for path in small}
    large = {
        "world/audit/auditor.py": papers.LARGE,
        "engines/local/keeper.py": 454,
        "stores/sqlite.py": papers.LARGE - 1,
    }
    sizes |= {f"src/muster/{path}": size for path, size in large.items()}
    assert [found.what for found in papers.find_unmapped(page, ["world", "policy", "engines", "stores"], sizes)] == [
        "world/audit/auditor.py, of 250 lines, is not on the code map",
        "room policy has no row on the code map",
        "gone.py is on the code map and not there",
    ]


def test_dead_links_are_found_and_living_ones_are_not() -> None:
    files = {"docs/a.md", "docs/adr/0001-x.md", "README.md"}
    page = """
    [up](../README.md) [beside](a.md#top) [here](#below) [out](https://example.org/x) [room](adr)
    [gone](b.md)
    ```
    [not a link](c.md)
    ```
    """
    assert [v.line for v in papers.find_dead_links("docs/a.md", page, files)] == [3]


@pytest.mark.parametrize("numbers", [["0001", "0003"], ["0002"], ["0001", "0001"]])
def test_gaps_and_doubles_among_decisions_are_found(numbers: list[str]) -> None:
    names = [f"docs/adr/{number}-{chr(97 + index)}.md" for index, number in enumerate(numbers)]
    assert list(papers.find_adr_gaps(names))
    assert list(papers.find_adr_gaps(["docs/adr/0001-a.md", "docs/adr/0002-b.md", "docs/adr/template.md"])) == []


def test_a_room_with_code_and_no_tests_is_found() -> None:
    assert list(papers.find_untested_rooms(["src/muster/world/columns.py"]))
    assert list(papers.find_untested_rooms(["src/muster/world/__init__.py"])) == []
    assert list(papers.find_untested_rooms(["src/muster/world/columns.py", "tests/unit/world/test_columns.py"])) == []


def test_the_tree_lists_itself_and_tells_text_from_bytes(tmp_path: Path) -> None:
    assert Path(__file__).resolve().relative_to(ROOT).as_posix() in list_files()
    (tmp_path / "blob").write_bytes(b"\0\1")
    (tmp_path / "page").write_text("words")
    assert find_text("blob", tmp_path) is None
    assert find_text("page", tmp_path) == "words"
