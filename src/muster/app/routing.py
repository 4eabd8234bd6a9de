"""`notify add` and `notify remove`: one route for notices more or less in the home's `notify.toml`.

The text is edited and not written anew, so that the admin's comments and order stay; what comes out is parsed, and must
differ from what was there by that route alone. Otherwise nothing is written. A server that runs reads it by itself.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from muster.app.notifying import parse_routes
from muster.app.parsing import WordParser
from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.outward.addresses import read_ranges
from muster.outward.http import ForbiddenError, check_address
from muster.sdk.home import Home
from muster.wire.notices import Kind

FORMS: Final = ("webhook", "command")
SECRET_BYTES: Final = 32
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def main(argv: list[str]) -> int:
    """Do one of the two; the exit code."""
    args = _parse(argv)
    home = Home()
    home.check_own()
    home.prepare()
    if args.word == "remove":
        change_file(home.notify_file, lambda text: drop_route(home.notify_file, text, args.name))
        sys.stdout.write(f"route {args.name} is gone\n")
        return 0
    secret = _find_secret(args) if args.form == "webhook" else ""
    where = {"url": args.url, "secret": secret} if args.form == "webhook" else {"argv": args.argv}
    fields = {**where, "on": args.on, "tenants": args.tenant, "waiting": args.waiting}
    kept = {name: value for name, value in fields.items() if value}
    change_file(home.notify_file, lambda text: add_route(home.notify_file, text, args.form, args.name, kept))
    if secret and args.secret_file is None:
        sys.stdout.write(f"secret: {secret}\n")
    sys.stdout.write(f"route {args.name} is set; `muster notify test {args.name}` sends a trial notice\n")
    return 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = WordParser(prog="muster notify")
    words = parser.add_subparsers(dest="word", required=True)
    add = words.add_parser("add", help="tell somebody more").add_subparsers(dest="form", required=True)
    webhook = add.add_parser("webhook", help="by a signed POST request to a URL")
    command = add.add_parser("command", help="by a command on the server's machine, which reads JSON")
    for form in (webhook, command):
        form.add_argument("name", help="what jobs name it by: muster run --notify NAME")
        form.add_argument("--on", action="append", default=[], choices=[kind.value for kind in Kind if kind != "trial"])
        form.add_argument("--tenant", action="append", default=[], help="of this one and all below; else of everybody")
        form.add_argument("--waiting", default="", metavar="TIME", help="when a job has waited too long (1h)")
    webhook.add_argument("url", help="https://…")
    webhook.add_argument("--secret-file", type=Path, help="a file with what signs the requests; else one is made")
    webhook.add_argument("--unsigned", action="store_true", help="do not sign")
    command.add_argument("argv", nargs="+", metavar="-- COMMAND", help="no shell reads it")
    words.add_parser("remove", help="tell somebody no more").add_argument("name")
    return parser.parse_args(argv)


def _find_secret(args: argparse.Namespace) -> str:
    """What signs the requests of a webhook. One that is made here is shown once, since the receiver needs it."""
    if args.unsigned:
        return ""
    if args.secret_file is not None:
        try:
            return str(args.secret_file.read_text(encoding="utf-8")).strip()
        except (OSError, UnicodeDecodeError) as error:
            raise RejectedError(Reason(Code.BAD_SETTINGS, str(args.secret_file), detail=str(error))) from error
    return secrets.token_urlsafe(SECRET_BYTES)


def change_file(path: Path, change: Callable[[str], str]) -> None:
    """Replace the file by what `change` makes of its text, so that nobody but the owner may read it."""
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        _replace(path, change(text).encode())
    except (OSError, UnicodeError) as error:
        raise _refusal(path, str(error)) from error


def _replace(path: Path, data: bytes) -> None:
    fresh = path.with_suffix(".new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def add_route(path: Path, text: str, form: str, name: str, fields: dict[str, Any]) -> str:
    """The text with a route more; RejectedError if there is one of that name, or it would not be in order."""
    before = _read(path, text)
    if any(name in before.get(each, {}) for each in FORMS):
        raise RejectedError(Reason(Code.ROUTE_TAKEN, name[:128]))
    lines = [f"[{form}.{_spell_key(name)}]", *(f"{key} = {_spell(value)}" for key, value in fields.items())]
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    fresh = f"{text}{gap}" + "\n".join(lines) + "\n"
    wanted = {**before, form: {**before.get(form, {}), name: fields}}
    checked = _checked(path, fresh, wanted)
    if form == "webhook":
        _check_address(path, fields["url"], before.get("allow", []))
    return checked


def _check_address(path: Path, url: str, allow: list[str]) -> None:
    """Nothing would ever arrive there: that is better told now than by a notice that is missing."""
    try:
        check_address(url, read_ranges(allow))
    except ForbiddenError as error:
        raise _refusal(path, f"{error}; a line such as `allow = ['10.20.0.0/16']` at its top lets it") from error


def drop_route(path: Path, text: str, name: str) -> str:
    """The text without a route; RejectedError if there is none of that name, or it cannot be cut out."""
    before = _read(path, text)
    form = next((each for each in FORMS if name in before.get(each, {})), None)
    if form is None:
        known = ", ".join(sorted(key for each in FORMS for key in before.get(each, {})))
        raise RejectedError(Reason(Code.UNKNOWN_ROUTE, name[:128], detail=known or "none"))
    wanted = {**before, form: {key: value for key, value in before[form].items() if key != name}}
    if not wanted[form]:
        del wanted[form]
    return _checked(path, _cut_section(text, form, name), wanted)


def _cut_section(text: str, form: str, name: str) -> str:
    """The text without a section: from its head to its last line that says anything."""
    lines, escaped = text.splitlines(keepends=True), re.escape(name)
    head = re.compile(rf"""\s*\[\s*{form}\s*\.\s*(?:{escaped}|"{escaped}"|'{escaped}')\s*\]""")
    first = next((at for at, line in enumerate(lines) if head.match(line)), len(lines))
    end = next((at for at in range(first + 1, len(lines)) if lines[at].lstrip().startswith("[")), len(lines))
    while end > first + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return "".join(lines[:first] + lines[end:])


def _checked(path: Path, text: str, wanted: dict[str, Any]) -> str:
    """The text, if it says what is wanted and nothing else."""
    parse_routes(path, text)
    if _read(path, text) != wanted:
        raise _refusal(path, "this cannot be done without changing more: edit it by hand")
    return text


def _read(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _refusal(path, str(error)) from error


def _spell_key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _spell(name)


def _spell(value: object) -> str:
    """A text, or a list of them, in TOML: JSON but for one sign."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _refusal(path: Path, detail: str) -> RejectedError:
    return RejectedError(Reason(Code.BAD_SETTINGS, str(path), detail=detail))
