"""Worked examples: the tables of a page, read by the tests that execute them, so that no page says what is not so."""

from __future__ import annotations

from pathlib import Path


def read_table(page: Path, heading: str) -> list[list[str]]:
    """The cells of the table whose first line begins so, row by row, without its heading."""
    lines = page.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    table: list[list[str]] = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    return table
