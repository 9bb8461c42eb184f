"""The report's figures as files: SVG, PDF and PNG of each, and figures.csv, which says what each rests on.

Knows nothing about how a figure is drawn. No date and no version goes into a file: equal input gives equal bytes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.judge.tables import named
from bench.plain_text import csv_cell
from bench.report.tables.conditions import CellIndex
from bench.report.tables.csv_files import Ordered
from bench.report.tables.files import open_folder, remove_file, write_file
from bench.report.tables.values import Row

if TYPE_CHECKING:
    from bench.report.figures.canvas import Drawing

_HERE = "bench.report.figures"
FIGURES = {
    "speedup": ("speedup", f"{_HERE}.charts:speedup"),
    "round_time": ("decomposition", f"{_HERE}.charts:round_time"),
    "step_cost": ("step_cost", f"{_HERE}.curves:step_cost"),
    "predictions": ("predictions", f"{_HERE}.scatter:predictions"),
    "acceptance": ("acceptance", f"{_HERE}.curves:acceptance"),
    "tokens_over_time": ("timeline", f"{_HERE}.curves:tokens_over_time"),
    "kernel_share": ("kernels", f"{_HERE}.kernels:kernel_share"),
    "kernel_cost": ("kernels", f"{_HERE}.kernels:kernel_cost"),
    "kernel_roofline": ("kernels", f"{_HERE}.kernels:kernel_roofline"),
}
"""By name: the table of the findings that a figure is drawn from, and what draws it, imported when it does."""
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
    # The usual level 6 takes three times as long.
    packed: dict[str, Any] = {"pil_kwargs": {"compress_level": 3}} if kind == "png" else {}
    drawing.figure.savefig(buffer, format=kind, dpi=PIXELS_PER_INCH, metadata=_metadata(kind, drawing), **packed)
    return buffer.getvalue()


def draw(name: str, tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Drawing | None:
    """One figure, or None when its table has no rows for it."""
    drawer: Callable[..., Drawing | None] = named(FIGURES[name][1])
    return drawer(tables, claims, index)


def write_figures(findings: Any, claims: Sequence[Row], out: Path) -> list[Path]:
    """Writes the figures into `out`/figures and returns their paths; figures.csv comes last.

    A figure of an earlier report that has no rows any more is removed; files of other names are left alone.
    Raises UserError when the folder cannot be written.
    """
    tables = Ordered(findings)
    return started(tables, claims, CellIndex.of(tables), Path(out) / "figures")()


def started(
    tables: Ordered, claims: Sequence[Row], index: CellIndex, folder: Path, pool: Executor | None = None
) -> Callable[[], list[Path]]:
    """Has the processes of `pool` start to draw; what it returns waits for them, or draws where there is no pool."""
    open_folder(folder)
    # Each figure gets the table that it shows, and no more: it is copied to another process.
    needed = [tables.only(table) for table, _ in FIGURES.values()]
    spread = pool.map if pool else map
    told = spread(partial(_write_figure, claims=claims, index=index, folder=folder), FIGURES, needed)
    return lambda: _finished(dict(zip(FIGURES, told, strict=True)), folder)


def load_drawing() -> None:
    """Imports what drawing needs: matplotlib takes longer to load than two figures take to draw."""
    for name in ("figure", "backends.backend_agg", "backends.backend_svg", "backends.backend_pdf"):
        import_module(f"matplotlib.{name}")


def _write_figure(
    name: str, tables: Ordered, claims: Sequence[Row], index: CellIndex, folder: Path
) -> list[str] | None:
    """Writes a figure in every format, or removes an earlier one; returns its line of figures.csv."""
    from bench.report.figures.canvas import drawing_style

    with drawing_style():
        drawing = draw(name, tables, claims, index)
        for kind in FORMATS:
            if drawing is None:
                remove_file(folder / f"{name}.{kind}")
            else:
                write_file(folder / f"{name}.{kind}", _rendered(drawing, kind))
    if drawing is None:
        return None
    return [name, drawing.title, drawing.condition, drawing.left_out, " ".join(drawing.cells) or "none"]


def _finished(told: dict[str, list[str] | None], folder: Path) -> list[Path]:
    """Writes figures.csv; returns the paths of all files that there are now."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([csv_cell(word) for word in line] for line in told.values() if line)
    written = [folder / f"{name}.{kind}" for name, line in told.items() if line for kind in FORMATS]
    return [*written, write_file(folder / "figures.csv", out.getvalue())]
