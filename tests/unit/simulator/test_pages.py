"""The page of a run: complete in itself, in words too, of bounded size, and deaf to what names contain."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from muster.app.lab import main, page_of
from muster.model.spec import Spec
from muster.simulator.chronicle import Life
from muster.simulator.options import SimOptions
from muster.simulator.pages.run import show_run
from muster.simulator.pages.svg import Line, draw_lines, say
from muster.simulator.simulation import run_simulation
from muster.simulator.witness import GANGS_MAX, LOOKS_MAX, OTHERS, TENANTS_MAX, Look, Picture, Witness
from muster.units import HOUR_MS, MINUTE_MS, Resources
from muster.world.world import World

HOSTILE = "</title><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">\u202e\x00'\""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PAGE_MAX = 400_000
VOID = {"meta", "br", "path", "line", "rect"}


class Tree(HTMLParser):
    """What tags a page opens and with which attributes; every one is closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(page)
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag


def lives(count: int, tenants: int = 40, name: str = "job") -> list[Life]:
    found = []
    for number in range(1, count + 1):
        gang = 1 + number % 7
        spec = Spec(("x",), name=name, tenant=f"{name}-{number % tenants}", gang=gang, ask=Resources(gpus=8))
        life = Life(number, spec, "somebody", number * 1000)
        for turn in range(3):
            life.widen(number * 1000 + (2 * turn + 1) * MINUTE_MS, gang)
            life.widen(number * 1000 + (2 * turn + 2) * MINUTE_MS, -gang)
        life.ended = number * 1000 + HOUR_MS
        found.append(life)
    return found


def seen(count: int, name: str = "job") -> Picture:
    """A picture of so many jobs that all start three times, and of as many batches."""
    witness, world = Witness(), World()
    for at in range(count):
        witness.watch(world, at * MINUTE_MS, ())
    witness.chronicle.lives = {life.number: life for life in lives(count, name=name)}
    return witness.picture()


def show(picture: Picture, title: str = "A run") -> str:
    return show_run(picture, title, "lead", "muster sim", [("jobs", "7")])


@pytest.fixture(scope="module")
def run() -> tuple[str, Picture]:
    witness = Witness()
    report = run_simulation(SimOptions(nodes=6, days=0.2, pace=4, seed=5), witness=witness)
    return page_of(report, witness.picture()), witness.picture()


def test_a_page_needs_nothing_else_and_says_everything_in_words(run: tuple[str, Picture]) -> None:
    page, picture = run
    tree = Tree(page)
    names = [tag for tag, _ in tree.tags]
    assert names.count("h1") == names.count("main") == names.count("html") == 1
    assert not {"script", "img", "link", "iframe", "object", "video", "base"} & set(names)
    for attributes in (attributes for _, attributes in tree.tags):
        assert not {"src", "href", "xlink:href", "style"} & set(attributes)
        assert not any(name.startswith("on") for name in attributes)
    drawings = [attributes for tag, attributes in tree.tags if tag == "svg" and attributes.get("role") == "img"]
    assert len(drawings) == 6
    assert all(drawing["aria-label"] for drawing in drawings)
    assert "url(" not in page
    assert "http:" not in page
    assert "https:" not in page
    assert "prefers-color-scheme: dark" in page
    assert picture.jobs > 0
    assert max(look.held for look in picture.looks) <= picture.gpus == 48


def test_a_page_is_a_function_of_its_run(run: tuple[str, Picture]) -> None:
    witness = Witness()
    report = run_simulation(SimOptions(nodes=6, days=0.2, pace=4, seed=5), witness=witness)
    assert page_of(report, witness.picture()) == run[0]


def test_the_witness_agrees_with_the_report() -> None:
    witness = Witness()
    report = run_simulation(SimOptions(nodes=6, days=0.2, pace=4, seed=5), witness=witness)
    picture = witness.picture()
    hours = sum(share.gpu_hours for share in picture.shares)
    assert hours * HOUR_MS * 100 / (48 * report.span_ms) == pytest.approx(report.busy_pct, abs=1.1)
    assert sum(share.jobs for share in picture.shares) == picture.jobs == report.accepted


def test_names_are_words_and_never_more() -> None:
    page = show(seen(30, HOSTILE), HOSTILE)
    tags = {tag for tag, _ in Tree(page).tags}
    assert not {"script", "img"} & tags
    assert "\x00" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;" in page


def test_what_is_too_long_is_cut() -> None:
    assert len(say("x" * 1000)) == 36
    assert say("<&\"'") == "&lt;&amp;&quot;&#x27;"


def test_a_page_does_not_grow_with_its_jobs() -> None:
    some, many = seen(4000), seen(40_000)
    assert len(many.looks) <= LOOKS_MAX
    assert len(many.gangs) == GANGS_MAX
    assert len(many.shares) == TENANTS_MAX + 1
    assert many.shares[-1].tenant == OTHERS
    assert len(show(many)) < 1.3 * len(show(some)) < PAGE_MAX
    assert len(msgspec.json.encode(many)) < PAGE_MAX


def test_a_run_in_which_nothing_happened_has_a_page() -> None:
    assert "html" in [tag for tag, _ in Tree(show(Witness().picture())).tags]


@pytest.mark.parametrize("values", [[0.0], [3.0, 0.0, 19.0], [1e9, 2.0], []])
def test_lines_stay_inside_their_frame(values: list[float]) -> None:
    drawn = draw_lines("t", "a", [Line("x", list(enumerate(values)), is_area=True)], str, str)
    for path in re.findall(r' d="([^"]+)"', drawn):
        numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*", path)]
        assert all(0 <= number <= 760 for number in numbers)


@pytest.mark.parametrize("name", ["run.txt", "no/such/run.html"])
def test_a_report_that_cannot_be_written_is_refused_before_the_run(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", "--nodes", "100000", "--days", "3000", "--report", str(tmp_path / name)]) == 2
    assert "error[M354]" in capsys.readouterr().err


def test_both_reports_of_a_simulation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, figures = tmp_path / "run.html", tmp_path / "run.json"
    words = ["sim", "--nodes", "4", "--days", "0.05", "--report", str(page), "--report", str(figures)]
    assert main(words) == 0
    assert "none broken" in capsys.readouterr().out
    Tree(page.read_text())
    found = msgspec.json.decode(figures.read_bytes())
    assert found["command"] == "muster sim --nodes 4 --days 0.05"
    assert [Look(**look) for look in found["picture"]["looks"]]


@pytest.mark.slow
def test_a_real_browser_shows_the_page_and_runs_nothing_of_it(tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser here: none of {', '.join(BROWSERS)} is installed")
    path = tmp_path / "run.html"
    path.write_text(show(seen(500, HOSTILE), "Seen"), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    shot = tmp_path / "shot.png"
    words = [browser, *flags, f"--screenshot={shot}", "--window-size=900,1200", path.as_uri()]
    subprocess.run(words, capture_output=True, timeout=120, check=True)
    assert shot.stat().st_size > 10_000
    dumped = subprocess.run(
        [browser, *flags, "--dump-dom", path.as_uri()], capture_output=True, timeout=120, check=True, text=True
    ).stdout
    assert "<title>Seen</title>" in dumped
    assert dumped.count("<section>") == 6
    assert "<script" not in dumped
    assert "<img" not in dumped
