"""The one table of README.md, made from the committed reference results. It computes nothing.

`python -m bench.report.readme` writes it into the README; a test compares it, so that the two cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.report.conditions import CellIndex, condition, grouped
from bench.report.tables import Ordered
from bench.report.values import Row, fixed

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "results" / "reference"
BEGIN, END = "<!-- table: python -m bench.report.readme -->", "<!-- end of table -->"
_PUBLISHED = {
    ("stagger", "published", 2): "1.57", ("stagger", "published", 3): "1.75", ("stagger", "published", 4): "1.96",
    ("stagger", "distinct", 4): "0.77 (later, its author)", ("packed", "published", 4): "1.95 in sum (later)",
}  # fmt: skip
_NAMES = {
    ("stagger", "published"): "PTI's published loop, {} streams",
    ("stagger", "distinct"): "the same, each token said once, {} streams",
    ("packed", "published"): "{} different prompts in one batch",
    ("jacobi", "published"): "guesses of the step before, window {}",
    ("lookup", "published"): "prompt lookup, up to {draft} guesses copied from the text before",
    ("twin", "published"): "a twin at fewer bits ({twin}) drafts up to {draft}",
    ("adapter", "published"): "a twin with a LoRA adapter drafts up to {draft}",
    ("draft", "published"): "a smaller model drafts up to {draft}",
    ("mtp", "published"): "the model's nextn head drafts up to {draft}",
    ("lookup_mtp", "published"): "lookup up to {draft}, or the nextn head",
}


def table(findings: Any) -> str:
    """Markdown: for each machine a condition line, then greedy speed-ups over plain decoding, one row an arm."""
    ordered = Ordered(findings)
    index = CellIndex.of(ordered)
    rows = [
        row for row in ordered.rows("speedup")
        if row["prompt_class"] == "all" and row["temperature"] == 0 and row["method"] != "autoregressive"
    ]  # fmt: skip
    parts = [_part(members, index) for _, members in grouped(rows, index)]
    return "\n\n".join(parts)


def _part(rows: Sequence[Row], index: CellIndex) -> str:
    answers = [row for row in rows if row["scope"] == "answer"]
    sums = {row["cells"][0]: row for row in rows if row["scope"] == "aggregate"}
    lines = [
        f"Conditions: {condition(answers, index)}; temperature 0. Speed-ups over plain decoding, with 95 % intervals.",
        "",
        "| way of decoding | one answer | in sum over streams | every emit counted | published | output |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    order = list(_NAMES)
    for row in sorted(answers, key=lambda row: (order.index((row["method"], row["emission"])), row["streams"])):
        lines.append(_line(row, sums.get(row["cells"][0])))
    return "\n".join(lines)


def _line(row: Row, together: Row | None) -> str:
    kind = (row["method"], row["emission"])
    drafted = row["rebuild"] == "mtp" or "drafter" in row
    cells = [
        _name(row),
        f"**{_interval(row)}**",
        _interval(together) if together else "the same",
        fixed(row["counted_speedup"], 2) if row["counted_per_round"] != row["tokens_per_round"] else "the same",
        "none" if drafted else _PUBLISHED.get((*kind, row["streams"]), "none"),
        row["lossless"],
    ]
    return "| " + " | ".join(cells) + " |"


def _name(row: Row) -> str:
    """What the arm is, in words."""
    name = _NAMES[row["method"], row["emission"]].format(row["streams"], **row)
    if row["rebuild"] == "mtp":
        name += ", the nextn head guesses for the leading one"
    if "drafter" in row:
        name += f", each with up to {row['draft']} guesses of {row['drafter']}"
    return name + (", gated" if row.get("gate") else "")


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
    from bench.store import load_cell, whole_cells

    readme = ROOT / "README.md"
    cells = [load_cell(folder) for folder in whole_cells(REFERENCE)]
    readme.write_text(put(readme.read_text(), table(judge(cells))))


if __name__ == "__main__":
    main()
