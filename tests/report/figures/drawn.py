"""Draws a figure from findings, and reads back what is on its axes."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from bench.report.figures.layout import drawn
from bench.report.figures.marks import Plan
from bench.report.figures.style import PAGE, drawing_style
from bench.report.tables.conditions import CellIndex
from bench.report.tables.csv_files import Ordered

Drawer = Callable[..., Plan | None]


def planned(drawer: Drawer, findings: SimpleNamespace, claims: list[dict] | None = None) -> Plan | None:
    tables = Ordered(findings)
    return drawer(tables, claims or [], CellIndex.of(tables))


def pages(plan: Plan, width: float = PAGE, titled: bool = True) -> list[Any]:
    with drawing_style():
        return drawn(plan, width, titled)


def points(axes: Any) -> list[tuple[str, float, float]]:
    """Series, x and y of every point that stands for data, to nine digits as the file has them."""
    found = []
    for line in axes.lines:
        series = (line.get_gid() or "").removeprefix("data ")
        if line.get_gid():
            found += [(series, float(x), float(y)) for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]
    return found
