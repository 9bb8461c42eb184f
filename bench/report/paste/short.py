"""A report in short: Markdown to paste into a post, with what a reader needs to doubt it. Computes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.judge.summary import Summary
from bench.judge.tables.contrast import AGGREGATE
from bench.plain_text import markdown
from bench.report import summary as words
from bench.report.page.section import escaped
from bench.report.tables.arms import describe, is_void, of_all_prompts
from bench.report.tables.conditions import CellIndex, condition, grouped
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import MISSING, Row, cells_of, fixed, interval, line

TABLES = ("speedup", "cells")
"""What a post is made of."""
HEADER = ("way of decoding", "one answer (95 %)", "in sum", "output")
MOST_ROWS = 12
"""Of a machine and model; a post is no report."""


def text(summary: Summary, findings: Any) -> str:
    """The post, a line of conditions above each table."""
    tables = Ordered(findings)
    index = CellIndex.of(tables)
    lines = [f"- {words.QUIET_TITLE} {markdown(f'{name}: {verdict}. {sentence}')}"
             for verdict, name, sentence in words.machines(summary)] or [words.NO_CONTRAST]  # fmt: skip
    lines = [markdown(words.only(summary)), "", *lines] if summary.only else lines
    lines = [*(f"> Missing: {markdown(one.sentence)}" for one in summary.missing), *lines, ""]
    told = [one for one in words.told(summary) if one.verdict != "not_run"]
    other = len(words.left_out(summary))
    if summary.headlines:
        lines += [f"**{words.claims_title(summary)}**", ""]
        lines += [f"- **{one.verdict}**: {markdown(one.says)} {markdown(one.why)} ({markdown(words.basis(one))})"
                  for one in told]  # fmt: skip
        left = len(summary.headlines) - len(told) - other
        lines += [f"- and {left} that nothing here measures"] if left else []
        lines += [f"- and {other} that {markdown(summary.only)} leaves out"] if other else []
        lines.append("")
    for _, members in grouped(of_all_prompts(tables.rows("speedup")), index):
        lines += _table(members, index)
    lines.append(f"{words.total(summary)}. Speed-ups are of distinct tokens over plain decoding, interleaved in one "
                 "process.")  # fmt: skip
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[Row], index: CellIndex) -> list[str]:
    sums = {tuple(cells_of(row)): row for row in rows if row["scope"] == AGGREGATE}
    answers = [row for row in rows if row["scope"] != AGGREGATE]
    body = [_row(row, sums.get(tuple(cells_of(row))), index) for row in answers[:MOST_ROWS]]
    left = len(answers) - len(body)
    made = [markdown(condition(rows, index)), "", *map(_line, (HEADER, ["---"] * len(HEADER), *body)), ""]
    return [*made, f"and {left} more rows", ""] if left else made


def _row(row: Row, together: Row | None, index: CellIndex) -> tuple[str, ...]:
    name = escaped(describe(row, index))
    if is_void(row):
        return name, "void", MISSING, escaped(line(row["lossless"]))
    return (name, f"{fixed(row['speedup'], 2)} ({interval(row['ci_low'], row['ci_high'])})",
            fixed(together["speedup"], 2) if together else "same", escaped(line(row["lossless"])))  # fmt: skip


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
