"""What is said of the figures beside them: `figures.csv` for who reads on, `figures.tex` for who prints.

A caption has the conditions, what is left out, and every cell that the figure rests on. Knows nothing about drawing.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from bench.plain_text import csv_cell
from bench.report.figures.layout import caption_of, page_count
from bench.report.figures.marks import Plan
from bench.report.tables.latex import escaped

COLUMNS = ("figure", "title", "x", "y", "condition", "left_out", "cells")
HEAD = """% The figures at a page's width, made by `python -m bench figures`; those of a column's width are in column/.
% \\input this file or copy one of it. It needs \\usepackage{graphicx}, and the folder of the figures in \\graphicspath.
"""


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of one figure."""

    name: str
    title: str
    x: str
    y: str
    says: str
    condition: str
    left_out: str
    cells: tuple[str, ...]
    caption: str
    files: tuple[str, ...]
    """All files of it, relative to the folder of figures."""
    pages: int
    """How many files it takes at a page's width."""


def told_of(name: str, plan: Plan, files: Sequence[str]) -> Told:
    return Told(
        name, plan.title, plan.x, plan.y, plan.says, plan.condition, plan.left_out, plan.cells, caption_of(plan),
        tuple(files), page_count(plan),
    )  # fmt: skip


def figures_csv(figures: Sequence[Told]) -> str:
    """A line a figure: what its axes are, under which conditions, on which cells."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in figures:
        words = [one.name, one.title, one.x, one.y, one.condition, one.left_out, " ".join(one.cells) or "none"]
        writer.writerow([csv_cell(word) for word in words])
    return out.getvalue()


def figures_tex(figures: Sequence[Told]) -> str:
    """A figure environment for each page of each figure, with its caption."""
    return HEAD + "".join(_environment(one, page) for one in figures for page in range(one.pages))


def _environment(one: Told, page: int) -> str:
    stem = one.name + (f"-{page + 1}" if page else "")
    whole = f"{one.title}. {one.caption} Cells: {' '.join(one.cells) or 'none'}."
    caption = f"{one.title}, continued." if page else whole
    told = [f"includegraphics{{{stem}}}", f"caption{{{escaped(caption)}}}", f"label{{fig:{stem}}}"]
    return "\n".join(["", "\\begin{figure*}", *(f"  \\{one}" for one in ("centering", *told)), "\\end{figure*}", ""])
