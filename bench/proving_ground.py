"""`python -m bench.proving_ground FOLDER PAGE`: the page of all leagues, made of the reports that each wrote.

A file of the folder is one league's `--report NAME.json`, or `NAME-2.json` for a part that was played again. A league
of which the folder has nothing keeps its section of the page, so that leagues can be played one by one. Nothing on the
page is written by hand but its first lines: what each league may know is the table that the kernel's door is fed by,
and every figure carries the command, the date and the commit that made it. A league that was never played is named.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec

from bench.league import LEAGUES
from bench.standings import BOUND, Figure, Standing, goals_of, standings_of
from muster.simulator.traces.sight import SEEN

HEAD: Final = """# The proving ground

The production kernel on traces that others published, beside the policies that they published, with bounds. Every
policy is a Profile of the same kernel. `bound` is no policy: nobody can be better, not even who knows all, and in
brackets stands how far a result is from it, (result - bound) / bound. `hindsight` is what could have been reached by
who knows the whole stream. In `faults` the bound is a mean, for faults that come evenly, so luck may pass it. CPU times
of a policy that came first contain the compiler. Made by `make league`; do not edit.
"""
NAMES: Final = """## Who is who

`muster` is whom the goals are for. In `rigid`, `philly` and `faults` it is one and the same: a tier whose jobs take
turns by what was learned of run times, with a guard for who is owed. `tuned` is its one variant, in `rigid`: nobody is
kept for having been stopped before, and it has no guard, as months of overload leave nothing to guard. It has no place
in `philly`, where it loses to the default. In `prediction`, `muster` is the adviser on run times of every
server; in `deadline`, an adviser on deadlines. In `packing`, `default` is the Profile that every fleet begins with and
by which all other leagues place their jobs, and `muster` its one variant. Both go through the same door; `muster`
weighs `pattern`, `price`, `displacement` and `stranding`, which see every device of a node and what was learned of
those who come. It is not the default for its speed: what `default` weighs is the same for all nodes of a cell of the
index, so that it compares cells, and `muster` has to look at every node that fits.{speeds}
"""
SPEEDS: Final = """ On the fleet at hand they decide {default:,.0f} and {muster:,.0f} times in a CPU second (the medians
of `decisions_per_s`), and the larger the fleet the further they are apart."""
KNOWN: Final = """## What each league may know

What the kernel is shown of a job when it is submitted; how long it runs is never among it. `sjf`, `srtf`, `srsf` and
`themis` are oracles: they are told run times beside the kernel's door, and say so; `easy` and `conservative` are told
them as limits. In `deadline` every player is, as those who published the trace profile their jobs first. `fgd` is given
the mix of the whole list, as it was published; `muster` and `tuned` learn from what has come and ended so far.

Two schedules of the same policy differ by chance: a tie that ends otherwise moves an average of `rigid` or `philly` by
one to three parts of a hundred. Of less than that nothing follows.

`philly` has published averages of two who know every run time, for one pool without nodes and free restarts: 7.02 and
4.83 h of `sjf`, 4.27 and 3.75 h of `srsf`. Here `sjf` comes 8 and 6 % below them: while the shortest finds no room,
whoever fits may go. `srsf` (4.757 and 3.826 h with `--policies srsf`, ten minutes of CPU) comes 11 and 2 % above them:
it pays for restarts, finds places on nodes, and stops nobody more than 32 times; published are up to 4,521 stops of one
job.

The published averages of `srtf`, `srsf` and `tiresias` on the lists of `rigid` come from a simulator that takes each
iteration for 1.5 % longer than the lists say (Muri, SIGCOMM 2022), and at every submit and end takes 4 to 46 s from
whoever runs (`overhead_dict`); here a restart alone costs. Played with the first of the two (`avg_jct_s_slowed`),
`srtf` and `srsf` come within 3 % of all that were simulated for the lists at hand, and within 5 % of those of one list
that come from a testbed; else they are up to 7.1 % below. `blind`, `muster` and `tuned` are measured by what was
published of others in the same way, on the longer run times. `tiresias` has that simulator's queues, and comes within
13 % of its published averages, on either side: there those wait first in a queue who came into it first, here those who
were submitted first.

What others published is in `bench/published.csv`, by list, with its sources; no league reads it. With `--published`
what was played is measured by it afterwards: `..._off_published` is how far a policy is from its own published figure,
`..._of_published_...` what part of somebody else's published figure was reached.

In `deadline`, eleven mixes were made of the list that the rule of `muster` was not chosen on (samples, a part of it,
more and fewer nodes, other gaps, slacks and widths, a part of it soft or without deadlines). It meets more strict
deadlines than both others on seven of them, as many on two, and on two thin samples under long overload up to half a
part of a hundred fewer than `elastic`. Where some are soft it gives up those of them that strict ones leave no
room for: on six smaller mixes with a third or half of them soft it meets 0.86 to 0.99 of these, and `elastic` 0.88 to
0.98, which meets fewer strict ones on all six. On one of them, on a single node, those without a deadline wait 0.8 %
longer than with `elastic`. Four of the six were in sight when the rule was chosen.

In `prediction`, 123 variants were made of the lists and of dice: parts in time and by owners, merged lists, run times
that are shuffled, or change three- or tenfold in the middle, no limits, no names, no owners, ten times as dense. The
constants of the rule were chosen with them in sight. Some 12 are covered outside of 75 to 85 % (23 before that), and
some 37 are wider than 1.5 median run times (64). Not all can be neither: where run times differ by a factor of 5.7 at
one standard deviation, and nothing tells them apart, the best range of 1.3 median run times holds for 56 in a hundred,
so with 46 long ones 75 hold, and where they differ more, fewer.

`themis` is the policy as its paper tells it, and not the published figures of it on these traces: it is better than
those on all lists, and than `muster` on two that all begin at once, for it knows every run time. The simulator that
made those (Muri, SIGCOMM 2022, `themis_sim_jobs`) gives no leases: it shares out anew when a job comes or ends. It
counts what a job would need alone in iterations and what it waits in seconds, so that slow iterations pass for unfair
treatment; whoever never ran goes before all others; and where its solver fails all parts are equal. Its rules, written
down again and played on one pool, come out 10 % above the published average of trace1 and 5 % below that of trace3, but
at 2.3 and 2.5 times those of the lists that all begin at once; with equal parts, 25 to 76 % above all four.

| league | sees |
|---|---|
"""


def main(folder: Path, page: Path) -> None:
    """Write the page from the results in a folder."""
    results: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.json"), key=lambda path: path.stem):
        results.setdefault(path.stem.split("-")[0], []).append(msgspec.json.decode(path.read_bytes()))
    known = sections_of(page.read_text(encoding="utf-8")) if page.exists() else {}
    page.write_text(make_page(results, known), encoding="utf-8")


def make_page(results: dict[str, list[dict[str, Any]]], known: dict[str, str] | None = None) -> str:
    """The whole page: what was played, and what is known of the other leagues."""
    seen = "\n".join(f"| {league} | {', '.join(fields)} |" for league, fields in SEEN.items())
    sections = (known or {}) | {league: section_of(league, results[league]) for league in LEAGUES if league in results}
    parts = [HEAD, NAMES.format(speeds=_tell_speeds(sections.get("packing", ""))), KNOWN + seen + "\n"]
    parts += [sections[league] for league in LEAGUES if league in sections]
    missing = [league for league in LEAGUES if league not in sections]
    if missing:
        parts.append(f"## Not played for this page\n\n{', '.join(missing)}: no figures, rather than old ones.\n")
    return "\n".join(parts)


def _tell_speeds(packing: str) -> str:
    """How fast both Profiles of packing are, by the table of their section, if it was ever played."""
    lines = packing.partition("| decisions_per_s ")[2].partition("\n\n")[0].splitlines()
    rows = [[cell.strip().replace(",", "") for cell in line.strip("|").split("|")] for line in lines]
    if not rows or not {"default", "muster"} <= set(rows[0]):
        return ""
    places = {name: rows[0].index(name) for name in ("default", "muster")}
    return SPEEDS.format(**{name: median(float(row[at]) for row in rows[2:]) for name, at in places.items()})


def sections_of(page: str) -> dict[str, str]:
    """The sections of the leagues on a page."""
    parts = (part.split("\n", 1) for part in f"\n{page}".split("\n## ")[1:])
    return {title: f"## {title}\n{text.rstrip()}\n" for title, text in parts if title in LEAGUES}


def section_of(league: str, results: list[dict[str, Any]]) -> str:
    """One league: how it was run, its goals, and a table for each measure. Where a part was played again, it counts."""
    metrics = {name: metric for result in results for name, metric in result["metrics"].items()}
    standings = standings_of(metrics)
    origins = (f"`{result['command']}`, {result['date']}, {result['commit']}" for result in results)
    lines = [f"## {league}", "", "; then ".join(origins), ""]
    lines += _tell_goals(standings)
    for table in standings:
        lines += [*table_of(table), ""]
    return "\n".join(lines)


def table_of(table: Standing) -> list[str]:
    """One table: a row for each list, a column for each policy."""
    policies = table.policies
    head = [f"| {table.measure} ({table.unit}) | {' | '.join(policies)} |", "|---" * (len(policies) + 1) + "|"]
    rows = (f"| {stem} | {' | '.join(_cell(row, policy) for policy in policies)} |" for stem, row in table.rows.items())
    return [*head, *rows]


def _tell_goals(standings: list[Standing]) -> Iterator[str]:
    goals = list(goals_of(standings))
    if goals:
        met = sum(figure.is_met for _, figure in goals)
        yield f"Goals met: {met} of {len(goals)}." + ("" if met == len(goals) else " Missed:")
        yield ""
        missed = [(name, figure) for name, figure in goals if not figure.is_met]
        yield from (f"- {name}: {figure.value:,g}, goal {figure.goal:,g}" for name, figure in missed)
        if missed:
            yield ""


def _cell(row: dict[str, Figure], policy: str) -> str:
    if policy not in row:
        return ""
    over = None if policy == BOUND else row[policy].over(row.get(BOUND))
    return f"{row[policy].value:,g}" + ("" if over is None else f" ({over:+.3f})")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
