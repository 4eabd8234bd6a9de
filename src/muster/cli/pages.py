"""`muster explain`: the page of a code, as the reference has it. It asks nobody."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import click

PACKED: Final = Path(__file__).with_name("codes.md")
"""Where the reference is in an installed package; in a tree of sources it is among the documents."""
SOURCE: Final = Path(__file__).parents[3] / "docs" / "reference" / "codes.md"
_PAGE: Final = re.compile(r"^### (?P<code>M\d{3}) (?P<name>\w+)\n(?P<text>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")


@click.command()
@click.argument("codes", nargs=-1, metavar="[CODE]...")
def explain(codes: tuple[str, ...]) -> None:
    """Explain codes such as M201: what each means, an example, and the fix. Without one, list them."""
    pages = read_pages()
    if not codes:
        for code, (name, _) in sorted(pages.items()):
            click.echo(f"{code}  {name.replace('_', ' ')}")
        return
    for code in codes:
        known = f"M{code}" if code.isdigit() else code.upper()
        if known not in pages:
            raise click.UsageError(f"there is no code {code!r}; `muster explain` lists them")
        name, text = pages[known]
        click.echo(f"{known} {name.replace('_', ' ')}\n\n{text}")


def read_pages() -> dict[str, tuple[str, str]]:
    """Each code's name and page, without the marks of links."""
    text = (PACKED if PACKED.exists() else SOURCE).read_text("utf-8")
    return {page["code"]: (page["name"], _LINK.sub(r"\1", page["text"]).strip()) for page in _PAGE.finditer(text)}


COMMANDS = {"explain": explain}
