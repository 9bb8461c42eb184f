"""The two tables of README.md, made from the committed reference results. It computes nothing.

They are about the model that a newcomer measures first; everything else is in the report. `python -m bench.readme`
writes them into the README; a test compares them, so that the two cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from bench.plan.config import CONFIGS
from bench.report.tables.conditions import CellIndex, condition
from bench.report.tables.csv_files import Ordered
from bench.report.tables.printed import markdown_table
from bench.report.tables.values import MISSING, Row, fixed, line
from bench.stored import sheets

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "results" / "reference"
BEGIN, END = "<!-- tables: python -m bench.readme -->", "<!-- end of tables -->"
_CLAIMS = {
    "stagger x4 emission=published": "pti.four_streams.speedup", "packed x4": "pti.packed.four.direction",
    "stagger x4 emission=distinct rebuild=exact": "pti.honest.four_streams.direction",
}  # fmt: skip
"""Whose published figure stands beside an arm, by what the arm is called in short."""


def default_model() -> str:
    """The model of a sweep that names none."""
    defaults = yaml.safe_load((CONFIGS / "config.yaml").read_text(encoding="utf-8"))["defaults"]
    return next(str(entry["model"]) for entry in defaults if isinstance(entry, dict) and "model" in entry)


def table(findings: Any) -> str:
    """Markdown: the default model at temperature 0, several streams first, then ways that guess."""
    ordered = Ordered(findings)
    index = CellIndex.of(ordered)
    rows = [
        row for row in ordered.rows("speedup")
        if row["prompt_class"] == "all" and row["temperature"] == 0 and not row["plain"]
        and row["model"] == default_model() and not row["void"]
    ]  # fmt: skip
    several = [row for row in rows if (row["streams"] or 1) > 1]
    alone = [row for row in rows if (row["streams"] or 1) == 1]
    return f"{_several(several, index)}\n{_alone(alone, index)}".rstrip()


def _several(rows: Sequence[Row], index: CellIndex) -> str:
    """Each way with its most streams, on every machine."""
    published = {claim.id: claim.published for claim in sheets("pti")}
    most: dict[tuple[str, str], Row] = {}
    for row in (row for row in rows if row["scope"] == "answer"):
        key = (line(row["machine"]), line(row["short"]).replace(f" x{row['streams']}", "", 1))
        if key not in most or (row["streams"], row["n_blocks"]) > (most[key]["streams"], most[key]["n_blocks"]):
            most[key] = row
    sums = {row["cells"][0]: row for row in rows if row["scope"] == "aggregate"}
    body = []
    for (machine, _), row in sorted(most.items(), key=_order):
        together = sums.get(row["cells"][0])
        counts = row["counted_per_round"] != row["tokens_per_round"]
        body.append([
            row["label"], machine, f"**{_interval(row)}**", _interval(together) if together else "the same",
            fixed(row["counted_speedup"], 2) if counts else "the same",
            fixed(published.get(_CLAIMS.get(row["short"], "")), 2) + (" in sum" if together else ""), row["lossless"],
        ])  # fmt: skip
    header = ("several streams", "machine", "one answer", "in sum", "every emit counted", "published, MI50", "output")
    return markdown_table(header, [["none" if word.startswith(MISSING) else word for word in one] for one in body],
                          f"Speed over plain decoding at temperature 0, with 95 % intervals. Conditions: "
                          f"{condition(list(most.values()), index)}.")  # fmt: skip


def _order(item: tuple[tuple[str, str], Row]) -> tuple[Any, ...]:
    """On each machine first what counts more than it says: that is what the claims are about."""
    (machine, name), row = item
    return machine, row["counted_per_round"] == row["tokens_per_round"], name


def _alone(rows: Sequence[Row], index: CellIndex) -> str:
    """Each way that guesses with its best and its worst setting, on every machine."""
    ways: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        ways.setdefault((line(row["machine"]), line(row["short"]).split(" ")[0] + _kind(row)), []).append(row)
    body = []
    for (machine, name), own in sorted(ways.items()):
        best, worst = (choose(own, key=lambda row: float(row["speedup"])) for choose in (max, min))
        body.append([f"`{name}`", machine, f"**{_interval(best)}**", line(best["label"]),
                     f"{_interval(worst)}, {len(own)} settings" if len(own) > 1 else "the only one"])  # fmt: skip
    header = ("guesses", "machine", "best setting, one answer", "which", "worst")
    return markdown_table(header, body, f"The same for guesses checked by the model. Conditions: "
                                        f"{condition(rows, index)}.")  # fmt: skip


def _kind(row: Row) -> str:
    """A method of several drafters is told by each."""
    kind = (row.get("parameters") or {}).get("type")
    return f" {kind}" if kind else ""


def _interval(row: Row) -> str:
    return f"{fixed(row['speedup'], 2)} ({fixed(row['ci_low'], 2)} to {fixed(row['ci_high'], 2)})"


def put(text: str, made: str) -> str:
    """README with the tables between its marks replaced."""
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return f"{text[:begin]}\n{made}\n{text[end:]}"


def main(arguments: Sequence[str] = ()) -> None:
    """Write the tables into README.md. Raises `UserError` where a cell of the reference is damaged."""
    from bench.judge import judge
    from bench.records.cells import load_cell, whole_cells

    readme = ROOT / "README.md"
    cells = [load_cell(folder) for folder in whole_cells(REFERENCE)]
    readme.write_text(put(readme.read_text(), table(judge(cells))))


if __name__ == "__main__":
    main()
