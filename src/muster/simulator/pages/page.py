"""The page around drawings: one file of HTML that needs nothing else, by day and by night, on paper and without sight.

It has no script, and its own policy forbids any: whatever a name contains, nothing of it can run or be fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from muster.simulator.pages.svg import say

WORDS_MAX: Final = 400

_STYLE: Final = """
:root { color-scheme: light dark; --paper: #ffffff; --text: #1b1f24; --soft: #57606a; --rule: #d5dae0; --card: #f6f8fa;
  --i0: #0b5cad; --i1: #b3401a; --i2: #1a7f4b; --i3: #7a3fb0; --i4: #8a6100; --i5: #a3195b; --i6: #0f7585;
  --i7: #4d5560; }
@media (prefers-color-scheme: dark) { :root { --paper: #0f1419; --text: #e6eaef; --soft: #a3adb8; --rule: #333c46;
  --card: #182028; --i0: #6cb1ff; --i1: #ff9d73; --i2: #63d297; --i3: #c79bff; --i4: #e0b64c; --i5: #ff8cc0;
  --i6: #5cd0e0; --i7: #b4bdc7; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .25rem; }
p, figcaption { color: var(--soft); margin: .25rem 0 .75rem; max-width: 46rem; }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .75rem; margin: 1.5rem 0; }
dl div { background: var(--card); border: 1px solid var(--rule); border-radius: 8px; padding: .6rem .8rem; }
dt { color: var(--soft); font-size: .85rem; } dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
figure { margin: 0; overflow-x: auto; } figure > svg { min-width: 34rem; }
svg { width: 100%; height: auto; display: block; }
svg text { font: 11px system-ui, sans-serif; fill: var(--soft); font-variant-numeric: tabular-nums; }
.up, .name { text-anchor: end; } .across { text-anchor: middle; } .name, .figure { fill: var(--text); }
.grid { stroke: var(--rule); } .wait { stroke: var(--soft); stroke-dasharray: 2 3; } .span, .bar { fill: var(--i0); }
.mark { stroke: var(--i1); stroke-width: 2; stroke-dasharray: 5 3; }
[class^=ink] { fill: none; stroke-width: 1.8; } [class^=fill] { stroke: none; opacity: .16; }
.ink0 { stroke: var(--i0); } .fill0 { fill: var(--i0); } .ink1 { stroke: var(--i1); stroke-dasharray: 7 3; }
.fill1 { fill: var(--i1); } .ink2 { stroke: var(--i2); stroke-dasharray: 2 3; }
.ink3 { stroke: var(--i3); stroke-dasharray: 9 3 2 3; } .ink4 { stroke: var(--i4); stroke-dasharray: 4 2; }
.ink5 { stroke: var(--i5); stroke-dasharray: 1 2; } .ink6 { stroke: var(--i6); stroke-dasharray: 12 4; }
.ink7 { stroke: var(--i7); stroke-dasharray: 5 2 1 2 1 2; }
.keys { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: 0; margin: .25rem 0 0; }
.keys svg { width: 28px; height: 8px; display: inline-block; margin-right: .4rem; vertical-align: middle; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .25rem; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } th { font-weight: 600; }
summary { cursor: pointer; color: var(--soft); } footer { margin-top: 3rem; color: var(--soft); font-size: .9rem; }
@media print { main { max-width: none; } h2, figure, dl div { break-inside: avoid; } }
"""


def make_page(title: str, lead: str, command: str, sections: Iterable[str]) -> str:
    """The whole file. Sections are made here; title, lead and command are anybody's words."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{say(title, WORDS_MAX)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{say(title, WORDS_MAX)}</h1>\n<p>{say(lead, WORDS_MAX)}</p>\n"
        f"<p><code>{say(command, WORDS_MAX)}</code></p>\n{''.join(sections)}"
        "<footer>Made by Muster. This page is complete in itself: it loads nothing and runs nothing.</footer>\n"
        "</main>\n</body>\n</html>\n"
    )


def tell_figures(pairs: Iterable[tuple[str, str]]) -> str:
    """The figures that somebody looks for first."""
    cards = (f"<div><dt>{say(name)}</dt><dd>{say(value)}</dd></div>" for name, value in pairs)
    return f"<dl>{''.join(cards)}</dl>\n"


def tell_drawing(title: str, about: str, drawing: str, table: str = "") -> str:
    """A section with a drawing; its figures as a table are behind a fold."""
    folded = f"<details><summary>The figures</summary>{table}</details>" if table else ""
    return (
        f"<section><h2>{say(title, WORDS_MAX)}</h2>"
        f"<figure><figcaption>{say(about, WORDS_MAX)}</figcaption>{drawing}</figure>{folded}</section>\n"
    )


def tell_table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first cell of a row is its name."""
    head = "".join(f'<th scope="col">{say(name)}</th>' for name in heads)
    lines = (
        f'<tr><th scope="row">{say(row[0])}</th>{"".join(f"<td>{say(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    return (
        f'<div class="scroll"><table><caption>{say(caption, WORDS_MAX)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )
