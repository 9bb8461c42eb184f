"""What a sweep ends with: a row for each of its contrasts, as benchmarks print them. Computes nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from bench.judge.tables.contrast import AGGREGATE
from bench.plain_text import plain_text
from bench.report.tables.arms import describe, is_void, of_all_prompts
from bench.report.tables.conditions import CellIndex, grouped
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import MISSING, Row, cells_of, fixed, interval, line
from bench.report.terminal.trials import memory_lines, trial_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

HEADINGS = ("speed-up", "95 %", "in sum", "output", "A/A")


def print_speedups(findings: Any, console: Console, only: Collection[str] | None = None) -> None:
    """Prints a table for each machine, build and model: speed of one answer over plain decoding, and in sum.

    Below it a sentence for each build or setting on trial. Prints nothing where nothing was compared. `only` are ids
    of the cells to tell; all by default.
    """
    tables = Ordered(findings)
    index = CellIndex.of(tables)
    rows = [row for row in of_all_prompts(tables.rows("speedup")) if _told(row, only)]
    sums = {tuple(cells_of(row)): row for row in rows if row["scope"] == AGGREGATE}
    answers = [row for row in rows if row["scope"] != AGGREGATE]
    for (machine, build, model, quantization), members in grouped(answers, index):
        console.print()
        console.print(_text(f"over plain decoding: {model} {quantization} on {machine}, engine {build}"), style="bold")
        console.print(_table(members, sums, index))
    tried = [row for row in tables.rows("trials") if _told(row, only)]
    served = [row for row in tables.rows("controls") if tried and _told(row, only)]
    for sentence in (*trial_lines(tried), *memory_lines(served)):
        console.print(_text(sentence))


def _told(row: Row, only: Collection[str] | None) -> bool:
    return only is None or any(cell in only for cell in cells_of(row))


def _table(rows: Sequence[Row], sums: dict[tuple[str, ...], Row], index: CellIndex) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="")
    table.add_column("arm", overflow="fold")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in ("output", "A/A") else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(_text, (describe(row, index), *_figures(row, sums.get(tuple(cells_of(row)))))))
    return table


def _figures(row: Row, together: Row | None) -> tuple[str, ...]:
    """What `HEADINGS` name. A void row says only that; why is in the report."""
    output, again = line(row["lossless"]), line(row["again"])
    if is_void(row):
        return "void", MISSING, MISSING, output, again
    return (fixed(row["speedup"], 2), interval(row["ci_low"], row["ci_high"]),
            fixed(together["speedup"], 2) if together else "same", output, again)  # fmt: skip


def _text(text: str) -> Any:
    from rich.text import Text

    return Text(plain_text(text))
