"""Which rows of the table of cells tell of one that nothing could be read from or judged."""

from __future__ import annotations

from collections.abc import Sequence

from bench.judge.tables.cell import DAMAGED
from bench.report.tables.values import Row, get


def damaged_rows(cells: Sequence[Row]) -> list[Row]:
    """Rows of cells that cannot be read or judged."""
    return [row for row in cells if get(row, "state") == DAMAGED]
