"""The table of verdicts that a sweep ends with in the terminal. Decides nothing and reads no file.

A long sheet is told in part: what the records here decided with its reason, what arithmetic or a source refuted on one
line each, the rest as totals. The report has every claim.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.plain_text import plain_text
from bench.report.tables import verdicts
from bench.report.tables.arms import prediction_line
from bench.report.tables.values import Row, get, line, number

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

COLOURS = {
    "refuted": "red",
    "misstated": "magenta",
    "reproduced": "green",
    "inconclusive": "yellow",
    "not_comparable": "blue",
    "not_run": "dim",
}
VERDICT_WIDTH = 14
NUMBER_WIDTH = 13
MAX_LISTED = 40
"""A sheet of at most so many claims is printed whole."""

DECIDED = ("refuted", "misstated", "reproduced", "inconclusive")
FROM_RECORDS = ("records", None)
JUDGED_BY = {"records": "records here", "arithmetic": "arithmetic", "fact": "a source", "projection": "projection"}


def print_verdicts(claims: Sequence[Row], out: Path, console: Console) -> None:
    """Prints the claims (name and numbers, then the reason), the totals, and where the report is.

    `out` is the folder of the report. Colour repeats the verdict's word, so nothing is lost without it.
    """
    from rich.text import Text

    whole = len(claims) <= MAX_LISTED
    shown = [claim for claim in verdicts.ordered(claims) if whole or _worth_a_line(claim)]
    if shown:
        console.print(_table(shown, whole, verdicts.on_several(claims)))
    if len(shown) < len(claims):
        console.print(_totals(claims))
    told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.totals(claims) if count)
    console.print(Text(f"{len(claims)} verdicts: {told}" if told else "No claim was judged."))
    if interval_verdicts := verdicts.on_intervals(claims):
        console.print(Text(f"{interval_verdicts} of them rest on an interval: at their edge chance reproduces 1 in 60 "
                           "and refutes 1 in 200."))  # fmt: skip
    rest = f" (with the other {len(claims) - len(shown)} claims)" if len(shown) < len(claims) else ""
    console.print(Text(plain_text(f"Report: {Path(out) / 'report.md'}{rest}")), soft_wrap=True)


def print_predictions(rows: Sequence[Row], console: Console) -> None:
    """Prints how far the cost model was off, where it predicted anything."""
    from rich.text import Text

    told = prediction_line(rows)
    if told:
        console.print(Text(plain_text(told)))


def _judged_by(claim: Row) -> str | None:
    found: str | None = get(claim, "judged_by")
    return found


def _worth_a_line(claim: Row) -> bool:
    verdict = verdicts.verdict_of(claim)
    return verdict == "refuted" or (verdict in DECIDED and _judged_by(claim) in FROM_RECORDS)


def _table(claims: Sequence[Row], whole: bool, several: bool) -> Table:
    """Outer table of verdict and claim; a claim is a grid of its own, so that the reason may use the whole width."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, expand=True, header_style="bold")
    table.add_column("verdict", width=VERDICT_WIDTH, no_wrap=True)
    table.add_column(_line("claim", "published", "measured", "bold"), ratio=1)
    # What was measured here first: the records decide, whatever the arithmetic of a document is worth.
    for claim in sorted(claims, key=lambda claim: _judged_by(claim) not in FROM_RECORDS):
        verdict = verdicts.verdict_of(claim)
        unit = claim.get("unit")
        numbers = (_short(claim.get("published"), unit), _short(claim.get("measured"), unit))
        body: list[Table | Text] = [_line(verdicts.name(claim, several), *numbers)]
        if whole or _judged_by(claim) in FROM_RECORDS:
            why = ". ".join(part for part in (verdicts.counted_and_distinct(claim), line(claim.get("reason"))) if part)
            body.append(Text(plain_text(why), style="dim", no_wrap=True, overflow="ellipsis"))
        table.add_row(Text(verdict, style=COLOURS.get(verdict, "")), Group(*body))
    return table


def _short(value: object, unit: object) -> str:
    """A value with its unit where both fit, else without."""
    text = verdicts.with_unit(value, unit)
    return text if len(text) <= NUMBER_WIDTH else line(number(value))


def _line(claim: str, published: str, measured: str, style: str = "") -> Table:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(expand=True, padding=(0, 0, 0, 2))
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for _ in range(2):
        # rich counts the padding as part of the width.
        grid.add_column(width=NUMBER_WIDTH + 2, justify="right", no_wrap=True, overflow="ellipsis")
    grid.add_row(*(Text(plain_text(text), style=style) for text in (claim, published, measured)))
    return grid


def _totals(claims: Sequence[Row]) -> Table:
    """How many verdicts of each kind came from where."""
    from rich import box
    from rich.table import Table

    counts = Counter((verdicts.verdict_of(claim), _judged_by(claim) or "records") for claim in claims)
    sources = [source for source in JUDGED_BY if any(key[1] == source for key in counts)]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("all verdicts, by")
    for source in sources:
        table.add_column(JUDGED_BY[source], justify="right")
    for verdict, count in verdicts.totals(claims):
        if count:
            table.add_row(verdict, *(str(counts[verdict, source]) for source in sources))
    return table
