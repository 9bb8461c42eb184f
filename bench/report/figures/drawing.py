"""The report's figures as files, with what each shows as a table, and captions.

Knows nothing about how a figure is drawn. No date and no version goes into a file: equal input gives equal bytes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.children import children
from bench.judge.tables import named
from bench.report.figures.captions import Told, figures_csv, figures_tex, told_of
from bench.report.figures.marks import Plan, marks_text
from bench.report.tables.conditions import CellIndex
from bench.report.tables.csv_files import Ordered
from bench.report.tables.files import open_folder, remove_file, write_file
from bench.report.tables.values import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HERE = "bench.report.figures"
FIGURES: dict[str, tuple[tuple[str, ...], str]] = {
    "claims": ((), f"{_HERE}.forest:claims"),
    "speedup": (("speedup",), f"{_HERE}.forest:speedup"),
    "streams": (("speedup",), f"{_HERE}.streams:streams"),
    "classes": (("speedup",), f"{_HERE}.classes:classes"),
    "trials": (("trials",), f"{_HERE}.forest:trials"),
    "round_time": (("decomposition",), f"{_HERE}.round_time:round_time"),
    "step_cost": (("step_cost",), f"{_HERE}.step_cost:step_cost"),
    "predictions": (("predictions",), f"{_HERE}.predictions:predictions"),
    "acceptance": (("acceptance",), f"{_HERE}.acceptance:acceptance"),
    "tokens_over_time": (("timeline",), f"{_HERE}.tokens:tokens_over_time"),
    "kernel_share": (("kernels",), f"{_HERE}.kernels:kernel_share"),
    "kernel_cost": (("kernels",), f"{_HERE}.kernels:kernel_cost"),
    "kernel_roofline": (("kernels",), f"{_HERE}.kernels:kernel_roofline"),
}
"""By name: the tables of the findings that a figure is drawn from, and what draws it, imported when it does."""
SCREEN = "svg"
"""What the page shows: one file, however high, with its title and its conditions in the picture."""
PRINT = ("pdf", "png")
"""Besides those: for paper, in a column's width too, with no title and no caption in the picture."""
ONE_COLUMN = "column"
"""Folder of the figures that are one column wide."""
CAPTIONS = "figures.tex"
CREATOR = "bench.report"


@dataclass(frozen=True, slots=True)
class _Sheet:
    """One file: its name without an ending, and what is in it."""

    stem: str
    figure: Figure
    kinds: tuple[str, ...]


def draw(name: str, tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Plan | None:
    """One figure, or None when its tables have no rows for it."""
    drawer: Callable[..., Plan | None] = named(FIGURES[name][1])
    return drawer(tables, claims, index)


def write_figures(findings: Any, claims: Sequence[Row], out: Path, processes: int = 1) -> list[Path]:
    """Writes the figures in every format and width into `out`/figures and returns their paths.

    A figure of an earlier report that has no rows any more is removed; files of other names are left alone.
    Raises UserError when the folder cannot be written.
    """
    tables = Ordered(findings)
    load_drawing()
    with children(processes) if processes > 1 else nullcontext() as pool:
        return started(tables, claims, CellIndex.of(tables), Path(out) / "figures", pool, paper=True)()


def started(
    tables: Ordered, claims: Sequence[Row], index: CellIndex, folder: Path, pool: Executor | None = None,
    paper: bool = False,
) -> Callable[[], list[Path]]:  # fmt: skip
    """Has the processes of `pool` start to draw; what it returns waits for them, or draws where there is no pool.

    Without `paper` only what a page shows is made; what an earlier call made for paper stays as long as it is the same
    drawing.
    """
    open_folder(folder)
    if paper:
        open_folder(folder / ONE_COLUMN)
    # Each figure gets the tables that it shows, and no more: they are copied to another process.
    needed = [tables.only(*names) for names, _ in FIGURES.values()]
    spread = pool.map if pool else map
    told = spread(partial(_write_figure, claims=claims, index=index, folder=folder, paper=paper), FIGURES, needed)
    return lambda: _finished(dict(zip(FIGURES, told, strict=True)), folder)


def load_drawing() -> None:
    """Imports what drawing needs: matplotlib takes longer to load than two figures take to draw."""
    for name in ("figure", "backends.backend_agg", "backends.backend_svg", "backends.backend_pdf"):
        import_module(f"matplotlib.{name}")


def _write_figure(
    name: str, tables: Ordered, claims: Sequence[Row], index: CellIndex, folder: Path, paper: bool
) -> Told | None:
    """Writes a figure in every format, or removes an earlier one; returns what is told of it elsewhere."""
    from bench.report.figures.style import drawing_style

    with drawing_style():
        plan = draw(name, tables, claims, index)
        if plan is None:
            _remove(folder, name, keep=())
            return None
        text = marks_text(plan)
        data = folder / f"{name}.csv"
        same = data.is_file() and data.read_bytes() == text.encode()
        files = {path.relative_to(folder).as_posix(): content for path, content in _files(folder, name, plan, paper)}
        # What is on paper is the same drawing as long as its marks are the same.
        if paper or not same:
            _remove(folder, name, keep=files)
        for path, content in files.items():
            write_file(folder / path, content)
        write_file(data, text)
    return told_of(name, plan, (*files, data.name))


def _files(folder: Path, name: str, plan: Plan, paper: bool) -> Iterator[tuple[Path, bytes]]:
    for sheet in _sheets(name, plan, paper):
        for kind in sheet.kinds:
            yield folder / f"{sheet.stem}.{kind}", rendered(sheet.figure, kind, plan)


def _sheets(name: str, plan: Plan, paper: bool) -> Iterator[_Sheet]:
    from bench.report.figures.layout import drawn
    from bench.report.figures.style import COLUMN, PAGE

    yield _Sheet(name, drawn(plan, PAGE, titled=True)[0], (SCREEN,))
    if not paper:
        return
    for width, where, kinds in ((PAGE, name, PRINT), (COLUMN, f"{ONE_COLUMN}/{name}", (SCREEN, *PRINT))):
        for place, figure in enumerate(drawn(plan, width, titled=False)):
            yield _Sheet(where + (f"-{place + 1}" if place else ""), figure, kinds)


def _remove(folder: Path, name: str, keep: Any) -> None:
    """Removes the files of a figure, whatever made them, but for those to keep."""
    for place in (folder, folder / ONE_COLUMN):
        for kind in (SCREEN, *PRINT, "csv"):
            for path in sorted([place / f"{name}.{kind}", *place.glob(f"{name}-[0-9]*.{kind}")]):
                if path.relative_to(folder).as_posix() not in keep:
                    remove_file(path)


def _metadata(kind: str, plan: Plan) -> dict[str, Any]:
    """What the file says about itself; None takes out what matplotlib would put there by itself."""
    about = f"Conditions: {plan.condition}. Cells: {' '.join(plan.cells) or 'none'}"
    if kind == "svg":
        return {"Title": plan.title, "Description": about, "Creator": CREATOR, "Date": None}
    if kind == "pdf":
        dates = {"CreationDate": None, "ModDate": None}
        return {"Title": plan.title, "Subject": about, "Creator": CREATOR, "Producer": CREATOR} | dates
    return {"Title": plan.title, "Description": about, "Software": None}


def rendered(figure: Figure, kind: str, plan: Plan) -> bytes:
    """The bytes of one file."""
    from bench.report.figures.style import PIXELS_PER_INCH

    buffer = io.BytesIO()
    # The usual level 6 takes three times as long.
    packed: dict[str, Any] = {"pil_kwargs": {"compress_level": 3}} if kind == "png" else {}
    figure.savefig(buffer, format=kind, dpi=PIXELS_PER_INCH, metadata=_metadata(kind, plan), **packed)
    return _described(buffer.getvalue(), plan) if kind == "svg" else buffer.getvalue()


def _described(svg: bytes, plan: Plan) -> bytes:
    """The drawing with a description beside its title, which a reader for the blind says in its place."""
    from xml.sax.saxutils import escape

    from bench.report.figures.layout import caption_of

    told = f"</title>\n <desc>{escape(caption_of(plan))}</desc>".encode()
    return svg.replace(b"</title>", told, 1).replace(b"<svg ", b'<svg role="img" ', 1)


def _finished(told: dict[str, Told | None], folder: Path) -> list[Path]:
    """Writes what is told of all figures together; returns the paths of all files that there are now."""
    known = [one for one in told.values() if one]
    written = [folder / name for one in known for name in one.files]
    written.append(write_file(folder / "figures.csv", figures_csv(known)))
    return [*written, write_file(folder / CAPTIONS, figures_tex(known))]
