"""Job files: three languages for one thing, and every fault with its file, line and field."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.after import After, When
from muster.model.reason import Code
from muster.model.spec import Needs, Spec
from muster.sdk.documents import DEPTH_MAX, JOBS_MAX, FileError, make_specs, read_jobs
from muster.units import Resources
from muster.wire.words import put_in_words

YAML = """
name: train
command: python train.py --name 'two words'
gpus: 8
memory: 64Gi
flavor: [h100, a100]
limit: 1h30m
env: {EPOCHS: 10, NOTE: "no"}
"""
TOML = """
name = "train"
command = "python train.py --name 'two words'"
gpus = 8
memory = "64Gi"
flavor = ["h100", "a100"]
limit = "1h30m"
env = {EPOCHS = 10, NOTE = "no"}
"""
JSON = """{
  "name": "train", "command": ["python", "train.py", "--name", "two words"],
  "gpus": 8, "memory": "64Gi", "flavor": ["h100", "a100"],
  "limit": "1h30m", "env": {"EPOCHS": 10, "NOTE": "no"}
}"""
TRAIN = Spec(
    ("python", "train.py", "--name", "two words"),
    name="train",
    tenant="",
    ask=Resources(gpus=8, cpu_milli=1000, memory_bytes=64 * 2**30),
    env={"EPOCHS": "10", "NOTE": "no"},
    workdir="/here",
    limit_ms=5_400_000,
    needs=Needs(flavors=("h100", "a100")),
)


def specs_of(text: str, name: str = "job.yaml") -> list[Spec]:
    return make_specs(read_jobs(text, name), here="/here", now_ms=0)


def test_whose_job_it_is_the_server_says_if_the_file_does_not() -> None:
    [named, unnamed] = specs_of("{command: x, tenant: lab, apart: web}\n---\n{command: x, apart: web}")
    assert (named.tenant, named.needs.apart) == ("lab", ("lab/web",))
    assert (unnamed.tenant, unnamed.needs.apart) == ("", ("/web",))


@pytest.mark.parametrize(("text", "name"), [(YAML, "j.yaml"), (TOML, "j.toml"), (JSON, "j.json"), (JSON, "j.yml")])
def test_three_languages_say_one_thing(text: str, name: str) -> None:
    assert specs_of(text, name) == [TRAIN]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("name: a\ncommand: x\n---\n---\nname: b\ncommand: y\nafterok: a\n", "j.yaml"),
        ("- {name: a, command: x}\n- {name: b, command: y, afterok: [a]}\n", "j.yaml"),
        ('[[job]]\nname = "a"\ncommand = "x"\n[[job]]\nname = "b"\ncommand = "y"\nafterok = "a"\n', "j.toml"),
        ('[{"name": "a", "command": "x"}, {"name": "b", "command": "y", "afterok": ["a"]}]', "j.json"),
    ],
)
def test_a_file_has_many_jobs_and_a_job_names_those_above_it(text: str, name: str) -> None:
    first, second = specs_of(text, name)
    assert (first.name, first.after) == ("a", ())
    assert (second.name, second.after) == ("b", (After(1, When.SUCCEEDED),))


@pytest.mark.parametrize(
    ("text", "name", "where", "code", "words"),
    [
        ("name: a\ncommand: x\ngpu: 8\n", "j.yaml", "j.yaml:3", Code.UNKNOWN_FIELD, "did you mean gpus?"),
        ('name = "a"\ncommand = "x"\nno-evict = true\n', "j.toml", "j.toml:3", Code.UNKNOWN_FIELD, "mean no_evict?"),
        ('{"command": "x",\n\n "qqq": 1}', "j.json", "j.json:3", Code.UNKNOWN_FIELD, "`muster submit --schema` lists"),
        (
            "- {name: a, command: x}\n- {name: a, command: y}\n- command: z\n  afterok: a\n",
            *("j.yaml", "j.yaml:4", Code.BAD_FILE, "several jobs above it in the file are called 'a'"),
        ),
        ("command: x\nmemory: 64 potatoes\n", "j.yaml", "j.yaml:2", Code.BAD_FILE, "size '64 potatoes'"),
        ("command: x\nname: [a]\n", "j.yaml", "j.yaml:2", Code.BAD_FILE, "Expected `str`"),
        ("command: x\nenv:\n  A: 1\n  B: 1.5\n", "j.yaml", "j.yaml:2", Code.BAD_FILE, "got `float`"),
        ("command: x\nlimit: 60\n", "j.yaml", "j.yaml:2", Code.BAD_FILE, "duration '60' is not a time such as"),
        ("command: x\n---\ncommand: y\nwithin: room\n", "j.yaml", "j.yaml:4", Code.BAD_SPEC, "'room' is not one of"),
        ("command: x\n---\ncommand: y\nafterok: z\n", "j.yaml", "j.yaml:4", Code.BAD_FILE, "'z'"),
        ("command: x\ncommand: y\n", "j.yaml", "j.yaml:2", Code.BAD_FILE, "said twice"),
        ("command: &a [x]\nargs: *a\n", "j.yaml", "j.yaml:1", Code.BAD_FILE, "alias"),
        ("command: 'x\n", "j.yaml", "j.yaml:2", Code.BAD_FILE, "end of stream"),
        ("command = 'x\n", "j.toml", "j.toml:1", Code.BAD_FILE, "Expected"),
        ('{"command": "x",\n "gpus": }', "j.json", "j.json:2", Code.BAD_FILE, "malformed"),
        ("- x\n", "j.yaml", "j.yaml:1", Code.BAD_FILE, "a job is a mapping"),
        ("", "j.yaml", "j.yaml", Code.BAD_FILE, "no job in it"),
        ("name: a\n", "j.yaml", "j.yaml:1", Code.BAD_SPEC, "needs a command"),
        ("command: x\nscript: y\n", "j.yaml", "j.yaml:2", Code.BAD_FILE, "not both"),
        ("script: '#!/usr/bin/cobol'\n", "j.yaml", "j.yaml:1", Code.BAD_FILE, "cobol"),
        ("command: x\nargs: [y]\n", "j.yaml", "j.yaml:2", Code.BAD_FILE, "put them into the command"),
        ('command: "x \'y"\n', "j.yaml", "j.yaml:1", Code.BAD_FILE, "No closing quotation"),
    ],
)
def test_faults_have_file_line_and_field(text: str, name: str, where: str, code: Code, words: str) -> None:
    with pytest.raises(FileError) as caught:
        specs_of(text, name)
    assert (caught.value.where, caught.value.reason.code) == (where, code)
    assert words in "; ".join(put_in_words(caught.value.reason))


@pytest.mark.parametrize("value", ["no", "1:30", "010", "2026-11-15", "1e3", "0x10", "y", "on"])
def test_what_yaml_would_take_for_something_else_is_text(value: str) -> None:
    assert specs_of(f"command: [echo, {value}]")[0].command == ("echo", value)


@pytest.mark.parametrize(
    ("script", "command"),
    [
        ("echo hi\n", ("/bin/sh", "-c", "echo hi\n", "s", "a b", "$(x)")),
        ("#!/bin/bash -e\nx\n", ("/bin/bash", "-e", "-c", "#!/bin/bash -e\nx\n", "s", "a b", "$(x)")),
        ("#!/usr/bin/env python3\nx\n", ("python3", "-c", "#!/usr/bin/env python3\nx\n", "a b", "$(x)")),
        ("#!/x/env -S python3.11 -u\nx", ("python3.11", "-u", "-c", "#!/x/env -S python3.11 -u\nx", "a b", "$(x)")),
        ("#!/usr/bin/perl\nx", ("/usr/bin/perl", "-e", "#!/usr/bin/perl\nx", "a b", "$(x)")),
    ],
)  # fmt: skip
def test_a_script_travels_as_text_and_its_arguments_as_words(script: str, command: tuple[str, ...]) -> None:
    text = f"name: s\nscript: {msgspec_text(script)}\nargs: ['a b', '$(x)']\n"
    assert specs_of(text)[0].command == command


def msgspec_text(text: str) -> str:
    return '"' + text.replace("\n", "\\n") + '"'


def test_many_and_deep_is_refused_and_not_tried() -> None:
    with pytest.raises(FileError, match="M104") as caught:
        specs_of("- {command: x}\n" * (JOBS_MAX + 1))
    words = put_in_words(caught.value.reason)
    assert words.what == "the list of jobs has 1001, the most is 1000"
    assert "split it" in words.fix
    with pytest.raises(FileError, match="nested too deeply"):
        specs_of("command: " + "[" * DEPTH_MAX + "x" + "]" * DEPTH_MAX)
    with pytest.raises(FileError):
        specs_of("command: " + "[" * 100_000)
    with pytest.raises(FileError, match="M104"):
        specs_of("command: " + "x" * 2**20)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(text=st.text(max_size=80), name=st.sampled_from(["j.yaml", "j.json", "j.toml"]))
def test_any_text_is_jobs_or_refused_with_a_place(text: str, name: str) -> None:
    caught = ""
    try:
        specs_of(text, name)
    except FileError as error:
        caught = error.where
    assert not caught or caught.startswith(name)
