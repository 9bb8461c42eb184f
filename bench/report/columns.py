"""The dictionary of every column of the report's files, made from the types of their rows.

`python -m bench.report.columns` writes docs/columns.md; a test holds the file to what the types declare. It knows no
table.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.judge.columns import Column
from bench.judge.tables import columns_of, row_type
from bench.report.tables.csv_files import FILES

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "columns.md"
HEAD = """# Columns

Every column of every file in `reports/`, as its type in `bench/judge/tables` declares it; `python -m
bench.report.columns` writes this page. A value that is missing is `n/a`. A *share* is a part of 1, a *ratio* has no
unit. An interval holds 95 %. Conditions (settings of the engine, parameters of the arm) stand once a cell, in
`cells.csv`: the column `cells` names the rows there.
"""


def dictionary() -> str:
    """The page: a section a file, a line a column."""
    return "\n".join([HEAD, *(_section(name) for name in (*FILES, "compare"))])


def _section(name: str) -> str:
    shown = [one for one in columns_of(name).values() if one.written]
    what = (row_type(name).__doc__ or "").split("\n\n")[0]
    metrics = any(one.metrics for one in shown)
    head = ["column", "unit", "what it is", "interval", *(["claim metric"] if metrics else [])]
    lines = [f"## {name}.csv", "", " ".join(what.split()), "", _line(head), _line(["---"] * len(head))]
    lines += [_line(_words(one, metrics)) for one in shown]
    return "\n".join([*lines, ""])


def _words(one: Column, metrics: bool) -> list[str]:
    ends = f"`{one.low}`, `{one.high}`" if one.low else ""
    return [f"`{one.name}`", one.unit, one.help, ends, *([", ".join(one.metrics)] if metrics else [])]


def _line(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"


def main() -> None:
    """Write the page."""
    PAGE.write_text(dictionary(), encoding="utf-8")


if __name__ == "__main__":
    main()
