"""A tree is copied as it is, changed files and all; nothing is followed out of it, and what stays behind is said."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from muster.model.errors import RejectedError
from muster.model.origin import Origin, find_origin_fault
from muster.sdk import trees
from muster.sdk.home import Address, Home
from muster.sdk.trees import copy_tree


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with a server, as far as anybody can tell."""
    home = Home(tmp_path / "home")
    home.prepare()
    home.write_address(Address("127.0.0.1", 1))
    return home


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with a commit, a change, a new file and an ignored one."""
    tree = tmp_path / "my project"
    (tree / "sub").mkdir(parents=True)
    (tree / "train.py").write_text("print('old')\n")
    (tree / "sub" / "uv.lock").write_text("inner\n")
    (tree / "uv.lock").write_text("pinned\n")
    (tree / ".gitignore").write_text("data/\n")
    git(tree, "init", "-q")
    git(tree, "add", ".")
    git(tree, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "first")
    (tree / "train.py").write_text("print('new')\n")
    (tree / "sub" / "run.sh").write_text("#!/bin/sh\n")
    (tree / "sub" / "run.sh").chmod(0o755)
    (tree / "data").mkdir()
    (tree / "data" / "huge").write_text("data")
    return tree


def git(tree: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(tree), *words], check=True, stdin=subprocess.DEVNULL)


def names_in(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*") if path.is_symlink() or path.is_file()}


def test_a_repository_is_copied_with_its_changes_and_keeps_its_name(tree: Path, home: Home) -> None:
    copied = copy_tree(tree / "sub", home)
    top = copied.workdir.parent
    assert (copied.workdir.name, top.name) == ("sub", "my project")
    assert names_in(top) == {"train.py", "uv.lock", ".gitignore", "sub/uv.lock", "sub/run.sh"}
    assert (top / "train.py").read_text() == "print('new')\n"
    assert os.access(top / "sub" / "run.sh", os.X_OK)
    assert copied.left_out == ["data/: ignored by git"]
    origin = copied.origin
    assert (origin.directory, origin.files, origin.left_out) == (str(tree / "sub"), 5, 1)
    assert len(origin.commit) == 40
    assert set(origin.locks) == {"uv.lock"}
    assert b"+print('new')" in (top.parent / f"{origin.diff[:16]}.diff").read_bytes()
    assert find_origin_fault(origin) is None


def test_the_same_tree_is_copied_once_unless_somebody_changed_the_copy(tree: Path, home: Home) -> None:
    first = copy_tree(tree, home)
    assert copy_tree(tree, home).workdir == first.workdir
    (first.workdir / "output").write_text("left by a job")
    second = copy_tree(tree, home)
    assert second.workdir != first.workdir
    assert second.origin.snapshot == first.origin.snapshot
    (tree / "train.py").write_text("print('newer')\n")
    assert copy_tree(tree, home).origin.snapshot != first.origin.snapshot
    assert not list((home.root / "work").glob(".new-*"))


def test_each_way_to_the_same_tree_is_kept(tree: Path, home: Home) -> None:
    first = copy_tree(tree, home)
    git(tree, "commit", "-q", "--allow-empty", "-am", "the change")
    (tree / "train.py").write_text("print('other')\n")
    git(tree, "commit", "-q", "-am", "another")
    (tree / "train.py").write_text("print('new')\n")
    second = copy_tree(tree, home)
    assert (second.workdir, second.origin.snapshot) == (first.workdir, first.origin.snapshot)
    assert second.origin.diff != first.origin.diff
    for copied in (first, second):
        diff = (copied.workdir.parent / f"{copied.origin.diff[:16]}.diff").read_bytes()
        assert hashlib.sha256(diff).hexdigest() == copied.origin.diff


@pytest.mark.parametrize("name", ["nowhere", "train.py"])
def test_what_is_no_directory_is_no_empty_tree(tree: Path, home: Home, name: str) -> None:
    with pytest.raises(RejectedError, match="is no directory"):
        copy_tree(tree / name, home)


def test_nothing_is_followed_out_of_a_tree(tmp_path: Path, home: Home) -> None:
    plain, secret = tmp_path / "plain", tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("secret")
    (plain / "inner").mkdir(parents=True)
    (plain / "inner" / "file").write_text("x")
    (plain / "good").symlink_to("inner/file")
    (plain / "folder").symlink_to("inner")
    for name, target in (("absolute", "/etc/passwd"), ("up", "../secret/key"), ("inner/up", "../../secret")):
        (plain / name).symlink_to(target)
    os.mkfifo(plain / "fifo")
    (plain / "__pycache__").mkdir()
    copied = copy_tree(plain, home)
    assert names_in(copied.workdir) == {"good", "folder", "inner/file"}
    outside = "a link that leads outside"
    assert sorted(copied.left_out) == [
        "__pycache__/: never copied",
        f"absolute: {outside}",
        "fifo: neither a file nor a link",
        f"inner/up: {outside}",
        f"up: {outside}",
    ]
    assert copied.origin.commit == ""


def test_a_folder_that_became_a_link_is_not_entered(tree: Path, home: Home, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "uv.lock").write_text("secret")
    for path in (tree / "sub").iterdir():
        path.unlink()
    (tree / "sub").rmdir()
    (tree / "sub").symlink_to(tmp_path / "elsewhere")
    copied = copy_tree(tree, home)
    assert not (copied.workdir / "sub").exists()
    assert "sub/uv.lock: behind a link" in copied.left_out


@pytest.mark.parametrize(("limit", "subject"), [("FILES_MAX", "files"), ("BYTES_MAX", "bytes")])
def test_what_is_too_large_is_refused_and_leaves_nothing(
    tree: Path, home: Home, monkeypatch: pytest.MonkeyPatch, limit: str, subject: str
) -> None:
    monkeypatch.setattr(trees, limit, 3)
    with pytest.raises(RejectedError) as caught:
        copy_tree(tree, home)
    assert (caught.value.reason.code, caught.value.reason.subject) == ("M347", subject)
    assert list((home.root / "work").iterdir()) == []


def test_without_a_server_on_this_machine_there_is_no_copy(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(RejectedError) as caught:
        copy_tree(tree, Home(tmp_path / "nowhere"))
    assert caught.value.reason.code == "M348"


@pytest.mark.parametrize(
    "origin",
    [
        Origin("x" * 5000),
        Origin("\0"),
        Origin("/", snapshot="not hex"),
        Origin("/", commit="a" * 65),
        Origin("/", locks={"../up": "ab"}),
        Origin("/", locks={"a": "zz"}),
        Origin("/", locks={str(number): "ab" for number in range(17)}),
        Origin("/", files=-1),
    ],
)
def test_an_origin_that_cannot_be_kept_is_refused(origin: Origin) -> None:
    assert find_origin_fault(origin) is not None
