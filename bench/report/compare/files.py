"""compare.md and compare.csv. Computes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.judge.compare.rows import compared
from bench.judge.tables.compare import NOT_COMPARABLE, ONLY, OUTCOMES, Comparison
from bench.report.compare import words
from bench.report.page.section import escaped
from bench.report.tables.csv_files import table_text
from bench.report.tables.files import open_folder, write_file

PAGE, TABLE = "compare.md", "compare.csv"


def write_comparison(rows: Sequence[Comparison], out: Path) -> Path:
    """Writes both into the folder `out`, which it makes; returns the page. Raises UserError when it cannot."""
    open_folder(out)
    write_file(out / TABLE, table_text("compare", rows))
    folders = dict.fromkeys(row.folder for row in rows)
    parts = [_part([row for row in rows if row.folder == folder]) for folder in folders]
    return write_file(out / PAGE, "\n".join(["# Side by side", "", *_legend(), *parts]))


def _legend() -> list[str]:
    return ["A ratio is the compared figure over the base's, with Welch's 95 % interval on logarithms, for the texts",
            "that both ran. `docs/compare.md` tells more, and `compare.csv` has every column.", "",
            *(f"- *{name}*: {told}" for name, told in OUTCOMES.items()), ""]  # fmt: skip


def _part(rows: Sequence[Comparison]) -> str:
    lines = [f"## {escaped(words.title(rows))}", "", f"{escaped(words.counts(rows))}.", ""]
    if chance := words.chance(rows):
        lines += [chance, ""]
    lines += _listed("What changed", words.changes(rows))
    if told := compared(rows):
        lines += [_row(words.HEADINGS), _row(["---"] * len(words.HEADINGS))]
        lines += [*(_row([escaped(one) for one in words.cells(row)]) for row in _ordered(told)), ""]
    for outcome, heading in ((NOT_COMPARABLE, "Not comparable"), (ONLY, "On one side only")):
        lines += _listed(heading, words.reasons(rows, outcome))
    return "\n".join(lines)


def _ordered(rows: Sequence[Comparison]) -> list[Comparison]:
    """What got worse comes first, each outcome in the order of the cells."""
    return sorted(rows, key=lambda row: list(OUTCOMES).index(row.outcome))


def _listed(heading: str, told: Sequence[str]) -> list[str]:
    return [f"### {heading}", "", *(f"- {escaped(one)}" for one in told), ""] if told else []


def _row(values: Sequence[str]) -> str:
    return f"| {' | '.join(values)} |"
