"""What the judge found: one list of rows a table, and the checks of a cell. It computes no statistic.

Every row names its machine, the engine build and the cells that it rests on; the types of rows are in
`bench.judge.tables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.judge.columns import Row
from bench.judge.tables import TABLES
from bench.judge.tables.cell import ControlRow
from bench.machine_name import make_of
from bench.records.manifest import build_of

if TYPE_CHECKING:
    from bench.judge.traces import Traces
    from bench.records.cells import StoredCell

__all__ = ["MARK", "OK", "VOID", "WARNING", "Control", "Findings", "Row", "engine_build", "is_synthetic",
           "model_of", "origin", "rerun"]  # fmt: skip

OK, WARNING, VOID = "ok", "warning", "void"
"""How bad a control is: passed, worth reading, or the cell says nothing."""
MARK = "(synthetic)"
"""Behind the name of a model whose weights are random."""
AS_FILED = "(repack=false)"
"""Behind the name of a build that packs no weights, as it was asked."""


class Findings:
    """The tables of the judge, each a list of rows under its name. Raises TypeError for a table that there is not."""

    def __init__(self, **tables: Iterable[Any]) -> None:
        self.traces: list[Traces] = []
        """What a reader can look at of each cell's records, where that was asked for. No table, and in no file of one.
        """
        for name in TABLES:
            setattr(self, name, list(tables.pop(name, ())))
        if tables:
            raise TypeError(f"the findings have no table {', '.join(tables)}")

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> list[Any]:
            """Every table is an attribute."""

    def __repr__(self) -> str:
        return f"Findings({', '.join(f'{name}={getattr(self, name)!r}' for name in TABLES)})"

    def tables(self) -> dict[str, list[Any]]:
        """The rows of every table, by its name."""
        return {name: getattr(self, name) for name in TABLES}


@dataclass(frozen=True, slots=True)
class Control:
    """One check of one cell. `void` makes every number of the cell worthless; `warning` asks the reader to look."""

    control: str
    severity: str
    sentence: str
    value: float = float("nan")
    ci_low: float = float("nan")
    ci_high: float = float("nan")

    def row(self, cell: StoredCell) -> ControlRow:
        """The check as a row of the findings."""
        return ControlRow(
            **origin(cell), cell=cell.cell, control=self.control, ok=self.severity != VOID, severity=self.severity,
            value=self.value, ci_low=self.ci_low, ci_high=self.ci_high, sentence=self.sentence,
        )  # fmt: skip


def engine_build(cell: StoredCell) -> str:
    """Name of the engine's libraries, by their files."""
    return build_of(cell.env)


def origin(cell: StoredCell) -> dict[str, Any]:
    """Machine, engine build and cell id: where a fact comes from.

    A build that was told to leave weights in the file's order is another one to whoever reads its figures.
    """
    build, settings = engine_build(cell), cell.config.get("engine")
    as_filed = isinstance(settings, Mapping) and settings.get("repack") is False
    told = f"{build} {AS_FILED}" if build and as_filed else build
    return {"machine": cell.machine, "build": told, "cells": [cell.cell]}


def is_synthetic(cell: StoredCell) -> bool:
    """Whether the cell's model has random weights; a failed cell may know it from its plan alone."""
    sources: tuple[Mapping[str, Any], ...] = (cell.facts, cell.config)
    return any(bool((source.get("model") or {}).get("synthetic")) for source in sources)


def model_of(cell: StoredCell) -> dict[str, str]:
    """`model` and `quantization` of a row. Of a model with random weights the name says so."""
    name = str((cell.config.get("model") or {}).get("name", ""))
    marked = is_synthetic(cell) and MARK not in name
    return {"model": f"{name} {MARK}" if marked else name,
            "quantization": (cell.facts.get("model") or {}).get("quantization", "")}  # fmt: skip


def rerun(cell: StoredCell) -> str:
    """What measures a cell again: a sweep keeps what is done, so the folder has to go first."""
    return f"`rm -r results/{make_of(cell.machine)}/{cell.cell}` and the same sweep again"
