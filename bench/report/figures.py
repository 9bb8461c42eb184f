"""The report's figures as files: SVG, PDF and PNG of each, and figures.csv, which says what each rests on.

Knows nothing about how a figure is drawn. No date and no version goes into a file: equal input gives equal bytes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.report.conditions import CellIndex
from bench.report.files import open_folder, remove_file, write_file
from bench.report.tables import Ordered
from bench.report.values import Row

if TYPE_CHECKING:
    from bench.report.canvas import Drawing

NAMES = ("speedup", "round_time", "step_cost", "acceptance", "tokens_over_time")
FORMATS = ("svg", "pdf", "png")
COLUMNS = ("figure", "title", "condition", "left_out", "cells")
CREATOR = "bench.report"
PIXELS_PER_INCH = 150


def _metadata(kind: str, drawing: Drawing) -> dict[str, Any]:
    """What the file says about itself; None takes out what matplotlib would put there by itself."""
    about = f"Conditions: {drawing.condition}. Cells: {' '.join(drawing.cells) or 'none'}"
    if kind == "svg":
        return {"Title": drawing.title, "Description": about, "Creator": CREATOR, "Date": None}
    if kind == "pdf":
        dates = {"CreationDate": None, "ModDate": None}
        return {"Title": drawing.title, "Subject": about, "Creator": CREATOR, "Producer": CREATOR} | dates
    return {"Title": drawing.title, "Description": about, "Software": None}


def _rendered(drawing: Drawing, kind: str) -> bytes:
    buffer = io.BytesIO()
    drawing.figure.savefig(buffer, format=kind, dpi=PIXELS_PER_INCH, metadata=_metadata(kind, drawing))
    return buffer.getvalue()


def _side_file(drawings: dict[str, Drawing]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for name, drawing in drawings.items():
        cells = " ".join(drawing.cells) or "none"
        writer.writerow([name, drawing.title, drawing.condition, drawing.left_out, cells])
    return out.getvalue()


def draw_all(tables: Ordered, claims: Sequence[Row]) -> dict[str, Drawing]:
    """Every figure that the findings have rows for, by name, in the order of `NAMES`."""
    from bench.report import charts, curves

    index = CellIndex.of(tables)
    drawers = {
        "speedup": charts.speedup,
        "round_time": charts.round_time,
        "step_cost": curves.step_cost,
        "acceptance": curves.acceptance,
        "tokens_over_time": curves.tokens_over_time,
    }
    drawn = {name: drawers[name](tables, claims, index) for name in NAMES}
    return {name: drawing for name, drawing in drawn.items() if drawing is not None}


def write_figures(findings: Any, claims: Sequence[Row], out: Path) -> list[Path]:
    """Writes the figures into `out`/figures and returns their paths; figures.csv comes last.

    A figure of an earlier report that has no rows any more is removed; files of other names are left alone.
    Raises UserError when the folder cannot be written.
    """
    return draw_into(Ordered(findings), claims, Path(out) / "figures")


def draw_into(tables: Ordered, claims: Sequence[Row], folder: Path) -> list[Path]:
    """`write_figures` for tables that are in order already, into the folder itself."""
    from bench.report.canvas import drawing_style

    open_folder(folder)
    written: list[Path] = []
    with drawing_style():
        drawings = draw_all(tables, claims)
        for name, drawing in drawings.items():
            written += [write_file(folder / f"{name}.{kind}", _rendered(drawing, kind)) for kind in FORMATS]
    for name in set(NAMES) - set(drawings):
        for kind in FORMATS:
            remove_file(folder / f"{name}.{kind}")
    written.append(write_file(folder / "figures.csv", _side_file(drawings)))
    return written
