"""`python -m bench.proving_ground FOLDER PAGE`: the page of all leagues, made of what each printed with `--json`.

A file is one league. Its metrics are `<list>.<policy>.<measure>`: for each measure there is a table, with a row for
each list and a column for each policy. Nothing on the page is written by hand but its first lines.
"""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

HEAD = """# The proving ground

The production kernel on traces that others published, beside the policies that they published, with bounds. Every
policy is a Profile of the same kernel; a bound is the policy `bound`. Made by `make league`; do not edit.
"""


def main(folder: Path, page: Path) -> None:
    """Write the page from the results in a folder."""
    sections = [section_of(msgspec.json.decode(path.read_bytes())) for path in sorted(folder.glob("*.json"))]
    page.write_text("\n".join([HEAD, *sections]), encoding="utf-8")


def section_of(result: dict[str, Any]) -> str:
    """One league: how it was run, and a table for each measure."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    day = datetime.now(UTC).date().isoformat()
    lines = [
        f"## {result['bench']}",
        "",
        f"`python -m bench {result['bench']} --traces DIR --json`, {day}, {commit}",
        "",
    ]
    for measure, rows in tables_of(result["metrics"]).items():
        lines += [*table_of(measure, rows), ""]
    return "\n".join(lines)


def tables_of(metrics: dict[str, dict[str, Any]]) -> dict[str, dict[str, dict[str, str]]]:
    """By measure and list: what each policy reached."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for name, metric in metrics.items():
        stem, policy, measure = name.rsplit(".", 2) if name.count(".") >= 2 else (name, "", "figure")
        unit = f"{measure} ({metric['unit']})"
        found.setdefault(unit, {}).setdefault(stem, {})[policy] = f"{metric['value']:,g}"
    return found


def table_of(measure: str, rows: dict[str, dict[str, str]]) -> list[str]:
    """One table, the policies in the order in which they first appear."""
    policies = list(dict.fromkeys(policy for row in rows.values() for policy in row))
    head = [f"| {measure} | {' | '.join(policies)} |", "|---" * (len(policies) + 1) + "|"]
    return [
        *head,
        *(f"| {stem} | {' | '.join(row.get(policy, '') for policy in policies)} |" for stem, row in rows.items()),
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
