"""The one table of README.md, made from the committed reference results. It computes nothing.

`python -m bench.readme` writes it into the README; a test compares it, so that the two cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.report.tables.conditions import CellIndex, condition, grouped
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import Row, fixed

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "results" / "reference"
BEGIN, END = "<!-- table: python -m bench.readme -->", "<!-- end of table -->"
_PUBLISHED = {
    "stagger x2 emission=published": "1.57", "stagger x3 emission=published": "1.75",
    "stagger x4 emission=published": "1.96", "stagger x4 emission=distinct rebuild=exact": "0.77 (later, its author)",
    "packed x4": "1.95 in sum (later)",
}  # fmt: skip


def table(findings: Any) -> str:
    """Markdown: for each machine a condition line, then greedy speed-ups over plain decoding, one row an arm."""
    ordered = Ordered(findings)
    index = CellIndex.of(ordered)
    rows = [
        row for row in ordered.rows("speedup")
        if row["prompt_class"] == "all" and row["temperature"] == 0 and not row["plain"]
    ]  # fmt: skip
    parts = [_of_machine(members, index) for _, members in grouped(rows, index)]
    return "\n\n".join(parts)


def _of_machine(rows: Sequence[Row], index: CellIndex) -> str:
    answers = [row for row in rows if row["scope"] == "answer"]
    sums = {row["cells"][0]: row for row in rows if row["scope"] == "aggregate"}
    lines = [
        f"Conditions: {condition(answers, index)}; temperature 0. Speed-ups over plain decoding, with 95 % intervals.",
        "",
        "| way of decoding | one answer | in sum over streams | every emit counted | published | output |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in sorted(answers, key=lambda row: (row["guesses"], row["method"], row["label"])):
        lines.append(_line(row, sums.get(row["cells"][0])))
    return "\n".join(lines)


def _line(row: Row, together: Row | None) -> str:
    cells = [
        row["label"],
        f"**{_interval(row)}**",
        _interval(together) if together else "the same",
        fixed(row["counted_speedup"], 2) if row["counted_per_round"] != row["tokens_per_round"] else "the same",
        _PUBLISHED.get(row["short"], "none"),
        row["lossless"],
    ]
    return "| " + " | ".join(cells) + " |"


def _interval(row: Row) -> str:
    if row["void"]:
        return "void"
    return f"{fixed(row['speedup'], 2)} ({fixed(row['ci_low'], 2)} to {fixed(row['ci_high'], 2)})"


def put(text: str, made: str) -> str:
    """README with the table between its marks replaced."""
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return f"{text[:begin]}\n{made}\n{text[end:]}"


def main(arguments: Sequence[str] = ()) -> None:
    """Write the table into README.md. Raises `UserError` where a cell of the reference is damaged."""
    from bench.judge import judge
    from bench.records.cells import load_cell, whole_cells

    readme = ROOT / "README.md"
    cells = [load_cell(folder) for folder in whole_cells(REFERENCE)]
    readme.write_text(put(readme.read_text(), table(judge(cells))))


if __name__ == "__main__":
    main()
