"""Rows of a comparison: every figure of every pair of cells, and what has no counterpart. It knows no method."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.judge.compare.about import changes, other
from bench.judge.compare.figures import PLAIN, Figure, Key, figures
from bench.judge.compare.matching import matched
from bench.judge.compare.welch import ratio
from bench.judge.findings import Findings
from bench.judge.measure.intervals import CONFIDENCE
from bench.judge.tables.cell import Cell
from bench.judge.tables.compare import ALIKE, BETTER, NOT_COMPARABLE, ONLY, WORSE, Comparison
from bench.judge.tables.contrast import GRADES

DONE = "done"
ROUNDING = 1e-9
"""A ratio this near to 1 is that of equal figures."""
ByCell = Mapping[tuple[str, str], Mapping[Key, Figure]]


@dataclass(frozen=True)
class Set:
    """What is compared of one results folder, and what that is called."""

    name: str
    cells: list[Cell] = field(default_factory=list)
    figures: dict[tuple[str, str], dict[Key, Figure]] = field(default_factory=dict)
    """By machine and id of the cell."""

    def add(self, part: Set) -> None:
        """Take further cells."""
        self.cells.extend(part.cells)
        self.figures.update(part.figures)


def set_of(findings: Findings, name: str = "") -> Set:
    """What is compared of some findings."""
    return Set(name, list(findings.cells), figures(findings))


def compare(base: Set, present: Set) -> list[Comparison]:
    """A row a figure of each pair of cells, one for a pair that says nothing, and one for each cell without a pair."""
    pairs, gone, further = matched(base.cells, present.cells)
    names: dict[str, Any] = {"base_folder": base.name, "folder": present.name}
    rows = [row for one, another in pairs for row in _pair(one, another, base.figures, present.figures, names)]
    rows += [_alone(cell, names, base.name) for cell in gone if cell.kind]
    return rows + [_alone(cell, names, present.name) for cell in further if cell.kind]


def _pair(base: Cell, present: Cell, theirs: ByCell, ours: ByCell, names: Mapping[str, Any]) -> Iterable[Comparison]:
    about: dict[str, Any] = {
        **names, **_cell(present if present.about else base), "machine": present.machine, "build": present.build,
        "base_machine": base.machine, "base_build": base.build, "base_cell": base.cell, "cell": present.cell,
        "cells": list(dict.fromkeys((base.cell, present.cell))),
    }  # fmt: skip
    if reasons := _unsound(base, names["base_folder"]) + _unsound(present, names["folder"]):
        return [Comparison(**about, figure="", outcome=NOT_COMPARABLE, reason="; ".join(reasons))]
    about["changed"] = "; ".join(changes(base.about, present.about))
    if reasons := other(base.about, present.about):
        return [Comparison(**about, figure="", outcome=NOT_COMPARABLE, reason="; ".join(reasons))]
    left, right = (side.get((cell.machine, cell.cell), {}) for side, cell in ((theirs, base), (ours, present)))
    same_machine = base.machine == present.machine
    return [_figure(about, key, left.get(key), right.get(key), same_machine) for key in dict.fromkeys((*left, *right))]


def _cell(cell: Cell) -> dict[str, Any]:
    return {name: cell[name] for name in ("model", "quantization", "method", "short", "streams", "temperature")}


def _unsound(cell: Cell, folder: str) -> list[str]:
    if cell.state != DONE:
        return [f"{cell.state} in {folder}: {cell.reason}"]
    return [f"void in {folder}: {cell.void_reason}"] if cell.void else []


def _alone(cell: Cell, names: Mapping[str, Any], where: str) -> Comparison:
    mine: dict[str, Any] = {"cell": cell.cell} if where == names["folder"] else {
        "base_cell": cell.cell, "base_machine": cell.machine, "base_build": cell.build}  # fmt: skip
    return Comparison(**names, **_cell(cell), **mine, machine=cell.machine, build=cell.build, cells=[cell.cell],
                      figure="", outcome=ONLY, reason=f"only in {where}")  # fmt: skip


def _figure(about: Mapping[str, Any], key: Key, base: Figure | None, present: Figure | None,
            same_machine: bool) -> Comparison:  # fmt: skip
    known: dict[str, Any] = {**about, "figure": key[0], "part": key[1],
                             "gates": same_machine or key[0] != PLAIN}  # fmt: skip
    if base is None or present is None:
        where = about["folder"] if base is None else about["base_folder"]
        return Comparison(**known, **_numbers(base, present), outcome=ONLY, reason=f"only in {where}")
    if base.side is None or present.side is None:
        steps = GRADES.index(present.grade) - GRADES.index(base.grade)
        outcome = WORSE if steps > 0 else BETTER if steps < 0 else ALIKE
        return Comparison(**known, base_grade=base.grade, grade=present.grade, outcome=outcome)
    found = ratio(base.side, present.side)
    return Comparison(**known, **_numbers(base, present), outcome=_outcome(found.low, found.high, base.less_is_better),
                      ratio=found.value, ci_low=found.low, ci_high=found.high, freedom=found.freedom)  # fmt: skip


def _numbers(base: Figure | None, present: Figure | None) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name, one in (("base", base), ("value", present)):
        if one is not None and one.side is not None:
            told |= {name: one.side.value, f"{name}_ci_low": one.side.low, f"{name}_ci_high": one.side.high}
    return told


def _outcome(low: float, high: float, less_is_better: bool) -> str:
    if math.isnan(low) or math.isnan(high) or low - ROUNDING <= 1 <= high + ROUNDING:
        return ALIKE
    return WORSE if (high < 1) != less_is_better else BETTER


def compared(rows: Iterable[Comparison]) -> list[Comparison]:
    """The rows that say something of two figures."""
    return [row for row in rows if row.outcome in (WORSE, BETTER, ALIKE)]


def worse(rows: Iterable[Comparison]) -> list[Comparison]:
    """The rows that fail a check."""
    return [row for row in rows if row.outcome == WORSE and row.gates]


def by_chance(rows: Iterable[Comparison]) -> float:
    """How many of the ratios that a check asks would look worse if nothing had changed: each interval leaves out 5 %,
    half of it on that side."""
    return (1 - CONFIDENCE) / 2 * sum(row.gates and not math.isnan(row.freedom) and row.ci_low < row.ci_high
                                      for row in compared(rows))  # fmt: skip
