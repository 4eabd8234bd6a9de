"""One route for notices more or less in the admin's own file: comments stay, and nothing else changes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from muster.app.notifying import read_routes
from muster.app.routing import add_route, drop_route, main
from muster.model.errors import RejectedError
from muster.wire.words import put_in_words

FILE = Path("notify.toml")
TEXT = """# ours
allow = ["10.0.0.0/8"]

[webhook.team]  # the chat
url = "https://hooks.example.org/a"
on = [
  "job_failed",
]

# who is woken
[command.pager]
argv = ["/bin/page"]
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "notify.toml"


def test_routes_are_added_and_removed_by_hand_of_the_owner(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["add", "webhook", "team", "https://hooks.example.org/x", "--on", "job_failed", "--tenant", "lab"]
    assert main([*words, "--waiting", "2h"]) == 0
    secret = capsys.readouterr().out.splitlines()[0].removeprefix("secret: ")
    assert main(["add", "command", "a.b", "--on", "node_lost", "--", "/bin/page", "--from", 'a "b"\x7f']) == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    said = tomllib.loads(file.read_text())
    assert (said["webhook"]["team"]["secret"], len(secret) >= 43) == (secret, True)
    assert said["command"]["a.b"]["argv"] == ["/bin/page", "--from", 'a "b"\x7f']
    assert [(route.name, route.form, route.target) for route in read_routes(file)] == [
        ("team", "webhook", "hooks.example.org"),
        ("a.b", "command", "/bin/page"),
    ]
    assert main(["remove", "a.b"]) == 0
    assert main(["remove", "team"]) == 0
    assert read_routes(file) == []


def test_a_secret_may_be_brought_or_left_out(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "secret").write_text("hush\n")
    main(["add", "webhook", "a", "https://x.example/", "--secret-file", str(tmp_path / "secret")])
    main(["add", "webhook", "b", "https://x.example/", "--unsigned"])
    assert "secret" not in capsys.readouterr().out
    said = tomllib.loads(file.read_text())["webhook"]
    assert (said["a"]["secret"], said["b"]) == ("hush", {"url": "https://x.example/"})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add", "webhook", "team", "ftp://x/"], "only http"),
        (["add", "webhook", "team", "https://me:pass@x/"], "only http"),
        (["add", "webhook", "a b", "https://x/"], "is no name"),
        (["add", "webhook", "team", "https://x/", "--waiting", "soon"], "soon"),
        (["add", "webhook", "team", "http://127.0.0.1:8080/x"], "may not be asked from here"),
        (["add", "webhook", "team", "http://0x7f.1/x"], "may not be asked from here"),
        (["add", "webhook", "team", "http://localhost/x"], "allow ="),
        (["add", "webhook", "team", "https://[fd00::1]/x"], "may not be asked from here"),
        (["remove", "team"], "this server has none"),
        (["add", "webhook", "team", "https://x/", "--secret-file", "/nowhere"], "/nowhere"),
    ],
)
def test_what_is_not_in_order_is_refused_and_changes_nothing(file: Path, words: list[str], said: str) -> None:
    with pytest.raises(RejectedError) as refused:
        main(words)
    told = put_in_words(refused.value.reason)
    assert said in told.what + told.fix
    assert not file.exists()


def test_what_the_admin_wrote_stays(tmp_path: Path) -> None:
    more = add_route(FILE, TEXT, "webhook", "b", {"url": "https://x.example/"})
    assert more.startswith(TEXT)
    assert drop_route(FILE, more, "b").strip() == TEXT.strip()
    less = drop_route(FILE, TEXT, "team")
    assert "# ours" in less
    assert "# who is woken\n[command.pager]" in less
    assert "hooks" not in less


@pytest.mark.parametrize(
    "text",
    [
        'webhook.team.url = "https://x.example/"\n',
        'webhook = {team = {url = "https://x.example/"}}\n',
        '[webhook.team]\nurl = "https://x.example/"\non = [\n[\n]]\n',
    ],
)
def test_what_cannot_be_cut_out_is_left_to_the_admin(text: str) -> None:
    with pytest.raises(RejectedError):
        drop_route(FILE, text, "team")


def test_an_inner_address_is_taken_where_the_admin_allows_it() -> None:
    text = add_route(FILE, 'allow = ["10.20.0.0/16"]\n', "webhook", "inner", {"url": "http://10.20.3.4/x"})
    assert "10.20.3.4" in text
    with pytest.raises(RejectedError, match="M3"):
        add_route(FILE, text, "webhook", "outer", {"url": "http://10.21.3.4/x"})


def test_a_name_is_taken_once() -> None:
    with pytest.raises(RejectedError, match="M326"):
        add_route(FILE, TEXT, "webhook", "pager", {"url": "https://x.example/"})


def test_what_is_no_text_or_cannot_be_written_is_refused_and_the_file_stays(file: Path) -> None:
    assert main(["add", "command", "pager", "/bin/page"]) == 0
    before = file.read_bytes()
    with pytest.raises(RejectedError, match="M333"):
        main(["add", "command", "other", "/bin/\udcff"])
    file.with_suffix(".new").mkdir()  # where the new text would be written first
    with pytest.raises(RejectedError, match="M333"):
        main(["add", "command", "other", "/bin/page"])
    assert file.read_bytes() == before


def test_the_file_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    program = """
from pathlib import Path
from muster.app.notifying import read_routes
from muster.app.routing import change_file
path = Path("notify.toml")
change_file(path, lambda text: text + "# \\u00fc\\n")
change_file(path, lambda text: text + "# \\u00e4\\n")
assert read_routes(path) == []
"""
    environ = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environ, check=True)
    assert (tmp_path / "notify.toml").read_text(encoding="utf-8") == "# \u00fc\n# \u00e4\n"
