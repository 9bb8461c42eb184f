"""The line of conditions above a table or under a figure, and rows split so that one line is true of all of them.

Knows nothing about what the rows measure. What a row does not say itself is looked up in the cells that it rests on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import MISSING, Row, all_cells, cells_of, get, line, plain, sort_key

Group = tuple[str, str, str, str]
"""Machine, engine build, model, quantization."""

MANY = 6
"""A condition with more values than this is told by its first ones and their number."""


FROM_SPEEDUP = ("n_prompts", "n_blocks", "n_predict", "quantization", "threads")
"""Conditions of a cell that its speed-up row may know when its own row does not."""


@dataclass(frozen=True)
class CellIndex:
    """What the findings say of each cell, by id."""

    rows: Mapping[str, Row] = field(default_factory=dict)
    groups: dict[tuple[Any, ...], Group] = field(default_factory=dict, compare=False, repr=False)
    """Groups that were asked for, by all that they depend on: thousands of rows have a handful of them."""

    @classmethod
    def of(cls, tables: Ordered) -> CellIndex:
        known: dict[str, dict[str, Any]] = {}
        for row in tables.rows("cells"):
            known.update({cell: dict(row) for cell in cells_of(row)})
        for row in tables.rows("speedup"):
            cells = cells_of(row)
            if len(cells) == 1 and cells[0] in known and get(row, "prompt_class") in ("all", None):
                about = known[cells[0]]
                about.update({key: row.get(key) for key in FROM_SPEEDUP if get(about, key) is None})
        return cls(known)

    def find(self, row: Row, *names: str) -> Any:
        """The first of `names` that the row has, else that one of its cells has; None when no one says."""
        found = get(row, *names)
        if found is not None:
            return found
        for cell in cells_of(row):
            found = get(self.rows.get(cell, {}), *names)
            if found is not None:
                return found
        return None


def group_of(row: Row, index: CellIndex) -> Group:
    """What must be equal for two rows to stand in one table."""
    model = row.get("model")
    if isinstance(model, Mapping):
        return _group_of(row, index)
    key = (row.get("machine"), row.get("build"), model, row.get("quantization"), *cells_of(row))
    if key not in index.groups:
        index.groups[key] = _group_of(row, index)
    return index.groups[key]


def _group_of(row: Row, index: CellIndex) -> Group:
    model = plain(row.get("model"))
    nested = get(model, "quantization") if isinstance(model, Mapping) else None
    machine, build, name = (line(index.find(row, key)) for key in ("machine", "build", "model"))
    return machine, build, name, line(index.find(row, "quantization") or nested)


def grouped(rows: Iterable[Row], index: CellIndex) -> list[tuple[Group, list[Row]]]:
    """Rows by group, groups in alphabetical order."""
    groups: dict[Group, list[Row]] = {}
    for row in rows:
        groups.setdefault(group_of(row, index), []).append(row)
    return sorted(groups.items())


def _values(rows: Sequence[Row], index: CellIndex, *names: str) -> list[Any]:
    """Distinct values of a condition over the rows and, where rows are silent, over their cells."""
    found: list[Any] = [get(row, *names) for row in rows]
    found = [value for value in found if value is not None]
    if not found:
        found = [get(index.rows[cell], *names) for cell in all_cells(rows) if cell in index.rows]
        found = [value for value in found if value is not None]
    single = [value for value in found if type(value) in (str, int, float)]
    # Thousands of rows have a handful of values; of those that read alike the last one counts.
    unique = {line(value): value for value in dict.fromkeys(reversed(single)).__reversed__()}
    for value in found if len(single) < len(found) else ():
        if isinstance(value, (list, tuple, set)):
            unique.update({line(part): part for part in value})
        elif not isinstance(value, Mapping):
            unique[line(value)] = value
    return sorted(unique.values(), key=lambda value: sort_key({"value": value}, ["value"]))


def _listed(values: Sequence[Any]) -> str:
    if not values:
        return MISSING
    told = ", ".join(line(value) for value in values[:MANY])
    return told if len(values) <= MANY else f"{told} and {len(values) - MANY} more"


def _threads(rows: Sequence[Row], index: CellIndex) -> list[Any]:
    """Threads stand on their own or among the engine's settings."""
    direct = _values(rows, index, "threads", "n_threads")
    if direct:
        return direct
    sources = [*rows, *(index.rows[cell] for cell in all_cells(rows) if cell in index.rows)]
    nested = [plain(row.get(key)) for row in sources for key in ("engine", "engine_settings")]
    found = {get(value, "threads") for value in nested if isinstance(value, Mapping)} - {None}
    return sorted(found, key=str)


def _dates(rows: Sequence[Row], index: CellIndex) -> str:
    days = sorted({line(value)[:10] for value in _values(rows, index, "date", "time_utc")})
    if not days:
        return MISSING
    return days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"


def condition(rows: Sequence[Row], index: CellIndex) -> str:
    """`machine ...; engine build ...; model ...; threads ...; n_predict ...; prompts ...; blocks ...; cells of ...`"""
    groups = {group_of(row, index) for row in rows}
    parts = {
        "machine": _listed(sorted({machine for machine, *_ in groups} - {MISSING})),
        "engine build": _listed(sorted({build for _, build, *_ in groups} - {MISSING})),
        "model": _listed(sorted({_model(group) for group in groups} - {MISSING})),
        "threads": _listed(_threads(rows, index)),
        "n_predict": _listed(_values(rows, index, "n_predict")),
        "prompts": _listed(_values(rows, index, "n_prompts", "prompts")),
        "blocks": _listed(_values(rows, index, "n_blocks", "blocks")),
        "cells of": _dates(rows, index),
    }
    return "; ".join(f"{name} {value}" for name, value in parts.items())


def _model(group: Group) -> str:
    _, _, model, quantization = group
    return model if quantization == MISSING or model == MISSING else f"{model} {quantization}"
