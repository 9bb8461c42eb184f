"""What a report says of cells that cannot be read or judged: a section of the page, and lines for the terminal.

Knows nothing about how a cell is damaged; the judge's row has the reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.report.page.section import Column, Section, ids_of, shown, tabulate
from bench.report.tables.csv_files import Ordered
from bench.report.tables.damaged import damaged_rows
from bench.report.tables.values import Row, line

MOST_LINES = 5
"""So many are told with their reasons in the terminal; the report has them all."""


def damaged(tables: Ordered) -> list[Section]:
    """The section of cells that nothing could be read from or judged, where there are any: it comes before all else."""
    rows = damaged_rows(tables.rows("cells"))
    columns: list[Column] = [
        *shown("cells", "machine"),
        ("cell", ids_of),
        *shown("cells", "reason"),
    ]
    told = f"cells that cannot be read or judged, {len(rows)} of {len(tables.rows('cells'))}"
    intro = (
        "These cells count for nothing in this report; every other cell was judged. The same sweep measures a cell "
        "again whose file cannot be read."
    )
    made = [tabulate(rows, columns, told, "cells.csv")]
    return [Section("damaged", "Damaged cells", intro, "", made)] if rows else []


def damaged_lines(cells: Sequence[Row]) -> list[str]:
    """What to say of the cells that could not be read or judged: how many, then the first ones with their reasons."""
    rows = damaged_rows(cells)
    if not rows:
        return []
    counts = "counts" if len(rows) == 1 else "count"
    lines = [f"{len(rows)} of {len(cells)} cell{'s' * (len(cells) > 1)} cannot be read or judged and {counts} for "
             "nothing; the same sweep measures a damaged cell again:"]  # fmt: skip
    lines += [f"  {line(row['machine'])}/{line(row['cell'])}: {line(row['reason'])}" for row in rows[:MOST_LINES]]
    return lines + ([f"  and {len(rows) - MOST_LINES} more"] if len(rows) > MOST_LINES else [])
